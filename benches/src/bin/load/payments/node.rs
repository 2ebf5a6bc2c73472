use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bsv_tx::{BlockHash, BlockHeader, MerkleRoot, Transaction};
use bytes::Bytes;
use serde_json::Value;
use tokio::time::sleep;

use crate::rpc::{
    self, Call, MEMPOOL_ENTRY, NOT_FOUND, SETTINGS, chain_info, header_info, transaction_info,
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
        merkle_root: MerkleRoot::from_bytes([0x22; 32]),
        time: TIME,
        bits: 0x207f_ffff,
        nonce: height,
    }
}

type Flags = (Arc<AtomicBool>, Arc<AtomicBool>);

async fn answer(body: &[u8], flags: &Flags) -> String {
    if body.starts_with(b"[") {
        let calls: Vec<Call<'_>> = serde_json::from_slice(body).unwrap();
        let mut answers = Vec::with_capacity(calls.len());
        for call in &calls {
            answers.push(answer_call(call, flags).await);
        }
        return format!("[{}]", answers.join(","));
    }
    answer_call(&serde_json::from_slice(body).unwrap(), flags).await
}

async fn answer_call(call: &Call<'_>, (hanging, let_go): &Flags) -> String {
    let (id, params) = (call.id.get(), call.params.get());
    let result = match call.method.as_str() {
        "gettxouts" => {
            let (outpoints, ..): (Vec<BTreeMap<String, Value>>, Value, bool) =
                serde_json::from_str(params).unwrap();
            let item = r#"{"confirmations":1,"value":1.00000000,"scriptPubKey":"51"}"#;
            format!(r#"{{"txouts":[{}]}}"#, vec![item; outpoints.len()].join(","))
        }
        "sendrawtransaction" => {
            let [hex]: [String; 1] = serde_json::from_str(params).unwrap();
            let transaction = Transaction::from_hex(&hex).unwrap();
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
        "getblockheader" => {
            let (hash, _): (String, bool) = serde_json::from_str(params).unwrap();
            let is_it = |height: &u32| header(*height).block_hash().to_string() == hash;
            let height = [FILLED_HEIGHT, TIP_HEIGHT].into_iter().find(is_it).unwrap();
            header_info(height, TIP_HEIGHT, &header(height))
        }
        "getmerkleproof2" => {
            return format!(r#"{{"result":null,"error":{NOT_FOUND},"id":{id}}}"#);
        }
        "getrawtransaction" => {
            let (txid, _): (String, bool) = serde_json::from_str(params).unwrap();
            match transaction_info(&txid) {
                Some(info) => info,
                None => return format!(r#"{{"result":null,"error":{NOT_FOUND},"id":{id}}}"#),
            }
        }
        method => panic!("the wallet does not need {method} here"),
    };
    format!(r#"{{"result":{result},"error":null,"id":{id}}}"#)
}
