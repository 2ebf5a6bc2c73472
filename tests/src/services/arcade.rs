//! The dialect of Arcade.

use bsv_invoicing::Timestamp;
use bsv_tx::{DecodeError, ExtendedTransaction, Reader, Transaction, TransactionForm, TxOut, Txid};
use serde_json::{Value, json};

use super::mood::Mood;
use super::network::{Dialect, Network, Place, Refusal, State, Subscription};
use crate::payee::{Answer, Request};

/// A time that is not set.
const NEVER: &str = "0001-01-01T00:00:00Z";

/// A transaction, with the outputs that it spends if it was sent with them.
type Sent = (Transaction, Option<Vec<TxOut>>);

pub(super) fn answer(network: &Network, request: &Request) -> Answer {
    let path = request.path.split('?').next().unwrap_or_default();
    match (request.method.as_str(), path) {
        ("POST", "/tx") => submit_one(network, request),
        ("POST", "/txs") => submit_many(network, request),
        ("GET", "/policy") => policy(network),
        ("GET", "/health") => health(network),
        ("GET", "/ready") => Answer::json(200, &json!({ "status": "ready" })),
        ("GET", path) => match path.strip_prefix("/tx/").and_then(|txid| txid.parse().ok()) {
            Some(txid) => status(network, &txid),
            None => error(404, "transaction not found"),
        },
        _ => error(404, "not found"),
    }
}

fn submit_one(network: &Network, request: &Request) -> Answer {
    let bytes = match bytes_of(request) {
        Ok(bytes) if bytes.is_empty() => return error(400, "empty transaction"),
        Ok(bytes) => bytes,
        Err(reason) => return error(400, reason),
    };
    let Ok((sent, _)) = read(&bytes) else {
        return error(400, "failed to parse transaction");
    };
    let (txid, mood) = (sent.0.txid(), network.mood());
    let word = match take(network, &sent, request) {
        Ok(word) => word,
        Err(Trouble::Refused(refusal)) => return refuse(&txid, &refusal),
        Err(Trouble::Internal) => return error(500, "failed to submit"),
    };
    let txid = mood.other_txid.unwrap_or(txid).to_string();
    Answer::json(202, &json!({ "txid": txid, "status": 202, "txStatus": word }))
}

/// Unlike Arcade's, a batch is published up to the first transaction that the node refuses.
fn submit_many(network: &Network, request: &Request) -> Answer {
    if !request.header("content-type").is_some_and(|it| it.contains("octet-stream")) {
        return error(400, "Content-Type must be application/octet-stream");
    }
    let (mut rest, mut all) = (request.body.as_slice(), Vec::new());
    while !rest.is_empty() {
        let Ok((sent, len)) = read(rest) else {
            let body = json!({ "error": "failed to parse transaction", "parsed": all.len() });
            return Answer::json(400, &body);
        };
        all.push(sent);
        rest = &rest[len..];
    }
    let faulty = all.iter().find_map(|sent| Some((sent, validate(network, sent).err()?)));
    if let Some(((transaction, _), refusal)) = faulty {
        return refuse(&transaction.txid(), &refusal);
    }
    let mut submitted = 0;
    for sent in &all {
        match take(network, sent, request) {
            Ok(word) => submitted += usize::from(word == "RECEIVED"),
            Err(Trouble::Refused(refusal)) => return refuse(&sent.0.txid(), &refusal),
            Err(Trouble::Internal) => return error(500, "failed to submit"),
        }
    }
    let total = all.len();
    let duplicates = total - submitted;
    Answer::json(202, &json!({ "submitted": submitted, "duplicates": duplicates, "total": total }))
}

enum Trouble {
    Refused(Refusal),
    Internal,
}

/// Takes a transaction. Answers its status.
fn take(network: &Network, sent: &Sent, request: &Request) -> Result<&'static str, Trouble> {
    let wish = Subscription::of(request, Dialect::Arcade);
    let txid = sent.0.txid();
    let known = network.state(&txid).map_err(|_| Trouble::Internal)?;
    match known.as_ref().map(word) {
        None | Some("RECEIVED" | "REJECTED") => {}
        Some(word) => {
            network.subscribe(&txid, &wish);
            return Ok(word);
        }
    }
    let taken = validate(network, sent).and_then(|()| network.submit(&sent.0, &wish));
    match taken {
        Ok(()) => Ok("RECEIVED"),
        Err(refusal) => {
            // Of a transaction that is not final yet, nothing is stored.
            if refusal.code != 476 {
                network.keep_refused(&sent.0, &refusal);
            }
            Err(Trouble::Refused(refusal))
        }
    }
}

/// What Arcade judges by itself, except for scripts.
fn validate(network: &Network, (transaction, spent): &Sent) -> Result<(), Refusal> {
    let Some(spent) = spent else {
        return Err(Refusal::new(460, "transaction has missing source outputs"));
    };
    if !network.is_final(transaction) {
        return Err(Refusal::new(476, "transaction is not final"));
    }
    network.check_fee(transaction, spent)
}

fn bytes_of(request: &Request) -> Result<Vec<u8>, &'static str> {
    let kind = request.header("content-type").unwrap_or_default();
    if kind.contains("octet-stream") {
        return Ok(request.body.clone());
    }
    if kind.contains("text/plain") {
        return hex::decode(request.body.trim_ascii()).map_err(|_| "invalid hex");
    }
    let body: Value = serde_json::from_slice(&request.body).map_err(|_| "invalid request")?;
    hex::decode(body["rawTx"].as_str().unwrap_or_default()).map_err(|_| "invalid hex in rawTx")
}

/// The first transaction, raw or in extended format, and its length.
fn read(bytes: &[u8]) -> Result<(Sent, usize), DecodeError> {
    let mut reader = Reader::new(bytes);
    let sent = if TransactionForm::of(bytes) == TransactionForm::Extended {
        let (transaction, spent) = ExtendedTransaction::read(&mut reader)?.into_parts();
        (transaction, Some(spent))
    } else {
        (Transaction::read(&mut reader)?, None)
    };
    Ok((sent, bytes.len() - reader.remaining()))
}

fn refuse(txid: &Txid, refusal: &Refusal) -> Answer {
    let mut body = refusal.described();
    body["error"] = json!("transaction failed validation");
    body["reason"] = json!(refusal.reason);
    body["txid"] = json!(txid.to_string());
    body["status"] = json!(refusal.code);
    Answer::json(400, &body)
}

fn status(network: &Network, txid: &Txid) -> Answer {
    match network.state(txid) {
        Ok(Some(state)) => Answer::json(200, &row(txid, &state, &network.mood())),
        Ok(None) => error(404, "transaction not found"),
        Err(_) => error(500, "internal error"),
    }
}

fn word(state: &State) -> &'static str {
    match state {
        State::Received => "RECEIVED",
        State::Waiting => "PENDING_RETRY",
        State::Seen { .. } | State::Orphaned { .. } => "SEEN_ON_NETWORK",
        State::Refused { .. } => "REJECTED",
        State::Mined { is_deep: true, .. } => "IMMUTABLE",
        State::Mined { .. } => "MINED",
        State::Said(word) => word.status,
    }
}

/// The answer to a question about a transaction, and the body of a callback.
pub(super) fn row(txid: &Txid, state: &State, mood: &Mood) -> Value {
    let mut row = json!({
        "txid": mood.other_txid.unwrap_or(*txid).to_string(), "txStatus": word(state),
        "timestamp": Timestamp::of_system().to_string(),
        "nextRetryAt": NEVER, "merkleRegisteredAt": NEVER,
    });
    match state {
        State::Refused { refusal: Refusal { code, reason, rivals }, .. } => {
            row["status"] = json!(code);
            let line =
                |rival| format!("UTXO_SPENT (70): {txid}:$0 utxo already spent by tx {rival}[0]");
            row["extraInfo"] = json!(rivals.first().map_or_else(|| reason.clone(), line));
        }
        State::Mined { place, path, left, .. } => {
            row["blockHash"] = json!(place.block.to_string());
            row["blockHeight"] = json!(place.height);
            if let Some(path) = path {
                row["merklePath"] = json!(path);
            }
            if !left.is_empty() {
                row["extraInfo"] = json!("reorg_reanchor");
                row["orphanedProofs"] = orphaned(left);
            }
        }
        State::Orphaned { left } => {
            row["extraInfo"] = json!("reorg_unmined");
            row["orphanedProofs"] = orphaned(left);
        }
        State::Said(said) => {
            if let Some(code) = said.code {
                row["status"] = json!(code);
            }
            if !said.extra_info.is_empty() {
                row["extraInfo"] = json!(said.extra_info);
            }
        }
        State::Received | State::Waiting | State::Seen { .. } => {}
    }
    if let Some(extra_info) = &mood.extra_info {
        row["extraInfo"] = json!(extra_info);
    }
    row
}

fn orphaned(left: &[Place]) -> Value {
    let proof = |Place { block, height }: &Place| {
        let now = Timestamp::of_system().to_string();
        json!({ "blockHash": block.to_string(), "blockHeight": height, "orphanedAt": now })
    };
    left.iter().rev().take(5).rev().map(proof).collect()
}

/// Whether Arcade calls a state terminal. Callbacks tell of these states by default, and the first frames of a stream
/// of the others.
pub(super) fn is_terminal(state: &State) -> bool {
    ["MINED", "REJECTED", "IMMUTABLE", "DOUBLE_SPEND_ATTEMPTED"].contains(&word(state))
}

pub(super) fn policy(network: &Network) -> Answer {
    let (satoshis, bytes) = network.mood().fee;
    let policy = json!({
        "miningFee": { "satoshis": satoshis, "bytes": bytes },
        "maxtxsizepolicy": 10_485_760, "maxscriptsizepolicy": 500_000,
        "maxtxsigopscountspolicy": u32::MAX, "standardFormatSupported": true,
    });
    let timestamp = Timestamp::of_system().to_string();
    Answer::json(200, &json!({ "policy": policy, "timestamp": timestamp }))
}

fn health(network: &Network) -> Answer {
    let mut health =
        json!({ "healthy": true, "version": "v0.9.12", "status": "ok", "datahub_urls": [] });
    if !network.mood().tells_no_height
        && let Ok(headers) = network.headers()
    {
        health["blockHeight"] = json!(headers.len() - 1);
    }
    Answer::json(200, &health)
}

fn error(status: u16, reason: &str) -> Answer {
    Answer::json(status, &json!({ "error": reason }))
}
