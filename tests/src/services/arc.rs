//! The dialect of ARC.

use std::collections::BTreeMap;

use bsv_invoicing::Timestamp;
use bsv_tx::{
    Beef, BeefVersion, FormedTransaction, Reader, Transaction, TransactionForm, TxIn, TxOut, Txid,
};
use serde_json::{Value, json};

use super::mood::Mood;
use super::network::{Dialect, Network, Refusal, State, Subscription};
use crate::payee::{Answer, Request};

/// What a request gets: a state, or a refusal whose code is the HTTP status.
type Outcome = Result<(Txid, State), (Option<Txid>, Refusal)>;

pub(super) fn answer(network: &Network, request: &Request) -> Answer {
    let path = request.path.split('?').next().unwrap_or_default();
    match (request.method.as_str(), path) {
        ("POST", "/v1/tx") => match bytes_of(request) {
            Ok(bytes) => answer_of(network, submit(network, &bytes, request)),
            Err(reason) => refuse(None, &Refusal::new(400, reason)),
        },
        ("POST", "/v1/txs") => submit_many(network, request),
        ("GET", "/v1/health") => {
            Answer::json(200, &json!({ "healthy": true, "version": "v1.5.9", "reason": null }))
        }
        ("GET", path) => match path.strip_prefix("/v1/tx/").and_then(|txid| txid.parse().ok()) {
            Some(txid) => status(network, &txid),
            None => refuse(None, &Refusal::new(404, "")),
        },
        _ => refuse(None, &Refusal::new(404, "")),
    }
}

fn status(network: &Network, txid: &Txid) -> Answer {
    match network.state(txid) {
        Ok(Some(state)) => Answer::json(200, &row(txid, &state, &network.mood())),
        Ok(None) => refuse(None, &Refusal::new(404, "transaction not found")),
        Err(error) => refuse(None, &Refusal::new(409, error.to_string())),
    }
}

fn answer_of(network: &Network, outcome: Outcome) -> Answer {
    let (status, body) = body_of(network, outcome);
    Answer::json(status, &body)
}

fn body_of(network: &Network, outcome: Outcome) -> (u16, Value) {
    match outcome {
        Ok((txid, state)) => {
            let mut body = row(&txid, &state, &network.mood());
            body["status"] = json!(200);
            body["title"] = json!("OK");
            (200, body)
        }
        Err((txid, refusal)) => (refusal.code, fields(txid, &refusal)),
    }
}

/// Answers the successes first, then the failures.
fn submit_many(network: &Network, request: &Request) -> Answer {
    let all = match all_of(request) {
        Ok(all) => all,
        Err(reason) => return refuse(None, &Refusal::new(400, reason)),
    };
    let outcomes = all.iter().map(|bytes| submit(network, bytes, request));
    let (good, bad): (Vec<_>, Vec<_>) = outcomes.partition(Result::is_ok);
    let bodies = good.into_iter().chain(bad).map(|outcome| body_of(network, outcome).1);
    Answer::json(200, &bodies.collect())
}

/// Takes a transaction in any form.
fn submit(network: &Network, bytes: &[u8], request: &Request) -> Outcome {
    let wish = Subscription::of(request, Dialect::Arc);
    let is_set = |name| request.header(name) == Some("true");
    let form = read(bytes).map_err(|refusal| (None, refusal))?;
    let txid = form.transaction().txid();
    let refused = |refusal| (Some(txid), refusal);
    let unavailable = |reason: &str| refused(Refusal::new(409, reason));
    let state = || network.state(&txid).map_err(|error| unavailable(&error.to_string()));
    // What is known is not sent again, except for what nobody has taken yet.
    let is_known = state()?.is_some_and(|state| state != State::Received);
    let is_skipped = is_known && !is_set("x-forcevalidation");
    let nobody = Subscription { url: None, token: None, ..wish.clone() };
    for (transaction, spent) in sent_in(network, &form).map_err(refused)? {
        if transaction.txid() == txid && is_skipped {
            network.subscribe(&txid, &wish);
            continue;
        }
        if !is_set("x-skipfeevalidation") {
            network.check_fee(&transaction, &spent).map_err(refused)?;
        }
        let wish = if transaction.txid() == txid { &wish } else { &nobody };
        network.submit(&transaction, wish).map_err(refused)?;
    }
    state()?.map(|state| (txid, state)).ok_or_else(|| unavailable("it was forgotten"))
}

fn read(bytes: &[u8]) -> Result<FormedTransaction, Refusal> {
    let code = match TransactionForm::of(bytes) {
        TransactionForm::Beef(BeefVersion::V1) => 468,
        TransactionForm::Raw | TransactionForm::Extended => 400,
        // ARC does not know these forms, and reads them as transactions.
        TransactionForm::Beef(_) | TransactionForm::AtomicBeef => {
            return Err(Refusal::new(400, "could not read the transaction"));
        }
    };
    FormedTransaction::from_bytes(bytes).map_err(|error| Refusal::new(code, error.to_string()))
}

/// The transactions to submit, with the outputs that they spend. Ancestors come first.
fn sent_in(
    network: &Network,
    form: &FormedTransaction,
) -> Result<Vec<(Transaction, Vec<TxOut>)>, Refusal> {
    match form {
        FormedTransaction::Raw(transaction) => {
            let spent = network.spent_outputs(transaction);
            let spent = spent.ok_or_else(|| Refusal::new(460, "parent transaction not found"))?;
            Ok(vec![(transaction.clone(), spent)])
        }
        FormedTransaction::Extended(extended) => {
            Ok(vec![(extended.transaction().clone(), extended.previous_outputs().to_vec())])
        }
        FormedTransaction::Beef(beef) => sent_in_beef(network, beef),
    }
}

fn sent_in_beef(network: &Network, beef: &Beef) -> Result<Vec<(Transaction, Vec<TxOut>)>, Refusal> {
    let headers = network.headers().map_err(|error| Refusal::new(409, error.to_string()))?;
    for (height, root) in beef.claimed_roots() {
        if headers.get(height as usize).is_none_or(|header| header.merkle_root != root) {
            return Err(Refusal::new(469, format!("block {height} has another merkle root")));
        }
    }
    let all: BTreeMap<_, _> = beef.transactions().collect();
    let spent = |transaction: &Transaction| {
        let output = |input: &TxIn| {
            let of = input.previous_output;
            all.get(&of.txid)?.outputs.get(of.vout as usize).cloned()
        };
        let outputs: Option<Vec<_>> = transaction.inputs.iter().map(output).collect();
        outputs.ok_or_else(|| Refusal::new(468, "an input has no source"))
    };
    beef.unmined().map(|(_, it)| Ok((it.clone(), spent(it)?))).collect()
}

/// The transaction in a request. White space around hexadecimal digits is an error.
fn bytes_of(request: &Request) -> Result<Vec<u8>, String> {
    let bytes = match request.header("content-type").unwrap_or_default() {
        "text/plain" => hex::decode(&request.body).map_err(|error| error.to_string())?,
        "application/json" => {
            let body: Value =
                serde_json::from_slice(&request.body).map_err(|error| error.to_string())?;
            decode(&body)?
        }
        "application/octet-stream" => request.body.clone(),
        kind => return Err(unknown(kind)),
    };
    if bytes.is_empty() {
        return Err("no transaction found - empty request body".to_owned());
    }
    Ok(bytes)
}

/// The transactions in a request. In `application/octet-stream`, all are raw.
fn all_of(request: &Request) -> Result<Vec<Vec<u8>>, String> {
    match request.header("content-type").unwrap_or_default() {
        "text/plain" => {
            let lines = request.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            lines.map(|line| hex::decode(line).map_err(|error| error.to_string())).collect()
        }
        "application/json" => {
            let body: Vec<Value> =
                serde_json::from_slice(&request.body).map_err(|error| error.to_string())?;
            body.iter().map(decode).collect()
        }
        "application/octet-stream" => {
            let mut reader = Reader::new(&request.body);
            let mut all = Vec::new();
            while reader.remaining() > 0 {
                let one = Transaction::read(&mut reader).map_err(|error| error.to_string())?;
                all.push(one.to_bytes());
            }
            Ok(all)
        }
        kind => Err(unknown(kind)),
    }
}

fn decode(body: &Value) -> Result<Vec<u8>, String> {
    let hex = body["rawTx"].as_str().unwrap_or_default();
    hex::decode(hex).map_err(|error| error.to_string())
}

fn unknown(kind: &str) -> String {
    format!("given content-type {kind} does not match any of the allowed content-types")
}

fn refuse(txid: Option<Txid>, refusal: &Refusal) -> Answer {
    Answer::json(refusal.code, &fields(txid, refusal))
}

fn fields(txid: Option<Txid>, refusal: &Refusal) -> Value {
    let mut fields = refusal.described();
    fields["status"] = json!(refusal.code);
    fields["instance"] = Value::Null;
    fields["txid"] = json!(txid.map(|txid| txid.to_string()));
    fields["extraInfo"] = json!(refusal.reason);
    fields
}

fn word(state: &State) -> &'static str {
    match state {
        State::Received => "RECEIVED",
        State::Waiting => "SEEN_IN_ORPHAN_MEMPOOL",
        State::Seen { rivals } if rivals.is_empty() => "SEEN_ON_NETWORK",
        State::Seen { .. } => "DOUBLE_SPEND_ATTEMPTED",
        State::Refused { refusal, is_rival_mined: false } if refusal.code == 466 => {
            "DOUBLE_SPEND_ATTEMPTED"
        }
        State::Refused { .. } => "REJECTED",
        State::Mined { .. } => "MINED",
        State::Orphaned { .. } => "MINED_IN_STALE_BLOCK",
        State::Said(word) => word.status,
    }
}

/// The answer to a question about a transaction.
fn row(txid: &Txid, state: &State, mood: &Mood) -> Value {
    let mut row = json!({
        "blockHash": "", "blockHeight": 0, "competingTxs": null, "extraInfo": "",
        "merklePath": "", "timestamp": Timestamp::of_system().to_string(),
        "txStatus": word(state), "txid": mood.other_txid.unwrap_or(*txid).to_string(),
    });
    let place = match state {
        State::Mined { place, path, .. } => {
            row["merklePath"] = json!(path.as_deref().unwrap_or_default());
            Some(place)
        }
        State::Orphaned { left } => left.last(),
        State::Seen { rivals } | State::Refused { refusal: Refusal { rivals, .. }, .. } => {
            if !rivals.is_empty() {
                row["competingTxs"] = rivals.iter().map(Txid::to_string).collect();
            }
            None
        }
        State::Said(said) => {
            row["extraInfo"] = json!(said.extra_info);
            None
        }
        State::Received | State::Waiting => None,
    };
    if let Some(place) = place {
        row["blockHash"] = json!(place.block.to_string());
        row["blockHeight"] = json!(place.height);
    }
    if let State::Refused { refusal, .. } = state {
        row["extraInfo"] = json!(refusal.reason);
    }
    if let Some(extra_info) = &mood.extra_info {
        row["extraInfo"] = json!(extra_info);
    }
    row
}

/// The body of a callback: what is set.
pub(super) fn callback(txid: &Txid, state: &State, mood: &Mood) -> Value {
    let mut body = row(txid, state, mood);
    if let Some(members) = body.as_object_mut() {
        members.retain(|_, value| !value.is_null() && *value != json!("") && *value != json!(0));
    }
    body
}

/// Whether subscribers get a callback of this state.
pub(super) fn is_told(state: &State, is_full: bool) -> bool {
    let always = ["REJECTED", "MINED_IN_STALE_BLOCK", "MINED"];
    let on_request = ["SEEN_IN_ORPHAN_MEMPOOL", "SEEN_ON_NETWORK", "DOUBLE_SPEND_ATTEMPTED"];
    always.contains(&word(state)) || is_full && on_request.contains(&word(state))
}
