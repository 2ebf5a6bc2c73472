//! How long it takes to judge block headers, and to store and to load them, in multiples of one bare
//! double SHA-256 of a header. Prints the memory that 100,000 stored headers take, too.

#![allow(clippy::unwrap_used, reason = "what fails here fails a measurement")]

mod comparison;
#[path = "../../bsv-network/tests/headers/regtest.rs"]
mod regtest;

use std::convert::Infallible;
use std::env;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::Command;

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
/// Names the file to the process that measures its memory. It reuses none.
const MEASURED: &str = "BSV_BENCH_HEADERS";

fn main() {
    if let Some(path) = env::var_os(MEASURED) {
        return measure_memory(Path::new(&path));
    }
    let mut headers = HEADERS.chunks(BlockHeader::LEN).cycle();
    let bare = || {
        black_box(sha256d(black_box(headers.next().unwrap())));
    };
    comparison::run("headers", ("bare double SHA-256", bare), measure);
    let directory = tempfile::tempdir().unwrap();
    let mut measuring = Command::new(env::current_exe().unwrap());
    measuring.env(MEASURED, store(directory.path()));
    assert!(measuring.status().unwrap().success());
}

/// Prints what a file of headers adds to the memory of this process, and to its peak.
fn measure_memory(path: &Path) {
    let before = memory("VmRSS:");
    let file = open(path).unwrap();
    let [after, peak] = ["VmRSS:", "VmHWM:"].map(|name| (memory(name) - before) / 1_000.0);
    let headers = file.chain().tip().height;
    println!(
        "{headers} headers take {after:.1} MB of memory, and {peak:.1} MB while they are loaded"
    );
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
    let genesis = file.chain().header_at(0).unwrap();
    file.extend(&regtest(genesis, STORED, 1), u64::MAX).unwrap();
    path
}

fn open(path: &Path) -> Result<HeaderFile, HeaderFileError> {
    HeaderFile::open(path, Network::Regtest, &Checkpoint::of(Network::Regtest))
}

/// The memory of this process by a name of the system, in KB.
fn memory(name: &str) -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
    let kibibytes: f64 = line.trim_end_matches("kB").trim().parse().unwrap();
    kibibytes * 1.024
}
