use bsv_tx::PublicKey;

/// One key of an identity. Its private half lies in the keystore as `<alias>_<number>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// The number of the key, from 1.
    pub number: u32,
    /// The public key, which is the miner id.
    pub public_key: PublicKey,
}
