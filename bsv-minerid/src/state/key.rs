use bsv_tx::PublicKey;

/// A key of an identity. The keystore holds its private half under `<alias>_<number>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// The number of the key, from 1.
    pub number: u32,
    /// The public key, which is the miner id.
    pub public_key: PublicKey,
}
