//! The fixed-delay upstream's executable.

use std::process::ExitCode;

use clap::Parser as _;
use sweep_upstream::cli::Args;

const USAGE: u8 = 2;

fn main() -> ExitCode {
    match Args::try_parse() {
        Ok(args) => ExitCode::from(sweep_upstream::program::main(&args)),
        Err(error) => {
            let _ = error.print();
            ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE))
        }
    }
}
