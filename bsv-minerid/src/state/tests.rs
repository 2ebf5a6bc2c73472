use bsv_tx::{BlockHash, OutPoint, PrivateKey, PublicKey, Txid};

use super::chain_view::Found;
use super::*;
use crate::alias::Alias;
use crate::miner_info_script::Revocation;
use crate::succession::Succession;
use crate::verify::{Claim, RevocationKeys};

fn key(number: u32) -> KeyRecord {
    KeyRecord { number, public_key: PrivateKey::generate().unwrap().public_key() }
}

/// An identity of generation 1.0 that blocks have shown.
fn known() -> IdentityRecord {
    let revocation_key = PrivateKey::generate().unwrap();
    let itself = Succession::sign(&revocation_key, revocation_key.public_key()).unwrap();
    let first = key(1);
    let miner_info = MinerInfoRecord::new(&first, 1, itself);
    let mut record = IdentityRecord::new(first, Protocol::MinerInfo(Box::new(miner_info)));
    record.steps[0].seen = Seen::Final;
    record
}

fn seen(record: IdentityRecord, seen: Seen) -> IdentityRecord {
    let mut record = record;
    record.steps[0].seen = seen;
    record
}

/// The change of the first revocation key to the second one.
fn roll([old, new]: [&PrivateKey; 2]) -> Change {
    Change::RollRevocationKey {
        from: 1,
        number: 2,
        announced: Succession::sign(old, new.public_key()).unwrap(),
        acknowledged: Succession::sign(new, new.public_key()).unwrap(),
    }
}

/// An identity of which documents were handed out, that no block has shown.
fn handed_out() -> IdentityRecord {
    seen(rotated(), Seen::HandedOut)
}

fn block(height: u32) -> BlockRef {
    BlockRef { height, hash: BlockHash::from_bytes([height as u8; 32]) }
}

/// The document of a block that names these keys.
fn shown(height: u32, previous: &KeyRecord, current: &KeyRecord) -> Shown {
    let claim = Claim {
        version: "0.3".to_owned(),
        miner_id: current.public_key,
        previous_miner_id: previous.public_key,
        revocation_keys: None,
        compromised_miner_id: None,
        vctx: None,
        data_refs: Vec::new(),
        name: None,
    };
    Shown { block: block(height), claim: Some(claim) }
}

/// A document that the node cannot provide.
fn unreadable(height: u32) -> Shown {
    Shown { block: block(height), claim: None }
}

fn info(previous: &KeyRecord, current: &KeyRecord) -> MinerIdInfo {
    MinerIdInfo {
        miner_id: current.public_key,
        state: MinerIdState::Current,
        previous_miner_id: Some(previous.public_key),
        revocation_key: None,
        previous_revocation_key: None,
    }
}

/// The view of a node whose blocks were all read.
fn view(known: &[MinerIdInfo], shown: &[Shown]) -> ChainView {
    ChainView {
        known: known.to_vec(),
        shown: shown.to_vec(),
        is_complete: true,
        tip: Some(20),
        ..ChainView::default()
    }
}

fn after(record: &IdentityRecord, view: &ChainView) -> IdentityRecord {
    let mut record = record.clone();
    record.apply(&Change::Observe(view.clone())).unwrap();
    record
}

fn revocation(from: u32, key: Option<KeyRecord>) -> Change {
    let signer = PrivateKey::generate().unwrap();
    let message = Revocation::sign(signer.public_key(), &signer, &signer).unwrap();
    Change::BeginRevocation { from, key, message }
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
    for (seen_by, awaits) in [
        (Seen::Final, false),
        (Seen::Never, false),
        (Seen::HandedOut, true),
        (Seen::In(block(9)), true),
        (Seen::Lost, true),
    ] {
        assert_eq!(seen(known(), seen_by).awaits_blocks(), awaits, "{seen_by:?}");
    }
    assert!(rotated().awaits_blocks());
}

#[test]
fn an_identity_is_lost_if_only_lost_blocks_have_shown_it() {
    for (seen_by, exposure, is_lost) in [
        (Seen::Lost, Exposure::HandedOut, true),
        (Seen::HandedOut, Exposure::HandedOut, false),
        (Seen::Again(block(9)), Exposure::Known, false),
        (Seen::Final, Exposure::Known, false),
        (Seen::Never, Exposure::Kept, false),
    ] {
        let record = seen(known(), seen_by);
        assert_eq!((record.exposure(), record.is_lost()), (exposure, is_lost), "{seen_by:?}");
    }
}

#[test]
fn blocks_count_as_read_unless_earlier_ones_may_show_the_identity() {
    let read_to = block(9);
    for (seen_by, is_complete, is_noted) in [
        (Seen::HandedOut, false, false),
        (Seen::HandedOut, true, true),
        (Seen::Final, false, true),
        (Seen::Never, false, true),
    ] {
        let mut record = seen(known(), seen_by);
        let view = ChainView { read_to: Some(read_to), is_complete, ..ChainView::default() };
        record.apply(&Change::Observe(view)).unwrap();
        let expected = is_noted.then_some(read_to);
        assert_eq!(record.read_to, expected, "{seen_by:?} {is_complete}");
    }
}

#[test]
fn a_step_can_be_lost_until_100_further_blocks_were_read() {
    let mut record = rotated();
    record.steps[0].seen = Seen::In(block(10));
    record.steps[1].seen = Seen::In(block(11));
    for (read_to, expected) in [(12, &[10, 11][..]), (109, &[10, 11]), (110, &[11]), (200, &[])] {
        let read_to = Some(block(read_to));
        let view = ChainView { read_to, is_complete: true, ..ChainView::default() };
        record.apply(&Change::Observe(view)).unwrap();
        let kept: Vec<_> = record.sightings().iter().map(|it| it.block.height).collect();
        assert_eq!((&kept[..], record.read_to), (expected, read_to));
    }
    assert_eq!(record.steps.iter().map(|step| step.seen).collect::<Vec<_>>(), [Seen::Final; 2]);
}

#[test]
fn what_the_node_knows_and_no_block_shows_has_left_the_chain() {
    let mut step = Step::new(Deed::Closed, key(1));
    assert!(!step.note(Found::Nowhere, false));
    assert!(step.note(Found::Somewhere, true) && step.seen == Seen::Final);
    step.seen = Seen::HandedOut;
    assert!(!step.note(Found::Nowhere, true) && step.seen == Seen::Lost);
    assert!(!step.note(Found::Nowhere, false) && step.seen == Seen::Lost);
    assert!(step.note(Found::In(block(9)), false) && step.seen == Seen::Again(block(9)));
}

/// A node that has seen lost blocks may refuse what others accept.
#[test]
fn the_node_does_not_decide_until_everything_is_seen_after_a_loss() {
    let mut record = rotated();
    record.steps[1].seen = Seen::Lost;
    let [old, new] = [(); 2].map(|()| PrivateKey::generate().unwrap());
    record.apply(&roll([&old, &new])).unwrap();
    let [first, second] = record.keys()[..] else { unreachable!() };
    let mut seen = after(&record, &view(&[info(&first, &second)], &[shown(9, &first, &second)]));
    assert_eq!(seen.announcements(), [Announcement::RevocationKey]);
    assert!(seen.is_repeated());
    let mut block = shown(10, &second, &second);
    let keys = RevocationKeys { current: new.public_key(), previous: old.public_key() };
    block.claim.as_mut().unwrap().revocation_keys = Some(keys);
    seen = after(&seen, &view(&[info(&first, &second)], &[block]));
    assert!(seen.announcements().is_empty() && !seen.is_repeated());
}

#[test]
fn the_keys_since_the_last_one_that_was_seen_are_unacknowledged() {
    let mut record = rotated();
    assert_eq!(record.unacknowledged_keys(), record.keys());
    record.steps[1].seen = Seen::Final;
    assert_eq!(record.unacknowledged_keys(), record.keys()[1..]);
    // No key of the identity: only the current one can be looked for.
    record.steps.iter_mut().for_each(|step| step.seen = Seen::Never);
    record.begins_with = 9;
    assert_eq!(record.unacknowledged_keys(), record.keys()[1..]);
    assert_eq!(record.previous_key(), record.current_key());
}

#[test]
fn documents_can_have_named_the_present_the_announced_and_the_seen_revocation_keys() {
    let [second, stranger] = [(); 2].map(|()| PrivateKey::generate().unwrap());
    let mut record = known();
    let first = PrivateKey::generate().unwrap();
    let itself = Succession::sign(&first, first.public_key()).unwrap();
    record.miner_info_mut().unwrap().first_revocation_key.itself = itself;
    let named = |record: &IdentityRecord| {
        [&first, &second, &stranger].map(|key| record.has_revocation_key(&key.public_key()))
    };
    assert_eq!(named(&record), [true, false, false]);
    record.apply(&roll([&first, &second])).unwrap();
    for (seen, expected) in [
        (Seen::Never, [true, true, false]),
        (Seen::In(block(9)), [true, true, false]),
        (Seen::Lost, [true, true, false]),
        (Seen::Final, [false, true, false]),
    ] {
        record.steps[1].seen = seen;
        assert_eq!(named(&record), expected, "{seen:?}");
    }
}

#[test]
fn nodes_know_the_revocation_key_before_all_announced_ones() {
    let [first, second] = [(); 2].map(|()| PrivateKey::generate().unwrap());
    let [first_key, second_key] = [&first, &second].map(PrivateKey::public_key);
    let mut record = known();
    let itself = Succession::sign(&first, first_key).unwrap();
    record.miner_info_mut().unwrap().first_revocation_key.itself = itself;
    let known = |record: &IdentityRecord| {
        record.known_revocation_key().map(|key| (key.number, key.itself.current))
    };
    assert_eq!(known(&record), Some((1, first_key)));
    assert_eq!(record.useful_revocation_keys(), [(1, first_key)]);
    let Change::RollRevocationKey { number, announced, acknowledged, .. } = roll([&first, &second])
    else {
        unreachable!()
    };
    let other = Change::RollRevocationKey { from: 2, number, announced, acknowledged };
    assert_eq!(record.apply(&other), Err("its revocation key was rolled"));
    record.apply(&roll([&first, &second])).unwrap();
    assert_eq!(known(&record), Some((1, first_key)));
    assert_eq!(record.useful_revocation_keys(), [(1, first_key), (2, second_key)]);
    assert_eq!(record.revocation_key(), Some(announced));
    record.steps[1].seen = Seen::Final;
    assert_eq!(known(&record), Some((2, second_key)));
    assert_eq!(record.useful_revocation_keys(), [(2, second_key)]);
    assert_eq!(record.revocation_key(), Some(acknowledged));
    assert_eq!(record.announcements(), []);
}

#[test]
fn a_revocation_delays_the_announcement_of_a_revocation_key() {
    let [first, second] = [(); 2].map(|()| PrivateKey::generate().unwrap());
    let mut record = known();
    let itself = record.revocation_key();
    record.apply(&roll([&first, &second])).unwrap();
    let announced = record.revocation_key();
    record.apply(&revocation(1, Some(key(2)))).unwrap();
    assert_eq!(record.revocation_key(), itself);
    let announcements = [Announcement::PartialRevocation, Announcement::RevocationKey];
    assert_eq!(record.announcements(), announcements);
    record.steps[2].seen = Seen::Final;
    assert_eq!((record.revocation(), record.revocation_key()), (None, announced));
    assert_eq!(record.announcements(), [Announcement::RevocationKey]);
}

#[test]
fn the_first_revocation_key_is_announced_although_it_follows_itself() {
    let upgraded = known().miner_info().unwrap().clone();
    let mut record = seen(IdentityRecord::new(key(1), Protocol::Vctx(Vctx::None)), Seen::Final);
    record.apply(&Change::Upgrade(Box::new(upgraded))).unwrap();
    let itself = record.revocation_key();
    assert!(itself.is_some_and(|itself| !itself.is_change()));
    assert_eq!(record.announcements(), [Announcement::RevocationKey]);
    record.steps[1].seen = Seen::Final;
    assert_eq!((record.revocation_key(), record.announcements()), (itself, vec![]));
}

#[test]
fn only_blocks_of_the_identity_count_as_its_own() {
    let record = rotated();
    let [first, _] = record.keys()[..] else { unreachable!() };
    let unseen = |shown: &[Shown]| {
        let begun = after(&record, &ChainView { tip: Some(10), ..ChainView::default() });
        after(&begun, &view(&[info(&first, &first)], shown)).unseen.unwrap().own_blocks
    };
    let stranger = key(1);
    assert_eq!(unseen(&[shown(11, &first, &first), shown(12, &stranger, &stranger)]), [11]);
}

#[test]
fn a_partial_revocation_and_its_key_are_announced_again_if_their_block_is_lost() {
    let mut record = rotated();
    record.steps[1].seen = Seen::In(block(8));
    record.apply(&revocation(2, Some(key(3)))).unwrap();
    record.steps[2].seen = Seen::In(block(9));
    assert_eq!(record.announcements(), []);
    let lost = ChainView { left: vec![block(9).hash], ..ChainView::default() };
    assert_eq!(after(&record, &lost).announcements(), [Announcement::PartialRevocation]);
    // The key that revokes was seen in an earlier block. Without that block, no node accepts it.
    let left = vec![block(8).hash, block(9).hash];
    let lost = ChainView { left, ..ChainView::default() };
    assert_eq!(after(&record, &lost).announcements(), [Announcement::Rotation]);
}

#[test]
fn a_revocation_by_a_key_that_vouches_no_more_is_told_apart_from_one_that_was_seen() {
    let mut record = rotated();
    record.apply(&revocation(2, Some(key(3)))).unwrap();
    assert!(!record.is_revocation_passed_over());
    // The first key has signed the revocation, and a block shows the skipped one.
    let [first, second, third] = record.keys()[..] else { unreachable!() };
    let skipped = after(&record, &view(&[info(&first, &second)], &[shown(9, &first, &second)]));
    assert!(skipped.is_revocation_passed_over());
    assert!(skipped.untold_revocation().is_some(), "the node is told of it all the same");
    assert_eq!(skipped.announcements(), [Announcement::Rotation]);
    let seen = after(&skipped, &view(&[info(&second, &third)], &[shown(10, &second, &third)]));
    assert!(!seen.is_revocation_passed_over());
    let seen = after(&record, &view(&[info(&first, &third)], &[shown(9, &first, &third)]));
    assert_eq!((seen.is_revocation_passed_over(), seen.announcements()), (false, vec![]));
}

/// Nobody notes that another block shows the key again.
#[test]
fn a_key_that_only_a_lost_block_has_shown_vouches_if_there_is_no_node_any_more() {
    let mut record = rotated();
    record.protocol = Protocol::Vctx(Vctx::None);
    record.steps[1].seen = Seen::In(block(9));
    let mut lost = after(&record, &ChainView { left: vec![block(9).hash], ..ChainView::default() });
    assert_eq!(lost.previous_key().number, 1);
    lost.apply(&Change::Rotate { rotation: Rotation::Succeed, from: 2, key: key(3) }).unwrap();
    assert_eq!(lost.previous_key().number, 2);
}

/// Checks what a revocation becomes that begins now, once the block at height 8 is lost, which has
/// shown the revocation key.
fn check_revocation_counts_as_rotation(mut record: IdentityRecord) {
    record.apply(&revocation(1, Some(key(2)))).unwrap();
    assert_eq!(record.announcements(), [Announcement::PartialRevocation]);
    let lost = ChainView { left: vec![block(8).hash], ..ChainView::default() };
    let announcements = [Announcement::Rotation, Announcement::RevocationKey];
    assert_eq!(after(&record, &lost).announcements(), announcements);
}

#[test]
fn a_revocation_of_which_the_revocation_key_is_lost_counts_as_a_rotation() {
    let [first, second] = [(); 2].map(|()| PrivateKey::generate().unwrap());
    let mut record = known();
    record.apply(&roll([&first, &second])).unwrap();
    record.steps[1].seen = Seen::In(block(8));
    check_revocation_counts_as_rotation(record);
}

/// A block may show a document that was handed out before the revocation.
#[test]
fn a_revocation_key_that_a_block_shows_during_a_revocation_is_the_known_one() {
    let [old, new] = [(); 2].map(|()| PrivateKey::generate().unwrap());
    let [old_key, new_key] = [&old, &new].map(PrivateKey::public_key);
    let mut record = known();
    let first = *record.current_key();
    record.apply(&roll([&old, &new])).unwrap();
    record.apply(&revocation(1, Some(key(2)))).unwrap();
    let named = |record: &IdentityRecord| {
        record.revocation_key().map(|named| (named.previous, named.current))
    };
    let info = |current, previous| MinerIdInfo {
        revocation_key: Some(current),
        previous_revocation_key: Some(previous),
        ..info(&first, &first)
    };
    let mut late = shown(9, &first, &first);
    let keys = RevocationKeys { current: new_key, previous: old_key };
    late.claim.as_mut().unwrap().revocation_keys = Some(keys);
    let seen = after(&record, &view(&[info(new_key, old_key)], &[late]));
    assert_eq!(named(&seen), Some((new_key, new_key)));
    // Nodes accept the revocation by no other revocation key.
    assert_eq!(seen.announcements(), [Announcement::Rotation]);
}

#[test]
fn a_revocation_of_which_the_upgrade_is_lost_counts_as_a_rotation() {
    let upgraded = known().miner_info().unwrap().clone();
    let mut record = seen(IdentityRecord::new(key(1), Protocol::Vctx(Vctx::None)), Seen::Final);
    record.apply(&Change::Upgrade(Box::new(upgraded))).unwrap();
    record.steps[1].seen = Seen::In(block(8));
    check_revocation_counts_as_rotation(record);
}

/// A node that was told considers the skipped key revoked, and takes only the revocation.
#[test]
fn a_lost_revocation_is_announced_with_the_current_key() {
    let mut record = known();
    record.apply(&revocation(1, Some(key(2)))).unwrap();
    record.steps[1].seen = Seen::In(block(8));
    record.apply(&Change::Rotate { rotation: Rotation::Succeed, from: 2, key: key(3) }).unwrap();
    assert_eq!(record.announcements(), [Announcement::Rotation]);
    let lost = ChainView { left: vec![block(8).hash], ..ChainView::default() };
    let lost = after(&record, &lost);
    assert_eq!(lost.announcements(), [Announcement::PartialRevocation]);
    assert_eq!([lost.previous_key().number, lost.current_key().number], [1, 3]);
}

#[test]
fn a_complete_revocation_goes_on_by_the_key_that_it_began_with() {
    let mut record = rotated();
    record.steps[1].seen = Seen::In(block(8));
    record.apply(&Change::Rotate { rotation: Rotation::Succeed, from: 2, key: key(3) }).unwrap();
    record.apply(&revocation(3, None)).unwrap();
    let numbers =
        |record: &IdentityRecord| record.keys().iter().map(|key| key.number).collect::<Vec<_>>();
    assert_eq!(numbers(&record), [1, 3, 2]);
    let lost = ChainView { left: vec![block(8).hash], ..ChainView::default() };
    let lost = after(&record, &lost);
    assert_eq!([lost.previous_key().number, lost.current_key().number], [2, 2]);
    assert_eq!(lost.announcements(), [Announcement::CompleteRevocation]);
    // The skipped key is not confirmed.
    record.apply(&Change::Confirm).unwrap();
    assert!(record.is_closed() && record.previous_key().number == 2);
}

#[test]
fn a_node_shows_an_identity_only_if_it_knows_a_key_from_the_main_chain() {
    let record = handed_out();
    let [first, _] = record.keys()[..] else { unreachable!() };
    let exposure = |record: &IdentityRecord, known: &[MinerIdInfo]| {
        let view = ChainView { known: known.to_vec(), ..ChainView::default() };
        after(record, &view).exposure()
    };
    assert_eq!(exposure(&record, &[]), Exposure::HandedOut);
    assert_eq!(exposure(&record, &[info(&first, &first)]), Exposure::Known);
    let lost = seen(record, Seen::Lost);
    assert_eq!(exposure(&lost, &[info(&first, &first)]), Exposure::HandedOut);
}

#[test]
fn an_identity_begins_with_the_newest_key_that_a_block_shows_as_the_first() {
    let record = handed_out();
    let [first, second] = record.keys()[..] else { unreachable!() };
    for (key, vouching) in [(first, 1), (second, 2)] {
        let shown = [shown(9, &key, &key)];
        let view = view(&[info(&key, &key)], &shown);
        let begun = after(&record, &view);
        assert_eq!(begun.exposure(), Exposure::Known);
        assert_eq!((begun.acknowledged_key(), begun.begins_with), (&key, vouching));
        assert_eq!(begun.steps[1].deed, Deed::Key { after: vouching });
        assert_eq!(begun.miner_info().unwrap().first_miner_id, key.public_key);
        let sighting = Sighting { block: block(9), sighted: Sighted::Identity };
        assert_eq!(begun.sightings(), [sighting]);
        // An earlier block, which was not read, may be the one.
        let begun = after(&record, &ChainView { is_complete: false, ..view });
        assert_eq!((begun.exposure(), begun.sightings()), (Exposure::Known, vec![]));
    }
}

#[test]
fn an_identity_begins_anew_if_nodes_ignore_its_key_or_lost_blocks_alone_have_shown_it() {
    let record = handed_out();
    let [first, second] = record.keys()[..] else { unreachable!() };
    let stranger = key(1);
    let later = [shown(9, &first, &second)];
    let foreign = [shown(9, &stranger, &stranger)];
    let elsewhere = [shown(9, &stranger, &second)];
    let lost = seen(record.clone(), Seen::Lost);
    for (record, view, acknowledged) in [
        (&record, view(&[], &[]), 1),
        (&record, view(&[], &foreign), 1),
        (&record, view(&[], &later), 2),
        (&record, view(&[], &elsewhere), 2),
        (&lost, view(&[], &[]), 2),
        (&lost, ChainView { is_complete: false, ..view(&[], &[]) }, 1),
    ] {
        assert_eq!(after(record, &view).acknowledged_key().number, acknowledged, "{view:?}");
    }
    for key in [None, Some(key(3))] {
        let mut revoked = seen(lost.clone(), Seen::Final);
        revoked.apply(&revocation(2, key)).unwrap();
        let after = after(&seen(revoked, Seen::Lost), &view(&[], &[]));
        assert_eq!(after.revocation().is_some(), key.is_none());
    }
}

#[test]
fn a_key_of_generation_0_2_is_seen_if_a_block_shows_it_and_the_node_takes_it() {
    let mut record = rotated();
    record.protocol = Protocol::Vctx(Vctx::None);
    let [first, second] = record.keys()[..] else { unreachable!() };
    let taken = [info(&first, &second)];
    let block = [shown(9, &first, &second)];
    let announced =
        |record: &IdentityRecord, view: ChainView| !after(record, &view).announcements().is_empty();
    assert!(announced(&record, view(&[], &block)));
    assert!(!announced(&record, view(&taken, &block)));
    assert!(!announced(&record, view(&taken, &[unreadable(9)])));
    // A block that was lost has shown the key to the node.
    record.steps[1].seen = Seen::Lost;
    assert!(announced(&record, view(&taken, &[unreadable(9)])));
    assert!(!announced(&record, view(&[], &block)));
}

#[test]
fn a_skipped_key_of_generation_0_2_that_a_block_shows_vouches_for_the_current_one() {
    let mut record = rotated();
    record.protocol = Protocol::Vctx(Vctx::None);
    let skip =
        |vouching| Change::Rotate { rotation: Rotation::PassOver(vouching), from: 2, key: key(3) };
    assert_eq!(record.clone().apply(&skip(7)), Err("it has no such key"));
    record.apply(&skip(1)).unwrap();
    let [first, second, third] = record.keys()[..] else { unreachable!() };
    assert_eq!(*record.previous_key(), first);
    let mut seen = after(&record, &view(&[info(&first, &second)], &[shown(9, &first, &second)]));
    assert_eq!((*seen.previous_key(), *seen.acknowledged_key()), (second, second));
    assert_eq!(seen.announcements(), [Announcement::Rotation]);
    seen = after(&seen, &view(&[info(&second, &third)], &[shown(10, &second, &third)]));
    assert_eq!((*seen.previous_key(), seen.announcements()), (second, vec![]));
    let left = ChainView { left: vec![block(9).hash, block(10).hash], ..ChainView::default() };
    assert_eq!(*after(&seen, &left).previous_key(), first);
}

#[test]
fn a_skipped_key_that_a_block_shows_vouches_whatever_was_rotated_since_then() {
    let mut record = rotated();
    record.protocol = Protocol::Vctx(Vctx::None);
    for (rotation, from) in [(Rotation::PassOver(1), 2), (Rotation::Succeed, 3)] {
        record.apply(&Change::Rotate { rotation, from, key: key(from + 1) }).unwrap();
    }
    assert_eq!(record.previous_key().number, 3);
    let [first, second, ..] = record.keys()[..] else { unreachable!() };
    let seen = after(&record, &view(&[info(&first, &second)], &[shown(9, &first, &second)]));
    assert_eq!(*seen.previous_key(), second);
}

/// Others know neither the lost key nor the one after it.
#[test]
fn a_key_after_a_lost_one_does_not_vouch_in_generation_0_2() {
    let mut record = rotated();
    record.protocol = Protocol::Vctx(Vctx::None);
    record.steps[1].seen = Seen::In(block(9));
    for from in [2, 3] {
        let rotation = Rotation::Succeed;
        record.apply(&Change::Rotate { rotation, from, key: key(from + 1) }).unwrap();
    }
    assert_eq!(record.previous_key().number, 3);
    let lost = ChainView { left: vec![block(9).hash], ..ChainView::default() };
    assert_eq!(after(&record, &lost).previous_key().number, 1);
}

#[test]
fn the_key_that_is_named_vouches_if_later_ones_are_skipped() {
    let mut record = rotated();
    record.steps[1].seen = Seen::Final;
    let rotation = Rotation::PassOver(1);
    record.apply(&Change::Rotate { rotation, from: 2, key: key(3) }).unwrap();
    assert_eq!(*record.previous_key(), record.keys()[0]);
    assert_eq!(record.announcements(), [Announcement::Rotation]);
}

#[test]
fn blocks_alone_decide_if_the_node_does_not_know_the_key_that_vouches() {
    let [old, new] = [(); 2].map(|()| PrivateKey::generate().unwrap());
    let mut record = rotated();
    let [first, second] = record.keys()[..] else { unreachable!() };
    record.apply(&roll([&old, &new])).unwrap();
    let announcements = [Announcement::Rotation, Announcement::RevocationKey];
    assert_eq!(record.announcements(), announcements);
    let taken = MinerIdInfo {
        revocation_key: Some(new.public_key()),
        previous_revocation_key: Some(old.public_key()),
        ..info(&first, &second)
    };
    for shown in [vec![], vec![unreadable(9)]] {
        let after = after(&record, &view(&[taken], &shown));
        assert_eq!(after.announcements(), announcements);
        assert!(!after.is_repeated());
    }
}

#[test]
fn a_revocation_key_that_the_node_has_not_taken_is_not_seen() {
    let [old, new] = [(); 2].map(|()| PrivateKey::generate().unwrap());
    let [old_key, new_key] = [&old, &new].map(PrivateKey::public_key);
    let mut record = known();
    let first = *record.current_key();
    record.apply(&roll([&old, &new])).unwrap();
    let mut shown = shown(9, &first, &first);
    let keys = RevocationKeys { current: new_key, previous: old_key };
    shown.claim.as_mut().unwrap().revocation_keys = Some(keys);
    let announcements = |revocation_key: PublicKey, shown: &Shown| {
        let info = MinerIdInfo {
            revocation_key: Some(revocation_key),
            previous_revocation_key: Some(old_key),
            ..info(&first, &first)
        };
        after(&record, &view(&[info], std::slice::from_ref(shown))).announcements()
    };
    assert_eq!(announcements(old_key, &shown), [Announcement::RevocationKey]);
    assert_eq!(announcements(new_key, &shown), []);
    assert_eq!(announcements(new_key, &unreadable(9)), []);
}

#[test]
fn a_partial_revocation_is_seen_in_the_block_that_shows_the_new_key() {
    let mut record = known();
    record.apply(&revocation(1, Some(key(2)))).unwrap();
    let [first, second] = record.keys()[..] else { unreachable!() };
    let blocks = [shown(9, &first, &first), shown(10, &first, &second)];
    let seen = after(&record, &view(&[info(&first, &first), info(&first, &second)], &blocks));
    assert_eq!(seen.announcements(), []);
    let sightings: Vec<_> = seen.sightings().iter().map(|it| (it.block, it.sighted)).collect();
    assert_eq!(sightings, [Sighted::Key, Sighted::Revocation].map(|sighted| (block(10), sighted)));
}

#[test]
fn a_node_of_which_blocks_are_read_tells_whether_a_later_key_has_followed() {
    let [key, other] = [key(1), key(2)];
    let rotated = MinerIdInfo { state: MinerIdState::Rotated, ..info(&key, &key) };
    let has_later = |known: MinerIdInfo, tip| {
        ChainView { known: vec![known], tip, ..ChainView::default() }.has_later(&key.public_key)
    };
    assert!(has_later(rotated, Some(9)));
    assert!(!has_later(rotated, None));
    assert!(!has_later(info(&key, &key), Some(9)));
    assert!(!has_later(MinerIdInfo { miner_id: other.public_key, ..rotated }, Some(9)));
}

#[test]
fn only_the_announced_revocation_counts_as_told() {
    let mut record = known();
    let [begun, other] = [(); 2].map(|()| revocation(1, Some(key(2))));
    record.apply(&begun).unwrap();
    for (change, is_told) in [(other, false), (begun, true)] {
        let Change::BeginRevocation { message, .. } = change else { unreachable!() };
        record.apply(&Change::NoteRevocationTold(message)).unwrap();
        assert_eq!(record.revocation().map(|it| it.is_told), Some(is_told));
        assert_eq!(record.untold_revocation().is_none(), is_told);
    }
}

#[test]
fn that_the_node_was_told_of_a_complete_revocation_survives_lost_blocks() {
    let mut record = known();
    let begun = revocation(1, None);
    record.apply(&begun).unwrap();
    record.steps[1].seen = Seen::In(block(9));
    assert!(record.is_closed());
    let Change::BeginRevocation { message, .. } = begun else { unreachable!() };
    record.apply(&Change::NoteRevocationTold(message)).unwrap();
    let lost = ChainView { left: vec![block(9).hash], ..ChainView::default() };
    let lost = after(&record, &lost);
    assert!(!lost.is_closed() && lost.revocation().unwrap().is_told);
    assert_eq!(lost.announcements(), [Announcement::CompleteRevocation]);
}

#[test]
fn a_known_identity_is_not_replaced() {
    let replace = Change::Rotate { rotation: Rotation::Replace, from: 1, key: key(2) };
    assert_eq!(known().apply(&replace), Err("a node knows its key"));
    let mut unknown = seen(known(), Seen::HandedOut);
    unknown.apply(&replace).unwrap();
    assert_eq!((unknown.exposure(), unknown.begins_with), (Exposure::Kept, 2));
}

#[test]
fn an_identity_that_begins_anew_forgets_what_blocks_have_shown() {
    let mut record = rotated();
    record.steps.iter_mut().for_each(|step| step.seen = Seen::Again(block(9)));
    let anew = Change::Rotate { rotation: Rotation::BeginAnew, from: 2, key: key(3) };
    record.apply(&anew).unwrap();
    let view = ChainView { left: vec![block(9).hash], ..ChainView::default() };
    record.apply(&Change::Observe(view)).unwrap();
    assert_eq!([record.previous_key().number, record.current_key().number], [3, 3]);
    assert_eq!((record.exposure(), record.acknowledged_key().number), (Exposure::Kept, 3));
    assert!(record.announcements().is_empty() && !record.is_repeated());
}

#[cfg(feature = "node")]
#[test]
fn a_new_revocation_key_leaves_the_current_key_handed_out() {
    let mut record = handed_out();
    record.apply(&Change::NoteHandedOut(2)).unwrap();
    let [first, second] = [(); 2].map(|()| PrivateKey::generate().unwrap());
    record.apply(&roll([&first, &second])).unwrap();
    assert!(!record.is_handed_out() && record.is_current_key_handed_out());
    record.apply(&Change::Rotate { rotation: Rotation::Succeed, from: 2, key: key(3) }).unwrap();
    assert!(!record.is_current_key_handed_out());
}

#[test]
fn the_key_of_the_last_document_is_remembered_if_one_was_handed_out() {
    for (is_handed_out, document_key) in [(true, Some(1)), (false, None)] {
        let mut record = known();
        record.steps[0].is_handed_out = is_handed_out;
        let rotate = Change::Rotate { rotation: Rotation::Succeed, from: 1, key: key(2) };
        record.apply(&rotate).unwrap();
        assert_eq!(record.document_key().map(|key| key.number), document_key);
        record.apply(&Change::NoteHandedOut(2)).unwrap();
        assert_eq!(record.document_key(), Some(record.current_key()));
    }
}

#[test]
fn an_upgrade_keeps_the_coins_and_announces_a_revocation_key_to_nodes_that_know_the_identity() {
    let upgraded = known().miner_info().unwrap().clone();
    let outpoint = OutPoint { txid: Txid::from_bytes([7; 32]), vout: 3 };
    for (seen_by, announcements) in
        [(Seen::Never, &[][..]), (Seen::Final, &[Announcement::RevocationKey])]
    {
        let vctx = Protocol::Vctx(Vctx::Recorded(outpoint, VctxView::default()));
        let mut record = seen(IdentityRecord::new(key(1), vctx), seen_by);
        assert_eq!(record.protocol.version(), "0.2");
        record.apply(&Change::Upgrade(Box::new(upgraded.clone()))).unwrap();
        assert_eq!(record.protocol.version(), "1.0");
        let left_vctx = LeftVctx { outpoint: Some(outpoint), sweep: None };
        assert_eq!(record.miner_info().unwrap().left_vctx, left_vctx);
        assert_eq!(record.announcements(), announcements);
    }
}

#[test]
fn keys_are_named_after_the_alias() {
    let pool: Alias = "pool".parse().unwrap();
    let mut record = rotated();
    assert_eq!(record.key_names(&pool), ["pool_1", "pool_2"]);
    record.protocol = Protocol::Vctx(Vctx::None);
    assert_eq!(record.key_names(&pool), ["pool_1", "pool_2"]);
    record.protocol = Protocol::Vctx(Vctx::AwaitingFunds);
    assert_eq!(record.key_names(&pool), ["pool_1", "pool_2", "pool_vctx"]);
}
