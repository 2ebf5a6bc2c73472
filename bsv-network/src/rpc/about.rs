use bsv_tx::Network;
use serde::Deserialize;

use super::{NONE, NodeRpc, code};
use crate::error::NodeError;

/// `getnetworkinfo`.
#[derive(Deserialize)]
struct NetworkInfo {
    subversion: String,
}

/// `getblockchaininfo`: the node's chain.
#[derive(Deserialize)]
struct ChainInfo {
    chain: String,
}

/// A public key that cannot be anybody's miner id, because its private key is known: the generator
/// of the curve.
const NOBODY: &str = "0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798";

impl NodeRpc {
    /// The name and version of the node, such as `/Bitcoin SV:1.0.13/` (`getnetworkinfo`).
    pub async fn version(&self) -> Result<String, NodeError> {
        let NetworkInfo { subversion } = self.ask("getnetworkinfo", &NONE).await?;
        Ok(subversion)
    }

    /// The network that the node follows (`getblockchaininfo`). For an unknown network, answers the
    /// node's name of it, such as `stn`.
    pub async fn network(&self) -> Result<Result<Network, String>, NodeError> {
        let ChainInfo { chain } = self.ask("getblockchaininfo", &NONE).await?;
        Ok(match chain.as_str() {
            "main" => Ok(Network::Livenet),
            "test" => Ok(Network::Testnet),
            "regtest" => Ok(Network::Regtest),
            _ => Err(chain),
        })
    }

    /// Whether the node keeps miner ids (`minerid=1`). Without them, the node refuses the call
    /// (`getmineridinfo`).
    pub async fn has_miner_ids(&self) -> Result<bool, NodeError> {
        match self.ask::<serde::de::IgnoredAny>("getmineridinfo", &[NOBODY]).await {
            Ok(_) => Ok(true),
            Err(NodeError::Rejected { .. }) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The node's startup settings without secrets, such as `txindex=1` (`dumpparameters`). Answers
    /// `None` if the node is too old for this call.
    pub async fn parameters(&self) -> Result<Option<Vec<String>>, NodeError> {
        match self.ask("dumpparameters", &NONE).await {
            Err(NodeError::Rejected { code: code::NO_METHOD, .. }) => Ok(None),
            result => result.map(Some),
        }
    }
}
