use bsv_tx::{PublicKey, Txid};
use serde::{Deserialize, Serialize};

use crate::data_refs::{DataRef, OperatorDataRefs};
use crate::state::key::KeyRecord;
use crate::state::vctx::LeftVctx;
use crate::succession::Succession;

/// The stored data of an identity of generation 1.0, besides its history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinerInfoRecord {
    /// The first miner id. A complete revocation revokes back to it.
    pub first_miner_id: PublicKey,
    /// The first revocation key.
    pub first_revocation_key: RevocationKeyRecord,
    /// The data that the operator publishes in its own transactions.
    pub data: OperatorDataRefs,
    /// The references to that data in documents.
    pub data_refs: Vec<DataRef>,
    /// The keys that sign references to miner-info transactions, the oldest entry first.
    pub references: Vec<Reference>,
    /// What remains of the validity check output from generation 0.2.
    pub left_vctx: LeftVctx,
}

/// A revocation key. A separate keystore holds its private half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RevocationKeyRecord {
    /// The number of the key, from 1.
    pub number: u32,
    /// What documents say about the key while nothing else is announced: it follows itself.
    pub itself: Succession,
}

/// A miner-info transaction, and the number of the key that signs references to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Reference {
    /// The transaction.
    pub miner_info: Txid,
    /// The number of the key.
    pub key: u32,
}

impl MinerInfoRecord {
    /// For how many miner-info transactions the key is remembered. Each block has one.
    const MOST_REFERENCES: usize = 16;

    /// The record of a new identity.
    pub fn new(first: &KeyRecord, revocation_key_number: u32, revocation_key: Succession) -> Self {
        Self {
            first_miner_id: first.public_key,
            first_revocation_key: RevocationKeyRecord {
                number: revocation_key_number,
                itself: revocation_key,
            },
            data: OperatorDataRefs::default(),
            data_refs: Vec::new(),
            references: Vec::new(),
            left_vctx: LeftVctx::default(),
        }
    }

    pub(super) fn set_data(&mut self, data: &OperatorDataRefs) {
        self.data = data.clone();
        if data.is_empty() {
            self.data_refs.clear();
        }
    }

    pub(super) fn note_reference(&mut self, reference: Reference) {
        if self.references.iter().any(|known| known.miner_info == reference.miner_info) {
            return;
        }
        if self.references.len() >= Self::MOST_REFERENCES {
            self.references.remove(0);
        }
        self.references.push(reference);
    }
}

#[cfg(test)]
mod tests {
    use bsv_tx::PrivateKey;

    use super::*;

    #[test]
    fn the_last_16_miner_info_transactions_keep_the_key_that_first_referred_to_them() {
        let key = PrivateKey::generate().unwrap();
        let itself = Succession::sign(&key, key.public_key()).unwrap();
        let first = KeyRecord { number: 1, public_key: key.public_key() };
        let mut record = MinerInfoRecord::new(&first, 1, itself);
        let reference =
            |number: u8, key| Reference { miner_info: Txid::from_bytes([number; 32]), key };
        for number in 1..=16 {
            record.note_reference(reference(number, 1));
        }
        record.note_reference(reference(1, 2));
        let expected: Vec<_> = (1..=16).map(|number| reference(number, 1)).collect();
        assert_eq!(record.references, expected);
        record.note_reference(reference(17, 2));
        assert_eq!(record.references[..15], expected[1..]);
        assert_eq!(record.references[15..], [reference(17, 2)]);
    }
}
