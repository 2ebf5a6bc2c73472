//! The validity check transaction (VCTx): making it, and watching for a transaction that spends it.

use std::sync::Arc;

use bsv_network::{Broadcast, ChainTip, Coin, Mempool, NodeError, NodeRpc};
use bsv_tx::{
    Address, Network, OutPoint, PrivateKey, SighashCache, Transaction, TxIn, TxOut, Txid,
};

use crate::alias::Alias;
use crate::error::Error;
use crate::miner_ids::MinerIds;
use crate::node::observe::check_newest_copy;
use crate::state::{Change, Vctx, VctxView};
use crate::store::IdentityStore;

/// The progress of [`set_up_vctx`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VctxSetup {
    /// The owner has to send coins to an address. Then the set-up continues.
    FundingNeeded {
        /// The address of a key that is used for nothing else.
        address: Address,
        /// The least amount that the address must receive, in satoshis.
        least_satoshis: u64,
        /// The amount at the address, in satoshis.
        found_satoshis: u64,
    },
    /// The validity check output is on the network, and documents name it.
    Done(OutPoint),
}

/// The least amount of a validity check output, in satoshis: enough for the fee of spending it.
const LEAST_VCTX_SATOSHIS: u64 = 1_000;
/// The usual fee rate of public miners, in satoshis per 1000 bytes.
const USUAL_FEE_RATE: u64 = 100;
/// The amount that the node's wallet sends on a regtest network, in satoshis.
const REGTEST_FUNDING: u64 = 100_000;
/// How many times outputs are looked at again because a block has come meanwhile.
const MOST_RACES: usize = 5;
/// A coinbase output can be spent from the 101st block on.
const COINBASE_MATURITY: u32 = 101;

/// Makes the validity check transaction of an identity, or takes the next step towards it. The call
/// can be repeated at any time, also after a crash.
///
/// On a regtest network, the node's wallet funds the transaction, and blocks are mined to confirm
/// it. On other networks, the owner sends coins to the answered address. The node's wallet watches
/// the address and finds the coins, or `funding` names them.
pub async fn set_up_vctx<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
    alias: &Alias,
    funding: Option<OutPoint>,
) -> Result<VctxSetup, Error> {
    match vctx_of(ids, alias)? {
        Vctx::Recorded(outpoint, VctxView { is_spent: true, .. }) | Vctx::Revoking(outpoint, _) => {
            return Err(Error::Revoked { alias: alias.clone(), outpoint });
        }
        Vctx::Recorded(outpoint, _) => return Ok(VctxSetup::Done(outpoint)),
        Vctx::Broadcasting(transaction) => return broadcast(ids, node, alias, transaction).await,
        Vctx::None | Vctx::AwaitingFunds => {}
    }
    let funded = alias.clone();
    let address = ids.on_disk(move |ids| ids.await_vctx_funding(&funded)).await?;
    let coins = match funding {
        Some(outpoint) => vec![named_coin(node, outpoint, &address).await?],
        None => coins_at(node, &address, ids.network()).await?,
    };
    let found_satoshis = coins.iter().map(|coin| coin.output.satoshis).sum();
    let fee = transfer_fee(coins.len().max(1), fee_rate(node).await?);
    let least_satoshis = fee.saturating_add(LEAST_VCTX_SATOSHIS);
    if found_satoshis < least_satoshis {
        return Ok(VctxSetup::FundingNeeded { address, least_satoshis, found_satoshis });
    }
    let key = vctx_key(ids, alias).await?;
    let transaction = signed_transfer(&coins, &address, found_satoshis - fee, &key);
    ids.change_on_disk(alias, Change::BeginVctx(transaction.clone())).await?;
    broadcast(ids, node, alias, transaction).await
}

/// Revokes an identity of generation 0.2: spends its validity check output to that output's own
/// address, and answers the transaction. The identity makes no documents from then on. The call can
/// be repeated at any time, also after a crash: it sends the same transaction again, or one with a
/// higher fee if the network has not got it and demands more by now.
///
/// Fails with [`Error::StaleCopy`] if another copy of the identity is newer, because the revocation
/// would end that copy too. Fails with [`Error::RevocationUntold`] if the revocation is recorded
/// but the network has not accepted the transaction.
pub async fn revoke_vctx<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
    alias: &Alias,
) -> Result<Txid, Error> {
    match vctx_of(ids, alias)? {
        Vctx::Revoking(..) => {}
        Vctx::Recorded(outpoint, VctxView { is_spent: true, .. }) => {
            return Err(Error::Revoked { alias: alias.clone(), outpoint });
        }
        Vctx::Recorded(outpoint, _) => {
            check_newest_copy(ids, node, alias).await?;
            let spending = match signed_revocation(ids, node, alias, outpoint).await {
                Ok(spending) => Some(spending),
                // Documents stop even without the node.
                Err(Error::Node(error)) if !matches!(error, NodeError::Rejected { .. }) => None,
                Err(error) => return Err(error),
            };
            ids.change_on_disk(alias, Change::RevokeVctx(spending)).await?;
        }
        _ => return Err(Error::NoVctx(alias.clone())),
    }
    spend_vctx(ids, node, alias).await.map_err(|error| match error {
        Error::Node(source) => Error::RevocationUntold { alias: alias.clone(), source },
        error => error,
    })
}

/// Sends the transaction that spends the validity check output of a revoked identity. Makes the
/// transaction first if no node has answered the output's amount before, or if its fee has become
/// too low.
async fn spend_vctx<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
    alias: &Alias,
) -> Result<Txid, Error> {
    let spending = match vctx_of(ids, alias)? {
        Vctx::Revoking(outpoint, Some(spending)) => {
            match dearer_revocation(ids, node, alias, outpoint, &spending).await? {
                Some(dearer) => recorded_revocation(ids, alias, dearer).await?,
                None => spending,
            }
        }
        Vctx::Revoking(outpoint, None) => {
            let spending = signed_revocation(ids, node, alias, outpoint).await?;
            recorded_revocation(ids, alias, spending).await?
        }
        _ => return Err(Error::NoVctx(alias.clone())),
    };
    let txid = spending.txid();
    match node.send_transaction(&spending).await {
        Ok(Broadcast::Accepted | Broadcast::AlreadyKnown) => Ok(txid),
        // Nodes refuse a mined transaction whose output is spent, as if it were a double spend.
        Err(NodeError::Rejected { .. }) if node.transaction(&txid).await?.is_some() => Ok(txid),
        Err(error) => Err(error.into()),
    }
}

/// The revocation with a higher fee, if the network demands one by now and has not got the earlier
/// transaction.
async fn dearer_revocation<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
    alias: &Alias,
    outpoint: OutPoint,
    earlier: &Transaction,
) -> Result<Option<Transaction>, Error> {
    if node.unspent_output(&outpoint, Mempool::Include).await?.is_none() {
        return Ok(None);
    }
    let left = |it: &Transaction| it.outputs.iter().map(|output| output.satoshis).sum::<u64>();
    match signed_revocation(ids, node, alias, outpoint).await {
        Ok(dearer) if left(&dearer) < left(earlier) => Ok(Some(dearer)),
        // The output is spent meanwhile, or holds too little for the higher fee.
        Ok(_) | Err(Error::BadFunding { .. }) => Ok(None),
        Err(error) => {
            tracing::warn!("the revocation of alias {alias} is sent with its earlier fee: {error}");
            Ok(None)
        }
    }
}

async fn recorded_revocation<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    alias: &Alias,
    spending: Transaction,
) -> Result<Transaction, Error> {
    ids.change_on_disk(alias, Change::RevokeVctx(Some(spending.clone()))).await?;
    Ok(spending)
}

/// Spends the validity check outputs of revoked identities that are unspent in blocks and in the
/// mempool.
async fn spend_revoked<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
) -> Result<(), Error> {
    for identity in ids.all() {
        let record = identity.record();
        let Some(Vctx::Revoking(outpoint, _)) = record.vctx() else { continue };
        if node.unspent_output(outpoint, Mempool::Include).await?.is_none() {
            continue;
        }
        match spend_vctx(ids, node, identity.alias()).await {
            Ok(txid) => tracing::info!("{txid} revokes alias {}", identity.alias()),
            Err(error) => {
                tracing::error!("alias {} cannot be revoked: {error}", identity.alias());
            }
        }
    }
    Ok(())
}

async fn signed_revocation<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
    alias: &Alias,
    outpoint: OutPoint,
) -> Result<Transaction, Error> {
    let key = vctx_key(ids, alias).await?;
    let address = Address::p2pkh(&key.public_key(), ids.network());
    let coin = named_coin(node, outpoint, &address).await?;
    let fee = transfer_fee(1, fee_rate(node).await?);
    let left = coin.output.satoshis.checked_sub(fee).filter(|satoshis| *satoshis > 0);
    let reason = "it holds too little for the fee of spending it";
    let satoshis = left.ok_or(Error::BadFunding { outpoint, reason })?;
    Ok(signed_transfer(&[coin], &address, satoshis, &key))
}

/// Reads the key of a validity check output.
pub(crate) async fn vctx_key<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    alias: &Alias,
) -> Result<PrivateKey, Error> {
    let alias = alias.clone();
    ids.on_disk(move |ids| ids.vctx_key(&alias)).await
}

fn vctx_of<S: IdentityStore>(ids: &Arc<MinerIds<S>>, alias: &Alias) -> Result<Vctx, Error> {
    let vctx = ids.get(alias.as_str())?.record().vctx().cloned();
    vctx.ok_or_else(|| Error::OtherProtocol { alias: alias.clone(), protocol: "1.0" })
}

/// Asks the node once which validity check outputs are unspent. Documents stop or resume
/// accordingly. Spends the outputs of revoked identities. Answers the tip of the chain, or `None` if
/// blocks come too fast: the last known state then holds until the next call.
/// [`MinerIds::run`] calls this for each new tip.
pub async fn observe_vctxs<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
) -> Result<Option<ChainTip>, Error> {
    spend_revoked(ids, node).await?;
    let mut tip = node.tip().await?;
    for _ in 0..MOST_RACES {
        let views = look_at_vctxs(ids, node, tip).await?;
        let tip_afterwards = node.tip().await?;
        if tip_afterwards == tip {
            ids.on_disk(move |ids| ids.note_vctx_views(&views)).await?;
            return Ok(Some(tip));
        }
        // The answers may belong to either tip.
        tip = tip_afterwards;
    }
    tracing::debug!("blocks come too fast to look at VCTxs: they are looked at again");
    Ok(None)
}

async fn look_at_vctxs<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
    tip: ChainTip,
) -> Result<Vec<(Alias, OutPoint, VctxView)>, Error> {
    let mut changed = Vec::new();
    for identity in ids.all() {
        let record = identity.record();
        let Some(&Vctx::Recorded(outpoint, view)) = record.vctx() else { continue };
        let is_unspent = node.unspent_output(&outpoint, Mempool::Ignore).await?.is_some();
        let seen = view.observe(tip.height, is_unspent);
        warn_about(identity.alias(), outpoint, view, seen);
        if seen != view {
            changed.push((identity.alias().clone(), outpoint, seen));
        }
    }
    Ok(changed)
}

fn warn_about(alias: &Alias, outpoint: OutPoint, before: VctxView, now: VctxView) {
    if now.last_seen.is_none() {
        tracing::warn!("the VCTx {outpoint} of alias {alias} is not in the chain");
    } else if now.is_spent && !before.is_spent {
        tracing::error!("the VCTx {outpoint} of alias {alias} is spent: the alias is revoked");
    } else if now.gone_since.is_some() && before.gone_since.is_none() {
        tracing::warn!("the VCTx {outpoint} of alias {alias} has been spent in a block");
    }
}

async fn broadcast<S: IdentityStore>(
    ids: &Arc<MinerIds<S>>,
    node: &NodeRpc,
    alias: &Alias,
    transaction: Transaction,
) -> Result<VctxSetup, Error> {
    let txid = transaction.txid();
    match node.send_transaction(&transaction).await {
        Ok(Broadcast::Accepted | Broadcast::AlreadyKnown) => {}
        // Nodes refuse a mined transaction whose outputs are spent, as if it were a double spend.
        Err(NodeError::Rejected { .. }) if node.transaction(&txid).await?.is_some() => {}
        Err(refused @ NodeError::Rejected { .. }) => {
            ids.change_on_disk(alias, Change::AbandonVctx).await?;
            return Err(refused.into());
        }
        Err(unknown) => return Err(unknown.into()),
    }
    let outpoint = OutPoint { txid, vout: 0 };
    if ids.network() == Network::Regtest {
        let unconfirmed = node.unspent_output(&outpoint, Mempool::Ignore).await?.is_none();
        if unconfirmed {
            node.generate(1).await?;
        }
    }
    ids.change_on_disk(alias, Change::RecordVctx(outpoint)).await?;
    if let Err(error) = observe_vctxs(ids, node).await {
        // The transaction is made and recorded. The service looks again at the next tip.
        tracing::warn!("cannot check the VCTx of alias {alias} in the chain: {error}");
    }
    Ok(VctxSetup::Done(outpoint))
}

pub(crate) async fn named_coin(
    node: &NodeRpc,
    outpoint: OutPoint,
    address: &Address,
) -> Result<Coin, Error> {
    let unspent = node
        .unspent_output(&outpoint, Mempool::Include)
        .await?
        .ok_or(Error::BadFunding { outpoint, reason: "the node knows no such unspent output" })?;
    if unspent.output.locking_script != address.locking_script() {
        return Err(Error::BadFunding { outpoint, reason: "it does not pay to the VCTx address" });
    }
    let (output, confirmations) = (unspent.output, unspent.confirmations);
    Ok(Coin { outpoint, output, confirmations })
}

async fn coins_at(node: &NodeRpc, address: &Address, network: Network) -> Result<Vec<Coin>, Error> {
    node.import_address(address).await?;
    let coins = spendable_coins_of(node, address).await?;
    if network != Network::Regtest || !coins.is_empty() {
        return Ok(coins);
    }
    if node.wallet_balance().await? < 2 * REGTEST_FUNDING {
        node.generate(COINBASE_MATURITY).await?;
    }
    node.send_to_address(address, REGTEST_FUNDING).await?;
    node.generate(1).await?;
    spendable_coins_of(node, address).await
}

/// The coins that the P2PKH script of the address locks. A node also lists coins of the same key
/// under other scripts.
pub(crate) async fn spendable_coins_of(
    node: &NodeRpc,
    address: &Address,
) -> Result<Vec<Coin>, Error> {
    let mut coins = node.coins_of(address).await?;
    coins.retain(|coin| coin.output.locking_script == address.locking_script());
    Ok(coins)
}

/// The fee rate that a transaction has to pay, in satoshis per 1000 bytes.
pub(crate) async fn fee_rate(node: &NodeRpc) -> Result<u64, Error> {
    Ok(node.policy().await?.mining_fee_rate.max(USUAL_FEE_RATE))
}

/// The fee of a transaction that spends P2PKH coins to one P2PKH output, in satoshis, rounded up.
pub(crate) fn transfer_fee(inputs: usize, satoshis_per_1000_bytes: u64) -> u64 {
    const OVERHEAD: u64 = 4 + 9 + 1 + 4;
    const INPUT: u64 = 36 + 1 + 107 + 4;
    const OUTPUT: u64 = 8 + 1 + 25;
    let bytes = OVERHEAD + INPUT * inputs as u64 + OUTPUT;
    bytes.saturating_mul(satoshis_per_1000_bytes).div_ceil(1000)
}

/// A signed transaction of coins that `key` owns, with one output.
pub(crate) fn signed_transfer(
    coins: &[Coin],
    address: &Address,
    satoshis: u64,
    key: &PrivateKey,
) -> Transaction {
    let mut transaction = unsigned_transfer(coins, address, satoshis);
    let cache = SighashCache::new(&transaction);
    let sign = |(index, coin): (usize, &Coin)| {
        cache
            .sign_p2pkh(index, &coin.output, key)
            .expect("the transaction has an input for each coin")
    };
    let scripts: Vec<_> = coins.iter().enumerate().map(sign).collect();
    for (input, script) in transaction.inputs.iter_mut().zip(scripts) {
        input.unlocking_script = script;
    }
    transaction
}

fn unsigned_transfer(coins: &[Coin], address: &Address, satoshis: u64) -> Transaction {
    let inputs = coins.iter().map(|coin| TxIn {
        previous_output: coin.outpoint,
        unlocking_script: Default::default(),
        sequence: u32::MAX,
    });
    Transaction {
        version: 1,
        inputs: inputs.collect(),
        outputs: vec![TxOut { satoshis, locking_script: address.locking_script() }],
        lock_time: 0,
    }
}
