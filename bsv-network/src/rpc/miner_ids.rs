use bsv_tx::{BlockHash, KeyError, PublicKey, Signature};
use serde_json::json;

use super::NodeRpc;
use crate::answers::{MinerIdJson, MinerJson, MinersJson, Parsed};
use crate::error::NodeError;
use crate::transport::Repeatable;

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

/// A revocation of miner ids, as a node is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinerIdRevocation {
    /// The key that can revoke.
    pub revocation_key: PublicKey,
    /// The miner id that is the current one until then.
    pub miner_id: PublicKey,
    /// The oldest miner id that is revoked.
    pub compromised: PublicKey,
    /// The signature by the revocation key.
    pub revocation_key_signature: Signature,
    /// The signature by the miner id.
    pub miner_id_signature: Signature,
}

impl NodeRpc {
    /// What the node believes of `miner_id`, or `None` if no block has told it of that one
    /// (`getmineridinfo`).
    ///
    /// Fails with [`NodeError::Rejected`] where the node keeps no miner ids (`minerid=0`).
    pub async fn miner_id_info(
        &self,
        miner_id: &PublicKey,
    ) -> Result<Option<MinerIdInfo>, NodeError> {
        let method = "getmineridinfo";
        let json: MinerIdJson = self.ask(method, &[miner_id.to_string()]).await?;
        let Some(Parsed(answered)) = json.miner_id else { return Ok(None) };
        if answered != *miner_id {
            let reason = format!("it is about miner id {answered}, not {miner_id}");
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

    /// The last block that the node has taken from the miner that one of these miner ids belongs to, or `None` if it knows
    /// none of them (`dumpminerids`). The block may have left the main chain.
    ///
    /// Fails with [`NodeError::Rejected`] where the node keeps no miner ids (`minerid=0`).
    pub async fn latest_block_of(
        &self,
        miner_ids: &[PublicKey],
    ) -> Result<Option<BlockHash>, NodeError> {
        let names: Vec<_> = miner_ids.iter().map(PublicKey::to_string).collect();
        let MinersJson { miners } = self.ask("dumpminerids", &super::NONE).await?;
        let theirs = miners
            .into_iter()
            .find(|miner| miner.minerids.iter().any(|listed| names.contains(&listed.minerid)));
        Ok(theirs.map(|MinerJson { latestblock: Parsed(block), .. }| block))
    }

    /// Tells the node, which tells others, that miner ids are revoked (`revokeminerid`). To the node
    /// they are from then on. After [`NodeError::Unreachable`] it may have taken it all the same.
    ///
    /// To repeat it once a block has shown the miner id that takes their place revokes that one too.
    ///
    /// Fails with [`NodeError::Rejected`] where the node knows no such miner id, or another
    /// revocation key of it.
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
