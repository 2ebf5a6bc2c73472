//! Input that promises more than it holds, or is far too long, costs neither memory nor time.

use std::time::{Duration, Instant};

use bsv_tx::{Address, DecodeError, ExtendedPrivateKey, Network, PrivateKey, Reader, Transaction};

/// Far more than any of these tests takes, far less than a believed announcement would.
const SOON: Duration = Duration::from_secs(2);

/// Announcements that would exhaust the memory of this machine, were they believed: 2^32 and more,
/// in the shortest form for each.
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
    // Base58 of a tenth of this length was measured to take 50 s to decode.
    for character in ["1", "z"] {
        let text = character.repeat(4_000_000);
        let start = Instant::now();
        assert!(Address::parse(&text, Network::Livenet).is_err());
        assert!(PrivateKey::from_wif(&text, Network::Livenet).is_err());
        assert!(format!("xprv{text}").parse::<ExtendedPrivateKey>().is_err());
        assert!(start.elapsed() < SOON);
    }
}
