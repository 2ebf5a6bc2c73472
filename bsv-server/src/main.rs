//! The server of the wallet and miner identity service.

use std::process::ExitCode;

use mimalloc::MiMalloc;

/// The cached pages of the store come and go, which fragments the memory of the C library's
/// allocator.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    bsv_server::main()
}
