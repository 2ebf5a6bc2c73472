use std::collections::VecDeque;

use bsv_tx::{
    BlockHash, BlockHeader, DecodeError, MerkleBranch, MerkleTree, Reader, TransactionView, Txid,
    sha256d,
};
use tokio::task::{JoinHandle, spawn_blocking};

use super::NodeRpc;
use crate::error::NodeError;
use crate::transport::{AnswerStream, MOST_ANSWER_BYTES};

const METHOD: &str = "getblock";

/// A block that is read from a node transaction by transaction. A block of any size takes little
/// memory: that of the largest transaction, and of its Merkle tree.
#[derive(Debug)]
pub struct BlockStream<'a> {
    /// The header, which has the requested hash.
    pub header: BlockHeader,
    source: Source<'a>,
    /// The number of transactions that are still to come.
    left: u64,
    /// The ids of the transactions that were read.
    txids: Txids,
    /// The block's tree, once all transactions were read.
    tree: Option<MerkleTree>,
}

/// The largest accepted transaction, in bytes, and the limit on how much is read ahead.
const MOST_TRANSACTION_BYTES: usize = 1 << 30;

impl NodeRpc {
    /// Starts to read a block (`getblock`). Answers `None` if the node does not have it.
    pub async fn block(&self, hash: &BlockHash) -> Result<Option<BlockStream<'_>>, NodeError> {
        let params = (hash.to_string(), 0);
        let answer = match self.transport.open(METHOD, &params, self.timeout).await {
            Err(NodeError::Rejected { code: super::code::NOT_FOUND, .. }) => return Ok(None),
            answer => answer?,
        };
        let mut source = Source { answer, bytes: Vec::new(), begin: 0, decoded: 0 };
        let read = |reader: &mut Reader<'_>| Ok((BlockHeader::read(reader)?, reader.var_int()?));
        let ((header, left), _) = source.read(read).await?;
        if header.block_hash() != *hash {
            let reason = format!("the answer is block {}, not {hash}", header.block_hash());
            return Err(NodeError::unexpected(METHOD, reason));
        }
        Ok(Some(BlockStream { header, source, left, txids: Txids::default(), tree: None }))
    }

    /// Starts to read a block once more that was read to its end. Only the branches tell then
    /// whether a transaction is one of the block.
    pub async fn block_again(
        &self,
        read: BlockStream<'_>,
    ) -> Result<Option<BlockStream<'_>>, NodeError> {
        let BlockStream { header, tree, source, .. } = read;
        // The connection has one of few turns.
        drop(source);
        let again = self.block(&header.block_hash()).await?;
        Ok(again.map(|again| BlockStream { tree, ..again }))
    }
}

impl BlockStream<'_> {
    /// The next transaction. `None` after the last one proves that the transactions are those of
    /// the header, if this is the first reading of the block.
    pub async fn next(&mut self) -> Result<Option<TransactionView<'_>>, NodeError> {
        if self.left == 0 {
            let is_of_header = self.finish_tree().await;
            if !self.source.is_at_end().await? || !is_of_header {
                let reason = "the block's transactions do not match its header".to_owned();
                return Err(NodeError::unexpected(METHOD, reason));
            }
            return Ok(None);
        }
        let skip = |reader: &mut Reader<'_>| TransactionView::read(reader).map(drop);
        let ((), bytes) = self.source.read(skip).await?;
        self.left -= 1;
        if self.tree.is_none() {
            self.txids.push(bytes).await;
        }
        let view = TransactionView::from_bytes(bytes);
        view.map(Some).map_err(|error| NodeError::unexpected(METHOD, error.to_string()))
    }

    /// Takes the bytes of the transaction that was read last. A large one is not copied.
    pub fn take(&mut self) -> Vec<u8> {
        self.source.take()
    }

    /// The branch of the transaction at `position`, once all transactions were read. `None` if the
    /// block has no transaction with this id there.
    pub fn branch(&self, position: usize, txid: &Txid) -> Option<MerkleBranch> {
        let branch = self.tree.as_ref()?.branch(position)?;
        (branch.root(txid) == Some(self.header.merkle_root)).then_some(branch)
    }

    /// Makes the tree of all transactions, unless an earlier reading has made it. Answers whether
    /// the header is that of the tree.
    async fn finish_tree(&mut self) -> bool {
        if self.tree.is_none() {
            self.txids.finish().await;
            let txids = std::mem::take(&mut self.txids.ready);
            self.tree = Some(MerkleTree::of(&txids));
        }
        self.tree.as_ref().and_then(MerkleTree::root) == Some(self.header.merkle_root)
    }
}

/// Computes the ids of the transactions. This work takes about as long as all other work on a
/// block, and runs meanwhile on other threads.
#[derive(Debug, Default)]
struct Txids {
    ready: Vec<Txid>,
    /// The running computations, the oldest first.
    running: VecDeque<JoinHandle<Vec<Txid>>>,
    next: Batch,
}

/// Encoded transactions in one buffer, with the end of each.
#[derive(Debug, Default)]
struct Batch {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

/// The size, in bytes, at which a batch is hashed.
const BATCH_BYTES: usize = 1 << 20;
/// How many batches are hashed at once, at most.
const MOST_BATCHES: usize = 2;

impl Txids {
    async fn push(&mut self, transaction: &[u8]) {
        // A large transaction is hashed without a copy.
        if transaction.len() > BATCH_BYTES {
            self.finish().await;
            self.ready.push(Txid::from_bytes(sha256d(transaction)));
            return;
        }
        self.next.bytes.extend_from_slice(transaction);
        self.next.ends.push(self.next.bytes.len());
        if self.next.bytes.len() < BATCH_BYTES {
            return;
        }
        if self.running.len() >= MOST_BATCHES {
            self.join_oldest().await;
        }
        let batch = std::mem::take(&mut self.next);
        self.running.push_back(spawn_blocking(move || batch.hash()));
    }

    async fn join_oldest(&mut self) {
        let Some(oldest) = self.running.pop_front() else { return };
        self.ready.extend(oldest.await.expect("hashing does not panic, and is not cancelled"));
    }

    /// Makes all ids ready, in the order of the block.
    async fn finish(&mut self) {
        while !self.running.is_empty() {
            self.join_oldest().await;
        }
        self.ready.extend(std::mem::take(&mut self.next).hash());
    }
}

impl Batch {
    fn hash(&self) -> Vec<Txid> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        let ranges = starts.zip(self.ends.iter().copied());
        ranges.map(|(start, end)| Txid::from_bytes(sha256d(&self.bytes[start..end]))).collect()
    }
}

/// The bytes of a block as they arrive.
#[derive(Debug)]
struct Source<'a> {
    answer: AnswerStream<'a>,
    /// The bytes that were read last.
    bytes: Vec<u8>,
    /// Where the value that was decoded last begins.
    begin: usize,
    /// The number of these bytes that are decoded.
    decoded: usize,
}

impl Source<'_> {
    async fn is_at_end(&mut self) -> Result<bool, NodeError> {
        let is_decoded = self.decoded == self.bytes.len();
        Ok(is_decoded && !self.answer.read_hex(&mut self.bytes).await?)
    }

    /// Takes the bytes of the value that was decoded last.
    fn take(&mut self) -> Vec<u8> {
        if self.decoded - self.begin <= BATCH_BYTES {
            return self.bytes[self.begin..self.decoded].to_vec();
        }
        let rest = self.bytes.split_off(self.decoded);
        let mut taken = std::mem::replace(&mut self.bytes, rest);
        taken.drain(..self.begin);
        taken.shrink_to_fit();
        (self.begin, self.decoded) = (0, 0);
        taken
    }

    /// Decodes the next value. Answers it with its bytes.
    async fn read<T>(
        &mut self,
        decode: impl Fn(&mut Reader<'_>) -> Result<T, DecodeError>,
    ) -> Result<(T, &[u8]), NodeError> {
        loop {
            let mut reader = Reader::new(&self.bytes[self.decoded..]);
            let missing = match decode(&mut reader) {
                Ok(value) => {
                    let end = self.bytes.len() - reader.remaining();
                    self.begin = std::mem::replace(&mut self.decoded, end);
                    return Ok((value, &self.bytes[self.begin..end]));
                }
                Err(DecodeError::UnexpectedEnd { missing }) => missing,
                Err(error) => return Err(NodeError::unexpected(METHOD, error.to_string())),
            };
            self.bytes.drain(..self.decoded);
            (self.begin, self.decoded) = (0, 0);
            // The announced length may be only a part of what is missing. So each attempt at least
            // doubles the buffer.
            let missing = usize::try_from(missing).unwrap_or(usize::MAX).max(self.bytes.len());
            let wanted = self.bytes.len().saturating_add(missing);
            if wanted > MOST_TRANSACTION_BYTES.max(MOST_ANSWER_BYTES) {
                let reason = format!("a transaction is longer than {MOST_TRANSACTION_BYTES} bytes");
                return Err(NodeError::unexpected(METHOD, reason));
            }
            let had = self.bytes.len();
            while self.bytes.len() < wanted && self.answer.read_hex(&mut self.bytes).await? {}
            if self.bytes.len() == had {
                let reason = "the block ends before its last transaction".to_owned();
                return Err(NodeError::unexpected(METHOD, reason));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn ids_come_in_the_order_of_the_block() {
        let large = vec![7; BATCH_BYTES + 1];
        let small = |n: u32| [&n.to_le_bytes()[..], &[0; 300]].concat();
        for lens in [0, 1, 5_000, 20_000] {
            let mut txids = Txids::default();
            let mut expected = Vec::new();
            for n in 0..lens {
                let transaction = if n == 9_000 { large.clone() } else { small(n) };
                expected.push(Txid::from_bytes(sha256d(&transaction)));
                txids.push(&transaction).await;
            }
            assert!(txids.running.len() <= MOST_BATCHES);
            txids.finish().await;
            assert_eq!(txids.ready, expected);
        }
    }
}
