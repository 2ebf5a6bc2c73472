//! Random walks of an identity of generation 1.0 through its states. Simulated nodes accept
//! documents by the observed rules of real nodes.

use std::collections::BTreeMap;

use bsv_minerid::formats::{Revocation, Succession};
use bsv_minerid::store::{
    Announcement, BlockRef, ChainView, Change, Exposure, IdentityRecord, KeyRecord, MinerIdInfo,
    MinerIdState, MinerInfoRecord, Protocol, RevocationKeyRecord, Rotation, Seen, Shown, Vctx,
};
use bsv_minerid::verify::{Claim, RevocationKeys};
use bsv_tx::{BlockHash, PrivateKey, PublicKey};
use proptest::prelude::*;

/// A node's knowledge of keys.
#[derive(Clone, Default)]
struct Database {
    keys: BTreeMap<PublicKey, MinerIdInfo>,
    /// The keys of each miner, in the order of their introduction.
    miners: Vec<Vec<PublicKey>>,
}

impl Database {
    fn state(&self, key: &PublicKey) -> Option<MinerIdState> {
        self.keys.get(key).map(|info| info.state)
    }

    fn set_state(&mut self, key: &PublicKey, state: MinerIdState) {
        self.keys.get_mut(key).unwrap().state = state;
    }

    /// The revocation key of the miner who owns this key.
    fn revocation_key(&self, key: &PublicKey) -> Option<PublicKey> {
        self.keys.get(key)?.revocation_key
    }

    fn miner_of(&mut self, key: &PublicKey) -> Option<&mut Vec<PublicKey>> {
        self.miners.iter_mut().find(|keys| keys.contains(key))
    }

    /// Accepts a document, or ignores it.
    fn take(&mut self, claim: &Claim) -> bool {
        let (current, previous) = (claim.miner_id, claim.previous_miner_id);
        let keys = claim.revocation_keys.unwrap();
        if self.revocation_key(&previous).is_some_and(|known| known != keys.previous) {
            return false;
        }
        let is_rotation = current != previous;
        let is_revocation = claim.compromised_miner_id.is_some();
        let takes = match (self.state(&previous), self.state(&current)) {
            _ if is_revocation && keys.is_roll() => false,
            (None, _) => !is_rotation && !is_revocation,
            (Some(MinerIdState::Current), None) => is_rotation,
            (Some(MinerIdState::Current), _) => !is_rotation,
            // A repetition of the same rotation.
            (Some(before), Some(MinerIdState::Current)) if is_rotation => {
                let miner = self.miner_of(&current).unwrap();
                miner.iter().rev().nth(1) == Some(&previous)
                    && (is_revocation || before == MinerIdState::Rotated)
            }
            (Some(MinerIdState::Revoked), _) => is_revocation,
            _ => false,
        };
        if !takes {
            return false;
        }
        if is_rotation && self.state(&current).is_none() && self.state(&previous).is_some() {
            self.set_state(&previous, MinerIdState::Rotated);
        }
        if let Some(compromised) = &claim.compromised_miner_id {
            self.revoke(&previous, &compromised.parse().unwrap());
        }
        let is_all_revoked = is_revocation && !is_rotation;
        let state = if is_all_revoked { MinerIdState::Revoked } else { MinerIdState::Current };
        match self.miner_of(&previous) {
            Some(miner) if miner.contains(&current) => {}
            Some(miner) => miner.push(current),
            None => self.miners.push(vec![current]),
        }
        let info = MinerIdInfo {
            miner_id: current,
            state,
            previous_miner_id: Some(previous),
            revocation_key: Some(keys.current),
            previous_revocation_key: Some(keys.previous),
        };
        self.keys.insert(current, info);
        true
    }

    /// Revokes the known keys of a miner, back to the compromised one.
    fn revoke(&mut self, current: &PublicKey, compromised: &PublicKey) {
        let Some(miner) = self.miner_of(current) else { return };
        let from = miner.iter().position(|key| key == compromised).unwrap_or(0);
        for key in miner.clone().iter().skip(from) {
            self.set_state(key, MinerIdState::Revoked);
        }
    }
}

#[derive(Clone)]
struct Block {
    hash: BlockHash,
    claim: Option<Claim>,
}

/// An identity, its node, and the main chain. The first block has the number 1.
struct World {
    record: IdentityRecord,
    chain: Vec<Block>,
    /// How many blocks of the main chain are final.
    lasting: usize,
    blocks: u8,
    /// The knowledge of the identity's own node, which has seen all blocks.
    own: Database,
    revocation_keys: Vec<PrivateKey>,
    /// The number of documents that were made while others could not know a key that is being
    /// revoked.
    excused: usize,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Rotate { is_forced: bool },
    Roll,
    Revoke { is_complete: bool },
    Mine,
    MineForeign,
    Lose(usize),
}

fn key(number: u32) -> KeyRecord {
    KeyRecord { number, public_key: PrivateKey::generate().unwrap().public_key() }
}

impl World {
    /// A world that has not seen the identity.
    fn begin() -> Self {
        let revocation_key = PrivateKey::generate().unwrap();
        let itself = Succession::sign(&revocation_key, revocation_key.public_key()).unwrap();
        let first = key(1);
        let miner_info = MinerInfoRecord::new(&first, 1, itself);
        let record = IdentityRecord::new(first, Protocol::MinerInfo(Box::new(miner_info)));
        let mut world = Self {
            record,
            chain: Vec::new(),
            lasting: 0,
            blocks: 0,
            own: Database::default(),
            revocation_keys: vec![revocation_key],
            excused: 0,
        };
        world.add_lasting_blocks();
        world
    }

    /// A world in which the identity is known for good.
    fn new() -> Self {
        let mut world = Self::begin();
        world.mine();
        world.add_lasting_blocks();
        world
    }

    fn add_lasting_blocks(&mut self) {
        for _ in 0..8 {
            self.add_block(None);
        }
        self.lasting = self.chain.len();
        self.observe();
    }

    fn own_record(&self) -> &MinerInfoRecord {
        self.record.miner_info().unwrap()
    }

    fn is_announced(&self, announcements: &[Announcement]) -> bool {
        self.record.announcements().iter().any(|announced| announcements.contains(announced))
    }

    fn height(&self) -> u32 {
        u32::try_from(self.chain.len()).unwrap()
    }

    fn block_ref(&self, height: u32) -> BlockRef {
        BlockRef { height, hash: self.chain[height as usize - 1].hash }
    }

    fn add_block(&mut self, claim: Option<Claim>) {
        self.blocks = self.blocks.checked_add(1).unwrap();
        let hash = BlockHash::from_bytes([self.blocks; 32]);
        if let Some(claim) = &claim {
            self.own.take(claim);
        }
        self.chain.push(Block { hash, claim });
    }

    /// The service's work at each tip.
    fn observe(&mut self) {
        let own = &self.record;
        let is_left = |hash: &BlockHash| self.chain.iter().all(|block| block.hash != *hash);
        let left = own.steps.iter().filter_map(|step| Some(step.seen.block()?.hash));
        let left = left.filter(is_left);
        let mut view = ChainView { left: left.collect(), ..ChainView::default() };
        let floor =
            own.read_to.map_or(self.height() - 6, |block| block.height.min(self.height() - 6));
        view.is_complete = own.read_to.is_some();
        view.tip = Some(self.height());
        view.read_to = Some(self.block_ref(self.height() - 6));
        for height in floor + 1..=self.height() {
            let claim = self.chain[height as usize - 1].claim.clone();
            let block = self.block_ref(height);
            view.shown.extend(claim.map(|claim| Shown { block, claim: Some(claim) }));
        }
        let mut after = self.record.clone();
        let left = ChainView { left: view.left.clone(), ..ChainView::default() };
        after.apply(&Change::Observe(left)).unwrap();
        let keys = after.unacknowledged_keys().into_iter();
        view.known = keys.filter_map(|key| self.own.keys.get(&key.public_key).copied()).collect();
        self.record.apply(&Change::Observe(view)).unwrap();
    }

    fn document(&self) -> Claim {
        let revocation_key = self.record.revocation_key();
        let revocation = self.record.revocation().map(|it| it.message.compromised);
        Claim {
            version: "0.3".to_owned(),
            miner_id: self.record.current_key().public_key,
            previous_miner_id: self.record.previous_key().public_key,
            revocation_keys: revocation_key
                .map(|Succession { previous, current, .. }| RevocationKeys { current, previous }),
            compromised_miner_id: revocation.map(|key| key.to_string()),
            vctx: None,
            data_refs: Vec::new(),
            name: None,
        }
    }

    /// The knowledge of a node that has seen only the main chain, and whether it accepts the last
    /// block.
    fn others(&self) -> (Database, bool) {
        let (mut others, mut takes) = (Database::default(), false);
        for claim in self.chain.iter().filter_map(|block| block.claim.as_ref()) {
            takes = others.take(claim);
        }
        (others, takes)
    }

    /// Whether a complete revocation is announced by a key that only lost blocks have shown.
    fn revokes_what_was_lost(&self) -> bool {
        let is_lost = |hash: &BlockHash| self.chain.iter().all(|block| block.hash != *hash);
        let is_key_lost =
            self.record.sightings().iter().any(|sighting| is_lost(&sighting.block.hash));
        self.record.revocation().is_some_and(|revocation| revocation.is_complete)
            && (is_key_lost || self.record.exposure() == Exposure::HandedOut)
    }

    fn mine(&mut self) {
        self.observe();
        if self.record.is_closed() {
            return self.add_block(None);
        }
        let handed_out = Change::NoteHandedOut(self.record.current_key().number);
        self.record.apply(&handed_out).unwrap();
        let document = self.document();
        self.add_block(Some(document.clone()));
        match self.others() {
            (_, true) => {}
            (_, false) if self.revokes_what_was_lost() => self.excused += 1,
            (others, false) => {
                panic!("others ignore {document:#?}, who know {:#?}", others.keys);
            }
        }
    }

    fn run(&mut self, step: Step) {
        use Announcement::{CompleteRevocation, PartialRevocation, RevocationKey};
        // The blocks with the announcements may be lost before the service looks.
        if !matches!(step, Step::Lose(_)) {
            self.observe();
        }
        let from = self.record.current_key().number;
        let last = self.record.keys().iter().map(|key| key.number).max().unwrap();
        let is_revoking = self.is_announced(&[PartialRevocation, CompleteRevocation]);
        let is_idle = !is_revoking && !self.record.is_closed();
        match step {
            Step::Rotate { is_forced } => {
                if is_idle && (is_forced || !self.is_announced(&[Announcement::Rotation])) {
                    let rotation = self.rotation();
                    let change = Change::Rotate { rotation, from, key: key(last + 1) };
                    self.record.apply(&change).unwrap();
                }
            }
            Step::Roll if is_idle && !self.is_announced(&[RevocationKey]) => self.roll(),
            Step::Revoke { is_complete } if is_idle && !self.is_unknown() => {
                self.revoke(is_complete, from, last);
            }
            Step::Roll | Step::Revoke { .. } => {}
            Step::Mine => self.mine(),
            Step::MineForeign => self.add_block(None),
            Step::Lose(blocks) => {
                self.chain.truncate(self.lasting.max(self.chain.len().saturating_sub(blocks)));
                for _ in 0..=blocks {
                    self.add_block(None);
                }
            }
        }
    }

    /// Whether the own node knows no key of the identity.
    fn is_unknown(&self) -> bool {
        self.record.keys().iter().all(|key| !self.own.keys.contains_key(&key.public_key))
    }

    /// Rotates as the service does, after asking the node.
    fn rotation(&self) -> Rotation {
        let is_lost = self.record.is_repeated();
        match self.record.exposure() {
            Exposure::Known => Rotation::Succeed,
            Exposure::HandedOut if !is_lost && !self.is_unknown() => Rotation::Succeed,
            Exposure::HandedOut | Exposure::Kept => Rotation::Replace,
        }
    }

    fn roll(&mut self) {
        let new = PrivateKey::generate().unwrap();
        let from = self.record.revocation_key_number().unwrap();
        let current = &self.revocation_keys[from as usize - 1];
        let change = Change::RollRevocationKey {
            from,
            number: from + 1,
            announced: Succession::sign(current, new.public_key()).unwrap(),
            acknowledged: Succession::sign(&new, new.public_key()).unwrap(),
        };
        self.record.apply(&change).unwrap();
        self.revocation_keys.push(new);
    }

    fn revoke(&mut self, is_complete: bool, from: u32, last: u32) {
        let own = self.own_record();
        let known = *self.record.previous_key();
        let compromised = if is_complete { own.first_miner_id } else { known.public_key };
        if !is_complete && compromised == own.first_miner_id {
            return;
        }
        let RevocationKeyRecord { number, itself } = self.record.known_revocation_key().unwrap();
        let revocation_key = &self.revocation_keys[number as usize - 1];
        assert_eq!(revocation_key.public_key(), itself.current);
        let change = Change::BeginRevocation {
            from,
            key: (!is_complete).then(|| key(last + 1)),
            // Other tests check signatures.
            message: Revocation::sign(compromised, revocation_key, revocation_key).unwrap(),
        };
        self.record.apply(&change).unwrap();
        self.own.revoke(&known.public_key, &compromised);
    }

    /// Mines until nothing is announced any more. Then others know everything.
    fn settle(&mut self) {
        for _ in 0..12 {
            self.mine();
        }
        self.observe();
        assert_eq!(self.record.announcements(), [], "{:#?}", self.record);
        assert_eq!(self.record.unseen, None);
        if self.excused > 0 {
            return;
        }
        let (others, _) = self.others();
        let current = self.record.current_key().public_key;
        let is_closed = self.record.is_closed();
        let expected = if is_closed { MinerIdState::Revoked } else { MinerIdState::Current };
        assert_eq!(others.state(&current), Some(expected));
        assert_eq!(others.miners.len(), 1, "{:#?}", others.keys);
        if !is_closed {
            let known = self.record.known_revocation_key().unwrap();
            assert_eq!(others.revocation_key(&current), Some(known.itself.current));
            assert_eq!(Some(known.number), self.record.revocation_key_number());
        }
    }
}

#[test]
fn what_a_lost_block_has_shown_is_seen_in_the_one_that_takes_its_place() {
    let mut world = World::new();
    world.run(Step::Rotate { is_forced: false });
    world.mine();
    world.observe();
    assert_eq!(world.record.announcements(), []);
    let rotation = world.chain.pop().unwrap().claim;
    assert!(rotation.is_some());
    world.add_block(rotation);
    world.observe();
    assert_eq!(world.record.announcements(), []);
    let sightings = world.record.sightings();
    assert_eq!(sightings.last().unwrap().block, world.block_ref(world.height()));
}

/// The copy was made before a block showed the announcement. The later announcements came from the
/// other copy.
#[test]
fn a_copy_of_what_is_announced_goes_on_after_later_documents() {
    let steps = [
        &[Step::Rotate { is_forced: false }][..],
        &[Step::Roll],
        &[Step::Rotate { is_forced: false }, Step::Roll],
        &[Step::Rotate { is_forced: false }, Step::Mine, Step::Revoke { is_complete: false }],
    ];
    for steps in steps {
        let mut world = World::new();
        steps.iter().for_each(|step| world.run(*step));
        let copy = world.record.clone();
        for _ in 0..2 {
            world.mine();
        }
        world.observe();
        let newest = std::mem::replace(&mut world.record, copy);
        assert_eq!(newest.announcements(), []);
        world.observe();
        assert_eq!(world.record.announcements(), [], "{steps:?}");
        world.mine();
    }
}

#[test]
fn what_own_blocks_announce_in_vain_is_overdue() {
    let mut world = World::new();
    world.run(Step::Rotate { is_forced: false });
    // The document names the earlier key, as if the node had ignored the rotation.
    let ignored = world.chain[8].claim.clone();
    world.observe();
    let is_overdue = |world: &World| world.record.unseen.clone().unwrap().is_overdue();
    for _ in 0..3 {
        assert!(!is_overdue(&world));
        world.add_block(None);
        world.add_block(ignored.clone());
        world.observe();
        world.observe();
    }
    assert!(is_overdue(&world));
    world.mine();
    world.observe();
    assert_eq!((world.record.announcements(), &world.record.unseen), (vec![], &None));
}

#[test]
fn what_no_block_shows_for_three_days_is_overdue() {
    let mut world = World::new();
    world.run(Step::Rotate { is_forced: false });
    world.observe();
    let look = |world: &mut World, height| {
        let view = ChainView { tip: Some(height), is_complete: true, ..ChainView::default() };
        world.record.apply(&Change::Observe(view)).unwrap();
        world.record.unseen.clone().unwrap().is_overdue()
    };
    let begun = world.height();
    assert!(!look(&mut world, begun + 431));
    assert!(look(&mut world, begun + 432));
}

/// In generation 0.2, documents name the key before the current one, whatever blocks have shown.
#[test]
fn a_lost_block_takes_back_what_it_has_shown_of_generation_0_2() {
    let [first, second] = [key(1), key(2)];
    let mut record = IdentityRecord::new(first, Protocol::Vctx(Vctx::None));
    record.steps[0].seen = Seen::Final;
    record.apply(&Change::Rotate { rotation: Rotation::Succeed, from: 1, key: second }).unwrap();
    assert_eq!(record.announcements(), [Announcement::Rotation]);
    let info = |state| MinerIdInfo {
        miner_id: second.public_key,
        state,
        previous_miner_id: Some(first.public_key),
        revocation_key: None,
        previous_revocation_key: None,
    };
    let block = |byte| BlockRef { height: 9, hash: BlockHash::from_bytes([byte; 32]) };
    let shown = |byte| Shown {
        block: block(byte),
        claim: Some(Claim {
            version: "0.2".to_owned(),
            miner_id: second.public_key,
            previous_miner_id: first.public_key,
            revocation_keys: None,
            compromised_miner_id: None,
            vctx: None,
            data_refs: Vec::new(),
            name: None,
        }),
    };
    let view = |shown: Vec<Shown>| ChainView {
        known: vec![info(MinerIdState::Current)],
        shown,
        is_complete: true,
        tip: Some(9),
        ..ChainView::default()
    };
    let mut look = |view| {
        record.apply(&Change::Observe(view)).unwrap();
        assert_eq!(record.previous_key().public_key, first.public_key);
        record.announcements()
    };
    assert_eq!(look(view(vec![])), [Announcement::Rotation]);
    assert_eq!(look(view(vec![shown(1)])), []);
    let lost = ChainView { left: vec![block(1).hash], ..view(vec![]) };
    // The own node keeps knowing the key, but other nodes do not.
    assert_eq!(look(lost), [Announcement::Rotation]);
    assert_eq!(look(view(vec![])), [Announcement::Rotation]);
    assert_eq!(look(view(vec![shown(2)])), []);
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => any::<bool>().prop_map(|is_forced| Step::Rotate { is_forced }),
        3 => Just(Step::Roll),
        1 => any::<bool>().prop_map(|is_complete| Step::Revoke { is_complete }),
        8 => Just(Step::Mine),
        3 => Just(Step::MineForeign),
        2 => (1..=3_usize).prop_map(Step::Lose),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn nodes_take_every_document(steps in proptest::collection::vec(step(), 1..24)) {
        let mut world = World::begin();
        for step in steps {
            world.run(step);
        }
        world.settle();
    }
}
