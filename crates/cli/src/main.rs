//! The one binary; everything is in the library, which the Python module uses as well.

use std::process::ExitCode;

fn main() -> ExitCode {
    models::prepare_process();
    ExitCode::from(cli::main(std::env::args_os().skip(1)))
}
