mod about;
mod block;
mod chain;
mod mempool;
mod miner_ids;
mod node_wallet;
mod notifications;
mod place;

use std::time::Duration;

use bsv_tx::{Address, BlockHash, OutPoint, Transaction, TxOut, Txid};
use serde::de::DeserializeOwned;
use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::amount::Amount;
use crate::answers::{
    BlockchainInfo, Settings, SyncInfo, TxOutInfo, TxOutItem, TxOuts, Unspent, read,
};
use crate::error::NodeError;
use crate::transport::{NodeSettings, Repeatable, Transport};
pub use block::BlockStream;
pub use chain::{BlockCoinbase, BlockInfo, MinedIn};
pub use mempool::{MempoolEntry, Submitted};
pub use miner_ids::{MinerIdInfo, MinerIdRevocation, MinerIdState};
pub use notifications::FeedAddress;
pub use place::TransactionPlace;

/// How long a call may take unless [`NodeRpc::with_timeout`] says otherwise.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long a node may take to mine blocks on demand.
const GENERATE_TIMEOUT: Duration = Duration::from_secs(600);

/// How many outputs one call asks about. A node needs about 20 milliseconds for them; then other
/// calls have their turn.
const OUTPUTS_AT_ONCE: usize = 1000;

/// The parameters of a call without parameters.
const NONE: [(); 0] = [];

/// The node's JSON-RPC error codes that are answers rather than failures.
mod code {
    /// `RPC_METHOD_NOT_FOUND`.
    pub(super) const NO_METHOD: i64 = -32601;
    /// `RPC_WALLET_ERROR`.
    pub(super) const WALLET: i64 = -4;
    /// `RPC_INVALID_ADDRESS_OR_KEY`: no such transaction, or block.
    pub(super) const NOT_FOUND: i64 = -5;
    /// `RPC_INVALID_PARAMETER`, for example for a height above the tip.
    pub(super) const INVALID_PARAMETER: i64 = -8;
    /// `RPC_VERIFY_REJECTED`.
    pub(super) const REFUSED: i64 = -26;
    /// `RPC_VERIFY_ALREADY_IN_CHAIN`: the transaction is in the mempool.
    pub(super) const ALREADY_KNOWN: i64 = -27;
}

/// A client of one node's JSON-RPC. Clones share connections and turns: at most four calls run at
/// the node at once. Further calls wait for a turn, and the wait counts towards their time-out.
///
/// Connections belong to the tokio runtime in which they were opened: make one client per runtime.
///
/// Besides the errors that each method lists, every method fails with [`NodeError::Unreachable`],
/// [`NodeError::Unauthorized`], [`NodeError::Starting`] or [`NodeError::SafeMode`] if the node
/// cannot be used, and with [`NodeError::Unexpected`] if its answer makes no sense.
#[derive(Clone, Debug)]
pub struct NodeRpc {
    transport: Transport,
    timeout: Duration,
}

/// The last block of the main chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChainTip {
    /// The height. The first block has height 0.
    pub height: u32,
    /// The hash.
    pub hash: BlockHash,
    /// The median time past: the median of the times of this block and the ten before it, in
    /// seconds since 1970. The lock times of transactions in the next block are compared with it
    /// (BIP113).
    pub median_time: u32,
}

/// Whether transactions outside of blocks count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mempool {
    /// Transactions of the mempool count: the outputs that they make exist, and those that they
    /// spend do not.
    Include,
    /// Only blocks count.
    Ignore,
}

/// An output that nothing has spent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnspentOutput {
    /// The output.
    pub output: TxOut,
    /// The number of confirmations; 0 in the mempool.
    pub confirmations: u32,
}

/// The state of an output at a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputState {
    /// Nothing spends it.
    Unspent {
        /// The amount, in satoshis.
        satoshis: u64,
        /// The number of confirmations; 0 in the mempool.
        confirmations: u32,
    },
    /// A transaction in the mempool spends it.
    Spent {
        /// The transaction that spends it.
        by: Txid,
    },
    /// The output was never made, or a transaction in a block spends it. With [`Mempool::Ignore`],
    /// the output may also be in the mempool only.
    Missing,
}

/// The node's answer to a transaction that it did not refuse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broadcast {
    /// The node answered the transaction's id. The transaction may be time-locked.
    Accepted,
    /// The node knew the transaction before.
    AlreadyKnown,
}

/// The limits of a node on the transactions that it accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The fee that a transaction must pay to be mined, in satoshis per 1000 bytes
    /// (`minminingtxfee`).
    pub mining_fee_rate: u64,
    /// The largest transaction, in bytes (`maxtxsizepolicy`).
    pub max_transaction_size: u64,
    /// The largest script that only carries data, in bytes (`datacarriersize`; 0 without
    /// `datacarrier`).
    pub max_data_size: u64,
    /// The consolidation transactions that need no fee.
    pub consolidation: ConsolidationPolicy,
}

/// The limits on consolidation transactions, which a node accepts without a fee.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsolidationPolicy {
    /// How many coins a transaction must spend for each of its outputs; 0 if no transaction is free
    /// (`minconsolidationfactor`).
    pub min_factor: u64,
    /// The longest unlocking script of a coin, in bytes (`maxconsolidationinputscriptsize`).
    pub max_script_size: u64,
    /// How many confirmations each coin must have (`minconfconsolidationinput`).
    pub min_confirmations: u32,
}

/// An unspent output of an address that the node's wallet watches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coin {
    /// The outpoint of the output.
    pub outpoint: OutPoint,
    /// The output.
    pub output: TxOut,
    /// The number of confirmations; 0 in the mempool.
    pub confirmations: u32,
}

impl NodeRpc {
    /// A client of the node at `settings`, with a time-out of 10 seconds. The first call opens a
    /// connection.
    pub fn new(settings: NodeSettings) -> Self {
        Self { transport: Transport::new(&settings), timeout: TIMEOUT }
    }

    /// The same client with turns of its own. Other clients that share the connections cannot use
    /// up these turns.
    ///
    /// A node runs four calls at once and queues 16 more (`rpcthreads` and `rpcworkqueue`). Keep
    /// the turns of all clients of a node below that sum.
    pub fn with_turns(self, turns: usize) -> Self {
        Self { transport: self.transport.with_turns(turns), ..self }
    }

    /// The same client with another time-out. The time-out covers each call from its start until
    /// the whole answer has arrived. [`NodeRpc::generate`] has its own, longer time-out.
    pub fn with_timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Calls any method, once. The result is JSON exactly as the node wrote it.
    ///
    /// Fails with [`NodeError::Rejected`] if the node refuses.
    pub async fn call(&self, method: &str, params: &[Value]) -> Result<Box<RawValue>, NodeError> {
        self.transport.call(method, &params, self.timeout, Repeatable::No).await
    }

    /// The tip of the main chain (`getblockchaininfo`).
    pub async fn tip(&self) -> Result<ChainTip, NodeError> {
        let info: BlockchainInfo = self.ask("getblockchaininfo", &NONE).await?;
        Ok(ChainTip { height: info.blocks, hash: info.bestblockhash, median_time: info.mediantime })
    }

    /// Whether the node has the blocks of all headers that it knows (`getblockchaininfo`).
    pub async fn has_all_blocks(&self) -> Result<bool, NodeError> {
        let SyncInfo { blocks, headers } = self.ask("getblockchaininfo", &NONE).await?;
        Ok(blocks == headers)
    }

    /// The output at `outpoint`, or `None` if it is spent or was never made (`gettxout`).
    pub async fn unspent_output(
        &self,
        outpoint: &OutPoint,
        mempool: Mempool,
    ) -> Result<Option<UnspentOutput>, NodeError> {
        let OutPoint { txid, vout } = outpoint;
        let params = (txid.to_string(), index(*vout), mempool == Mempool::Include);
        let found: Option<TxOutInfo> = self.ask("gettxout", &params).await?;
        Ok(found.map(|TxOutInfo { confirmations, value, script }| UnspentOutput {
            output: TxOut { satoshis: value.0, locking_script: script.hex },
            confirmations,
        }))
    }

    /// The states of the outputs at `outpoints`, in the same order, a thousand in each call
    /// (`gettxouts`). An empty list makes no call.
    ///
    /// The node does not examine all outputs at the same moment: a change in the meantime may show
    /// in some of them only.
    pub async fn outputs(
        &self,
        outpoints: &[OutPoint],
        mempool: Mempool,
    ) -> Result<Vec<OutputState>, NodeError> {
        let mut states = Vec::with_capacity(outpoints.len());
        for outpoints in outpoints.chunks(OUTPUTS_AT_ONCE) {
            states.extend(self.outputs_at_once(outpoints, mempool).await?);
        }
        Ok(states)
    }

    async fn outputs_at_once(
        &self,
        outpoints: &[OutPoint],
        mempool: Mempool,
    ) -> Result<Vec<OutputState>, NodeError> {
        let method = "gettxouts";
        let names: Vec<_> = outpoints.iter().map(Named).collect();
        // Scripts are not requested: they can be large, and strangers choose the outputs.
        let members = ["confirmations", "value"];
        let TxOuts { txouts } =
            self.ask(method, &(names, members, mempool == Mempool::Include)).await?;
        if txouts.len() != outpoints.len() {
            let reason = format!("{} outputs instead of {}", txouts.len(), outpoints.len());
            return Err(NodeError::unexpected(method, reason));
        }
        let state = |item| {
            output_state(item).ok_or_else(|| {
                NodeError::unexpected(method, "an output has no known state".to_owned())
            })
        };
        txouts.into_iter().map(state).collect()
    }

    /// The transaction `txid` from the mempool or a block, or `None` if the node does not know it
    /// (`getrawtransaction`). A node without `txindex=1` knows few mined transactions. The block
    /// may be off the main chain; [`NodeRpc::transaction_place`] tells.
    pub async fn transaction(&self, txid: &Txid) -> Result<Option<Transaction>, NodeError> {
        let method = "getrawtransaction";
        let hex: String = match self.ask(method, &(txid.to_string(), false)).await {
            Err(NodeError::Rejected { code: code::NOT_FOUND, .. }) => return Ok(None),
            result => result?,
        };
        let transaction = Transaction::from_hex(&hex)
            .map_err(|error| NodeError::unexpected(method, error.to_string()))?;
        same_txid(method, &transaction.txid(), txid)?;
        Ok(Some(transaction))
    }

    /// Sends the node a transaction to relay (`sendrawtransaction`). Success does not prove that
    /// the mempool has it: see [`NodeRpc::submit_transaction`].
    ///
    /// Fails with [`NodeError::Rejected`] if the node refuses the transaction. After
    /// [`NodeError::Unreachable`], the node may have it nevertheless. Code -25 and a message that
    /// starts with `258:` do not prove that an earlier sent transaction is unknown: the node also
    /// answers so for a mined transaction whose outputs are all spent.
    pub async fn send_transaction(&self, tx: &Transaction) -> Result<Broadcast, NodeError> {
        let method = "sendrawtransaction";
        let txid: Txid = match self.ask(method, &[tx.to_hex()]).await {
            Err(error) if is_known(&error) => return Ok(Broadcast::AlreadyKnown),
            result => result?,
        };
        same_txid(method, &txid, &tx.txid())?;
        Ok(Broadcast::Accepted)
    }

    /// Makes the node's wallet watch `address` from now on (`importaddress`). The wallet does not
    /// search the chain for earlier payments. The call can be repeated, and does no harm for the
    /// wallet's own addresses.
    ///
    /// Fails with [`NodeError::Rejected`] if the address is of another network or the node runs
    /// without a wallet.
    pub async fn import_address(&self, address: &Address) -> Result<(), NodeError> {
        const OWN: &str = "already contains the private key";
        let params = (address.to_string(), "", false);
        match self.ask::<()>("importaddress", &params).await {
            Err(NodeError::Rejected { code: code::WALLET, message, .. })
                if message.contains(OWN) =>
            {
                Ok(())
            }
            result => result,
        }
    }

    /// The unspent outputs of an address that the node's wallet owns or watches, including those in
    /// the mempool (`listunspent`).
    ///
    /// Fails with [`NodeError::Rejected`] if the address is of another network or the node runs
    /// without a wallet.
    pub async fn coins_of(&self, address: &Address) -> Result<Vec<Coin>, NodeError> {
        let params = (0, 9_999_999, [address.to_string()]);
        let unspent: Vec<Unspent> = self.ask("listunspent", &params).await?;
        let coin = |Unspent { txid, vout, amount, script, confirmations }| Coin {
            outpoint: OutPoint { txid, vout },
            output: TxOut { satoshis: amount.0, locking_script: script },
            confirmations,
        };
        Ok(unspent.into_iter().map(coin).collect())
    }

    /// The amount that the node's wallet can spend, in satoshis (`getbalance`).
    ///
    /// Fails with [`NodeError::Rejected`] if the node runs without a wallet.
    pub async fn wallet_balance(&self) -> Result<u64, NodeError> {
        let Amount(satoshis) = self.ask("getbalance", &NONE).await?;
        Ok(satoshis)
    }

    /// Pays `satoshis` from the node's wallet (`sendtoaddress`).
    ///
    /// Fails with [`NodeError::Rejected`] if the wallet has too little, is locked or absent. After
    /// [`NodeError::Unreachable`], the wallet may have paid nevertheless.
    pub async fn send_to_address(
        &self,
        address: &Address,
        satoshis: u64,
    ) -> Result<Txid, NodeError> {
        // A node also accepts an amount as a string, which no JSON writer rounds.
        let params = (address.to_string(), Amount(satoshis).format());
        let method = "sendtoaddress";
        let result = self.transport.call(method, &params, self.timeout, Repeatable::No).await?;
        read(method, &result)
    }

    /// Mines `blocks` blocks that pay the node's wallet, and answers their hashes (`generate`). The
    /// call is meant for private networks. The node may take ten minutes.
    ///
    /// Fails with [`NodeError::Rejected`] if the node runs without a wallet.
    pub async fn generate(&self, blocks: u32) -> Result<Vec<BlockHash>, NodeError> {
        let method = "generate";
        let result =
            self.transport.call(method, &[blocks], GENERATE_TIMEOUT, Repeatable::No).await?;
        let hashes: Vec<BlockHash> = read(method, &result)?;
        if hashes.len() != blocks as usize {
            let reason = format!("{} blocks instead of {blocks}", hashes.len());
            return Err(NodeError::unexpected(method, reason));
        }
        Ok(hashes)
    }

    /// The limits on the transactions that the node accepts (`getsettings`).
    pub async fn policy(&self) -> Result<Policy, NodeError> {
        let settings: Settings = self.ask("getsettings", &NONE).await?;
        Ok(Policy {
            mining_fee_rate: settings.minminingtxfee.0,
            max_transaction_size: settings.maxtxsizepolicy,
            max_data_size: if settings.datacarrier { settings.datacarriersize } else { 0 },
            consolidation: ConsolidationPolicy {
                min_factor: settings.minconsolidationfactor,
                max_script_size: settings.maxconsolidationinputscriptsize,
                min_confirmations: settings.minconfconsolidationinput,
            },
        })
    }

    /// Makes a call that may safely be made twice.
    async fn ask<T: DeserializeOwned>(
        &self,
        method: &str,
        params: &impl Serialize,
    ) -> Result<T, NodeError> {
        let result = self.transport.call(method, params, self.timeout, Repeatable::Yes).await?;
        read(method, &result)
    }
}

/// An outpoint as `gettxouts` names it.
struct Named<'a>(&'a OutPoint);

impl Serialize for Named<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut named = serializer.serialize_struct("Named", 2)?;
        named.serialize_field("txid", &self.0.txid.to_string())?;
        named.serialize_field("n", &index(self.0.vout))?;
        named.end()
    }
}

/// Limits the index of an output to the largest integer that a node accepts. No transaction has an
/// output with that index. A larger integer would make the node refuse the whole call.
fn index(vout: u32) -> u32 {
    vout.min(i32::MAX as u32)
}

/// The state that an item of `gettxouts` tells, or `None` if its members contradict each other.
fn output_state(item: TxOutItem) -> Option<OutputState> {
    let TxOutItem { confirmations, value, error, spender } = item;
    match (error.as_deref(), spender) {
        (None, None) => {
            let (Amount(satoshis), confirmations) = (value?, confirmations?);
            Some(OutputState::Unspent { satoshis, confirmations })
        }
        (Some("spent"), Some(spender)) => Some(OutputState::Spent { by: spender.txid }),
        (Some("missing"), None) => Some(OutputState::Missing),
        _ => None,
    }
}

/// Whether a refusal says that the node knew the transaction before.
fn is_known(error: &NodeError) -> bool {
    match error {
        NodeError::Rejected { code: code::ALREADY_KNOWN, .. } => true,
        NodeError::Rejected { code: code::REFUSED, message, .. } => message.starts_with("257:"),
        _ => false,
    }
}

fn same_txid(method: &str, answered: &Txid, asked: &Txid) -> Result<(), NodeError> {
    if answered == asked {
        return Ok(());
    }
    let reason = format!("the answer is about transaction {answered}, not {asked}");
    Err(NodeError::unexpected(method, reason))
}
