//! How long it takes to judge block headers, and to store and to load them, in multiples of one bare
//! double SHA-256 of a header. Prints the memory that a chain of 100,000 headers takes, too.

#![allow(clippy::unwrap_used, reason = "what fails here fails a measurement")]

mod comparison;
#[path = "../../bsv-network/tests/headers/regtest.rs"]
mod regtest;

use std::convert::Infallible;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};

use bsv_network::headers::{Checkpoint, HeaderChain, HeaderFile, HeaderFileError};
use bsv_tx::{BlockHeader, Network, sha256d};
use comparison::Comparison;

use self::regtest::regtest;

/// The headers of blocks 900,000 to 909,999 of the main network.
const HEADERS: &[u8] = include_bytes!("../../bsv-network/tests/headers/main-900000-909999.headers");
const WINDOW: usize = 147 * BlockHeader::LEN;
/// How many headers a source gives at once.
const CHUNK: usize = 2_000;
/// How many headers are loaded.
const STORED: usize = 100_000;
/// Memory that the system gives at once, in bytes.
const PAGE: u64 = 4_096;

fn main() {
    let mut headers = HEADERS.chunks(BlockHeader::LEN).cycle();
    let bare = || {
        black_box(sha256d(black_box(headers.next().unwrap())));
    };
    comparison::run("headers", ("bare double SHA-256", bare), measure);
    let directory = tempfile::tempdir().unwrap();
    let path = store(directory.path());
    let before = resident();
    let file = open(&path).unwrap();
    let taken = resident().saturating_sub(before);
    println!("{} headers take {} KB of memory", file.chain().tip().height, taken / 1_000);
}

fn measure(comparison: &mut Comparison<'_>) {
    let checkpoint =
        Checkpoint::from_headers(Network::Livenet, 900_146, &HEADERS[..WINDOW], 0).unwrap();
    let headers: Vec<_> = HEADERS[WINDOW..]
        .chunks(BlockHeader::LEN)
        .map(|header| BlockHeader::from_bytes(header).unwrap())
        .collect();
    let count = headers.len() as f64;
    comparison.add(&format!("{count} headers, judged"), None, || {
        let mut chain = HeaderChain::new(Network::Livenet, &checkpoint);
        let valid: usize =
            headers.chunks(CHUNK).map(|chunk| chain.extend(chunk, u64::MAX).valid).sum();
        assert_eq!(valid, headers.len());
        Ok::<_, Infallible>(chain)
    });
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("headers");
    comparison.add(&format!("{count} headers, judged and stored"), None, || {
        let file = HeaderFile::open(&path, Network::Livenet, &checkpoint)?;
        for chunk in headers.chunks(CHUNK) {
            file.extend(chunk, u64::MAX)?;
        }
        drop(file);
        fs::remove_file(&path).unwrap();
        Ok::<_, HeaderFileError>(())
    });
    let path = store(directory.path());
    comparison.add(&format!("{STORED} headers, loaded"), None, || open(&path));
}

/// Stores headers of regtest.
fn store(directory: &Path) -> PathBuf {
    let path = directory.join("regtest");
    let file = open(&path).unwrap();
    let genesis = *file.chain().header_at(0).unwrap();
    file.extend(&regtest(genesis, STORED, 1), u64::MAX).unwrap();
    path
}

fn open(path: &Path) -> Result<HeaderFile, HeaderFileError> {
    HeaderFile::open(path, Network::Regtest, &Checkpoint::of(Network::Regtest))
}

/// The memory of this process, in bytes.
fn resident() -> u64 {
    let found = fs::read_to_string("/proc/self/statm").unwrap();
    let pages: u64 = found.split(' ').nth(1).unwrap().parse().unwrap();
    pages * PAGE
}
