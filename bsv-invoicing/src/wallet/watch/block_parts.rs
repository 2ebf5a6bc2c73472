//! Reading a block in parts. It takes little memory, however much of the block concerns the wallet.
//!
//! Proofs exist only once a block was read to its end. What concerns the wallet is kept until then,
//! up to a limit. If there is more, only its positions are kept, and the block is read a second
//! time.

use std::collections::VecDeque;
use std::ops::Range;

use bsv_network::{BlockStream, NetworkSource};
use bsv_tx::{BlockHash, Txid};

use super::Search;
use super::filter::Filter;
use crate::error::Error;
use crate::model::transaction::{BlockPlace, EncodedTransaction, Proof};
use crate::wallet::sources::away;

/// How many bytes of memory are kept until the end of a block, at most.
const MOST_KEPT: usize = 32 << 20;
/// About how many bytes a short transaction takes besides its own.
const EACH: usize = 100;
/// A part ends after this many bytes or transactions.
const PART_BYTES: usize = 1 << 20;
const PART_LEN: usize = 1_000;

/// A transaction of a block that concerns the wallet.
pub(super) struct Found {
    pub(super) transaction: EncodedTransaction,
    pub(super) proof: Proof,
}

/// A block that is read in parts.
pub(super) struct BlockParts<'n> {
    source: &'n NetworkSource,
    block: Option<BlockStream<'n>>,
    place: BlockPlace,
    filter: &'n Filter,
    /// The position of the next transaction.
    position: usize,
    /// What concerns the wallet and is in no part yet.
    kept: VecDeque<Kept>,
    /// Its bytes, in one piece, which the system gets back at once.
    bytes: Vec<u8>,
    /// Set if there was too much to keep: the position of the first transaction that the
    /// search was not asked about.
    left_from: Option<usize>,
}

struct Kept {
    position: usize,
    txid: Txid,
    /// Where its bytes are, unless there was too much to keep.
    bytes: Range<usize>,
}

impl<'n> BlockParts<'n> {
    /// Reads a block to its end for the first time. The filter and the search say whether a
    /// transaction concerns the wallet. They are asked once about each transaction, in the order of
    /// the block.
    pub(super) async fn read(
        source: &'n NetworkSource,
        mut block: BlockStream<'n>,
        place: BlockPlace,
        filter: &'n Filter,
        search: &mut Search<'_>,
    ) -> Result<Self, Error> {
        let (mut kept, mut bytes) = (VecDeque::new(), Vec::new());
        let (mut position, mut left_from) = (0, None);
        while let Some(transaction) = block.next().await.map_err(away)? {
            if left_from.is_none()
                && let Some((txid, _)) = search.pick(filter, transaction)?
            {
                let begin = bytes.len();
                let end = begin + transaction.bytes().len();
                kept.push_back(Kept { position, txid, bytes: begin..end });
                if end + EACH * kept.len() > MOST_KEPT {
                    (left_from, bytes) = (Some(position + 1), Vec::new());
                } else {
                    if bytes.is_empty() {
                        // It does not grow, which would need both sizes at once.
                        bytes.reserve_exact(MOST_KEPT);
                    }
                    bytes.extend_from_slice(transaction.bytes());
                }
            }
            position += 1;
        }
        Ok(Self { source, block: Some(block), place, filter, position: 0, kept, bytes, left_from })
    }

    /// The next part, with proofs. Empty at the end of the block.
    pub(super) async fn next(&mut self, search: &mut Search<'_>) -> Result<Vec<Found>, Error> {
        let (mut part, mut bytes) = (Vec::new(), 0);
        while bytes < PART_BYTES && part.len() < PART_LEN {
            let found = match self.left_from {
                None => self.next_kept()?,
                Some(from) => self.read_again(from, search).await?,
            };
            let Some(found) = found else { break };
            bytes += found.transaction.bytes.len();
            part.push(found);
        }
        Ok(part)
    }

    fn next_kept(&mut self) -> Result<Option<Found>, Error> {
        let Some(kept) = self.kept.pop_front() else { return Ok(None) };
        let bytes = self.bytes[kept.bytes.clone()].to_vec();
        self.prove(kept, bytes).map(Some)
    }

    /// Reads the block a second time, up to the next transaction that concerns the wallet.
    async fn read_again(
        &mut self,
        from: usize,
        search: &mut Search<'_>,
    ) -> Result<Option<Found>, Error> {
        if self.position == 0 {
            self.begin_again().await?;
        }
        let hash = self.place.hash;
        let block = self.block.as_mut().ok_or_else(|| lost(hash))?;
        while let Some(transaction) = block.next().await.map_err(away)? {
            let position = self.position;
            self.position += 1;
            let is_it = |it: &mut Kept| it.position == position && it.txid == transaction.txid();
            let kept = match position < from {
                true => self.kept.pop_front_if(is_it),
                false => search.pick(self.filter, transaction)?.map(|(txid, _)| Kept {
                    position,
                    txid,
                    bytes: 0..0,
                }),
            };
            if let Some(kept) = kept {
                let bytes = block.take();
                return self.prove(kept, bytes).map(Some);
            }
        }
        self.left_from = None;
        // What is left was not in the block that the node gave.
        self.kept.is_empty().then_some(None).ok_or_else(|| lost(hash))
    }

    async fn begin_again(&mut self) -> Result<(), Error> {
        let hash = self.place.hash;
        let read = self.block.take().ok_or_else(|| lost(hash))?;
        self.block = self.source.block_again(read).await.map_err(away)?;
        Ok(())
    }

    fn prove(&self, kept: Kept, bytes: Vec<u8>) -> Result<Found, Error> {
        let Kept { position, txid, .. } = kept;
        let block = self.block.as_ref();
        let branch = block.and_then(|block| block.branch(position, &txid));
        let branch = branch.ok_or_else(|| lost(self.place.hash))?;
        let transaction = EncodedTransaction { txid, bytes };
        Ok(Found { transaction, proof: Proof { block: self.place, branch } })
    }
}

/// The node answers something else when it is asked for a block again.
fn lost(hash: BlockHash) -> Error {
    Error::NetworkAway(format!("the node did not give block {hash} a second time"))
}
