//! The server of the miner identity service.

use std::process::ExitCode;

fn main() -> ExitCode {
    bsv_server::main()
}
