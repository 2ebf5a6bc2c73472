//! The server of the wallet and miner identity service.

use std::process::ExitCode;

use mimalloc::MiMalloc;
use rustix::thread::disable_transparent_huge_pages;

/// The cached pages of the store come and go, which fragments the memory of the C library's
/// allocator.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    // Huge pages would keep the unused parts of many small buffers in memory. If the kernel refuses,
    // the server only takes more memory.
    let _ = disable_transparent_huge_pages(true);
    bsv_server::main()
}
