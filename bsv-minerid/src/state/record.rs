use crate::alias::Alias;
use crate::json::CanonicalJson;
use crate::json_object::MinerContact;
use crate::operator_members::{CONTACT, OperatorMembers};
use crate::state::chain_view::BlockRef;
use crate::state::key::KeyRecord;
use crate::state::miner_info_record::MinerInfoRecord;
use crate::state::sighting::{Sighted, Sighting, Unseen};
use crate::state::step::{Deed, RevocationRecord, Seen, Step};
use crate::state::vctx::Vctx;

/// The stored data of an identity. Private keys are in the keystore instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityRecord {
    /// The history of its keys and revocations. Never empty.
    pub steps: Vec<Step>,
    /// The number of the key that counts as the last shown one while no block shows any: the first
    /// key, or the one with which documents began anew.
    pub begins_with: u32,
    /// The last block that was read. Announcements are looked for in later blocks.
    pub read_to: Option<BlockRef>,
    /// How long something has been announced without being seen.
    pub unseen: Option<Unseen>,
    /// Whether the identity signs any digest on request, besides documents.
    pub blind_signing: bool,
    /// Whether the identity is deleted. The record stays, so that no new identity gets the alias
    /// and with it revoked keys.
    pub is_deleted: bool,
    /// The members that the operator adds to documents. Generation 0.2 only has room for
    /// `minerContact`.
    pub operator: OperatorMembers,
    /// The data that depends on the generation of the protocol.
    pub protocol: Protocol,
}

/// Whether others can know an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exposure {
    /// No document was handed out.
    Kept,
    /// Documents were handed out, but no block of the main chain has shown one of its keys.
    HandedOut,
    /// A block of the main chain shows it. If not all blocks were read, it is enough that a node
    /// knows it.
    Known,
}

/// The generation of the protocol of an identity, and its data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Generation 0.2: the validity check output.
    Vctx(Vctx),
    /// Generation 1.0.
    MinerInfo(Box<MinerInfoRecord>),
}

impl Protocol {
    /// The name of the generation.
    pub fn version(&self) -> &'static str {
        match self {
            Self::Vctx(_) => "0.2",
            Self::MinerInfo(_) => "1.0",
        }
    }
}

impl IdentityRecord {
    /// Makes the record of a new identity.
    pub fn new(key: KeyRecord, protocol: Protocol) -> Self {
        let first = Step::new(Deed::Key { after: key.number }, key);
        Self::of_steps(vec![Step { is_handed_out: true, ..first }], key.number, protocol)
    }

    /// Makes a record with this history.
    pub fn of_steps(steps: Vec<Step>, begins_with: u32, protocol: Protocol) -> Self {
        Self {
            steps,
            begins_with,
            read_to: None,
            unseen: None,
            blind_signing: true,
            is_deleted: false,
            operator: OperatorMembers::default(),
            protocol,
        }
    }

    /// The information that the miner publishes about itself.
    pub fn contact(&self) -> MinerContact {
        let contact = self.operator.get(CONTACT).map(CanonicalJson::as_str);
        contact.and_then(|text| MinerContact::from_json(text).ok()).unwrap_or_default()
    }

    /// The validity check output, in generation 0.2.
    pub fn vctx(&self) -> Option<&Vctx> {
        match &self.protocol {
            Protocol::Vctx(vctx) => Some(vctx),
            Protocol::MinerInfo(_) => None,
        }
    }

    /// The data of generation 1.0.
    pub fn miner_info(&self) -> Option<&MinerInfoRecord> {
        match &self.protocol {
            Protocol::Vctx(_) => None,
            Protocol::MinerInfo(record) => Some(record),
        }
    }

    /// All keys so far; the current one is last.
    pub fn keys(&self) -> Vec<KeyRecord> {
        let mut keys: Vec<_> = self.key_steps().map(|step| step.key).collect();
        let current = *self.current_key();
        if keys.last() != Some(&current) {
            keys.retain(|key| *key != current);
            keys.push(current);
        }
        keys
    }

    /// The key that signs documents.
    pub fn current_key(&self) -> &KeyRecord {
        &self.last_step().key
    }

    pub(super) fn last_step(&self) -> &Step {
        self.steps.last().expect("an identity always has a key")
    }

    /// The key that documents name as the previous one. In generation 1.0 it is the last key that a
    /// block has shown, which is the current key if nothing is announced. In generation 0.2 it is
    /// the key that vouches for the current one. In two cases it is the last key before the current
    /// one that a block has shown: that key is later, or only lost blocks have shown one of the
    /// others.
    pub fn previous_key(&self) -> &KeyRecord {
        match (&self.protocol, self.last_step().deed) {
            (Protocol::Vctx(_), Deed::Key { after }) => self.previous_key_after(after),
            _ => self.acknowledged_key(),
        }
    }

    /// The previous key in generation 0.2, if the key with this number vouches for the current one.
    fn previous_key_after(&self, vouching: u32) -> &KeyRecord {
        let last = self.steps.len() - 1;
        let vouching = self.place_of(vouching).unwrap_or(last);
        let shown = self.steps[..last].iter().rposition(|step| step.seen.is_shown());
        let known = shown.or_else(|| self.place_of(self.begins_with)).unwrap_or(vouching);
        let place = match self.steps[known..].iter().any(|step| step.seen == Seen::Lost) {
            true => known,
            false => shown.map_or(vouching, |shown| shown.max(vouching)),
        };
        &self.steps[place].key
    }

    /// The last key that a block has shown.
    pub fn acknowledged_key(&self) -> &KeyRecord {
        self.acknowledged_step().map_or(self.current_key(), |step| &step.key)
    }

    fn acknowledged_step(&self) -> Option<&Step> {
        let shown = self.key_steps().rev().find(|step| step.seen.is_shown());
        shown.or_else(|| self.steps.get(self.place_of(self.begins_with)?))
    }

    pub(super) fn key_steps(&self) -> impl DoubleEndedIterator<Item = &Step> {
        self.steps.iter().filter(|step| step.is_of_key())
    }

    /// The place of the step that brings the key with this number.
    pub(super) fn place_of(&self, number: u32) -> Option<usize> {
        self.steps.iter().rposition(|step| step.is_of_key() && step.key.number == number)
    }

    /// The last key that a block has shown, followed by the announced keys.
    pub fn unacknowledged_keys(&self) -> Vec<KeyRecord> {
        let acknowledged = self.acknowledged_key();
        let mut keys = self.keys();
        let place = keys.iter().rposition(|key| key == acknowledged);
        keys.split_off(place.unwrap_or_default())
    }

    /// Whether no document was handed out.
    pub(crate) fn is_kept(&self) -> bool {
        self.steps.iter().rev().all(|step| step.seen == Seen::Never)
    }

    /// Whether others can know the identity.
    pub fn exposure(&self) -> Exposure {
        let is_handed_out = |step: &Step| matches!(step.seen, Seen::HandedOut | Seen::Lost);
        if self.key_steps().rev().any(|step| step.seen.is_shown()) {
            Exposure::Known
        } else if self.steps.iter().any(is_handed_out) {
            Exposure::HandedOut
        } else {
            Exposure::Kept
        }
    }

    /// Whether blocks off the main chain have shown something that is still announced, or was
    /// announced at the same time. The node has seen these blocks, so its answer does not count
    /// until everything is seen again.
    pub fn is_repeated(&self) -> bool {
        self.steps.iter().any(|step| step.seen.was_lost())
    }

    /// Whether only blocks that have left the main chain have shown the identity.
    pub(crate) fn is_lost(&self) -> bool {
        self.exposure() == Exposure::HandedOut && self.is_repeated()
    }

    /// What blocks that may still leave the main chain have shown, the oldest first.
    pub fn sightings(&self) -> Vec<Sighting> {
        let sighted = |step: &Step| match step.deed {
            _ if step.is_of_key() && step.key.number == self.begins_with => vec![Sighted::Identity],
            Deed::Key { .. } => vec![Sighted::Key],
            Deed::Upgraded | Deed::RevocationKey { .. } => vec![Sighted::RevocationKey],
            Deed::Revoked(revocation) if revocation.is_complete => vec![Sighted::Revocation],
            Deed::Revoked(_) => vec![Sighted::Key, Sighted::Revocation],
            Deed::Closed => Vec::new(),
        };
        let shown = self.steps.iter().filter_map(|step| Some((step.seen.block()?, sighted(step))));
        let all = shown.flat_map(|(block, all)| {
            all.into_iter().map(move |sighted| Sighting { block, sighted })
        });
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|sighting| (sighting.block.height, sighting.sighted));
        all
    }

    /// Whether a document has been handed out since the last rotation, roll of the revocation key,
    /// or revocation.
    pub fn is_handed_out(&self) -> bool {
        self.last_step().is_handed_out
    }

    /// Whether a document with the current key was handed out.
    #[cfg(feature = "node")]
    pub(crate) fn is_current_key_handed_out(&self) -> bool {
        self.document_key() == Some(self.current_key())
    }

    /// The key that signed the last document that was handed out.
    pub fn document_key(&self) -> Option<&KeyRecord> {
        let step = self.steps.iter().rfind(|step| step.is_handed_out);
        step.map(|step| &step.key)
    }

    /// Whether the record says that a block has shown the current key.
    #[cfg(feature = "node")]
    pub(crate) fn has_shown_current_key(&self) -> bool {
        self.exposure() == Exposure::Known && self.acknowledged_key() == self.current_key()
    }

    /// Whether later blocks were read than the tip of a chain with this height.
    #[cfg(feature = "node")]
    pub(crate) fn reach_beyond(&self, tip: u32) -> bool {
        self.read_to.is_some_and(|read_to| read_to.height > tip)
    }

    /// The announced revocation, or the complete one that has closed the identity. A partial
    /// revocation by keys that the chain no longer shows counts as a rotation, since nodes accept no
    /// revocation by such keys.
    pub fn revocation(&self) -> Option<RevocationRecord> {
        let (step, revocation) = self.last_revocation()?;
        if revocation.is_complete {
            return Some(revocation);
        }
        let by = self.acknowledged_step()?;
        let is_announced = !step.seen.is_shown()
            && by.seen != Seen::Lost
            && by.key.number == revocation.miner_id
            && self.knows_revocation_key(revocation.revocation_key);
        is_announced.then_some(revocation)
    }

    /// Whether a partial revocation counts no more because of what blocks have shown since it began:
    /// another key or revocation key vouches than those that have signed it.
    pub fn is_revocation_passed_over(&self) -> bool {
        self.last_revocation().is_some_and(|(step, revocation)| {
            !revocation.is_complete
                && !step.seen.is_shown()
                && step.key == *self.current_key()
                && self.exposure() == Exposure::Known
                && self.revocation().is_none()
        })
    }

    /// The last revocation, whatever blocks have shown since then.
    pub(crate) fn last_revocation(&self) -> Option<(&Step, RevocationRecord)> {
        self.steps.iter().rev().find_map(|step| match step.deed {
            Deed::Revoked(revocation) => Some((step, revocation)),
            _ => None,
        })
    }

    /// The revocation that the node has not accepted. It is told to the node even if documents do not
    /// announce it any more.
    pub fn untold_revocation(&self) -> Option<RevocationRecord> {
        let (step, revocation) = self.last_revocation()?;
        let is_last = step.key == *self.current_key() && !step.seen.is_shown();
        (is_last && !revocation.is_told && !self.is_closed()).then_some(revocation)
    }

    /// Whether the identity is revoked for good, so that it makes no documents.
    pub fn is_closed(&self) -> bool {
        match &self.protocol {
            Protocol::Vctx(Vctx::Recorded(_, view)) => view.is_spent,
            Protocol::Vctx(vctx) => matches!(vctx, Vctx::Revoking(..)),
            // No step follows either of these.
            Protocol::MinerInfo(_) => {
                let last = self.last_step();
                last.deed == Deed::Closed || last.is_complete_revocation() && last.seen.is_shown()
            }
        }
    }

    /// The greatest number of a key.
    pub(crate) fn last_key_number(&self) -> u32 {
        self.key_steps().map(|step| step.key.number).max().unwrap_or_default()
    }

    /// The name of a key in the keystore. The keystore of revocation keys uses the same form for a
    /// revocation key.
    pub fn key_name(alias: &Alias, number: u32) -> String {
        format!("{alias}_{number}")
    }

    /// The name of the validity check output's key in the keystore.
    pub fn vctx_key_name(alias: &Alias) -> String {
        format!("{alias}_vctx")
    }

    /// The names of the identity's keys in the keystore, without revocation keys.
    pub fn key_names(&self, alias: &Alias) -> Vec<String> {
        let of_vctx = self.vctx().filter(|vctx| **vctx != Vctx::None);
        let numbers = self.keys().into_iter().map(|key| key.number);
        let names = numbers.map(|number| Self::key_name(alias, number));
        names.chain(of_vctx.map(|_| Self::vctx_key_name(alias))).collect()
    }
}
