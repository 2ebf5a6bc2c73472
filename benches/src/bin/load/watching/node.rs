//! A stand-in for a node whose chain grows.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use bsv_tx::{BlockHash, BlockHeader};
use bytes::buf::Chain;
use bytes::{Buf, Bytes};
use serde_json::Value;

use super::traffic::Contents;
use crate::rpc::{
    self, Call, Fault, MEMPOOL_ENTRY, SETTINGS, chain_info, header_info, transaction_info,
};

/// A stand-in that has blocks, and that reports every transaction as in the mempool.
pub(super) struct ChainNode {
    pub(super) settings: Value,
    address: String,
    state: Arc<State>,
}

struct State {
    /// The address at which transactions are published.
    feed: String,
    blocks: Mutex<Vec<Block>>,
    /// When somebody first asked for a block since the last blocks were mined.
    first_read: Mutex<Option<Instant>>,
    /// Whether somebody asked for the mempool. A wallet does so once it has loaded the watched
    /// scripts.
    is_mempool_read: AtomicBool,
}

#[derive(Clone)]
struct Block {
    header: BlockHeader,
    contents: Contents,
}

/// The time in all blocks.
const TIME: u32 = 1_700_000_000;

impl ChainNode {
    /// Starts a stand-in with a single block. It names `feed` as the address where transactions are
    /// published.
    pub(super) fn start(feed: &str, first: Contents) -> Self {
        let state = Arc::new(State {
            feed: feed.to_owned(),
            blocks: Mutex::default(),
            first_read: Mutex::default(),
            is_mempool_read: AtomicBool::new(false),
        });
        state.mine([first]);
        let answering = Arc::clone(&state);
        let settings = rpc::start(move |body: Bytes| {
            let call: Call<'_> = serde_json::from_slice(&body).expect("the wallet sends a call");
            let answer = answering.answer(&call).unwrap_or_else(|fault| text(call.fail(fault)));
            std::future::ready(answer)
        });
        let address = format!("127.0.0.1:{}", settings["rpcPort"]);
        Self { settings, address, state }
    }

    /// Host and port.
    pub(super) fn address(&self) -> &str {
        &self.address
    }

    /// Mines a block for each of these contents.
    pub(super) fn mine(&self, contents: impl IntoIterator<Item = Contents>) {
        self.state.mine(contents);
    }

    /// When somebody first asked for a block since the last blocks were mined.
    pub(super) fn first_read(&self) -> Option<Instant> {
        *self.state.first_read.lock().unwrap()
    }

    /// The hashes of the last blocks, up to so many.
    pub(super) fn last_blocks(&self, count: usize) -> Vec<BlockHash> {
        let blocks = self.state.blocks.lock().unwrap();
        let first = blocks.len().saturating_sub(count);
        blocks[first..].iter().map(|block| block.header.block_hash()).collect()
    }

    /// Waits until the mempool is read once more.
    pub(super) fn wait_until_watched(&self) {
        while !self.state.is_mempool_read.swap(false, Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// An answer in three parts. The middle part is a block's contents, which are not copied.
type Answer = Chain<Chain<Bytes, Bytes>, Bytes>;

impl State {
    fn mine(&self, contents: impl IntoIterator<Item = Contents>) {
        let mut blocks = self.blocks.lock().unwrap();
        for contents in contents {
            let previous = blocks.last().map(|block| block.header.block_hash());
            let header = BlockHeader {
                version: 1,
                previous_block: previous.unwrap_or(BlockHash::from_bytes([0; 32])),
                merkle_root: contents.merkle_root,
                time: TIME,
                bits: 0x207f_ffff,
                nonce: 0,
            };
            blocks.push(Block { header, contents });
        }
        *self.first_read.lock().unwrap() = None;
    }

    fn answer(&self, call: &Call<'_>) -> Result<Answer, Fault> {
        let blocks = self.blocks.lock().unwrap();
        let tip_height = blocks.len() - 1;
        let height_of = |hash: &str| {
            let is_it = |block: &Block| block.header.block_hash().to_string() == hash;
            blocks.iter().rposition(is_it).ok_or_else(|| call.fault())
        };
        let result = match call.method.as_str() {
            "getblock" => {
                self.first_read.lock().unwrap().get_or_insert_with(Instant::now);
                let (hash, _): (String, u8) = call.params()?;
                return Ok(whole_block(&blocks[height_of(&hash)?], call.id.get()));
            }
            "getblockhash" => {
                let [height]: [usize; 1] = call.params()?;
                let block = blocks.get(height).ok_or_else(|| call.fault())?;
                format!("\"{}\"", block.header.block_hash())
            }
            "getblockheader" => {
                let (hash, _): (String, bool) = call.params()?;
                let height = height_of(&hash)?;
                header_info(height as u32, tip_height as u32, &blocks[height].header)
            }
            "getblockchaininfo" => chain_info(tip_height as u32, &blocks[tip_height].header),
            "getrawmempool" => {
                self.is_mempool_read.store(true, Ordering::Relaxed);
                "[]".to_owned()
            }
            "activezmqnotifications" => {
                format!(r#"[{{"notification":"pubrawtx2","address":"{}"}}]"#, self.feed)
            }
            "getmempoolentry" => MEMPOOL_ENTRY.to_owned(),
            "getsettings" => SETTINGS.to_owned(),
            "getmerkleproof2" => return Ok(text(call.not_found())),
            "getrawtransaction" => {
                let (txid, _): (String, bool) = call.params()?;
                match transaction_info(&txid) {
                    Some(info) => info,
                    None => return Ok(text(call.not_found())),
                }
            }
            _ => return Err(call.fault()),
        };
        Ok(text(call.answer(&result)))
    }
}

fn text(answer: String) -> Answer {
    Bytes::from(answer).chain(Bytes::new()).chain(Bytes::new())
}

fn whole_block(Block { header, contents }: &Block, id: &str) -> Answer {
    let begin = format!(r#"{{"result":"{}"#, hex::encode(header.to_bytes()));
    let end = format!(r#"","error":null,"id":{id}}}"#);
    Bytes::from(begin).chain(contents.hex.clone()).chain(Bytes::from(end))
}
