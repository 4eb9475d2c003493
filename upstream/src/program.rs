//! The server as a program: run by its own executable, and by any other that carries it.

use std::io::{self, Write as _};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::cli::Args;
use crate::{Report, ServeError, Server, serve};

const USAGE: u8 = 2;
const CANNOT_RUN: u8 = 3;

/// Serves as the arguments say until a signal or the end of its lifetime, and prints the report; the exit code.
#[must_use]
pub fn main(args: &Args) -> u8 {
    match run(args) {
        Ok(report) => match print_report(&report) {
            Ok(()) => 0,
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

fn fail(message: &str, code: u8) -> u8 {
    for line in message.lines() {
        let _ = writeln!(io::stderr(), "error: {line}");
    }
    code
}
