use bsv_tx::PublicKey;

/// A node's knowledge of a miner id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinerIdInfo {
    /// The miner id.
    pub miner_id: PublicKey,
    /// The state of the miner id.
    pub state: MinerIdState,
    /// The previous miner id, by the last document that the node has read from a block.
    pub previous_miner_id: Option<PublicKey>,
    /// The key that can revoke the miner id. Identities of generation 0.2 have none.
    pub revocation_key: Option<PublicKey>,
    /// The previous revocation key, by the same document.
    pub previous_revocation_key: Option<PublicKey>,
}

/// The state of a miner id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinerIdState {
    /// The miner uses the miner id.
    Current,
    /// Another miner id has replaced it.
    Rotated,
    /// The miner id is revoked.
    Revoked,
}
