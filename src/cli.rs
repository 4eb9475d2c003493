//! The command line: what it accepts, and which part does it.

mod args;
mod check;
mod run;
mod signals;

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::Parser as _;

use args::{Cli, Command, ImageCommand};

use crate::progress::printable;

/// How a command failed: the text for the user and the exit code for a script.
#[derive(Debug)]
pub struct Failure {
    /// What to say; empty when everything was said.
    pub text: String,
    /// Exit code.
    pub code: u8,
}

impl Failure {
    fn new(code: u8, error: impl std::fmt::Display) -> Self {
        Self::rendered(code, harmless(&error.to_string()))
    }

    /// Of a text that was made for the terminal, with its colours.
    fn rendered(code: u8, text: String) -> Self {
        Self { text, code }
    }
}

/// Runs the program with the process's arguments.
#[must_use]
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(e) => {
            let _ = e.print();
            return ExitCode::from(if e.use_stderr() { 2 } else { 0 });
        }
    };
    match dispatch(cli.command) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            if !failure.text.is_empty() {
                let _ = writeln!(std::io::stderr(), "error: {}", failure.text.trim_end());
            }
            ExitCode::from(failure.code)
        }
    }
}

fn dispatch(command: Command) -> Result<u8, Failure> {
    match command {
        Command::Run(args) => asynchronous(run::run(args)),
        Command::Check(args) => asynchronous(check::check(args)),
        Command::Plan(args) => run::plan(&args),
        Command::Report(args) => run::report(&args),
        Command::Image(args) => match args.command {
            ImageCommand::Import(args) => asynchronous(run::import(args)),
        },
        Command::Clean(args) => asynchronous(run::clean(args)),
        Command::Agent { job } => {
            crate::agent::run(&job, std::io::stdout())
                .map_err(|e| Failure::new(1, format!("cannot write the result: {e}")))?;
            Ok(0)
        }
        Command::Facts => {
            let facts = crate::agent::facts::read();
            let text = serde_json::to_string(&facts).map_err(|e| Failure::new(1, e))?;
            print_line(&text)
        }
        Command::PageCache { state } => {
            crate::agent::page_cache::apply(state.into(), std::path::Path::new("/"))
                .map_err(|e| Failure::new(1, e))?;
            Ok(0)
        }
        Command::Upstream(args) => Ok(sweep_upstream::program::main(&args)),
    }
}

/// One thread is enough to talk to an engine, and leaves the others to what is measured.
fn asynchronous(future: impl Future<Output = Result<u8, Failure>>) -> Result<u8, Failure> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| Failure::new(1, format!("cannot start the runtime: {e}")))?
        .block_on(future)
}

/// Prints to standard output; a reader that went away is no error.
fn print_line(text: &str) -> Result<u8, Failure> {
    let _ = writeln!(std::io::stdout(), "{}", harmless(text));
    Ok(0)
}

/// A text as it is, but for what could steer a terminal: labels and messages of an engine, a proxy's log and the lock
/// file are other people's.
fn harmless(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(printable).collect();
    lines.join("\n")
}

fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_wrote_cannot_steer_the_terminal() {
        let label = "removed \u{1b}]0;title\u{7}x of run \u{9b}2J\rab\u{202e}c";
        let failure = Failure::new(3, label);
        assert_eq!(
            failure.text,
            "removed \\u{1b}]0;title\\u{7}x of run \\u{9b}2J\\rab\\u{202e}c"
        );
        assert_eq!(harmless("one\ntwo\n"), "one\ntwo\n");
    }
}
