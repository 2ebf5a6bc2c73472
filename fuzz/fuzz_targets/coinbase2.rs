//! Bytes as a coinbase2, to which an output is added. A parser of this target's own finds the place
//! of the sequence number, one output more in the result, and everything else unchanged.

#![no_main]

use bsv_minerid::formats::{Coinbase2, Coinbase2Error, IdentityScript};
use bsv_tx::Script;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let places = places(bytes);
    let coinbase2 = match Coinbase2::parse(bytes) {
        Ok(coinbase2) => coinbase2,
        Err(Coinbase2Error::AlreadyIdentified) => {
            assert_eq!(places.len(), 1);
            return assert!(bytes.windows(6).any(|part| part.starts_with(&[0x00, 0x6a, 0x04])));
        }
        Err(Coinbase2Error::NoOutput) => return assert_eq!((bytes.len(), bytes[4]), (9, 0)),
        Err(Coinbase2Error::Malformed) => return assert!(places.is_empty()),
        Err(Coinbase2Error::Ambiguous(first, second)) => {
            return assert_eq!(places[..2], [first, second]);
        }
        Err(other) => panic!("{other}"),
    };
    let [place] = places[..] else { panic!("{places:?}") };
    let (document, signature) = (br#"{"version":"0.2"}"#.repeat(60), vec![0x30; 71]);
    let identity = IdentityScript { document, signature }.to_script();
    for script in [identity, Script::from_bytes(bytes)] {
        let result = coinbase2.with_output(&script).unwrap();
        assert_eq!(result[..place], bytes[..place]);
        check(&bytes[place..], &result[place..], script.as_bytes());
    }
});

/// The offsets at which the sequence number may begin. The offset 0 excludes others if that number
/// is `ffffffff`.
fn places(bytes: &[u8]) -> Vec<usize> {
    if take_apart(bytes).is_some() && bytes.starts_with(&[0xff; 4]) {
        return vec![0];
    }
    let from = |place: &usize| take_apart(bytes.get(*place..)?);
    let is_place = |place: &usize| from(place).is_some_and(|it| *place == 0 || it.count > 0);
    (0..=100).filter(is_place).collect()
}

fn check(before: &[u8], after: &[u8], script: &[u8]) {
    let (before, after) = (take_apart(before).unwrap(), take_apart(after).unwrap());
    assert_eq!(after.count, before.count + 1);
    assert_eq!((after.sequence, after.lock_time), (before.sequence, before.lock_time));
    let mut added = [0; 8].to_vec();
    let len = u32::try_from(script.len()).unwrap();
    match len {
        0..=0xfc => added.push(len as u8),
        0xfd..=0xffff => added.extend([0xfd, len as u8, (len >> 8) as u8]),
        _ => added.extend([&[0xfe][..], &len.to_le_bytes()].concat()),
    }
    added.extend(script);
    assert_eq!(after.outputs, [before.outputs, &added].concat());
}

struct Parts<'a> {
    sequence: &'a [u8],
    count: u64,
    outputs: &'a [u8],
    lock_time: &'a [u8],
}

fn take_apart(bytes: &[u8]) -> Option<Parts<'_>> {
    let (sequence, rest) = bytes.split_at_checked(4)?;
    let (count, after_count) = var_int(rest)?;
    let mut rest = after_count;
    for _ in 0..count {
        let (len, script) = var_int(rest.get(8..)?)?;
        rest = script.get(usize::try_from(len).ok()?..)?;
    }
    let outputs = &after_count[..after_count.len() - rest.len()];
    (rest.len() == 4).then_some(Parts { sequence, count, outputs, lock_time: rest })
}

fn var_int(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let len = match first {
        0xfd => 2,
        0xfe => 4,
        0xff => 8,
        small => return Some((u64::from(*small), rest)),
    };
    let (number, rest) = rest.split_at_checked(len)?;
    let value = number.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte));
    let is_shortest = value >= [0xfd, 0x1_0000, 0x1_0000_0000][len.ilog2() as usize - 1];
    is_shortest.then_some((value, rest))
}
