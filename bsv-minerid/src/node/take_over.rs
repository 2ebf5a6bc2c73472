//! Import of an older generator's home directory with a node's help.

use std::sync::Arc;

use bsv_network::{Mempool, NodeError, NodeRpc, TransactionPlace};
use bsv_store::Keystore;
use bsv_tx::{Address, Network, OutPoint, PrivateKey, Script, Txid};

use crate::alias::Alias;
use crate::error::Error;
use crate::import::{HomeFiles, Import, OlderHome, OlderIdentity, OlderProtocol, VctxFinding};
use crate::miner_ids::MinerIds;
use crate::store::IdentityStore;

/// Imports as [`MinerIds::import`] says.
pub(super) async fn import_miner_ids<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: Option<&NodeRpc>,
    home: &HomeFiles,
    revocation_keys: Option<Arc<Keystore>>,
) -> Result<Vec<(Alias, Import)>, Error> {
    let mut home = OlderHome::parse(home)?;
    if let Some(node) = node
        && let Err(error) = look_at_vctxs(node, &mut home.identities, ids.network()).await
    {
        tracing::warn!("cannot ask the node about the VCTxs of the home directory: {error}");
    }
    ids.on_disk(move |ids| ids.take_over(home, revocation_keys.as_deref())).await
}

async fn look_at_vctxs(
    node: &NodeRpc,
    identities: &mut [OlderIdentity],
    network: Network,
) -> Result<(), NodeError> {
    for identity in identities {
        let OlderProtocol::Vctx(Some((key, txid))) = &identity.protocol else { continue };
        identity.vctx = look_at(node, &owner_script(key, network), *txid).await?;
        if identity.vctx == VctxFinding::Foreign {
            identity.protocol = OlderProtocol::Vctx(None);
        }
    }
    Ok(())
}

fn owner_script(key: &PrivateKey, network: Network) -> Script {
    Address::p2pkh(&key.public_key(), network).locking_script()
}

async fn look_at(node: &NodeRpc, owner: &Script, txid: Txid) -> Result<VctxFinding, NodeError> {
    let height = node.tip().await?.height;
    let outpoint = OutPoint { txid, vout: 0 };
    if let Some(unspent) = node.unspent_output(&outpoint, Mempool::Ignore).await? {
        return Ok(match unspent.output.locking_script == *owner {
            true => VctxFinding::Unspent(height),
            false => VctxFinding::Foreign,
        });
    }
    let Some(transaction) = node.transaction(&txid).await? else {
        return Ok(VctxFinding::NotFound);
    };
    let is_owned = transaction.outputs.first().is_some_and(|it| it.locking_script == *owner);
    Ok(match node.transaction_place(&txid).await? {
        _ if !is_owned => VctxFinding::Foreign,
        TransactionPlace::Block(_) => VctxFinding::Spent(height),
        TransactionPlace::Mempool | TransactionPlace::Nowhere => VctxFinding::NotFound,
    })
}
