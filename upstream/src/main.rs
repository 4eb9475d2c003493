//! The fixed-delay upstream's executable.

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use sweep_upstream::cli::Args;
use sweep_upstream::{Report, ServeError, Server, serve};
use tokio::signal::unix::{Signal, SignalKind, signal};

const USAGE: u8 = 2;
const CANNOT_RUN: u8 = 3;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE));
        }
    };
    match run(&args) {
        Ok(report) => match print_report(&report) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(&format!("cannot print the report: {error}"), CANNOT_RUN),
        },
        Err(error @ ServeError::Config(_)) => fail(&error.to_string(), USAGE),
        Err(error) => fail(&error.to_string(), CANNOT_RUN),
    }
}

fn run(args: &Args) -> Result<Report, ServeError> {
    let config = args.config().map_err(ServeError::Config)?;
    let main_thread = |source| ServeError::Thread {
        thread: "main".to_owned(),
        source,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(main_thread)?;
    runtime.block_on(async {
        // Before anything is served: the first process of a container ignores signals that it does not handle.
        let terminate = signal(SignalKind::terminate()).map_err(main_thread)?;
        let interrupt = signal(SignalKind::interrupt()).map_err(main_thread)?;
        let mut server = serve(&config)?;
        // Nobody need read it.
        let _ = print_addresses(&server);
        tokio::select! {
            () = end(terminate, interrupt, args.max_lifetime) => Ok(server.shutdown()),
            error = server.failure() => Err(error),
        }
    })
}

async fn end(mut terminate: Signal, mut interrupt: Signal, lifetime: Option<Duration>) {
    let lived = async {
        match lifetime {
            Some(lifetime) => tokio::time::sleep(lifetime).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = lived => {}
    }
}

fn print_addresses(server: &Server) -> io::Result<()> {
    let mut out = io::stdout().lock();
    write!(out, "listening on {}", server.addr())?;
    if let Some(control) = server.control_addr() {
        write!(out, ", control on {control}")?;
    }
    writeln!(out)?;
    out.flush()
}

fn print_report(report: &Report) -> io::Result<()> {
    let mut out = io::stdout().lock();
    serde_json::to_writer(&mut out, report)?;
    writeln!(out)?;
    out.flush()
}

fn fail(message: &str, code: u8) -> ExitCode {
    for line in message.lines() {
        let _ = writeln!(io::stderr(), "error: {line}");
    }
    ExitCode::from(code)
}
