//! Input that announces more than it holds, or that is far too long, costs neither memory nor time.

use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

use bsv_tx::{
    Address, Beef, DecodeError, ExtendedPrivateKey, FormedTransaction, Network, PrivateKey, Reader,
    Transaction, write_var_int,
};

/// Far more than any of these tests needs, and far less than a trusted announcement would take.
const SOON: Duration = Duration::from_secs(2);

/// Announcements that would exhaust the memory of this machine if they were trusted: 2^32 and more,
/// each in its shortest form.
const ANNOUNCEMENTS: [&str; 5] = [
    "feffffffff",
    "ff0000000001000000",
    "ff0000000000010000",
    "ffffffffffffffff7f",
    "ffffffffffffffffff",
];

fn assert_too_short(hex: &str) {
    let start = Instant::now();
    let decoded = Transaction::from_hex(hex);
    assert!(matches!(decoded, Err(DecodeError::UnexpectedEnd { .. })), "{hex}: {decoded:?}");
    assert!(start.elapsed() < SOON, "{hex}");
}

#[test]
fn announced_counts_and_lengths_are_not_believed() {
    let outpoint = "00".repeat(36);
    for announced in ANNOUNCEMENTS {
        for padding in ["", "00", &"00".repeat(1000)] {
            assert_too_short(&format!("01000000{announced}{padding}"));
            assert_too_short(&format!("0100000000{announced}{padding}"));
            assert_too_short(&format!("0100000001{outpoint}{announced}{padding}"));
            assert_too_short(&format!("010000000001{}{announced}{padding}", "00".repeat(8)));
        }
    }
}

#[test]
fn no_more_items_are_reserved_for_than_can_follow() {
    for announced in ANNOUNCEMENTS {
        let bytes = hex::decode(format!("{announced}00000000")).unwrap();
        for least_size in [1, 9, 41, usize::MAX] {
            let list = Reader::new(&bytes).list(least_size, Reader::array::<1>);
            assert!(matches!(list, Err(DecodeError::UnexpectedEnd { .. })), "{announced}");
        }
    }
}

#[test]
fn long_text_is_refused_without_being_decoded() {
    // Decoding base58 of a tenth of this length was measured to take 50 s.
    for character in ["1", "z"] {
        let text = character.repeat(4_000_000);
        let start = Instant::now();
        assert!(Address::parse(&text, Network::Livenet).is_err());
        assert!(PrivateKey::from_wif(&text, Network::Livenet).is_err());
        assert!(format!("xprv{text}").parse::<ExtendedPrivateKey>().is_err());
        assert!(start.elapsed() < SOON);
    }
}

/// The limit on the address space of a process that reads hostile bytes, in KiB: twice the measured
/// need.
const ADDRESSES: u32 = 120 << 10;

#[test]
fn hostile_bytes_of_any_form_are_refused_in_little_memory() {
    let limited = format!(
        "ulimit -v {ADDRESSES}; exec \"$0\" --exact --ignored --test-threads=1 hostile_bytes"
    );
    let output =
        Command::new("sh").args(["-c", &limited]).arg(env::current_exe().unwrap()).output();
    let output = output.unwrap();
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
#[ignore = "hostile_bytes_of_any_form_are_refused_in_little_memory runs it in a process of little memory"]
fn hostile_bytes() {
    let (hash, duplicate): (&[u8], &[u8]) = (&[0; 34], &[1, 1]);
    let (input, output): (&[u8], &[u8]) = (&[0; 41], &[0; 9]);
    let empty_levels = [&[0, 64][..], &[0; 64]].concat();
    for (what, start, count, item) in [
        ("transactions without end", "0200beef00", 1_000_000, &[0][..]),
        ("merkle paths without end", "0200beef", 1_000_000, &[0]),
        ("nodes without end", "0200beef010701", u64::MAX, hash),
        ("as many nodes as fit", "0200beef010701", 294_000, hash),
        ("five million duplicates", "0200beef010701", 5_000_000, duplicate),
        ("levels without nodes", "0200beef", 1000, &empty_levels),
        ("inputs without end", "0200beef00010001000000", u64::MAX, input),
        ("as many inputs as fit", "0200beef00010001000000", 243_000, input),
        ("outputs without end", "0200beef0001000100000000", u64::MAX, output),
        ("as many outputs as fit", "0200beef0001000100000000", 1_100_000, output),
        ("extended inputs without end", "010000000000000000ef", u64::MAX, &[0; 50]),
        ("as many extended inputs as fit", "010000000000000000ef", 199_000, &[0; 50]),
    ] {
        let mut bytes = hex::decode(start).unwrap();
        write_var_int(&mut bytes, count);
        bytes.extend(item.repeat(Beef::MAX_LEN / item.len()));
        bytes.truncate(Beef::MAX_LEN);
        assert!(FormedTransaction::from_bytes(&bytes).is_err(), "{what}");
    }
}
