use bsv_tx::{Transaction, Txid};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

use super::{NodeRpc, code, is_known, same_txid};
use crate::amount::Amount;
use crate::answers::{MempoolInfo, read};
use crate::error::NodeError;
use crate::transport::Repeatable;

pub(super) const ENTRY: &str = "getmempoolentry";

/// How many entries one request asks for. A node needs about 5 milliseconds for them; then other
/// calls have their turn.
const ENTRIES_AT_ONCE: usize = 100;

/// A parameter that is written only when the call has its turn.
enum Param<'a> {
    Txid(&'a Txid),
    Transaction(&'a Transaction),
}

impl Serialize for Param<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Txid(txid) => serializer.collect_str(txid),
            Self::Transaction(transaction) => serializer.serialize_str(&transaction.to_hex()),
        }
    }
}

/// A transaction in the node's final mempool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MempoolEntry {
    /// The fee, in satoshis.
    pub fee: u64,
    /// The length of the encoded transaction, in bytes.
    pub size: u64,
    /// The transactions of the mempool whose outputs it spends (`depends`), without duplicates.
    pub parents: Vec<Txid>,
}

/// Where a transaction is after it was sent and not refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Submitted {
    /// In the node's final mempool.
    InMempool(MempoolEntry),
    /// The node knows the transaction, but its final mempool does not show it. The transaction may
    /// be in a block, which [`NodeRpc::transaction_place`] tells. Otherwise it is time-locked, or
    /// still being validated.
    NotShown,
}

impl NodeRpc {
    /// The transactions of the final mempool (`getrawmempool`).
    pub async fn mempool(&self) -> Result<Vec<Txid>, NodeError> {
        self.ask("getrawmempool", &super::NONE).await
    }

    /// The entry of the transaction `txid` in the final mempool, or `None` if it is not there
    /// (`getmempoolentry`).
    pub async fn mempool_entry(&self, txid: &Txid) -> Result<Option<MempoolEntry>, NodeError> {
        let params = [txid.to_string()];
        let call = self.transport.call(ENTRY, &params, self.timeout, Repeatable::Yes);
        read_entry(call.await)
    }

    /// The entries of several transactions in the final mempool, in the same order, a hundred in
    /// each request (`getmempoolentry`). An empty list makes no request.
    ///
    /// The node does not read all entries at the same moment.
    pub async fn mempool_entries(
        &self,
        txids: &[Txid],
    ) -> Result<Vec<Option<MempoolEntry>>, NodeError> {
        let mut entries = Vec::with_capacity(txids.len());
        for txids in txids.chunks(ENTRIES_AT_ONCE) {
            let calls: Vec<_> = txids.iter().map(|txid| (ENTRY, [Param::Txid(txid)])).collect();
            let answers = self.transport.batch(&calls, self.timeout, Repeatable::Yes).await?;
            for answer in answers {
                entries.push(read_entry(answer)?);
            }
        }
        Ok(entries)
    }

    /// All unconfirmed ancestors of the transaction `txid` in the final mempool
    /// (`getmempoolancestors`). None if it is not there.
    pub async fn mempool_ancestors(&self, txid: &Txid) -> Result<Vec<Txid>, NodeError> {
        let params = (txid.to_string(), false);
        match self.ask("getmempoolancestors", &params).await {
            Err(NodeError::Rejected { code: code::NOT_FOUND, .. }) => Ok(Vec::new()),
            result => result,
        }
    }

    /// Sends the node a transaction to relay (`sendrawtransaction`), and asks in the same request
    /// whether the final mempool shows it (`getmempoolentry`). If the mempool shows it, the answer
    /// to the first call does not matter.
    ///
    /// The answer to the first call alone proves little. The node also answers the transaction's
    /// id, code -27, or a message that starts with `257:` for a time-locked transaction, and code
    /// 257 for one that waits for its validation (node 1.0.13).
    ///
    /// Fails with [`NodeError::Rejected`] if the node refuses the transaction. After
    /// [`NodeError::Unreachable`], the node may have it nevertheless. Code -25 and a message that
    /// starts with `258:` do not prove that an earlier sent transaction is unknown: the node also
    /// answers so for a mined transaction whose outputs are all spent.
    pub async fn submit_transaction(&self, tx: &Transaction) -> Result<Submitted, NodeError> {
        let method = "sendrawtransaction";
        let txid = tx.txid();
        let calls = [(method, [Param::Transaction(tx)]), (ENTRY, [Param::Txid(&txid)])];
        let answers = self.transport.batch(&calls, self.timeout, Repeatable::Yes).await?;
        let [sent, shown] = answers.try_into().expect("each call has an answer");
        if let Ok(result) = &sent {
            let answered = read(method, result)?;
            same_txid(method, &answered, &txid)?;
        }
        match (sent, read_entry(shown)) {
            (_, Ok(Some(entry))) => Ok(Submitted::InMempool(entry)),
            (Err(error), _) if !is_known(&error) => Err(error),
            (_, shown) => shown.map(|_| Submitted::NotShown),
        }
    }
}

impl From<MempoolInfo> for MempoolEntry {
    fn from(MempoolInfo { fee: Amount(fee), size, depends }: MempoolInfo) -> Self {
        Self { fee, size, parents: depends }
    }
}

pub(super) fn read_entry(
    answer: Result<Box<RawValue>, NodeError>,
) -> Result<Option<MempoolEntry>, NodeError> {
    let result = match answer {
        Err(NodeError::Rejected { code: code::NOT_FOUND, .. }) => return Ok(None),
        result => result?,
    };
    let info: MempoolInfo = read(ENTRY, &result)?;
    Ok(Some(info.into()))
}
