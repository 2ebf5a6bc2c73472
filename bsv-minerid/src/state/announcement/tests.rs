use bsv_tx::PrivateKey;

use super::*;
use crate::state::chain_view::BlockRef;
use crate::state::change::{Change, Rotation};

fn key(number: u32) -> KeyRecord {
    KeyRecord { number, public_key: PrivateKey::generate().unwrap().public_key() }
}

/// An identity of generation 1.0 that blocks have shown.
fn known() -> IdentityRecord {
    let revocation_key = PrivateKey::generate().unwrap();
    let itself = Succession::sign(&revocation_key, revocation_key.public_key()).unwrap();
    let first = key(1);
    let miner_info = MinerInfoRecord::new(&first, 1, itself);
    let record = IdentityRecord::new(first, Protocol::MinerInfo(Box::new(miner_info)));
    IdentityRecord { exposure: Exposure::Known, ..record }
}

fn rotated() -> IdentityRecord {
    let mut record = known();
    record.apply(&Change::Rotate { rotation: Rotation::Succeed, from: 1, key: key(2) }).unwrap();
    record
}

#[test]
fn an_announcement_is_named_in_words() {
    let words = [
        (Announcement::Rotation, "the rotation"),
        (Announcement::RevocationKey, "the new revocation key"),
        (Announcement::PartialRevocation, "the revocation"),
        (Announcement::CompleteRevocation, "the revocation"),
    ];
    for (announcement, expected) in words {
        assert_eq!(announcement.in_words(), expected);
    }
}

#[test]
fn blocks_are_read_while_they_can_change_an_identity() {
    assert!(!known().awaits_blocks());
    assert!(!IdentityRecord { exposure: Exposure::Kept, ..known() }.awaits_blocks());
    assert!(IdentityRecord { exposure: Exposure::HandedOut, ..known() }.awaits_blocks());
    assert!(rotated().awaits_blocks());
    let block = BlockRef { height: 9, hash: BlockHash::from_bytes([7; 32]) };
    let mut seen = known();
    seen.sightings.recent.push(Sighting { block, sighted: Sighted::Identity });
    assert!(seen.awaits_blocks());
}

#[test]
fn an_identity_is_lost_if_it_was_handed_out_and_only_lost_blocks_have_shown_it() {
    for (exposure, is_repeated, is_lost) in [
        (Exposure::HandedOut, true, true),
        (Exposure::HandedOut, false, false),
        (Exposure::Known, true, false),
        (Exposure::Kept, true, false),
    ] {
        let mut record = IdentityRecord { exposure, ..known() };
        record.sightings.is_repeated = is_repeated;
        assert_eq!(record.is_lost(), is_lost, "{exposure:?} {is_repeated}");
    }
}

#[test]
fn blocks_count_as_read_unless_earlier_ones_may_show_the_identity() {
    let read_to = BlockRef { height: 9, hash: BlockHash::from_bytes([7; 32]) };
    for (exposure, is_complete, is_noted) in [
        (Exposure::HandedOut, false, false),
        (Exposure::HandedOut, true, true),
        (Exposure::Known, false, true),
        (Exposure::Kept, false, true),
    ] {
        let mut record = IdentityRecord { exposure, ..known() };
        let view = ChainView { read_to: Some(read_to), is_complete, ..ChainView::default() };
        record.apply(&Change::Observe(view)).unwrap();
        let expected = is_noted.then_some(read_to);
        assert_eq!(record.sightings.read_to, expected, "{exposure:?} {is_complete}");
    }
}

#[test]
fn the_keys_since_the_last_one_that_was_seen_are_unacknowledged() {
    let mut record = rotated();
    assert_eq!(record.unacknowledged_keys(), record.keys);
    record.sightings.acknowledged = 2;
    assert_eq!(record.unacknowledged_keys(), &record.keys[1..]);
    // No key of the identity: only the current one can be looked for.
    record.sightings.acknowledged = 9;
    assert_eq!(record.unacknowledged_keys(), &record.keys[1..]);
    assert_eq!(record.previous_key(), record.current_key());
}

#[test]
fn documents_can_have_named_the_present_the_later_and_the_seen_revocation_keys() {
    let [first, second, third, stranger] = [(); 4].map(|()| PrivateKey::generate().unwrap());
    let change =
        |from: &PrivateKey, to: &PrivateKey| Succession::sign(from, to.public_key()).unwrap();
    let mut record = known();
    let Protocol::MinerInfo(own) = &mut record.protocol else { unreachable!() };
    own.revocation_key = change(&second, &third);
    own.later_revocation_keys = vec![change(&third, &third)];
    let named = |record: &IdentityRecord| {
        [&first, &second, &third, &stranger].map(|key| record.has_revocation_key(&key.public_key()))
    };
    assert_eq!(named(&record), [false, true, true, false]);
    let block = BlockRef { height: 9, hash: BlockHash::from_bytes([7; 32]) };
    let sighted = Sighted::RevocationKey(change(&first, &second));
    record.sightings.recent.push(Sighting { block, sighted });
    assert_eq!(named(&record), [true, true, true, false]);
}
