//! Random walks of the former state machine and of this one, side by side.

use std::collections::BTreeMap;

use bsv_minerid::formats::{Revocation, Succession};
use bsv_minerid::store::{
    BlockRef, ChainView, Change, Deed, Exposure, IdentityRecord, KeyRecord, MinerIdState,
    MinerInfoRecord, Protocol, Rotation, Seen, Shown, Sighted, Vctx,
};
use bsv_minerid::verify::{Claim, RevocationKeys};
use bsv_tx::{BlockHash, PrivateKey, PublicKey};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, TestRunner};

use crate::old_state as old;
use crate::state_model::Database;

#[derive(Clone)]
struct Block {
    hash: BlockHash,
    claim: Option<Claim>,
}

#[derive(Clone)]
struct Pair {
    new: IdentityRecord,
    old: old::IdentityRecord,
}

struct Walk {
    pair: Pair,
    copy: Pair,
    chain: Vec<Block>,
    lasting: usize,
    blocks: u32,
    own: Database,
    keys: u32,
    log: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
enum Do {
    Rotate { is_forced: bool, asks: bool },
    Anew,
    Roll,
    Revoke { is_complete: bool },
    Mine,
    MineForeign,
    MineUnread,
    MineCopy,
    Lose(usize),
    Look { is_complete: bool, hides: bool },
    HandOut,
    Show,
    Confirm,
    Told,
    Upgrade,
    Age,
    Copy,
    Restore,
}

thread_local! {
    static KEYS: Vec<PrivateKey> = (0..200).map(|_| PrivateKey::generate().unwrap()).collect();
    static ITSELF: Vec<Succession> = (100..200).map(|number| {
        let key = secret(number);
        Succession::sign(&key, key.public_key()).unwrap()
    }).collect();
    static PUBLIC: Vec<PublicKey> = (0..200).map(|number| secret(number).public_key()).collect();
}

fn secret(number: usize) -> PrivateKey {
    KEYS.with(|keys| keys[number % 200].clone())
}

fn key(number: u32) -> KeyRecord {
    KeyRecord { number, public_key: PUBLIC.with(|keys| keys[number as usize % 200]) }
}

fn key_of(number: u32) -> Succession {
    ITSELF.with(|all| all[number as usize % 100])
}

impl Pair {
    fn apply(&mut self, change: &Change) -> Result<(), String> {
        let theirs = match change {
            Change::Rotate { rotation, from, key } => {
                old::Change::Rotate { rotation: *rotation, from: *from, key: *key }
            }
            Change::NoteHandedOut(number) => old::Change::NoteHandedOut(*number),
            Change::NoteShown => old::Change::NoteShown,
            Change::Upgrade(own) => {
                let first = self.old.keys.iter().find(|key| key.public_key == own.first_miner_id);
                let key = own.first_revocation_key;
                old::Change::Upgrade(Box::new(old::MinerInfoRecord::new(
                    first.unwrap(),
                    key.number,
                    key.itself,
                )))
            }
            Change::RollRevocationKey { from, number, announced, acknowledged } => {
                old::Change::RollRevocationKey {
                    from: *from,
                    number: *number,
                    announced: *announced,
                    acknowledged: *acknowledged,
                }
            }
            Change::BeginRevocation { from, key, message } => old::Change::BeginRevocation {
                from: *from,
                key: *key,
                message: *message,
                revocation_key: self.new.known_revocation_key().unwrap().itself,
            },
            Change::NoteRevocationTold(message) => old::Change::NoteRevocationTold(*message),
            Change::Close => old::Change::Close,
            Change::Observe(view) => old::Change::Observe(view.clone()),
            Change::Confirm => old::Change::Confirm,
            other => panic!("{other:?}"),
        };
        let (new, old) = (self.new.apply(change), self.old.apply(&theirs));
        if new != old {
            return Err(format!("answer {new:?} {old:?}"));
        }
        Ok(())
    }

    /// What differs.
    fn compare(&self) -> Result<(), String> {
        let (new, old) = (&self.new, &self.old);
        macro_rules! same {
            ($what:expr, $new:expr, $old:expr) => {
                let (a, b) = ($new, $old);
                if a != b {
                    return Err(format!("{}: new {a:?}, old {b:?}", $what));
                }
            };
        }
        let numbers = |keys: &[KeyRecord]| keys.iter().map(|key| key.number).collect::<Vec<_>>();
        same!("keys", numbers(&new.keys()), numbers(&old.keys));
        let own = old.miner_info();
        let is_lost_in_0_2 = new.vctx().is_some() && new.is_repeated();
        let numbers_of = |record: &IdentityRecord| record.previous_key().number;
        if old::allowed()
            && is_lost_in_0_2
            && numbers_of(new) != old.previous_key().number
            && old.previous_key().number > old.sightings.acknowledged
        {
            return Err("allowed 0.2: what only lost blocks show does not vouch".to_owned());
        }
        if old::allowed()
            && new.revocation().is_none()
            && new.acknowledged_key().number == old.sightings.acknowledged
            && own.and_then(|own| own.revocation).is_some_and(|it| !it.is_complete)
            && new.steps.iter().any(|step| {
                matches!(step.deed, Deed::Revoked(it)
                if !it.is_complete && it.miner_id != new.acknowledged_key().number)
            })
        {
            return Err(
                "allowed revocation: one by another key than the last shown one is a rotation"
                    .to_owned(),
            );
        }
        let announced_by_upgrade =
            new.steps.iter().any(|step| step.deed == Deed::Upgraded && !step.seen.is_shown());
        if old::allowed()
            && announced_by_upgrade
            && new.announcements() != old.announcements()
            && new
                .announcements()
                .iter()
                .filter(|it| **it != old::Announcement::RevocationKey)
                .eq(old.announcements().iter())
        {
            return Err(
                "allowed upgrade: the first revocation key is announced after a revocation"
                    .to_owned(),
            );
        }
        same!("previous", new.previous_key().number, old.previous_key().number);
        same!("current", new.current_key().number, old.current_key().number);
        same!("statement", new.revocation_key(), own.map(|own| own.revocation_key));
        let revocation =
            |message: Revocation, is_complete, is_told| (message, is_complete, is_told);
        same!(
            "revocation",
            new.revocation().map(|it| revocation(it.message, it.is_complete, it.is_told)),
            own.and_then(|own| own.revocation).map(|it| revocation(
                it.message,
                it.is_complete,
                it.is_told
            ))
        );
        same!("announcements", new.announcements(), old.announcements());
        same!("closed", new.is_closed(), old.is_closed());
        same!("handed out", new.is_handed_out(), old.handed_out);
        let exposure = |it| match it {
            old::Exposure::Kept => Exposure::Kept,
            old::Exposure::HandedOut => Exposure::HandedOut,
            old::Exposure::Known => Exposure::Known,
        };
        same!("exposure", new.exposure(), exposure(old.exposure));
        let document_key = match (old.handed_out, own.and_then(|own| own.document_key)) {
            (false, Some(number)) => number,
            _ => old.current_key().number,
        };
        if own.is_some() {
            let newer = new.document_key().map_or(new.current_key().number, |key| key.number);
            same!("document key", newer, document_key);
        }
        same!(
            "current key handed out",
            new.document_key() == Some(new.current_key()),
            old.is_current_key_handed_out()
        );
        same!(
            "unacknowledged",
            numbers(&new.unacknowledged_keys()),
            numbers(old.unacknowledged_keys())
        );
        same!(
            "useful",
            new.useful_revocation_keys(),
            own.map(|own| own.useful_revocation_keys()).unwrap_or_default()
        );
        same!(
            "known revocation key",
            new.known_revocation_key().map(|key| (key.number, key.itself.current)),
            own.map(|own| own.known_revocation_key())
        );
        same!(
            "first",
            new.miner_info().map(|own| own.first_miner_id),
            own.map(|own| own.first_miner_id)
        );
        same!(
            "revocation key number",
            new.revocation_key_number(),
            own.map(|own| own.revocation_key_number)
        );
        let is_final = |height: u32| new.read_to.is_some_and(|it| height + 100 <= it.height);
        let sightings: Vec<_> = new
            .sightings()
            .iter()
            .filter(|it| !is_final(it.block.height))
            .map(|it| (it.block.height, it.sighted))
            .collect();
        let mut theirs: Vec<_> = old
            .sightings
            .recent
            .iter()
            .map(|it| {
                let sighted = match it.sighted {
                    old::sightings::Sighted::Identity => Sighted::Identity,
                    old::sightings::Sighted::Key { .. } => Sighted::Key,
                    old::sightings::Sighted::RevocationKey(_) => Sighted::RevocationKey,
                    old::sightings::Sighted::Revocation(_) => Sighted::Revocation,
                };
                (it.block.height, sighted)
            })
            .collect();
        theirs.sort_unstable();
        if old::allowed()
            && sightings.len() == theirs.len() + 1
            && new.steps.iter().any(|step| {
                matches!(step.seen, Seen::Again(_)) && step.key.number == new.begins_with
            })
        {
            return Err(
                "allowed sighting: a lost identity is seen again in an incomplete view".to_owned()
            );
        }
        same!("sightings", sightings, theirs);
        same!("awaits", new.awaits_blocks(), old.awaits_blocks());
        same!("read to", new.read_to, old.sightings.read_to);
        same!(
            "unseen",
            new.unseen.as_ref().map(|it| (it.since, it.blocks, it.own_blocks.clone())),
            old.sightings.unseen.as_ref().map(|it| (it.since, it.blocks, it.own_blocks.clone()))
        );
        for number in 1..=new.revocation_key_number().unwrap_or_default() {
            let key = key(100 + number).public_key;
            same!("has revocation key", new.has_revocation_key(&key), old.has_revocation_key(&key));
        }
        same!("repeated", new.is_repeated(), old.sightings.is_repeated);
        Ok(())
    }
}

impl Walk {
    fn new(is_0_2: bool) -> Self {
        let first = key(1);
        let (new, theirs) = match is_0_2 {
            true => (Protocol::Vctx(Vctx::None), old::Protocol::Vctx(old::Vctx::None)),
            false => (
                Protocol::MinerInfo(Box::new(MinerInfoRecord::new(&first, 1, key_of(1)))),
                old::Protocol::MinerInfo(Box::new(old::MinerInfoRecord::new(&first, 1, key_of(1)))),
            ),
        };
        let pair = Pair {
            new: IdentityRecord::new(first, new),
            old: old::IdentityRecord::new(first, theirs),
        };
        let mut walk = Self {
            copy: pair.clone(),
            pair,
            chain: Vec::new(),
            lasting: 0,
            blocks: 0,
            own: Database::default(),
            keys: 1,
            log: Vec::new(),
        };
        for _ in 0..8 {
            walk.add_block(None);
        }
        walk.lasting = walk.chain.len();
        walk.look(true, false, None).unwrap();
        walk
    }

    fn height(&self) -> u32 {
        u32::try_from(self.chain.len()).unwrap()
    }

    fn block_ref(&self, height: u32) -> BlockRef {
        BlockRef { height, hash: self.chain[height as usize - 1].hash }
    }

    fn add_block(&mut self, claim: Option<Claim>) {
        self.blocks += 1;
        let mut hash = [0; 32];
        hash[..4].copy_from_slice(&self.blocks.to_le_bytes());
        if let Some(claim) = &claim {
            self.own.take_any(claim);
        }
        self.chain.push(Block { hash: BlockHash::from_bytes(hash), claim });
    }

    fn look(&mut self, is_complete: bool, hides: bool, unread: Option<u32>) -> Result<(), String> {
        let own = &self.pair.new;
        let is_left = |hash: &BlockHash| self.chain.iter().all(|block| block.hash != *hash);
        let left = own.steps.iter().filter_map(|step| Some(step.seen.block()?.hash));
        let mut view = ChainView { left: left.filter(is_left).collect(), ..ChainView::default() };
        let floor =
            own.read_to.map_or(self.height() - 6, |block| block.height.min(self.height() - 6));
        view.is_complete = own.read_to.is_some() && is_complete;
        view.tip = Some(self.height());
        view.read_to = Some(self.block_ref(self.height() - 6));
        for height in floor + 1..=self.height() {
            let claim = self.chain[height as usize - 1].claim.clone();
            let block = self.block_ref(height);
            let is_read = unread != Some(height);
            view.shown.extend(claim.map(|claim| Shown { block, claim: is_read.then_some(claim) }));
        }
        if !is_complete {
            view.shown.retain(|shown| shown.block.height + 3 > self.chain.len() as u32);
        }
        let mut after = self.pair.clone();
        let left = ChainView { left: view.left.clone(), ..ChainView::default() };
        after.apply(&Change::Observe(left))?;
        after.compare()?;
        if !hides {
            let keys = after.new.unacknowledged_keys().into_iter();
            view.known =
                keys.filter_map(|key| self.own.keys.get(&key.public_key).copied()).collect();
        }
        self.log.push(format!("view {}", describe_view(&view)));
        self.pair.apply(&Change::Observe(view))
    }

    fn document(record: &IdentityRecord) -> Claim {
        let revocation_key = record.revocation_key();
        Claim {
            version: "0.3".to_owned(),
            miner_id: record.current_key().public_key,
            previous_miner_id: record.previous_key().public_key,
            revocation_keys: revocation_key
                .map(|Succession { previous, current, .. }| RevocationKeys { current, previous }),
            compromised_miner_id: record.revocation().map(|it| it.message.compromised.to_string()),
            vctx: None,
            data_refs: Vec::new(),
            name: None,
        }
    }

    fn is_unknown(&self) -> bool {
        self.pair.new.keys().iter().all(|key| !self.own.keys.contains_key(&key.public_key))
    }

    /// Rotates as the service does.
    fn rotation(&self, is_forced: bool, asks: bool) -> Option<Rotation> {
        let record = &self.pair.new;
        let is_of_0_2 = record.vctx().is_some();
        let is_lost = record.is_repeated() && record.exposure() == Exposure::HandedOut;
        let acknowledged = record.acknowledged_key().number;
        if record.exposure() == Exposure::Kept {
            return Some(Rotation::Replace);
        }
        if !asks {
            let passes = is_forced && is_of_0_2 && record.exposure() == Exposure::Known;
            return Some(if passes { Rotation::PassOver(acknowledged) } else { Rotation::Succeed });
        }
        let is_rotation_lost = record.is_repeated()
            && is_of_0_2
            && record.announcements().contains(&old::Announcement::Rotation);
        let is_current_known = self.own.keys.contains_key(&record.current_key().public_key);
        if is_current_known && !is_rotation_lost && !is_lost {
            return Some(Rotation::Succeed);
        }
        if is_lost || record.exposure() != Exposure::Known && self.is_unknown() {
            return Some(Rotation::Replace);
        }
        if self.is_unknown() {
            return is_forced.then_some(Rotation::BeginAnew);
        }
        let last = match record.is_repeated() {
            true => acknowledged,
            false => {
                let keys = record.keys();
                let current = keys.iter().rev().find(|key| {
                    self.own
                        .keys
                        .get(&key.public_key)
                        .is_some_and(|info| info.state == MinerIdState::Current)
                });
                current.map_or(acknowledged, |key| key.number)
            }
        };
        match (is_forced, is_of_0_2) {
            (true, _) => Some(Rotation::PassOver(last)),
            (false, true) => None,
            (false, false) => Some(Rotation::Succeed),
        }
    }

    fn run(&mut self, step: Do) -> Result<(), String> {
        use old::Announcement::{CompleteRevocation, PartialRevocation, RevocationKey};
        self.log.push(format!("{step:?}"));
        let is_announced = |record: &IdentityRecord, all: &[old::Announcement]| {
            record.announcements().iter().any(|announced| all.contains(announced))
        };
        if matches!(
            step,
            Do::Rotate { asks: true, .. } | Do::Anew | Do::Roll | Do::Revoke { .. } | Do::Mine
        ) {
            self.look(true, false, None)?;
            self.pair.compare()?;
        }
        let record = self.pair.new.clone();
        let from = record.current_key().number;
        let is_revoking = is_announced(&record, &[PartialRevocation, CompleteRevocation]);
        let is_idle = !is_revoking && !record.is_closed();
        match step {
            Do::Rotate { is_forced, asks } => {
                let is_seen = !is_announced(&record, &[old::Announcement::Rotation]);
                if let Some(rotation) = self.rotation(is_forced, asks)
                    && is_idle
                    && (is_forced || is_seen || record.vctx().is_some())
                {
                    self.keys += 1;
                    self.log.push(format!("{rotation:?}"));
                    self.pair.apply(&Change::Rotate { rotation, from, key: key(self.keys) })?;
                }
            }
            Do::Anew if is_idle && self.is_unknown() => {
                self.keys += 1;
                let change =
                    Change::Rotate { rotation: Rotation::BeginAnew, from, key: key(self.keys) };
                self.pair.apply(&change)?;
            }
            Do::Roll
                if is_idle
                    && !is_announced(&record, &[RevocationKey])
                    && record.miner_info().is_some() =>
            {
                let from = record.revocation_key_number().unwrap();
                let (current, new) = (secret(100 + from as usize), secret(101 + from as usize));
                self.pair.apply(&Change::RollRevocationKey {
                    from,
                    number: from + 1,
                    announced: Succession::sign(&current, new.public_key()).unwrap(),
                    acknowledged: key_of(from + 1),
                })?;
            }
            Do::Revoke { is_complete } if is_idle && record.miner_info().is_some() => {
                if self.is_unknown() {
                    if is_complete && record.exposure() != Exposure::Known {
                        self.pair.apply(&Change::Close)?;
                    }
                    return Ok(());
                }
                let own = record.miner_info().unwrap();
                let known = *record.previous_key();
                let compromised = if is_complete { own.first_miner_id } else { known.public_key };
                if !is_complete && compromised == own.first_miner_id {
                    return Ok(());
                }
                let signer = secret(100 + record.known_revocation_key().unwrap().number as usize);
                if !is_complete {
                    self.keys += 1;
                }
                self.pair.apply(&Change::BeginRevocation {
                    from,
                    key: (!is_complete).then(|| key(self.keys)),
                    message: Revocation::sign(compromised, &signer, &signer).unwrap(),
                })?;
                self.own.revoke(&known.public_key, &compromised);
            }
            Do::Mine => {
                if record.is_closed() {
                    self.add_block(None);
                } else {
                    self.pair.apply(&Change::NoteHandedOut(from))?;
                    self.add_block(Some(Self::document(&self.pair.new)));
                }
            }
            Do::MineForeign => self.add_block(None),
            Do::MineUnread => {
                self.pair.apply(&Change::NoteHandedOut(from))?;
                self.add_block(Some(Self::document(&self.pair.new)));
                let height = self.height();
                self.look(true, false, Some(height))?;
            }
            Do::MineCopy => self.add_block(Some(Self::document(&self.copy.new))),
            Do::Lose(blocks) => {
                self.chain.truncate(self.lasting.max(self.chain.len().saturating_sub(blocks)));
                for _ in 0..=blocks {
                    self.add_block(None);
                }
            }
            Do::Look { is_complete, hides } => self.look(is_complete, hides, None)?,
            Do::HandOut => self.pair.apply(&Change::NoteHandedOut(from))?,
            Do::Show => self.pair.apply(&Change::NoteShown)?,
            Do::Confirm if record.miner_info().is_some() && !record.is_closed() => {
                self.run(Do::Age)?;
                if self.pair.new.is_closed() {
                    return Ok(());
                }
                self.pair.apply(&Change::Confirm)?
            }
            Do::Told => {
                if let Some(revocation) = record.revocation() {
                    self.pair.apply(&Change::NoteRevocationTold(revocation.message))?;
                }
            }
            Do::Upgrade if record.vctx().is_some() => {
                let first = key(1);
                self.pair.apply(&Change::Upgrade(Box::new(MinerInfoRecord::new(
                    &first,
                    1,
                    key_of(1),
                ))))?;
            }
            Do::Age => {
                for _ in 0..100 {
                    self.add_block(None);
                }
                self.lasting = self.chain.len();
                self.look(true, false, None)?;
            }
            Do::Copy => self.copy = self.pair.clone(),
            Do::Restore => {
                self.pair = self.copy.clone();
            }
            Do::Anew | Do::Roll | Do::Revoke { .. } | Do::Confirm | Do::Upgrade => {}
        }
        self.pair.compare()
    }
}

fn describe_view(view: &ChainView) -> String {
    let name = |key: &PublicKey| {
        (1..100).find(|number| self::key(*number).public_key == *key).map_or(0, |n| n)
    };
    let shown: Vec<_> = view
        .shown
        .iter()
        .map(|it| {
            (
                it.block.height,
                it.claim.as_ref().map(|claim| {
                    (
                        name(&claim.previous_miner_id),
                        name(&claim.miner_id),
                        claim.compromised_miner_id.is_some(),
                    )
                }),
            )
        })
        .collect();
    let known: Vec<_> = view
        .known
        .iter()
        .map(|it| (name(&it.miner_id), it.state, it.previous_miner_id.as_ref().map(name)))
        .collect();
    format!("{shown:?} {known:?} left {} complete {}", view.left.len(), view.is_complete)
}

fn walk() -> impl Strategy<Value = Do> {
    prop_oneof![
        3 => any::<(bool, bool)>().prop_map(|(is_forced, no)| Do::Rotate { is_forced, asks: !no }),
        2 => any::<bool>().prop_map(|is_forced| Do::Rotate { is_forced, asks: true }),
        1 => Just(Do::Anew),
        3 => Just(Do::Roll),
        2 => any::<bool>().prop_map(|is_complete| Do::Revoke { is_complete }),
        8 => Just(Do::Mine),
        2 => Just(Do::MineForeign),
        1 => Just(Do::MineUnread),
        1 => Just(Do::MineCopy),
        3 => (1..=3_usize).prop_map(Do::Lose),
        3 => (any::<bool>(), 0..4).prop_map(|(is_complete, hides)| Do::Look { is_complete, hides: hides == 0 }),
        2 => Just(Do::HandOut),
        1 => Just(Do::Show),
        1 => Just(Do::Confirm),
        1 => Just(Do::Told),
        1 => Just(Do::Upgrade),
        1 => Just(Do::Age),
        1 => Just(Do::Copy),
        1 => Just(Do::Restore),
    ]
}

#[test]
fn both_machines_agree() {
    let cases = std::env::var("WALKS").ok().and_then(|it| it.parse().ok()).unwrap_or(2_000);
    let print = std::env::var("PRINT").ok().and_then(|it| it.parse().ok()).unwrap_or(3);
    let mut runner =
        TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let strategy = (any::<bool>(), proptest::collection::vec(walk(), 1..24));
    let mut differences: BTreeMap<String, (usize, usize, String)> = BTreeMap::new();
    let (mut steps_run, mut agreed) = (0, 0);
    for _ in 0..cases {
        let (is_0_2, steps) = strategy.new_tree(&mut runner).unwrap().current();
        let mut walk = Walk::new(is_0_2);
        let mut is_agreed = true;
        for step in steps {
            steps_run += 1;
            if let Err(mut difference) = walk.run(step) {
                let has = |what: &str| walk.log.iter().any(|line| line.contains(what));
                if old::allowed() && difference.starts_with("sightings") && has("PassOver") {
                    difference = format!("allowed passed over: {difference}");
                }
                let is_confirmed =
                    has("Confirm") || has("Upgrade") || has("PassOver") || has("complete: false");
                let is_lost =
                    walk.pair.new.is_repeated() || has("left 1") || has("left 2") || has("Lose");
                let is_of_keys = difference.starts_with("previous")
                    || difference.starts_with("unacknowledged")
                    || difference.starts_with("announcements");
                if old::allowed() && is_of_keys && is_confirmed && is_lost {
                    difference = format!("check {}", difference);
                }
                let what = difference.split(':').next().unwrap().to_owned();
                let trace = format!(
                    "{}\n   {difference}\n   {:?} begins {}\n   {:?} ack {} vouching {:?} {:?}",
                    walk.log.join("\n   "),
                    walk.pair
                        .new
                        .steps
                        .iter()
                        .map(|it| (
                            format!("{:?}", it.deed).chars().take(12).collect::<String>(),
                            it.key.number,
                            it.seen,
                            it.is_handed_out
                        ))
                        .collect::<Vec<_>>(),
                    walk.pair.new.begins_with,
                    walk.pair
                        .old
                        .sightings
                        .recent
                        .iter()
                        .map(|it| (
                            it.block.height,
                            format!("{:?}", it.sighted).chars().take(8).collect::<String>()
                        ))
                        .collect::<Vec<_>>(),
                    walk.pair.old.sightings.acknowledged,
                    walk.pair.old.vouching,
                    walk.pair.old.exposure
                );
                let entry = differences.entry(what).or_insert((0, usize::MAX, String::new()));
                entry.0 += 1;
                if walk.log.len() < entry.1 {
                    entry.1 = walk.log.len();
                    entry.2 = trace;
                }
                is_agreed = false;
                break;
            }
        }
        agreed += usize::from(is_agreed);
    }
    eprintln!("{cases} walks, {steps_run} steps, {agreed} agreed throughout");
    for (what, (count, _, trace)) in differences.iter().take(print) {
        eprintln!("== {what}: {count}\n   {trace}");
    }
    eprintln!("{:?}", differences.iter().map(|(what, it)| (what, it.0)).collect::<Vec<_>>());
}
