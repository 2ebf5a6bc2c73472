//! The parts that stand-ins for a node share.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;

use bsv_tx::BlockHeader;
use bytes::{Buf, Bytes};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::http::serve;

/// A call to a node.
#[derive(Deserialize)]
pub(crate) struct Call<'a> {
    #[serde(borrow)]
    pub(crate) id: &'a RawValue,
    pub(crate) method: String,
    #[serde(borrow)]
    pub(crate) params: &'a RawValue,
}

impl Call<'_> {
    /// The parameters, if they have the form that the caller expects.
    pub(crate) fn params<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        serde_json::from_str(self.params.get()).map_err(|_| self.fault())
    }

    /// The answer.
    pub(crate) fn answer(&self, result: &str) -> String {
        format!(r#"{{"result":{result},"error":null,"id":{}}}"#, self.id)
    }

    /// The answer of a node that does not know the transaction.
    pub(crate) fn not_found(&self) -> String {
        self.refusal(r#"{"code":-5,"message":"No such mempool or blockchain transaction"}"#)
    }

    /// The answer to a call that the stand-in does not know. The run fails at its end.
    pub(crate) fn fail(&self, Fault(fault): Fault) -> String {
        *FAULTS.lock().unwrap().entry(fault).or_default() += 1;
        self.refusal(r#"{"code":-32601,"message":"Method not found"}"#)
    }

    pub(crate) fn fault(&self) -> Fault {
        let params: String = self.params.get().chars().take(MAX_SHOWN).collect();
        Fault(format!("it has no answer to {} {params}", self.method))
    }

    fn refusal(&self, error: &str) -> String {
        format!(r#"{{"result":null,"error":{error},"id":{}}}"#, self.id)
    }
}

/// What a stand-in cannot do.
pub(crate) struct Fault(String);

/// How many characters of parameters are shown.
const MAX_SHOWN: usize = 100;

/// How often stand-ins have failed, and why.
static FAULTS: Mutex<BTreeMap<String, u64>> = Mutex::new(BTreeMap::new());

/// How often stand-ins have failed, and why.
pub(crate) fn faults() -> BTreeMap<String, u64> {
    FAULTS.lock().unwrap().clone()
}

/// Answers calls on a thread of this process. Returns the settings with which a service makes its
/// calls here.
pub(crate) fn start<A, F>(answer: A) -> Value
where
    A: Fn(Bytes) -> F + Clone + Send + 'static,
    F: Future<Output: Buf + Send + 'static> + Send + 'static,
{
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { serve(TcpListener::from_std(listener).unwrap(), answer).await });
    });
    json!({ "rpcHost": "127.0.0.1", "rpcPort": port, "rpcUser": "load", "rpcPassword": "load" })
}

/// The result of `getsettings`.
pub(crate) const SETTINGS: &str = r#"{"minminingtxfee":0.00000001,"maxtxsizepolicy":10000000,"datacarriersize":4294967295,"datacarrier":true,"minconsolidationfactor":20,"maxconsolidationinputscriptsize":150,"minconfconsolidationinput":6}"#;

/// The result of `getmempoolentry`, the same for every transaction. Its fee is high enough for any.
pub(crate) const MEMPOOL_ENTRY: &str = r#"{"fee":0.01000000,"size":226,"depends":[]}"#;

/// The result of `getblockchaininfo`, if the last block has this header.
pub(crate) fn chain_info(height: u32, tip: &BlockHeader) -> String {
    let (hash, time) = (tip.block_hash(), tip.time);
    format!(r#"{{"blocks":{height},"bestblockhash":"{hash}","mediantime":{time}}}"#)
}

/// The result of `getblockheader` for a block of the main chain.
pub(crate) fn header_info(height: u32, tip_height: u32, header: &BlockHeader) -> String {
    let BlockHeader { version, previous_block, merkle_root, time, bits, nonce } = header;
    let confirmations = tip_height - height + 1;
    format!(
        r#"{{"height":{height},"confirmations":{confirmations},"version":{version},"previousblockhash":"{previous_block}","merkleroot":"{merkle_root}","time":{time},"bits":"{bits:08x}","nonce":{nonce}}}"#
    )
}

/// The result of `getrawtransaction` with details: every transaction is in the mempool and in no
/// block. `None` for the id of zeros, which no transaction has.
pub(crate) fn transaction_info(txid: &str) -> Option<String> {
    (txid != "00".repeat(32)).then(|| format!(r#"{{"txid":"{txid}"}}"#))
}
