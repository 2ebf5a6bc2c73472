use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::Duration;

use bsv_tx::{
    BlockHash, BlockHeader, MerkleRoot, OutPoint, Script, Transaction, TxIn, TxOut, Txid,
};
use bytes::Bytes;
use serde_json::Value;
use tokio::time::sleep;

use crate::rpc::{
    self, Call, Fault, MEMPOOL_ENTRY, SETTINGS, chain_info, header_info, transaction_info,
};

/// To a transaction of this lock time, the stand-in does not answer until [`YesNode::let_go`].
pub(super) const HANGING: u32 = 7;

/// The height of the chain's last block.
const TIP_HEIGHT: u32 = 10_000;

/// Stands in for a node that accepts every transaction at once, so that a real node's work is not
/// part of what is measured.
#[derive(Debug)]
pub(crate) struct YesNode {
    pub(crate) settings: Value,
    hanging: Arc<AtomicBool>,
    let_go: Arc<AtomicBool>,
}

impl YesNode {
    /// Starts the stand-in on a thread of this process.
    pub(crate) fn start() -> Self {
        let [hanging, let_go] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let flags = (Arc::clone(&hanging), Arc::clone(&let_go));
        let settings = rpc::start(move |body: Bytes| {
            let flags = flags.clone();
            async move { Bytes::from(answer(&body, &flags).await) }
        });
        Self { settings, hanging, let_go }
    }

    pub(super) fn wait_until_hanging(&self) {
        while !self.hanging.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
    }

    pub(super) fn let_go(&self) {
        self.let_go.store(true, Ordering::Relaxed);
    }
}

/// The time in all blocks.
const TIME: u32 = 1_700_000_000;
/// The height of the block that holds the payments of the paid invoices.
pub(super) const FILLED_HEIGHT: u32 = 1;

/// The header of the block at a height. It is made up when somebody asks for it.
pub(super) fn header(height: u32) -> BlockHeader {
    BlockHeader {
        version: 1,
        previous_block: BlockHash::from_bytes([0x11; 32]),
        merkle_root: MerkleRoot::from_bytes(*coinbase().txid().as_bytes()),
        time: TIME,
        bits: 0x207f_ffff,
        nonce: height,
    }
}

/// The only transaction of every block.
fn coinbase() -> Transaction {
    let previous_output = OutPoint { txid: Txid::from_bytes([0; 32]), vout: u32::MAX };
    let unlocking_script = Script::from_bytes(vec![0x51; 4]);
    let input = TxIn { previous_output, unlocking_script, sequence: u32::MAX };
    let output = TxOut { satoshis: 0, locking_script: Script::from_bytes(vec![0x51]) };
    Transaction { version: 1, inputs: vec![input], outputs: vec![output], lock_time: 0 }
}

/// The heights of the blocks by their hashes.
static HEIGHTS: LazyLock<HashMap<String, u32>> = LazyLock::new(|| {
    (0..=TIP_HEIGHT).map(|height| (header(height).block_hash().to_string(), height)).collect()
});

type Flags = (Arc<AtomicBool>, Arc<AtomicBool>);

async fn answer(body: &[u8], flags: &Flags) -> String {
    if body.starts_with(b"[") {
        let calls: Vec<Call<'_>> = serde_json::from_slice(body).expect("the wallet sends calls");
        let mut answers = Vec::with_capacity(calls.len());
        for call in &calls {
            answers.push(answer_or_fail(call, flags).await);
        }
        return format!("[{}]", answers.join(","));
    }
    answer_or_fail(&serde_json::from_slice(body).expect("the wallet sends a call"), flags).await
}

async fn answer_or_fail(call: &Call<'_>, flags: &Flags) -> String {
    answer_call(call, flags).await.unwrap_or_else(|fault| call.fail(fault))
}

async fn answer_call(call: &Call<'_>, (hanging, let_go): &Flags) -> Result<String, Fault> {
    let result = match call.method.as_str() {
        "gettxouts" => {
            let (outpoints, ..): (Vec<BTreeMap<String, Value>>, Value, bool) = call.params()?;
            let item = r#"{"confirmations":1,"value":1.00000000,"scriptPubKey":"51"}"#;
            format!(r#"{{"txouts":[{}]}}"#, vec![item; outpoints.len()].join(","))
        }
        "sendrawtransaction" => {
            let [hex]: [String; 1] = call.params()?;
            let transaction = Transaction::from_hex(&hex).map_err(|_| call.fault())?;
            while transaction.lock_time == HANGING && !let_go.load(Ordering::Relaxed) {
                hanging.store(true, Ordering::Relaxed);
                sleep(Duration::from_millis(5)).await;
            }
            format!("\"{}\"", transaction.txid())
        }
        "getmempoolentry" => MEMPOOL_ENTRY.to_owned(),
        "getsettings" => SETTINGS.to_owned(),
        "activezmqnotifications" | "getrawmempool" => "[]".to_owned(),
        "getblockchaininfo" => chain_info(TIP_HEIGHT, &header(TIP_HEIGHT)),
        "getblockhash" => {
            let [height]: [u32; 1] = call.params()?;
            format!("\"{}\"", header(height).block_hash())
        }
        "getblockheader" => {
            let (hash, _): (String, bool) = call.params()?;
            let height = *HEIGHTS.get(&hash).ok_or_else(|| call.fault())?;
            header_info(height, TIP_HEIGHT, &header(height))
        }
        "getblock" => {
            let (hash, _): (String, u8) = call.params()?;
            let header = header(*HEIGHTS.get(&hash).ok_or_else(|| call.fault())?);
            format!(
                "\"{}01{}\"",
                hex::encode(header.to_bytes()),
                hex::encode(coinbase().to_bytes())
            )
        }
        "getmerkleproof2" => return Ok(call.not_found()),
        "getrawtransaction" => {
            let (txid, _): (String, bool) = call.params()?;
            match transaction_info(&txid) {
                Some(info) => info,
                None => return Ok(call.not_found()),
            }
        }
        _ => return Err(call.fault()),
    };
    Ok(call.answer(&result))
}
