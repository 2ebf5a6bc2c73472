use bsv_tx::PublicKey;
use serde::{Deserialize, Serialize};

/// A key of an identity. The keystore holds its private half under `<alias>_<number>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyRecord {
    /// The number of the key, from 1.
    pub number: u32,
    /// The public key, which is the miner id.
    pub public_key: PublicKey,
}
