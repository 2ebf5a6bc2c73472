//! Taking back the coins of the validity check output of an identity that was upgraded to
//! generation 1.0.

use std::collections::BTreeSet;
use std::sync::Arc;

use bsv_network::{Coin, NodeError, NodeRpc, Submitted, TransactionPlace};
use bsv_store::KeystoreError;
use bsv_tx::{Address, OutPoint, Transaction, Txid};

use crate::alias::Alias;
use crate::error::Error;
use crate::miner_ids::MinerIds;
use crate::node::data_cache::DataCache;
use crate::node::gather::gather;
use crate::node::vctx::{
    fee_rate, named_coin, signed_transfer, spendable_coins_of, transfer_fee, vctx_key,
};
use crate::state::{Change, IdentityRecord};
use crate::store::IdentityStore;
use crate::verify::{Verdict, verify};

/// The most coins that one transaction spends. Anybody can send more coins to the address.
const MOST_COINS: usize = 500;

/// A transaction that takes coins from the address of a validity check output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VctxSweep {
    /// The transaction, which has one output.
    pub transaction: Transaction,
    /// The fee of the transaction, in satoshis, or `None` if the transaction was already recorded.
    pub fee: Option<u64>,
    /// The progress of the transaction.
    pub progress: SweepProgress,
}

impl VctxSweep {
    /// The same sweep after it was recorded and sent to the node.
    fn followed(
        self,
        alias: &Alias,
        sent: Result<SweepProgress, NodeError>,
    ) -> Result<Self, Error> {
        match sent {
            Ok(progress) => Ok(Self { progress, ..self }),
            Err(source) => Err(Error::SweepUnseen { alias: alias.clone(), source }),
        }
    }
}

/// The progress of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SweepProgress {
    /// The transaction is neither recorded nor sent.
    Planned,
    /// The transaction is recorded, but the node has not shown it yet.
    Unseen,
    /// The node shows the transaction in its mempool.
    InMempool,
    /// The node shows the transaction in a block of the main chain.
    Mined,
}

/// Sends the coins at the address of an upgraded identity's validity check output to `to`, less the
/// fee. These coins are the recorded output, those that the node's wallet finds, and `named`.
///
/// The call can be repeated, also after a crash. The transaction is recorded before it is sent. A
/// recorded transaction that no block has is sent again, with its original recipient. A new
/// transaction is made only if the network refuses the recorded one, or if a block has it and there
/// are further coins.
///
/// Fails with [`Error::VctxNeeded`] for an identity of generation 0.2, because spending the output
/// would revoke it. Fails with [`Error::UpgradeUnseen`] until a block of the main chain shows a
/// document of generation 1.0, because others may use the older documents until then. Fails with
/// [`Error::NothingToSweep`] if no coins are found.
pub async fn sweep_vctx<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
    alias: &Alias,
    to: &Address,
    named: Option<OutPoint>,
) -> Result<VctxSweep, Error> {
    let begun = begun(ids, node, alias).await?;
    let planned = match &begun {
        Some(begun) => match begun.progress {
            SweepProgress::InMempool => return Ok(begun.clone()),
            SweepProgress::Mined => match plan(ids, node, alias, to, named).await {
                Err(Error::NothingToSweep(_)) => return Ok(begun.clone()),
                planned => planned?,
            },
            _ => match submit(node, &begun.transaction).await {
                // The fee may be too low by now. Nobody else has the key of the coins.
                Err(NodeError::Rejected { .. }) => plan(ids, node, alias, to, named).await?,
                sent => return begun.clone().followed(alias, sent),
            },
        },
        None => plan(ids, node, alias, to, named).await?,
    };
    let (before, sweep) =
        (begun.map(|begun| begun.transaction.txid()), planned.transaction.clone());
    ids.change_on_disk(alias, Change::BeginVctxSweep { before, sweep }).await?;
    let sent = submit(node, &planned.transaction).await;
    planned.followed(alias, sent)
}

/// Answers what [`sweep_vctx`] would do, and does nothing. A transaction that it would send again
/// is answered as recorded.
pub async fn preview_vctx_sweep<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
    alias: &Alias,
    to: &Address,
    named: Option<OutPoint>,
) -> Result<VctxSweep, Error> {
    match begun(ids, node, alias).await? {
        Some(begun) if begun.progress != SweepProgress::Mined => Ok(begun),
        Some(begun) => match plan(ids, node, alias, to, named).await {
            Err(Error::NothingToSweep(_)) => Ok(begun),
            planned => planned,
        },
        None => plan(ids, node, alias, to, named).await,
    }
}

/// The recorded sweep, if there is one.
async fn begun<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
    alias: &Alias,
) -> Result<Option<VctxSweep>, Error> {
    let record = ids.get(alias.as_str())?.record();
    let own = record.miner_info().ok_or_else(|| Error::VctxNeeded(alias.clone()))?;
    let Some(transaction) = own.left_vctx.sweep.clone() else { return Ok(None) };
    let progress = place(node, &transaction.txid()).await?;
    Ok(Some(VctxSweep { transaction, fee: None, progress }))
}

/// Plans the transaction that takes the coins.
async fn plan<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
    alias: &Alias,
    to: &Address,
    named: Option<OutPoint>,
) -> Result<VctxSweep, Error> {
    let record = ids.get(alias.as_str())?.record();
    let own = record.miner_info().ok_or_else(|| Error::VctxNeeded(alias.clone()))?;
    // Documents of a closed identity do not matter.
    if !record.is_closed() && !is_shown(node, &record).await? {
        return Err(Error::UpgradeUnseen(alias.clone()));
    }
    let key = match vctx_key(ids, alias).await {
        Err(Error::Keystore(KeystoreError::Missing(_))) => {
            return Err(Error::NothingToSweep(alias.clone()));
        }
        key => key?,
    };
    let owner = Address::p2pkh(&key.public_key(), ids.network());
    let mut coins = found_coins(node, &owner).await?;
    for outpoint in own.left_vctx.outpoint.into_iter().chain(named) {
        match named_coin(node, outpoint, &owner).await {
            Ok(coin) => coins.push(coin),
            Err(Error::BadFunding { .. }) if named != Some(outpoint) => {}
            Err(error) => return Err(error),
        }
    }
    let fee_rate = fee_rate(node).await?;
    let own_fee = transfer_fee(1, fee_rate) - transfer_fee(0, fee_rate);
    let mut known = BTreeSet::new();
    coins.retain(|coin| coin.output.satoshis > own_fee && known.insert(coin.outpoint));
    coins.sort_by_key(|coin| (std::cmp::Reverse(coin.output.satoshis), coin.outpoint));
    coins.truncate(MOST_COINS);
    let Some(largest) = coins.first() else { return Err(Error::NothingToSweep(alias.clone())) };
    let total: u64 = coins.iter().map(|coin| coin.output.satoshis).sum();
    // The remaining amount must be worth its own fee.
    let left = total.checked_sub(transfer_fee(coins.len(), fee_rate)).filter(|it| *it > own_fee);
    let reason = "it holds too little for the fee of spending it";
    let satoshis = left.ok_or(Error::BadFunding { outpoint: largest.outpoint, reason })?;
    Ok(VctxSweep {
        transaction: signed_transfer(&coins, to, satoshis, &key),
        fee: Some(total - satoshis),
        progress: SweepProgress::Planned,
    })
}

/// The coins that the node's wallet finds, or none if the node has no wallet.
async fn found_coins(node: &NodeRpc, owner: &Address) -> Result<Vec<Coin>, Error> {
    let found = match node.import_address(owner).await {
        Ok(()) => spendable_coins_of(node, owner).await,
        Err(error) => Err(error.into()),
    };
    match found {
        Err(Error::Node(NodeError::Rejected { .. })) => Ok(Vec::new()),
        found => found,
    }
}

/// Whether a block of the main chain shows the identity with a document of generation 1.0. The
/// block is the last one that the node knows of this miner.
async fn is_shown(node: &NodeRpc, record: &IdentityRecord) -> Result<bool, Error> {
    let keys: Vec<_> = record.keys().iter().map(|key| key.public_key).collect();
    let Some(block) = node.latest_block_of(&keys).await? else { return Ok(false) };
    let Some(gathered) = gather(node, &block, &DataCache::default()).await? else {
        return Ok(false);
    };
    let report = verify(&gathered.proof, &gathered.evidence);
    let is_sound = report.verdict() != Verdict::Invalid && report.passes_node() != Some(false);
    Ok(gathered.in_main_chain
        && is_sound
        && report.claim().is_some_and(|claim| {
            keys.contains(&claim.miner_id)
                && claim
                    .revocation_keys
                    .is_some_and(|keys| record.has_revocation_key(&keys.current))
        }))
}

/// Sends the node a transaction, and asks where the node has it. The node's acceptance alone proves
/// nothing.
async fn submit(node: &NodeRpc, transaction: &Transaction) -> Result<SweepProgress, NodeError> {
    match node.submit_transaction(transaction).await {
        Ok(Submitted::InMempool(_)) => Ok(SweepProgress::InMempool),
        Ok(Submitted::NotShown) => place(node, &transaction.txid()).await,
        // Nodes refuse a mined transaction whose output is spent, as if it were a double spend.
        Err(refused @ NodeError::Rejected { .. }) => {
            match place(node, &transaction.txid()).await? {
                SweepProgress::Unseen => Err(refused),
                shown => Ok(shown),
            }
        }
        Err(error) => Err(error),
    }
}

async fn place(node: &NodeRpc, txid: &Txid) -> Result<SweepProgress, NodeError> {
    Ok(match node.transaction_place(txid).await? {
        TransactionPlace::Nowhere => SweepProgress::Unseen,
        TransactionPlace::Mempool => SweepProgress::InMempool,
        TransactionPlace::Block(_) => SweepProgress::Mined,
    })
}
