//! Headers of the main network (`headers/`), judged and kept.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::fs;

use bsv_network::bsv_tx::{BlockHeader, Network};
use bsv_network::headers::{Checkpoint, HeaderChain, HeaderError, HeaderFile, HeaderFileError};
use proptest::prelude::*;

use self::regtest::regtest;

#[path = "headers/regtest.rs"]
mod regtest;

/// The headers of blocks 900,000 to 909,999.
const HEADERS: &[u8] = include_bytes!("headers/main-900000-909999.headers");
const WINDOW: usize = 147 * BlockHeader::LEN;
/// The height of the last header in the window.
const TRUSTED: u32 = 900_146;
/// After the last header.
const NOW: u64 = 1_759_000_000;

fn checkpoint() -> Checkpoint {
    Checkpoint::from_headers(Network::Livenet, TRUSTED, &HEADERS[..WINDOW], 0).unwrap()
}

fn chain() -> HeaderChain {
    HeaderChain::new(Network::Livenet, &checkpoint())
}

fn headers() -> Vec<BlockHeader> {
    let headers = HEADERS[WINDOW..].chunks(BlockHeader::LEN);
    headers.map(|header| BlockHeader::from_bytes(header).unwrap()).collect()
}

#[test]
fn real_headers_are_taken_in_chunks_of_any_size() {
    let headers = headers();
    for size in [1, 7, 2_000, headers.len()] {
        let mut chain = chain();
        for chunk in headers.chunks(size) {
            let extended = chain.extend(chunk, NOW);
            assert_eq!((extended.valid, extended.refusal), (chunk.len(), None));
        }
        let tip = chain.tip();
        assert_eq!((tip.height, tip.hash), (909_999, headers[headers.len() - 1].block_hash()));
        let given = (900_000..).zip(HEADERS.chunks(BlockHeader::LEN));
        for (height, bytes) in given {
            assert_eq!(chain.header_at(height), BlockHeader::from_bytes(bytes).ok());
        }
        assert_eq!(chain.height_of(&headers[5].block_hash()), Some(900_152));
        assert_eq!(chain.header_at(910_000), None);
    }
}

#[test]
fn sources_may_repeat_what_others_gave() {
    let (headers, mut chain) = (headers(), chain());
    for chunk in headers.windows(50).step_by(20) {
        assert_eq!(chain.extend(chunk, NOW).refusal, None);
    }
    assert!(chain.tip().height > 909_900);
}

#[test]
fn headers_of_the_future_are_taken_later() {
    let (headers, mut chain) = (headers(), chain());
    let early = u64::from(headers[0].time) - 7_201;
    let refusal = chain.extend(&headers[..1], early).refusal;
    assert_eq!(refusal, Some(HeaderError::TooNew(headers[0].time)));
    assert_eq!(chain.extend(&headers[..1], early + 1).valid, 1);
}

#[test]
fn what_follows_no_known_header_or_begins_below_the_checkpoint_is_refused() {
    let (headers, mut chain) = (headers(), chain());
    let refusal = chain.extend(&headers[1..], NOW).refusal;
    assert_eq!(refusal, Some(HeaderError::UnknownParent(headers[0].block_hash())));
    let below = BlockHeader::from_bytes(&HEADERS[80..160]).unwrap();
    let below = BlockHeader { nonce: 0, ..below };
    let refusal = chain.extend(&[below], NOW).refusal;
    assert_eq!(refusal, Some(HeaderError::BelowCheckpoint(900_001)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn an_altered_header_is_refused(at in 0_usize..9_853, bit in 0_usize..640) {
        // One chain serves all cases: what is refused leaves no trace.
        thread_local! {
            static CHAIN: HeaderChain = {
                let mut chain = chain();
                chain.extend(&headers(), NOW);
                chain
            };
        }
        let start = WINDOW + at * BlockHeader::LEN;
        let mut bytes = HEADERS[start..start + BlockHeader::LEN].to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let header = BlockHeader::from_bytes(&bytes).unwrap();
        CHAIN.with(|chain| {
            let extended = chain.clone().extend(&[header], NOW);
            prop_assert_eq!(extended.valid, 0);
            prop_assert!(extended.refusal.is_some());
            Ok(())
        })?;
    }
}

#[test]
fn a_file_keeps_the_chain_and_is_cut_where_it_is_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("headers");
    let headers = headers();
    let open = || HeaderFile::open(&path, Network::Livenet, &checkpoint());
    let file = open().unwrap();
    assert_eq!(file.extend(&headers[..500], NOW).unwrap().valid, 500);
    assert!(matches!(open(), Err(HeaderFileError::InUse(_))));
    drop(file);
    let whole = fs::read(&path).unwrap();
    assert_eq!(whole[80..], HEADERS[WINDOW..][..500 * 80]);

    let reopened = |bytes: &[u8]| {
        fs::write(&path, bytes).unwrap();
        let file = open().unwrap();
        let kept = file.chain().tip().height - TRUSTED;
        assert_eq!(fs::metadata(&path).unwrap().len(), 80 + u64::from(kept) * 80);
        kept
    };
    assert_eq!(reopened(&whole), 500);
    for length in [0, 1, 79, 80, 80 + 79] {
        assert_eq!(reopened(&whole[..length]), 0);
    }
    assert_eq!(reopened(&whole[..80 + 499 * 80 + 79]), 499);
    let mut torn = whole.clone();
    torn[80 + 300 * 80..80 + 350 * 80].fill(0);
    assert_eq!(reopened(&torn), 300);
    // Headers that do not follow the checkpoint, and headers after another one.
    assert_eq!(reopened(&[&whole[..80], &whole[160..]].concat()), 0);
    let mut other = whole.clone();
    other[79] ^= 1;
    assert_eq!(reopened(&other), 0);
}

#[test]
fn a_file_of_something_else_is_refused_and_left_as_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("headers");
    let regtest = Checkpoint::of(Network::Regtest);
    drop(HeaderFile::open(&path, Network::Regtest, &regtest).unwrap());
    let of_regtest = fs::read(&path).unwrap();
    for contents in [b"a key".to_vec(), vec![0; 4_000], HEADERS[..8_000].to_vec(), of_regtest] {
        fs::write(&path, &contents).unwrap();
        let error = HeaderFile::open(&path, Network::Livenet, &checkpoint()).unwrap_err();
        assert!(matches!(error, HeaderFileError::OtherContents { .. }), "{error}");
        assert_eq!(fs::read(&path).unwrap(), contents);
    }
}

fn regtest_chain() -> (HeaderChain, BlockHeader) {
    let chain = HeaderChain::new(Network::Regtest, &Checkpoint::of(Network::Regtest));
    let genesis = chain.header_at(0).unwrap();
    (chain, genesis)
}

#[test]
fn branches_that_are_given_remain_while_others_are_forgotten() {
    let (mut chain, genesis) = regtest_chain();
    let best = regtest(genesis, 9_000, 1);
    chain.extend(&best, NOW);
    let fetched = regtest(genesis, 9_001, 2);
    for (own, part) in (3..).zip(fetched.chunks(900)) {
        // Others fill all places meanwhile.
        for chunk in regtest(genesis, 8_000, own).chunks(2_000) {
            chain.extend(chunk, NOW);
        }
        let extended = chain.extend(part, NOW);
        assert_eq!((extended.valid, extended.refusal), (part.len(), None));
    }
    assert_eq!(chain.tip().hash, fetched[9_000].block_hash());
    // The former best branch is one of the others.
    assert_eq!(chain.extend(&best, NOW).new, 0);
    for own in 40..50 {
        chain.extend(&regtest(genesis, 8_000, own), NOW);
    }
    assert_eq!(chain.extend(&best, NOW).new, 9_000);
    assert_eq!(chain.height_of(&fetched[4_000].block_hash()), Some(4_001));
    for (height, header) in (1..).zip(&fetched) {
        assert_eq!(chain.header_at(height).as_ref(), Some(header));
    }
}

#[test]
fn a_branch_may_be_as_long_as_the_best_one() {
    let (mut chain, genesis) = regtest_chain();
    let best = regtest(genesis, 42_000, 1);
    chain.extend(&best, NOW);
    let longer = regtest(genesis, 42_001, 2);
    for part in longer.chunks(2_000) {
        let extended = chain.extend(part, NOW);
        assert_eq!((extended.valid, extended.refusal), (part.len(), None));
    }
    assert_eq!(chain.tip().hash, longer[42_000].block_hash());
}

#[test]
fn a_header_of_the_future_is_awaited_if_it_brings_more_work_soon() {
    let (mut chain, genesis) = regtest_chain();
    let headers = regtest(genesis, 3, 1);
    chain.extend(&headers, NOW);
    let mut is_ahead = |parent: &BlockHeader, time: u64| {
        let mut header = regtest(*parent, 1, 2)[0];
        header.time = time as u32;
        while !header.has_proof_of_work() {
            header.nonce += 1;
        }
        let extended = chain.extend(&[header], NOW);
        assert_eq!(extended.refusal, Some(HeaderError::TooNew(header.time)));
        extended.is_ahead
    };
    assert!(is_ahead(&headers[2], NOW + 7_201));
    assert!(is_ahead(&headers[2], NOW + 14_400));
    assert!(!is_ahead(&headers[2], NOW + 14_401));
    // Whoever has no more work than we have is not ahead of us.
    assert!(!is_ahead(&headers[1], NOW + 7_201));
}

#[test]
fn a_chain_knows_the_roots_of_the_headers_that_it_has() {
    let mut chain = chain();
    chain.extend(&headers(), NOW);
    assert_eq!(chain.median_time(), Some(1_755_212_595));
    let root = headers()[0].merkle_root;
    let found = [899_999, 900_146, 900_147, 910_000].map(|height| chain.has_root(height, root));
    assert_eq!(found, [None, Some(false), Some(true), None]);
    let chain = HeaderChain::new(Network::Testnet, &Checkpoint::of(Network::Testnet));
    assert_eq!(chain.has_root(chain.tip().height, root), None);
}
