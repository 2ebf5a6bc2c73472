//! Hashes and keys as texts, for serde.

use std::collections::{BTreeMap, BTreeSet};

use bsv_tx::{BlockHash, PublicKey};
use serde::Deserialize;

use super::{Key, Ledger, Miner};

/// A ledger as it was written, or as somebody has changed it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Unchecked {
    miners: Vec<Miner>,
    #[serde(with = "keys")]
    keys: BTreeMap<PublicKey, Key>,
    #[serde(with = "hashes")]
    orphans: BTreeSet<BlockHash>,
}

impl TryFrom<Unchecked> for Ledger {
    type Error = &'static str;

    fn try_from(Unchecked { miners, keys, orphans }: Unchecked) -> Result<Self, Self::Error> {
        if keys.values().any(|key| key.miner >= miners.len()) {
            return Err("a miner id is of a miner that is not there");
        }
        Ok(Self { miners, keys, orphans })
    }
}

/// A field that is written as text.
pub(super) mod as_text {
    use std::borrow::Cow;
    use std::fmt::Display;
    use std::str::FromStr;

    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(in crate::ledger) fn serialize<S: Serializer>(
        value: &impl Display,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_str(value)
    }

    pub(in crate::ledger) fn deserialize<'de, D, T>(deserializer: D) -> Result<T, D::Error>
    where
        D: Deserializer<'de>,
        T: FromStr<Err: Display>,
    {
        Cow::<str>::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// A field that is written as text, or null.
pub(super) mod optional {
    use bsv_tx::PublicKey;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    pub(in crate::ledger) fn serialize<S: Serializer>(
        value: &Option<PublicKey>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.map(|key| key.to_string()).serialize(serializer)
    }

    pub(in crate::ledger) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<PublicKey>, D::Error> {
        let text = Option::<String>::deserialize(deserializer)?;
        text.map(|text| text.parse()).transpose().map_err(de::Error::custom)
    }
}

/// A set of hashes, written as an array.
pub(super) mod hashes {
    use std::collections::BTreeSet;

    use bsv_tx::BlockHash;
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(in crate::ledger) fn serialize<S: Serializer>(
        hashes: &BTreeSet<BlockHash>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(hashes.iter().map(ToString::to_string))
    }

    pub(in crate::ledger) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeSet<BlockHash>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.iter().map(|text| text.parse().map_err(de::Error::custom)).collect()
    }
}

/// The miner ids, written as an array of what is known of each.
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
