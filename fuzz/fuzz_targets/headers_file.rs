//! Any bytes as the file of headers. One that opens keeps the valid headers at its front and nothing
//! else, and takes further ones. One that does not is left as it is.

#![no_main]

use std::fs;
use std::sync::LazyLock;

use bsv_network::headers::{Checkpoint, HeaderFile};
use bsv_tx::{BlockHeader, Network};
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

const NETWORK: Network = Network::Regtest;
const PREFIX: usize = 80;

/// A directory in memory, if there is one: the files are synced.
static DIR: LazyLock<TempDir> =
    LazyLock::new(|| TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap());

fuzz_target!(|bytes: &[u8]| {
    let path = DIR.path().join("headers");
    fs::write(&path, bytes).unwrap();
    let checkpoint = Checkpoint::of(NETWORK);
    let open = || HeaderFile::open(&path, NETWORK, &checkpoint);
    let Ok(file) = open() else {
        assert_eq!(fs::read(&path).unwrap(), bytes);
        return;
    };
    let tip = file.chain().tip();
    let kept = fs::read(&path).unwrap();
    assert_eq!(kept.len(), PREFIX + tip.height as usize * BlockHeader::LEN);
    if tip.height > 0 {
        assert_eq!(kept, bytes[..kept.len()]);
    }
    let last = file.chain().header_at(tip.height).unwrap();
    assert_eq!(last.block_hash(), tip.hash);
    let mut next = BlockHeader {
        version: 4,
        previous_block: tip.hash,
        time: u32::MAX,
        bits: 0x207f_ffff,
        nonce: 0,
        ..last
    };
    while !next.has_proof_of_work() {
        next.nonce += 1;
    }
    let extended = file.extend(&[next], u64::MAX).unwrap();
    // What was stored before may have a time or a difficulty that nothing can follow.
    let expected = file.chain().tip();
    assert_eq!(expected.height, tip.height + extended.new as u32);
    drop(file);
    assert_eq!(open().unwrap().chain().tip(), expected);
});
