use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use bsv_tx::{BlockHash, BlockHeader, MerkleRoot, Transaction};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::sleep;

/// A transaction of this lock time is not answered until told.
pub(super) const HANGING: u32 = 7;

/// How many blocks the chain has.
const TIP_HEIGHT: u32 = 10_000;

/// Stands in for a node that takes every transaction at once, so that what is measured is not a node.
#[derive(Debug)]
pub(crate) struct YesNode {
    pub(crate) settings: Value,
    hanging: Arc<AtomicBool>,
    let_go: Arc<AtomicBool>,
}

#[derive(Deserialize)]
struct Call<'a> {
    #[serde(borrow)]
    id: &'a RawValue,
    method: String,
    #[serde(borrow)]
    params: &'a RawValue,
}

impl YesNode {
    /// Starts one on a thread of this process.
    pub(crate) fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let [hanging, let_go] = [(); 2].map(|()| Arc::new(AtomicBool::new(false)));
        let flags = (Arc::clone(&hanging), Arc::clone(&let_go));
        thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime
                .block_on(async { serve(TcpListener::from_std(listener).unwrap(), flags).await });
        });
        let settings = json!({
            "rpcHost": "127.0.0.1", "rpcPort": port, "rpcUser": "load", "rpcPassword": "load",
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

/// When all blocks were mined.
const TIME: u32 = 1_700_000_000;
/// The height of the block that holds the payments that were made before.
pub(super) const FILLED_HEIGHT: u32 = 1;

/// The header of the block at a height, of which there are no others than those that somebody asks for.
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

async fn serve(listener: TcpListener, flags: Flags) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let flags = flags.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let flags = flags.clone();
            async move {
                let body = request.into_body().collect().await?.to_bytes();
                let answer = answer(&body, &flags).await;
                Ok::<_, hyper::Error>(Response::new(Full::new(Bytes::from(answer))))
            }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

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
        // One for all, with a fee that is enough for any.
        "getmempoolentry" => r#"{"fee":0.01000000,"size":226,"depends":[]}"#.to_owned(),
        "getsettings" => r#"{"minminingtxfee":0.00000001,"maxtxsizepolicy":10000000,"datacarriersize":4294967295,"datacarrier":true,"minconsolidationfactor":20,"maxconsolidationinputscriptsize":150,"minconfconsolidationinput":6}"#.to_owned(),
        "getblockchaininfo" => {
            let hash = header(TIP_HEIGHT).block_hash();
            format!(r#"{{"blocks":{TIP_HEIGHT},"bestblockhash":"{hash}","mediantime":{TIME}}}"#)
        }
        "getblockheader" => {
            let (hash, _): (String, bool) = serde_json::from_str(params).unwrap();
            let is_it = |height: &u32| header(*height).block_hash().to_string() == hash;
            let height = [FILLED_HEIGHT, TIP_HEIGHT].into_iter().find(is_it).unwrap();
            let BlockHeader { version, previous_block, merkle_root, time, bits, nonce } =
                header(height);
            let confirmations = TIP_HEIGHT - height + 1;
            format!(
                r#"{{"height":{height},"confirmations":{confirmations},"version":{version},"previousblockhash":"{previous_block}","merkleroot":"{merkle_root}","time":{time},"bits":"{bits:08x}","nonce":{nonce}}}"#
            )
        }
        "getrawtransaction" => {
            let (txid, _): (String, bool) = serde_json::from_str(params).unwrap();
            if txid == "00".repeat(32) {
                let error = r#"{"code":-5,"message":"No such mempool or blockchain transaction"}"#;
                return format!(r#"{{"result":null,"error":{error},"id":{id}}}"#);
            }
            // All is in the mempool, where there is nothing to prove.
            format!(r#"{{"txid":"{txid}"}}"#)
        }
        method => panic!("the wallet does not need {method} here"),
    };
    format!(r#"{{"result":{result},"error":null,"id":{id}}}"#)
}
