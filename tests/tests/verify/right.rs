//! Valid documents, in a form in which they can be made odd.

use bsv_tests::identified_block::Keys;

use crate::verify::odd::Json;

/// A valid document of generation 1.0.
pub(crate) fn miner_info(keys: &Keys, height: u32) -> Json {
    let right = keys.miner_info(height);
    let text = |value: &dyn ToString| Json::text(&value.to_string());
    Json::object([
        ("version", Json::text("0.3")),
        ("height", Json::raw(height.to_string())),
        ("prevMinerId", text(&right.miner_id.previous)),
        ("prevMinerIdSig", text(&right.miner_id.signature)),
        ("minerId", text(&right.miner_id.current)),
        ("prevRevocationKey", text(&right.revocation_key.previous)),
        ("revocationKey", text(&right.revocation_key.current)),
        ("prevRevocationKeySig", text(&right.revocation_key.signature)),
        ("minerContact", contact()),
        ("extensions", Json::object([("dataRefs", data_refs())])),
    ])
}

/// A document of generation 0.2, in version 0.2 or 0.1. It is valid once it is signed.
pub(crate) fn document(keys: &Keys, height: u32, version: &str) -> Json {
    let right = keys.document(height);
    let text = |value: &dyn ToString| Json::text(&value.to_string());
    Json::object([
        ("version", Json::text(version)),
        ("height", Json::raw(height.to_string())),
        ("prevMinerId", text(&right.previous_miner_id)),
        ("prevMinerIdSig", Json::raw(UNSIGNED)),
        ("minerId", text(&right.miner_id)),
        ("vctx", Json::object([("txId", text(&right.vctx.txid)), ("vout", Json::raw("0"))])),
        ("minerContact", contact()),
        ("dataRefs", data_refs()),
    ])
}

/// Marks the place for the signature in a document of generation 0.2.
pub(crate) const UNSIGNED: &str = "unsigned";

/// A contact without a name. A node would copy an odd name unescaped into its answers, which would
/// then not be JSON.
fn contact() -> Json {
    Json::object([("title", Json::text("a pool")), ("x", Json::Array(vec![Json::raw("1.0")]))])
}

fn data_refs() -> Json {
    let ids = Json::Array(vec![Json::text("62b21572ca46")]);
    let txid = Json::text(&"ee".repeat(32));
    let reference = [("brfcIds", ids), ("txid", txid), ("vout", Json::raw("0"))];
    Json::object([("refs", Json::Array(vec![Json::object(reference)]))])
}
