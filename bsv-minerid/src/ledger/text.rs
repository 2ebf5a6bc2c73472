//! Serde support for hashes and keys as text.

/// A field that is serialised as text.
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

/// A field that is serialised as text, or null.
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

/// A set of hashes, serialised as an array.
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
