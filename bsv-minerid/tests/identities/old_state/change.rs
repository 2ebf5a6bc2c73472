use bsv_tx::{OutPoint, Transaction, Txid};

use crate::old_state::chain_view::ChainView;
use crate::old_state::miner_info_record::{MinerInfoRecord, Reference, RevocationRecord};
use crate::old_state::record::{Exposure, IdentityRecord, Protocol};
use crate::old_state::vctx::{LeftVctx, Vctx, VctxView};
use bsv_minerid::formats::OperatorDataRefs;
use bsv_minerid::formats::OperatorMembers;
use bsv_minerid::formats::Revocation;
use bsv_minerid::formats::Succession;
use bsv_minerid::store::KeyRecord;

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
        /// What documents say about the revocation key: it follows itself.
        revocation_key: Succession,
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

pub use bsv_minerid::store::Rotation;

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
            Change::SetData(_) | Change::ReferToData(_) => {}
            Change::NoteReference(reference) => self.miner_info_mut()?.note_reference(*reference),
            Change::RollRevocationKey { from, number, announced, acknowledged } => {
                self.miner_info_mut()?.roll(*from, *number, *announced, *acknowledged)?;
                self.leave_document_key();
                self.handed_out = false;
            }
            Change::BeginRevocation { from, key, message, revocation_key } => {
                return self.begin_revocation(*from, *key, *message, *revocation_key);
            }
            Change::NoteRevocationTold(message) => match &mut self.miner_info_mut()?.revocation {
                Some(begun) if begun.message == *message => begun.is_told = true,
                _ => {}
            },
            Change::Close => self.miner_info_mut()?.is_closed = true,
            Change::Observe(view) => self.observe(view),
            Change::Confirm => {
                let current = self.current_key().number;
                self.miner_info_mut()?.confirm();
                self.sightings.acknowledged = current;
                self.exposure = Exposure::Known;
                if super::allowed() {
                    self.sightings.is_repeated = false;
                }
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
        self.vouching = match rotation {
            Rotation::Succeed => None,
            Rotation::PassOver(vouching) => {
                if !self.keys.iter().any(|key| key.number == vouching) {
                    return Err("it has no such key");
                }
                let place = |number| self.keys.iter().rposition(|key| key.number == number);
                let is_earlier = place(vouching) < place(self.sightings.acknowledged);
                if matches!(self.protocol, Protocol::MinerInfo(_)) || super::allowed() && is_earlier
                {
                    if super::allowed() && is_earlier {
                        let keys = self.keys.clone();
                        let place = |number| keys.iter().rposition(|key| key.number == number);
                        self.sightings.recent.retain(|it| !matches!(it.sighted, crate::old_state::sightings::Sighted::Key { before } if place(before) >= place(vouching)));
                    }
                    self.sightings.acknowledged = vouching;
                }
                Some(vouching)
            }
            Rotation::Replace if self.exposure == Exposure::Known => {
                return Err("a node knows its key");
            }
            Rotation::Replace | Rotation::BeginAnew => {
                self.exposure = Exposure::Kept;
                self.sightings.forget();
                self.begin_with(&key);
                Some(key.number)
            }
        };
        self.leave_document_key();
        self.keys.push(key);
        self.handed_out = false;
        Ok(())
    }

    /// Begins with this key. Nobody knows another key, so no key has to vouch for it.
    pub fn begin_with(&mut self, first: &KeyRecord) {
        self.sightings.acknowledged = first.number;
        self.vouching = Some(first.number);
        if let Protocol::MinerInfo(record) = &mut self.protocol {
            record.first_miner_id = first.public_key;
        }
    }

    fn note_handed_out(&mut self, number: u32) {
        if self.current_key().number == number {
            self.handed_out = true;
            self.note_shown();
            if let Protocol::MinerInfo(record) = &mut self.protocol {
                record.document_key = None;
            }
        }
    }

    fn note_shown(&mut self) {
        if self.exposure == Exposure::Kept {
            self.exposure = Exposure::HandedOut;
        }
    }

    fn upgrade(&mut self, record: &MinerInfoRecord) -> Result<(), &'static str> {
        match &self.protocol {
            // The documents announce the last rotation once more.
            Protocol::Vctx(vctx) => {
                // Blocks that have shown it may still leave the chain, or have already left it.
                let left_vctx = LeftVctx::of(vctx);
                let acknowledged = self.sightings.acknowledged;
                self.sightings.acknowledged = self.previous_key().number;
                if super::allowed() && self.sightings.acknowledged != acknowledged {
                    self.sightings.recent.retain(|it| !matches!(it.sighted, crate::old_state::sightings::Sighted::Key { before } if before == self.sightings.acknowledged));
                }
                self.sightings.unseen = None;
                let mut record = MinerInfoRecord { left_vctx, ..record.clone() };
                if self.exposure != Exposure::Kept {
                    record.announce_first_revocation_key();
                }
                self.protocol = Protocol::MinerInfo(Box::new(record));
                self.handed_out = true;
                Ok(())
            }
            Protocol::MinerInfo(_) => Err("it is of protocol 1.0 already"),
        }
    }

    /// Begins a revocation. A complete one returns to the last key that a block has shown, because
    /// nodes accept it from no other key.
    fn begin_revocation(
        &mut self,
        from: u32,
        key: Option<KeyRecord>,
        message: Revocation,
        revocation_key: Succession,
    ) -> Result<(), &'static str> {
        if self.current_key().number != from {
            return Err("its key was rotated");
        }
        let known = *self.previous_key();
        self.leave_document_key();
        let record = self.miner_info_mut()?;
        record.withhold_roll(revocation_key);
        let is_complete = key.is_none();
        record.revocation = Some(RevocationRecord {
            message,
            is_complete,
            is_told: false,
            revocation_key: Some(revocation_key),
        });
        if is_complete {
            self.keys.retain(|key| key.number != known.number);
        }
        self.keys.push(key.unwrap_or(known));
        self.handed_out = false;
        Ok(())
    }

    /// Keeps the current key for references to miner-info transactions whose documents it has
    /// signed.
    fn leave_document_key(&mut self) {
        let current = self.current_key().number;
        if self.handed_out
            && let Protocol::MinerInfo(record) = &mut self.protocol
        {
            record.document_key = Some(current);
        }
    }

    fn vctx_mut(&mut self) -> Result<&mut Vctx, &'static str> {
        match &mut self.protocol {
            Protocol::Vctx(vctx) => Ok(vctx),
            Protocol::MinerInfo(_) => Err("it is of protocol 1.0"),
        }
    }

    pub fn miner_info_mut(&mut self) -> Result<&mut MinerInfoRecord, &'static str> {
        match &mut self.protocol {
            Protocol::Vctx(_) => Err("it is of protocol 0.2"),
            Protocol::MinerInfo(record) => Ok(record),
        }
    }
}
