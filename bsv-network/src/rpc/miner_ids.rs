use bsv_tx::{BlockHash, KeyError, PublicKey, Signature};
use serde_json::json;

use super::NodeRpc;
use crate::answers::{MinerIdJson, MinerJson, MinersJson};
use crate::error::NodeError;
use crate::transport::Repeatable;

/// A node's knowledge of a miner id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinerIdInfo {
    /// The miner id.
    pub miner_id: PublicKey,
    /// The state of the miner id.
    pub state: MinerIdState,
    /// The previous miner id, by the last document that the node has read from a block.
    pub previous_miner_id: Option<PublicKey>,
    /// The key that can revoke the miner id. Identities of protocol 0.2 have none.
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

/// A revocation of miner ids, in the form that a node receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinerIdRevocation {
    /// The revocation key.
    pub revocation_key: PublicKey,
    /// The current miner id until this revocation.
    pub miner_id: PublicKey,
    /// The oldest of the revoked miner ids.
    pub compromised: PublicKey,
    /// The signature by the revocation key.
    pub revocation_key_signature: Signature,
    /// The signature by the miner id.
    pub miner_id_signature: Signature,
}

impl NodeRpc {
    /// The node's knowledge of `miner_id`, or `None` if no block has shown it to the node
    /// (`getmineridinfo`).
    ///
    /// Fails with [`NodeError::Rejected`] if the node keeps no miner ids (`minerid=0`).
    pub async fn miner_id_info(
        &self,
        miner_id: &PublicKey,
    ) -> Result<Option<MinerIdInfo>, NodeError> {
        let method = "getmineridinfo";
        let json: MinerIdJson = self.ask(method, &[miner_id.to_string()]).await?;
        let Some(answered) = json.miner_id else { return Ok(None) };
        if answered != *miner_id {
            let reason = format!("the answer is about miner id {answered}, not {miner_id}");
            return Err(NodeError::unexpected(method, reason));
        }
        let state = match json.state.as_deref() {
            Some("CURRENT") => MinerIdState::Current,
            Some("ROTATED") => MinerIdState::Rotated,
            Some("REVOKED") => MinerIdState::Revoked,
            other => {
                let reason = format!("{other:?} is no state of a miner id");
                return Err(NodeError::unexpected(method, reason));
            }
        };
        let key = |text: Option<String>| {
            let key = text.filter(|text| !text.is_empty()).map(|text| text.parse());
            let unexpected = |error: KeyError| NodeError::unexpected(method, error.to_string());
            key.transpose().map_err(unexpected)
        };
        Ok(Some(MinerIdInfo {
            miner_id: answered,
            state,
            previous_miner_id: key(json.previous_miner_id)?,
            revocation_key: key(json.revocation_key)?,
            previous_revocation_key: key(json.previous_revocation_key)?,
        }))
    }

    /// The last block that the node knows of the miner who owns one of these miner ids, or `None`
    /// if the node knows none of them (`dumpminerids`). The block may have left the main chain.
    ///
    /// Fails with [`NodeError::Rejected`] if the node keeps no miner ids (`minerid=0`).
    pub async fn latest_block_of(
        &self,
        miner_ids: &[PublicKey],
    ) -> Result<Option<BlockHash>, NodeError> {
        let names: Vec<_> = miner_ids.iter().map(PublicKey::to_string).collect();
        let MinersJson { miners } = self.ask("dumpminerids", &super::NONE).await?;
        let theirs = miners
            .into_iter()
            .find(|miner| miner.minerids.iter().any(|listed| names.contains(&listed.minerid)));
        Ok(theirs.map(|MinerJson { latestblock, .. }| latestblock))
    }

    /// Revokes miner ids at the node, which tells other nodes (`revokeminerid`). The revocation
    /// holds at the node at once. After [`NodeError::Unreachable`], the node may have accepted it
    /// nevertheless.
    ///
    /// Do not repeat the call once a block has shown the next miner id: the call would revoke that
    /// miner id too.
    ///
    /// Fails with [`NodeError::Rejected`] if the node does not know the miner id, or knows another
    /// revocation key for it.
    pub async fn revoke_miner_id(&self, revocation: &MinerIdRevocation) -> Result<(), NodeError> {
        let params = [json!({
            "revocationKey": revocation.revocation_key.to_string(),
            "minerId": revocation.miner_id.to_string(),
            "revocationMessage": { "compromised_minerId": revocation.compromised.to_string() },
            "revocationMessageSig": {
                "sig1": revocation.revocation_key_signature.to_string(),
                "sig2": revocation.miner_id_signature.to_string(),
            },
        })];
        self.transport.call("revokeminerid", &params, self.timeout, Repeatable::No).await?;
        Ok(())
    }
}
