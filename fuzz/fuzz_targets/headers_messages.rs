//! Messages of a node that gives headers: any bytes, and whole messages with any contents. What a
//! client takes for an answer follows a block that it has asked from, and a chain can judge it.
//!
//! An even first byte says that bytes of a connection follow. An odd one says that messages follow:
//! a byte for the command, two for the length, and the contents of each.

#![no_main]

use std::io::Cursor;
use std::sync::LazyLock;

use bsv_network::headers::{Checkpoint, HeaderChain, Peer, framed};
use bsv_tx::{BlockHeader, Network};
use libfuzzer_sys::fuzz_target;
use tokio::io::{join, sink};
use tokio::runtime::{Builder, Runtime};

const NETWORK: Network = Network::Regtest;
const COMMANDS: [&str; 8] =
    ["version", "verack", "ping", "pong", "inv", "headers", "protoconf", "\u{1b}[1m"];

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_time().build().unwrap());

fuzz_target!(|bytes: &[u8]| {
    let Some((kind, bytes)) = bytes.split_first() else { return };
    // The greeting of a node at height 3.
    let mut sent = message("version", &[&[0; 81], &3_i32.to_le_bytes()[..]].concat());
    sent.extend(message("verack", &[]));
    if kind % 2 == 0 {
        sent.extend_from_slice(bytes);
    } else {
        messages(bytes, &mut sent);
    }
    sent.extend(message("pong", &1_u64.to_le_bytes()));
    let mut chain = HeaderChain::new(NETWORK, &Checkpoint::of(NETWORK));
    let locator = chain.locator(None);
    let answer = RUNTIME.block_on(async {
        let stream = join(Cursor::new(sent), sink());
        let mut peer = Peer::greet(NETWORK, "fuzz", stream).await.unwrap();
        assert_eq!(peer.claimed_height(), 3);
        peer.headers_after(&locator).await
    });
    match answer {
        Ok(headers) => {
            assert!(headers.len() <= 2_000);
            let follows =
                |first: &BlockHeader| locator.iter().any(|(_, hash)| *hash == first.previous_block);
            assert!(headers.first().is_none_or(follows));
            let extended = chain.extend(&headers, u64::MAX);
            assert_eq!(extended.valid < headers.len(), extended.refusal.is_some());
        }
        Err(error) => {
            let error = error.to_string();
            assert!(error.len() < 400 && !error.contains(char::is_control), "{error}");
        }
    }
});

fn messages(mut bytes: &[u8], sent: &mut Vec<u8>) {
    while let Some(([command, low, high], rest)) = bytes.split_first_chunk() {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (contents, rest) = rest.split_at(length);
        sent.extend(message(COMMANDS[usize::from(*command) % COMMANDS.len()], contents));
        bytes = rest;
    }
}

fn message(command: &str, contents: &[u8]) -> Vec<u8> {
    framed([0xda, 0xb5, 0xbf, 0xfa], command, contents)
}
