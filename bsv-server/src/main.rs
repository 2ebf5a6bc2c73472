//! The server of the wallet and miner identity service.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// Pages that come and go with the store's cache leave holes in the C library's memory.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    bsv_server::main()
}
