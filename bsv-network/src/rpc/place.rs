use bsv_tx::{BlockHash, Txid};
use serde_json::value::RawValue;

use super::mempool::{ENTRY, read_entry};
use super::{NodeRpc, code, same_txid};
use crate::answers::{MerkleProof, TransactionInfo, read};
use crate::error::NodeError;
use crate::transport::Repeatable;

const PROOF: &str = "getmerkleproof2";

/// How many transactions one request asks for, with three calls each.
const PLACES_AT_ONCE: usize = 30;

/// How the node's message begins if it knows no block that holds a transaction.
const IN_NO_BLOCK: &str = "Transaction not yet in block";

/// Where the network has a transaction, as a node tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionPlace {
    /// Neither in the final mempool nor in the main chain. The transaction may be in a block off
    /// the main chain, or in the pool of time-locked transactions.
    Nowhere,
    /// In the final mempool, whose transactions can be mined at once.
    Mempool,
    /// In this block of the main chain.
    Block(BlockHash),
}

impl NodeRpc {
    /// Where the node has the transaction `txid` (`getmempoolentry`, `getmerkleproof2`). A node
    /// without `txindex=1` knows few mined transactions. The answers are short, however long the
    /// transaction is.
    ///
    /// A transaction that is not final yet is [`TransactionPlace::Nowhere`], although the node has
    /// it: node 1.0.13 does not look in the pool that `getrawnonfinalmempool` shows. The
    /// transaction stays in that pool for up to ten minutes after it has become final
    /// (`checknonfinalfreq`).
    pub async fn transaction_place(&self, txid: &Txid) -> Result<TransactionPlace, NodeError> {
        let places = self.transaction_places(std::slice::from_ref(txid)).await?;
        Ok(*places.first().expect("each transaction has a place"))
    }

    /// Where the node has several transactions, in the same order, many in each request. An empty
    /// list makes no request.
    pub async fn transaction_places(
        &self,
        txids: &[Txid],
    ) -> Result<Vec<TransactionPlace>, NodeError> {
        let mut places = Vec::with_capacity(txids.len());
        for txids in txids.chunks(PLACES_AT_ONCE) {
            let ids: Vec<_> = txids.iter().map(Txid::to_string).collect();
            let params: Vec<_> = ids.iter().map(|id| ([id.as_str()], ["", id.as_str()])).collect();
            // A transaction may leave the mempool or come back between two calls.
            let calls = params.iter().flat_map(|(alone, in_any_block)| {
                [(ENTRY, &alone[..]), (PROOF, &in_any_block[..]), (ENTRY, &alone[..])]
            });
            let calls: Vec<_> = calls.collect();
            let answers = self.transport.batch(&calls, self.timeout, Repeatable::Yes).await?;
            let mut answers = answers.into_iter();
            for txid in txids {
                let mut next = || answers.next().expect("each call has an answer");
                places.push(self.place_by([next(), next(), next()], txid).await?);
            }
        }
        Ok(places)
    }

    async fn place_by(
        &self,
        [before, proof, after]: [Result<Box<RawValue>, NodeError>; 3],
        txid: &Txid,
    ) -> Result<TransactionPlace, NodeError> {
        if read_entry(before)?.is_some() || read_entry(after)?.is_some() {
            return Ok(TransactionPlace::Mempool);
        }
        match proof {
            Err(NodeError::Rejected { code: code::NOT_FOUND, message, .. }) => {
                match message.starts_with(IN_NO_BLOCK) {
                    true => Ok(TransactionPlace::Nowhere),
                    false => self.place_without_proof(txid).await,
                }
            }
            proof => self.place_by_proof(txid, &proof?).await,
        }
    }

    async fn place_by_proof(
        &self,
        txid: &Txid,
        proof: &RawValue,
    ) -> Result<TransactionPlace, NodeError> {
        let MerkleProof { txid: answered, target: block, .. } = read(PROOF, proof)?;
        same_txid(PROOF, &answered, txid)?;
        if self.block_header(&block).await?.is_some_and(|it| it.in_main_chain) {
            return Ok(TransactionPlace::Block(block));
        }
        // The block may have left the main chain just now.
        Ok(match self.mempool_entry(txid).await? {
            Some(_) => TransactionPlace::Mempool,
            None => TransactionPlace::Nowhere,
        })
    }

    /// The place of a transaction that nodes give no proof for: it is alone in its block
    /// (`getrawtransaction`).
    async fn place_without_proof(&self, txid: &Txid) -> Result<TransactionPlace, NodeError> {
        let method = "getrawtransaction";
        let info: TransactionInfo = match self.ask(method, &(txid.to_string(), true)).await {
            Err(NodeError::Rejected { code: code::NOT_FOUND, .. }) => {
                return Ok(TransactionPlace::Nowhere);
            }
            result => result?,
        };
        same_txid(method, &info.txid, txid)?;
        Ok(match info.blockhash {
            None => TransactionPlace::Mempool,
            Some(block) if info.confirmations > 0 => TransactionPlace::Block(block),
            Some(_) => TransactionPlace::Nowhere,
        })
    }
}
