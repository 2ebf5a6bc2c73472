use bsv_tx::{OutPoint, Transaction, Txid};

use crate::data_refs::OperatorDataRefs;
use crate::miner_info_script::Revocation;
use crate::operator_members::OperatorMembers;
use crate::state::chain_view::ChainView;
use crate::state::key::KeyRecord;
use crate::state::miner_info_record::{MinerInfoRecord, Reference, RevocationKeyRecord};
use crate::state::record::{Exposure, IdentityRecord, Protocol};
use crate::state::step::{Deed, RevocationRecord, Seen, Step};
use crate::state::vctx::{LeftVctx, Vctx, VctxView};
use crate::succession::Succession;

/// A change of an identity.
#[derive(Clone, Debug)]
pub enum Change {
    /// `key` becomes the current key, if the key numbered `from` is still the current one.
    Rotate {
        /// The effect on the current key.
        rotation: Rotation,
        /// The number of the current key.
        from: u32,
        /// The new key.
        key: KeyRecord,
    },
    /// Documents signed by the key with this number have been handed out.
    NoteHandedOut(u32),
    /// Somebody received a document, which may get into a block.
    NoteShown,
    /// The operator replaces the members that it adds to documents.
    SetOperator(OperatorMembers),
    /// Whether the identity signs any digest, or only documents.
    SetBlindSigning(bool),

    /// The key of the validity check output is durable, and its address waits for coins.
    AwaitVctxFunding,
    /// This validity check transaction is about to be broadcast.
    BeginVctx(Transaction),
    /// The network has refused the validity check transaction.
    AbandonVctx,
    /// The network has accepted this validity check output.
    RecordVctx(OutPoint),
    /// The validity check output is about to be spent, by this transaction if it could be made.
    RevokeVctx(Option<Transaction>),
    /// The chain shows this of a validity check output. If the output is no longer the identity's
    /// own, nothing changes.
    NoteVctxView(OutPoint, VctxView),

    /// An identity of generation 0.2 is upgraded to 1.0, with this record.
    Upgrade(Box<MinerInfoRecord>),
    /// The remaining coins of an upgraded identity's validity check output are about to be spent.
    BeginVctxSweep {
        /// The transaction of the previous sweep.
        before: Option<Txid>,
        /// The transaction.
        sweep: Transaction,
    },
    /// The operator replaces its data. Empty data also removes the references.
    SetData(OperatorDataRefs),
    /// The operator's data is in this transaction.
    ReferToData(Txid),
    /// A key has signed a reference to a miner-info transaction. The key also signs all later
    /// references to that transaction.
    NoteReference(Reference),
    /// A new revocation key follows the key numbered `from`.
    RollRevocationKey {
        /// The number of the current revocation key.
        from: u32,
        /// The number of the new one.
        number: u32,
        /// What documents say until a block shows the new key.
        announced: Succession,
        /// What documents say afterwards.
        acknowledged: Succession,
    },
    /// Miner ids are revoked.
    BeginRevocation {
        /// The number of the current key.
        from: u32,
        /// The key that replaces the current one, or `None` for a complete revocation.
        key: Option<KeyRecord>,
        /// The revocation in documents.
        message: Revocation,
    },
    /// The node has accepted the revocation.
    NoteRevocationTold(Revocation),
    /// The identity ends without documents, because nobody knows it.
    Close,
    /// A node and its chain show this.
    Observe(ChainView),
    /// The operator states that blocks have shown all announcements.
    Confirm,
    /// The operator deletes the identity, which is revoked for good.
    Delete,
}

/// The effect of a rotation on the current key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// The current key vouches for the new one.
    Succeed,
    /// No block has shown the current key: the earlier key with this number vouches for the new
    /// one.
    PassOver(u32),
    /// Nobody knows the current key or those before it: the new key is the first.
    Replace,
    /// Nodes know no key, although blocks have shown the identity: the new key is the first.
    BeginAnew,
}

impl IdentityRecord {
    /// Applies a change, or answers why this state does not allow it.
    pub fn apply(&mut self, change: &Change) -> Result<(), &'static str> {
        match change {
            Change::Rotate { rotation, from, key } => return self.rotate(*rotation, *from, *key),
            Change::NoteHandedOut(number) => self.note_handed_out(*number),
            Change::NoteShown => self.note_shown(),
            Change::SetOperator(operator) => self.operator = operator.clone(),
            Change::SetBlindSigning(is_on) => self.blind_signing = *is_on,
            Change::AwaitVctxFunding => return self.vctx_mut()?.await_funding(),
            Change::BeginVctx(transaction) => return self.vctx_mut()?.begin(transaction),
            Change::AbandonVctx => return self.vctx_mut()?.abandon(),
            Change::RecordVctx(outpoint) => return self.vctx_mut()?.record(*outpoint),
            Change::RevokeVctx(spending) => return self.vctx_mut()?.revoke(spending.as_ref()),
            Change::NoteVctxView(outpoint, view) => {
                if let Protocol::Vctx(vctx) = &mut self.protocol {
                    vctx.note_view(*outpoint, *view);
                }
            }
            Change::Upgrade(record) => return self.upgrade(record),
            Change::BeginVctxSweep { before, sweep } => {
                return self.miner_info_mut()?.left_vctx.begin_sweep(*before, sweep);
            }
            Change::SetData(data) => self.miner_info_mut()?.set_data(data),
            Change::ReferToData(txid) => {
                let record = self.miner_info_mut()?;
                record.data_refs = record.data.references(*txid);
            }
            Change::NoteReference(reference) => self.miner_info_mut()?.note_reference(*reference),
            Change::RollRevocationKey { from, number, announced, acknowledged } => {
                self.miner_info_mut()?;
                if self.revocation_key_number() != Some(*from) {
                    return Err("its revocation key was rolled");
                }
                let key = RevocationKeyRecord { number: *number, itself: *acknowledged };
                let announced = *announced;
                self.add(Deed::RevocationKey { announced, key }, *self.current_key());
            }
            Change::BeginRevocation { from, key, message } => {
                return self.begin_revocation(*from, *key, *message);
            }
            Change::NoteRevocationTold(message) => {
                self.miner_info_mut()?;
                self.note_revocation_told(message);
            }
            Change::Close => {
                self.miner_info_mut()?;
                let Step { key, is_handed_out, .. } = *self.last_step();
                self.steps.push(Step { is_handed_out, ..Step::new(Deed::Closed, key) });
            }
            Change::Observe(view) => self.observe(view),
            Change::Confirm => {
                self.miner_info_mut()?;
                self.confirm();
            }
            Change::Delete => {
                if !self.is_closed() {
                    return Err("it is not closed");
                }
                self.is_deleted = true;
            }
        }
        Ok(())
    }

    fn rotate(
        &mut self,
        rotation: Rotation,
        from: u32,
        key: KeyRecord,
    ) -> Result<(), &'static str> {
        if self.current_key().number != from {
            return Err("its key was rotated");
        }
        let after = match rotation {
            Rotation::Succeed => {
                // Without a node nobody notes that a block shows again what a lost one has shown.
                if let Protocol::Vctx(_) = self.protocol {
                    self.steps.iter_mut().for_each(|step| step.seen = step.seen.settled());
                }
                from
            }
            Rotation::PassOver(vouching) => {
                self.pass_over_to(vouching)?;
                vouching
            }
            Rotation::Replace if self.exposure() == Exposure::Known => {
                return Err("a node knows its key");
            }
            Rotation::Replace | Rotation::BeginAnew => {
                self.forget();
                self.begin_with(&key);
                key.number
            }
        };
        self.add(Deed::Key { after }, key);
        Ok(())
    }

    /// Adds a step of which no document was handed out.
    fn add(&mut self, deed: Deed, key: KeyRecord) {
        self.steps.push(Step::new(deed, key));
    }

    /// Skips the keys after this one, which no block shows.
    fn pass_over_to(&mut self, vouching: u32) -> Result<(), &'static str> {
        let place = self.place_of(vouching).ok_or("it has no such key")?;
        let is_earlier = self.place_of(self.acknowledged_key().number) > Some(place);
        if is_earlier || self.miner_info().is_some() {
            self.acknowledge(place);
        }
        Ok(())
    }

    /// Makes the key at this place the last one that counts as shown.
    fn acknowledge(&mut self, place: usize) {
        let is_known = self.exposure() == Exposure::Known;
        let is_shown_key = |step: &&mut Step| step.is_of_key() && step.seen.is_shown();
        for step in self.steps[place + 1..].iter_mut().filter(is_shown_key) {
            step.seen = if step.seen.was_lost() { Seen::Lost } else { Seen::HandedOut };
        }
        let step = &mut self.steps[place];
        match is_known {
            true if step.seen.is_shown() => {}
            true => step.seen = Seen::Final,
            false => self.begins_with = step.key.number,
        }
    }

    /// Forgets what blocks have shown of keys that count no more. The revocation keys go on.
    fn forget(&mut self) {
        for step in &mut self.steps {
            step.seen = match step.seen.is_shown() && !step.is_of_key() {
                true => Seen::Final,
                false => Seen::Never,
            };
        }
        self.unseen = None;
    }

    /// Begins with this key. Nobody knows another key, so no key has to vouch for it.
    pub(super) fn begin_with(&mut self, first: &KeyRecord) {
        self.begins_with = first.number;
        let place = self.place_of(first.number).unwrap_or(self.steps.len());
        for step in &mut self.steps[place..] {
            if let Deed::Key { after } = &mut step.deed {
                *after = first.number;
            }
        }
        if let Protocol::MinerInfo(record) = &mut self.protocol {
            record.first_miner_id = first.public_key;
        }
    }

    pub(crate) fn note_handed_out(&mut self, number: u32) {
        if self.current_key().number == number {
            self.last_step_mut().is_handed_out = true;
            self.note_shown();
        }
    }

    fn note_shown(&mut self) {
        let last = self.last_step_mut();
        if last.seen == Seen::Never {
            last.seen = Seen::HandedOut;
        }
    }

    fn upgrade(&mut self, record: &MinerInfoRecord) -> Result<(), &'static str> {
        let Protocol::Vctx(vctx) = &self.protocol else {
            return Err("it is of protocol 1.0 already");
        };
        let record = MinerInfoRecord { left_vctx: LeftVctx::of(vctx), ..record.clone() };
        // Documents announce the last rotation once more.
        if let Some(place) = self.place_of(self.previous_key().number) {
            self.acknowledge(place);
        }
        self.unseen = None;
        self.protocol = Protocol::MinerInfo(Box::new(record));
        if self.exposure() != Exposure::Kept {
            self.add(Deed::Upgraded, *self.current_key());
        }
        self.last_step_mut().is_handed_out = true;
        Ok(())
    }

    fn begin_revocation(
        &mut self,
        from: u32,
        key: Option<KeyRecord>,
        message: Revocation,
    ) -> Result<(), &'static str> {
        if self.current_key().number != from {
            return Err("its key was rotated");
        }
        let known = *self.previous_key();
        let revocation_key = self.known_revocation_key().ok_or("it is of protocol 0.2")?.number;
        let revocation = RevocationRecord {
            message,
            is_complete: key.is_none(),
            is_told: false,
            miner_id: known.number,
            revocation_key,
        };
        self.add(Deed::Revoked(revocation), key.unwrap_or(known));
        Ok(())
    }

    fn note_revocation_told(&mut self, message: &Revocation) {
        for step in &mut self.steps {
            match &mut step.deed {
                Deed::Revoked(begun) if begun.message == *message => begun.is_told = true,
                _ => {}
            }
        }
    }

    fn confirm(&mut self) {
        let current = *self.current_key();
        for step in &mut self.steps {
            let is_skipped = step.is_of_key() && step.key != current;
            step.seen = match step.seen.is_shown() || is_skipped {
                true => step.seen.settled(),
                false => Seen::Final,
            };
        }
    }

    pub(super) fn last_step_mut(&mut self) -> &mut Step {
        self.steps.last_mut().expect("an identity always has a key")
    }

    fn vctx_mut(&mut self) -> Result<&mut Vctx, &'static str> {
        match &mut self.protocol {
            Protocol::Vctx(vctx) => Ok(vctx),
            Protocol::MinerInfo(_) => Err("it is of protocol 1.0"),
        }
    }

    pub(super) fn miner_info_mut(&mut self) -> Result<&mut MinerInfoRecord, &'static str> {
        match &mut self.protocol {
            Protocol::Vctx(_) => Err("it is of protocol 0.2"),
            Protocol::MinerInfo(record) => Ok(record),
        }
    }
}
