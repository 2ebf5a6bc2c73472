//! The serialised form of a ledger.

use std::collections::{BTreeMap, BTreeSet};

use bsv_tx::{BlockHash, PublicKey};
use serde::Deserialize;

use super::miner::{Key, Miner};
use super::recent::RecentBlocks;

/// A deserialised ledger that is not yet checked.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Unchecked {
    pub(super) miners: Vec<Miner>,
    #[serde(with = "keys")]
    pub(super) keys: BTreeMap<PublicKey, Key>,
    pub(super) orphans: BTreeSet<BlockHash>,
    pub(super) recent: RecentBlocks,
}

/// The miner ids, serialised as an array.
pub(super) mod keys {
    use std::collections::BTreeMap;

    use bsv_tx::PublicKey;
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::ledger::Key;

    pub(in crate::ledger) fn serialize<S: Serializer>(
        keys: &BTreeMap<PublicKey, Key>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(keys.values())
    }

    pub(in crate::ledger) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<PublicKey, Key>, D::Error> {
        let keys = Vec::<Key>::deserialize(deserializer)?;
        Ok(keys.into_iter().map(|key| (key.miner_id, key)).collect())
    }
}
