//! The `myriad` command.

use std::process::ExitCode;

fn main() -> ExitCode {
    myriad::app::cli::main()
}
