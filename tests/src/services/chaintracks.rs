//! Headers: the routes of Chaintracks, and the one route of WhatsOnChain that chain trackers use.

use bsv_tx::BlockHeader;
use serde_json::{Value, json};

use super::network::Network;
use crate::payee::{Answer, Request};

/// Answers a question about headers. The path stands behind `/chaintracks`.
pub(super) fn answer(network: &Network, request: &Request, path: &str) -> Answer {
    let Ok(headers) = network.headers() else { return error(500, "Internal error") };
    let path = path.split('?').next().unwrap_or_default();
    let tip = headers.len().saturating_sub(1);
    match path.strip_prefix("/v2").unwrap_or(path) {
        "/network" => Answer::json(200, &json!({ "network": "regtest" })),
        "/height" => Answer::json(200, &json!({ "height": tip })),
        "/tip" => one(&headers, Some(tip), Form::Json),
        "/tip.bin" => one(&headers, Some(tip), Form::Binary),
        "/headers" | "/headers.bin" => several(&headers, request),
        "/v1/getPresentHeight" => Answer::json(200, &envelope(&json!(tip))),
        "/v1/findHeaderHexForHeight" => {
            let height = number(request, "height").unwrap_or(usize::MAX);
            let header = headers.get(height).map(|it| described(it, height));
            Answer::json(200, &envelope(&json!(header)))
        }
        path => {
            let (path, form) = match path.strip_suffix(".bin") {
                Some(path) => (path, Form::Binary),
                None => (path, Form::Json),
            };
            if let Some(height) = path.strip_prefix("/header/height/") {
                match height.parse() {
                    Ok(height) => one(&headers, Some(height), form),
                    Err(_) => error(400, "Invalid height parameter"),
                }
            } else if let Some(hash) = path.strip_prefix("/header/hash/") {
                match hash.parse() {
                    Ok(hash) => {
                        let place = headers.iter().position(|it| it.block_hash() == hash);
                        one(&headers, place, form)
                    }
                    Err(_) => error(400, "Invalid hash parameter"),
                }
            } else {
                error(404, "Not found")
            }
        }
    }
}

/// Answers `/block/HEIGHT/header` of WhatsOnChain.
pub(super) fn header_of_block(network: &Network, path: &str) -> Answer {
    let height = path.strip_prefix("/block/").and_then(|path| path.strip_suffix("/header"));
    let Some(height) = height.and_then(|height| height.parse::<usize>().ok()) else {
        return Answer::text(404, "");
    };
    let headers = network.headers().unwrap_or_default();
    let Some(header) = headers.get(height) else { return Answer::text(404, "") };
    let body = json!({
        "hash": header.block_hash().to_string(), "height": height, "version": header.version,
        "merkleroot": header.merkle_root.to_string(), "time": header.time, "nonce": header.nonce,
        "bits": format!("{:08x}", header.bits),
        "previousblockhash": header.previous_block.to_string(),
    });
    Answer::json(200, &body)
}

#[derive(Clone, Copy)]
enum Form {
    Json,
    Binary,
}

fn one(headers: &[BlockHeader], height: Option<usize>, form: Form) -> Answer {
    let found = height.and_then(|height| Some((height, headers.get(height)?)));
    let Some((height, header)) = found else { return error(404, "Header not found") };
    match form {
        Form::Json => Answer::json(200, &described(header, height)),
        Form::Binary => binary(&header.to_bytes(), &[("X-Block-Height", &height.to_string())]),
    }
}

/// Stops silently at the tip.
fn several(headers: &[BlockHeader], request: &Request) -> Answer {
    let (Some(height), Some(count)) = (number(request, "height"), number(request, "count")) else {
        return error(400, "Invalid height parameter");
    };
    let given = headers.iter().skip(height).take(count).flat_map(BlockHeader::to_bytes);
    let given: Vec<u8> = given.collect();
    let count = (given.len() / BlockHeader::LEN).to_string();
    let start = height.to_string();
    binary(&given, &[("X-Start-Height", &start), ("X-Header-Count", &count)])
}

fn binary(body: &[u8], headers: &[(&str, &str)]) -> Answer {
    let headers = [&[("Content-Type", "application/octet-stream")], headers].concat();
    Answer::with(200, &headers, body)
}

fn number(request: &Request, name: &str) -> Option<usize> {
    let (_, query) = request.path.split_once('?')?;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.find(|(present, _)| *present == name)?.1.parse().ok()
}

/// The JSON of a header.
pub(super) fn described(header: &BlockHeader, height: usize) -> Value {
    json!({
        "version": header.version, "previousHash": header.previous_block.to_string(),
        "merkleRoot": header.merkle_root.to_string(), "time": header.time, "bits": header.bits,
        "nonce": header.nonce, "height": height, "hash": header.block_hash().to_string(),
    })
}

/// The form of answers in version 1.
fn envelope(value: &Value) -> Value {
    json!({ "status": "success", "value": value })
}

fn error(status: u16, reason: &str) -> Answer {
    Answer::json(status, &json!({ "error": reason }))
}
