use bsv_tx::PublicKey;

/// What a node believes of a miner id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinerIdInfo {
    /// The miner id.
    pub miner_id: PublicKey,
    /// What has become of it.
    pub state: MinerIdState,
    /// The miner id before, as the last document says that the node has taken from a block.
    pub previous_miner_id: Option<PublicKey>,
    /// The key that can revoke it, which identities of generation 0.2 do not have.
    pub revocation_key: Option<PublicKey>,
    /// The revocation key before, as that document says.
    pub previous_revocation_key: Option<PublicKey>,
}

/// What has become of a miner id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinerIdState {
    /// Its miner uses it.
    Current,
    /// Another has followed it.
    Rotated,
    /// It is revoked.
    Revoked,
}
