//! The `sweep` program; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    sweep::cli::main(std::env::args_os())
}
