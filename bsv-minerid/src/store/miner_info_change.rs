//! What happens to an identity of generation 1.0.

use bsv_network::{MinerIdInfo, MinerIdState};
use bsv_tx::Txid;

use crate::data_refs::OperatorDataRefs;
use crate::miner_info::Revocation;
use crate::store::{IdentityRecord, KeyRecord, MinerInfoRecord, Protocol, RevocationRecord};
use crate::succession::Succession;

/// What documents announce and no block was seen to show yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Announcement {
    /// A new key.
    Rotation,
    /// A new revocation key.
    RevocationKey,
    /// That some miner ids are revoked, and the key that takes their place.
    PartialRevocation,
    /// That all miner ids are revoked.
    CompleteRevocation,
}

/// What a node, and its chain, show of an identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MinerIdView {
    /// What the node knows of miner ids.
    pub known: Vec<MinerIdInfo>,
    /// Whether a block carries the complete revocation. The node alone does not tell: to it, miner
    /// ids are revoked as soon as it has been told.
    pub shows_complete_revocation: bool,
}

/// One change of an identity of generation 1.0.
#[derive(Clone, Debug)]
pub enum MinerInfoChange {
    /// An identity of generation 0.2 becomes one of 1.0, as this says.
    Upgrade(Box<MinerInfoRecord>),
    /// The operator publishes other data, or none any more, which takes the references away too.
    SetData(OperatorDataRefs),
    /// The operator's data stands in this transaction.
    ReferToData(Txid),
    /// A new revocation key follows the one numbered `from`.
    RollRevocationKey {
        /// The number of the current revocation key.
        from: u32,
        /// The number of the new one.
        number: u32,
        /// What documents say until it was seen in a block.
        announced: Succession,
        /// What they say afterwards.
        acknowledged: Succession,
    },
    /// Miner ids are revoked.
    BeginRevocation {
        /// The number of the current key.
        from: u32,
        /// The key that takes its place; none in a complete revocation.
        key: Option<KeyRecord>,
        /// What documents say.
        message: Revocation,
    },
    /// The node has taken the revocation.
    NoteRevocationTold(Revocation),
    /// A node and its chain show this.
    Acknowledge(MinerIdView),
    /// Blocks have shown all that is announced, as the operator says.
    Confirm,
}

impl Announcement {
    /// Its name in words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Rotation => "the rotation",
            Self::RevocationKey => "the new revocation key",
            Self::PartialRevocation | Self::CompleteRevocation => "the revocation",
        }
    }
}

impl IdentityRecord {
    /// What is announced and was not seen in a block yet.
    pub fn announcements(&self) -> Vec<Announcement> {
        let Protocol::MinerInfo(record) = &self.protocol else { return Vec::new() };
        let mut announcements = Vec::new();
        let is_rotated = record.acknowledged != self.current_key().number;
        match &record.revocation {
            Some(revocation) if revocation.is_complete => {
                announcements
                    .extend((!record.is_closed).then_some(Announcement::CompleteRevocation));
            }
            Some(_) => announcements.push(Announcement::PartialRevocation),
            None if is_rotated => announcements.push(Announcement::Rotation),
            None => {}
        }
        if record.acknowledged_revocation_key.is_some() {
            announcements.push(Announcement::RevocationKey);
        }
        announcements
    }

    /// The last key that was seen in a block, and those that are announced since.
    pub fn unacknowledged_keys(&self) -> &[KeyRecord] {
        let Protocol::MinerInfo(record) = &self.protocol else { return &[] };
        let place = self.keys.iter().position(|key| key.number == record.acknowledged);
        &self.keys[place.unwrap_or(self.keys.len() - 1)..]
    }

    /// Makes a change, or answers why it cannot be made from this state.
    pub(super) fn change(&mut self, change: &MinerInfoChange) -> Result<(), &'static str> {
        if let MinerInfoChange::Upgrade(record) = change {
            return self.upgrade(record);
        }
        let current = self.current_key().number;
        let Protocol::MinerInfo(record) = &mut self.protocol else {
            return Err("it is of protocol 0.2");
        };
        match change {
            MinerInfoChange::Upgrade(_) => {}
            MinerInfoChange::SetData(data) => {
                record.data = data.clone();
                if data.is_empty() {
                    record.data_refs.clear();
                }
            }
            MinerInfoChange::ReferToData(txid) => record.data_refs = record.data.references(*txid),
            MinerInfoChange::RollRevocationKey { from, number, announced, acknowledged } => {
                if record.revocation_key_number != *from {
                    return Err("its revocation key was rolled");
                }
                record.revocation_key_number = *number;
                record.revocation_key = *announced;
                record.acknowledged_revocation_key = Some(*acknowledged);
                self.handed_out = false;
            }
            MinerInfoChange::BeginRevocation { from, key, message } => {
                if current != *from {
                    return Err("its key was rotated");
                }
                let is_complete = key.is_none();
                record.revocation =
                    Some(RevocationRecord { message: *message, is_complete, is_told: false });
                self.keys.extend(key);
                self.handed_out = false;
            }
            MinerInfoChange::NoteRevocationTold(message) => match &mut record.revocation {
                Some(revocation) if revocation.message == *message => revocation.is_told = true,
                _ => {}
            },
            MinerInfoChange::Acknowledge(view) => self.acknowledge(view),
            MinerInfoChange::Confirm => self.confirm(),
        }
        Ok(())
    }

    fn upgrade(&mut self, record: &MinerInfoRecord) -> Result<(), &'static str> {
        match self.protocol {
            Protocol::Vctx(_) => {
                self.protocol = Protocol::MinerInfo(Box::new(record.clone()));
                self.handed_out = true;
                Ok(())
            }
            Protocol::MinerInfo(_) => Err("it is of protocol 1.0 already"),
        }
    }

    /// A rotation was seen if the node calls the new key current and names the same previous key; a
    /// roll if it names the new and the old revocation key. Any other answer changes nothing.
    pub(crate) fn acknowledge(&mut self, view: &MinerIdView) {
        let keys = self.unacknowledged_keys().to_vec();
        let current = *self.current_key();
        let Protocol::MinerInfo(record) = &mut self.protocol else { return };
        let known = |key: &KeyRecord| {
            let mut known = view.known.iter().filter(|info| info.miner_id == key.public_key);
            known.find(|info| info.state == MinerIdState::Current)
        };
        if let [acknowledged, announced @ ..] = keys.as_slice() {
            let mut previous = acknowledged.public_key;
            for key in announced {
                if known(key).is_some_and(|info| info.previous_miner_id == Some(previous)) {
                    record.acknowledged = key.number;
                    previous = key.public_key;
                }
            }
        }
        let Succession { previous, current: rolled, .. } = record.revocation_key;
        let shows_roll = |info: &MinerIdInfo| {
            info.revocation_key == Some(rolled) && info.previous_revocation_key == Some(previous)
        };
        if keys.iter().filter_map(known).any(shows_roll) {
            record.confirm_revocation_key();
        }
        match &record.revocation {
            Some(revocation) if revocation.is_complete => {
                let is_revoked = view.known.iter().any(|info| {
                    info.miner_id == current.public_key && info.state == MinerIdState::Revoked
                });
                record.is_closed |= is_revoked && view.shows_complete_revocation;
            }
            Some(_) if record.acknowledged == current.number => record.revocation = None,
            _ => {}
        }
    }

    fn confirm(&mut self) {
        let current = self.current_key().number;
        let Protocol::MinerInfo(record) = &mut self.protocol else { return };
        record.acknowledged = current;
        record.confirm_revocation_key();
        match &record.revocation {
            Some(revocation) if revocation.is_complete => record.is_closed = true,
            _ => record.revocation = None,
        }
    }
}
