use bsv_tx::{BlockHash, OutPoint, PrivateKey, PublicKey, Txid};

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
    let record = IdentityRecord::new(first, Protocol::MinerInfo(Box::new(miner_info)));
    IdentityRecord { exposure: Exposure::Known, ..record }
}

fn own(record: &mut IdentityRecord) -> &mut MinerInfoRecord {
    record.miner_info_mut().unwrap()
}

/// An identity of which documents were handed out, that no block has shown.
fn handed_out() -> IdentityRecord {
    IdentityRecord { exposure: Exposure::HandedOut, ..rotated() }
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

fn revocation(is_complete: bool) -> RevocationRecord {
    let signer = PrivateKey::generate().unwrap();
    let message = Revocation::sign(signer.public_key(), &signer, &signer).unwrap();
    RevocationRecord { message, is_complete, is_told: false, revocation_key: None }
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
    let mut seen = known();
    seen.sightings.recent.push(Sighting { block: block(9), sighted: Sighted::Identity });
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
    let read_to = block(9);
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
    let sighted = Sighted::RevocationKey(change(&first, &second));
    record.sightings.recent.push(Sighting { block: block(9), sighted });
    assert_eq!(named(&record), [true, true, true, false]);
}

#[test]
fn only_blocks_of_the_identity_count_as_its_own() {
    let record = rotated();
    let [first, _] = record.keys[..] else { unreachable!() };
    let unseen = |shown: &[Shown]| {
        let begun = after(&record, &ChainView { tip: Some(10), ..ChainView::default() });
        after(&begun, &view(&[info(&first, &first)], shown)).sightings.unseen.unwrap().own_blocks
    };
    let stranger = key(1);
    assert_eq!(unseen(&[shown(11, &first, &first), shown(12, &stranger, &stranger)]), [11]);
}

#[test]
fn a_partial_revocation_and_its_key_are_announced_again_if_their_block_is_lost() {
    let mut record = rotated();
    record.sightings.acknowledged = 2;
    let sighted = [Sighted::Key { before: 1 }, Sighted::Revocation(revocation(false))];
    record.sightings.recent = sighted.map(|sighted| Sighting { block: block(9), sighted }).to_vec();
    assert_eq!(record.announcements(), []);
    let lost = ChainView { left: vec![block(9).hash], ..ChainView::default() };
    assert_eq!(after(&record, &lost).announcements(), [Announcement::PartialRevocation]);
    // The key that revokes was seen in an earlier block. Without that block, no node accepts it.
    record.sightings.recent[0].block = block(8);
    let left = vec![block(8).hash, block(9).hash];
    let lost = ChainView { left, ..ChainView::default() };
    assert_eq!(after(&record, &lost).announcements(), [Announcement::Rotation]);
}

#[test]
fn a_node_shows_an_identity_only_if_it_knows_a_key_from_the_main_chain() {
    let record = handed_out();
    let [first, _] = record.keys[..] else { unreachable!() };
    let exposure = |record: &IdentityRecord, known: &[MinerIdInfo]| {
        let view = ChainView { known: known.to_vec(), ..ChainView::default() };
        after(record, &view).exposure
    };
    assert_eq!(exposure(&record, &[]), Exposure::HandedOut);
    assert_eq!(exposure(&record, &[info(&first, &first)]), Exposure::Known);
    let mut lost = record;
    lost.sightings.is_repeated = true;
    assert_eq!(exposure(&lost, &[info(&first, &first)]), Exposure::HandedOut);
}

#[test]
fn an_identity_begins_with_the_newest_key_that_a_block_shows_as_the_first() {
    let record = handed_out();
    let [first, second] = record.keys[..] else { unreachable!() };
    for (key, vouching) in [(first, None), (second, Some(2))] {
        let shown = [shown(9, &key, &key)];
        let view = view(&[info(&key, &key)], &shown);
        let mut begun = after(&record, &view);
        assert_eq!(begun.exposure, Exposure::Known);
        assert_eq!((begun.sightings.acknowledged, begun.vouching), (key.number, vouching));
        assert_eq!(own(&mut begun).first_miner_id, key.public_key);
        let sighting = Sighting { block: block(9), sighted: Sighted::Identity };
        assert_eq!(begun.sightings.recent, [sighting]);
        // An earlier block, which was not read, may be the one.
        let begun = after(&record, &ChainView { is_complete: false, ..view });
        assert_eq!((begun.exposure, begun.sightings.recent), (Exposure::Known, vec![]));
    }
}

#[test]
fn an_identity_begins_anew_if_nodes_ignore_its_key_or_lost_blocks_alone_have_shown_it() {
    let record = handed_out();
    let [first, second] = record.keys[..] else { unreachable!() };
    let stranger = key(1);
    let later = [shown(9, &first, &second)];
    let foreign = [shown(9, &stranger, &stranger)];
    let elsewhere = [shown(9, &stranger, &second)];
    let mut lost = record.clone();
    lost.sightings.is_repeated = true;
    for (record, view, acknowledged) in [
        (&record, view(&[], &[]), 1),
        (&record, view(&[], &foreign), 1),
        (&record, view(&[], &later), 2),
        (&record, view(&[], &elsewhere), 2),
        (&lost, view(&[], &[]), 2),
        (&lost, ChainView { is_complete: false, ..view(&[], &[]) }, 1),
    ] {
        assert_eq!(after(record, &view).sightings.acknowledged, acknowledged, "{view:?}");
    }
    for is_complete in [false, true] {
        own(&mut lost).revocation = Some(revocation(is_complete));
        let mut after = after(&lost, &view(&[], &[]));
        assert_eq!(own(&mut after).revocation.is_some(), is_complete);
    }
}

#[test]
fn a_key_of_generation_0_2_is_seen_if_a_block_shows_it_and_the_node_takes_it() {
    let mut record = rotated();
    record.protocol = Protocol::Vctx(Vctx::None);
    let [first, second] = record.keys[..] else { unreachable!() };
    let taken = [info(&first, &second)];
    let block = [shown(9, &first, &second)];
    let announced =
        |record: &IdentityRecord, view: ChainView| !after(record, &view).announcements().is_empty();
    assert!(announced(&record, view(&[], &block)));
    assert!(!announced(&record, view(&taken, &block)));
    assert!(!announced(&record, view(&taken, &[unreadable(9)])));
    // A block that was lost has shown the key to the node.
    record.sightings.is_repeated = true;
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
    let [first, second, third] = record.keys[..] else { unreachable!() };
    assert_eq!(*record.previous_key(), first);
    let mut seen = after(&record, &view(&[info(&first, &second)], &[shown(9, &first, &second)]));
    assert_eq!((*seen.previous_key(), seen.sightings.acknowledged), (second, 2));
    assert_eq!(seen.announcements(), [Announcement::Rotation]);
    seen = after(&seen, &view(&[info(&second, &third)], &[shown(10, &second, &third)]));
    assert_eq!((*seen.previous_key(), seen.announcements()), (second, vec![]));
    let left = ChainView { left: vec![block(9).hash, block(10).hash], ..ChainView::default() };
    assert_eq!(*after(&seen, &left).previous_key(), first);
}

#[test]
fn the_key_that_is_named_vouches_if_later_ones_are_skipped() {
    let mut record = rotated();
    record.sightings.acknowledged = 2;
    let rotation = Rotation::PassOver(1);
    record.apply(&Change::Rotate { rotation, from: 2, key: key(3) }).unwrap();
    assert_eq!(*record.previous_key(), record.keys[0]);
    assert_eq!(record.announcements(), [Announcement::Rotation]);
}

#[test]
fn blocks_alone_decide_if_the_node_does_not_know_the_key_that_vouches() {
    let [old, new] = [(); 2].map(|()| PrivateKey::generate().unwrap());
    let roll = Succession::sign(&old, new.public_key()).unwrap();
    let mut record = rotated();
    let [first, second] = record.keys[..] else { unreachable!() };
    own(&mut record).roll(1, 2, roll, Succession::sign(&new, new.public_key()).unwrap()).unwrap();
    let announcements = [Announcement::Rotation, Announcement::RevocationKey];
    assert_eq!(record.announcements(), announcements);
    let taken = MinerIdInfo {
        revocation_key: Some(roll.current),
        previous_revocation_key: Some(roll.previous),
        ..info(&first, &second)
    };
    for shown in [vec![], vec![unreadable(9)]] {
        let after = after(&record, &view(&[taken], &shown));
        assert_eq!(after.announcements(), announcements);
        assert!(!after.sightings.is_repeated);
    }
}

#[test]
fn a_revocation_key_that_the_node_has_not_taken_is_not_seen() {
    let [old, new] = [(); 2].map(|()| PrivateKey::generate().unwrap());
    let roll = Succession::sign(&old, new.public_key()).unwrap();
    let mut record = known();
    let first = *record.current_key();
    own(&mut record).roll(1, 2, roll, Succession::sign(&new, new.public_key()).unwrap()).unwrap();
    let mut shown = shown(9, &first, &first);
    let keys = RevocationKeys { current: roll.current, previous: roll.previous };
    shown.claim.as_mut().unwrap().revocation_keys = Some(keys);
    let announcements = |revocation_key: PublicKey, shown: &Shown| {
        let info = MinerIdInfo {
            revocation_key: Some(revocation_key),
            previous_revocation_key: Some(roll.previous),
            ..info(&first, &first)
        };
        after(&record, &view(&[info], std::slice::from_ref(shown))).announcements()
    };
    assert_eq!(announcements(roll.previous, &shown), [Announcement::RevocationKey]);
    assert_eq!(announcements(roll.current, &shown), []);
    assert_eq!(announcements(roll.current, &unreadable(9)), []);
}

#[test]
fn a_partial_revocation_is_seen_in_the_block_that_shows_the_new_key() {
    let mut record = rotated();
    let [first, second] = record.keys[..] else { unreachable!() };
    own(&mut record).revocation = Some(revocation(false));
    let blocks = [shown(9, &first, &first), shown(10, &first, &second)];
    let seen = after(&record, &view(&[info(&first, &first), info(&first, &second)], &blocks));
    assert_eq!(seen.announcements(), []);
    let heights: Vec<_> = seen.sightings.recent.iter().map(|seen| seen.block.height).collect();
    assert_eq!(heights, [10, 10]);
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
    let (begun, other) = (revocation(false), revocation(false));
    own(&mut record).revocation = Some(begun);
    for (message, is_told) in [(other.message, false), (begun.message, true)] {
        record.apply(&Change::NoteRevocationTold(message)).unwrap();
        assert_eq!(own(&mut record).revocation, Some(RevocationRecord { is_told, ..begun }));
    }
}

#[test]
fn a_known_identity_is_not_replaced() {
    let replace = Change::Rotate { rotation: Rotation::Replace, from: 1, key: key(2) };
    assert_eq!(known().apply(&replace), Err("a node knows its key"));
    let mut unknown = IdentityRecord { exposure: Exposure::HandedOut, ..known() };
    unknown.apply(&replace).unwrap();
    assert_eq!((unknown.exposure, unknown.vouching), (Exposure::Kept, Some(2)));
}

#[test]
fn an_identity_that_begins_anew_forgets_what_blocks_have_shown() {
    let mut record = known();
    let seen = Sighting { block: block(9), sighted: Sighted::Key { before: 0 } };
    record.sightings.recent = vec![seen, Sighting { sighted: Sighted::Identity, ..seen }];
    record.sightings.is_repeated = true;
    let anew = Change::Rotate { rotation: Rotation::BeginAnew, from: 1, key: key(2) };
    record.apply(&anew).unwrap();
    let view = ChainView { left: vec![seen.block.hash], ..ChainView::default() };
    record.apply(&Change::Observe(view)).unwrap();
    assert_eq!([record.previous_key().number, record.current_key().number], [2, 2]);
    assert_eq!((record.exposure, record.sightings.acknowledged), (Exposure::Kept, 2));
    assert!(record.announcements().is_empty() && !record.sightings.is_repeated);
}

#[cfg(feature = "node")]
#[test]
fn a_new_revocation_key_leaves_the_current_key_handed_out() {
    let mut record = handed_out();
    record.apply(&Change::NoteHandedOut(2)).unwrap();
    let revocation_key = own(&mut record).revocation_key;
    let roll = Change::RollRevocationKey {
        from: own(&mut record).revocation_key_number,
        number: 2,
        announced: revocation_key,
        acknowledged: revocation_key,
    };
    for _ in 0..2 {
        record.apply(&roll).unwrap();
        assert!(!record.handed_out && record.is_current_key_handed_out());
        own(&mut record).revocation_key_number -= 1;
    }
    record.apply(&Change::Rotate { rotation: Rotation::Succeed, from: 2, key: key(3) }).unwrap();
    assert!(!record.is_current_key_handed_out());
}

#[test]
fn the_key_of_the_last_document_is_remembered_if_one_was_handed_out() {
    for (handed_out, document_key) in [(true, Some(1)), (false, None)] {
        let mut record = IdentityRecord { handed_out, ..known() };
        let rotate = Change::Rotate { rotation: Rotation::Succeed, from: 1, key: key(2) };
        record.apply(&rotate).unwrap();
        assert_eq!(own(&mut record).document_key, document_key);
        record.apply(&Change::NoteHandedOut(2)).unwrap();
        assert_eq!(own(&mut record).document_key, None);
    }
}

#[test]
fn an_upgrade_keeps_the_coins_and_announces_a_revocation_key_to_nodes_that_know_the_identity() {
    let upgraded = known().miner_info().unwrap().clone();
    let outpoint = OutPoint { txid: Txid::from_bytes([7; 32]), vout: 3 };
    for (exposure, announcements) in
        [(Exposure::Kept, &[][..]), (Exposure::Known, &[Announcement::RevocationKey])]
    {
        let vctx = Protocol::Vctx(Vctx::Recorded(outpoint, VctxView::default()));
        let mut record = IdentityRecord { exposure, ..IdentityRecord::new(key(1), vctx) };
        assert_eq!(record.protocol.version(), "0.2");
        record.apply(&Change::Upgrade(Box::new(upgraded.clone()))).unwrap();
        assert_eq!(record.protocol.version(), "1.0");
        assert_eq!(own(&mut record).left_vctx, LeftVctx { outpoint: Some(outpoint), sweep: None });
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
