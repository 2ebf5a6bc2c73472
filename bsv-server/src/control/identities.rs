//! Setting up identities of generation 1.0, and what is told of identities.

use std::path::PathBuf;
use std::sync::Arc;

use bsv_minerid::{
    Alias, Announcement, CanonicalJson, Identity, MinerContact, MinerIds, MinerInfoRecord,
    OperatorDataRefs, Protocol, RevokedMinerIds, Vctx, VctxView, revoke_miner_ids, revoke_vctx,
};
use bsv_network::NodeRpc;
use bsv_tx::PublicKey;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::revocation_keys::RevocationKeys;
use super::set_up::{on_disk, parse};
use crate::minerid::Refusal;

/// A request that needs revocation keys, and what else it says.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WithRevocationKeys<T> {
    /// An absolute path.
    pub(super) revocation_keystore: Option<PathBuf>,
    #[serde(flatten)]
    pub(super) request: T,
}

#[derive(Deserialize)]
struct Nothing {}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MinerIdJson {
    miner_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct UpgradeJson {
    first_miner_id: Option<String>,
}

/// Does what `action` says with an identity, and answers whether there is such an action.
pub(super) async fn act(
    ids: &Arc<MinerIds>,
    node: Option<&NodeRpc>,
    keys: &RevocationKeys,
    alias: &Alias,
    action: &str,
    body: &Bytes,
) -> Result<bool, Refusal> {
    let named = alias.clone();
    match action {
        "revocation-key" => {
            let WithRevocationKeys { revocation_keystore, request: Nothing {} } = parse(body)?;
            let keystore = keys.open_existing(revocation_keystore.as_deref())?;
            on_disk(ids, move |ids| ids.roll_revocation_key(&named, &keystore)).await?;
        }
        "upgrade" => {
            let WithRevocationKeys { revocation_keystore, request } = parse(body)?;
            let UpgradeJson { first_miner_id } = request;
            let first = first_miner_id.as_deref().map(public_key).transpose()?;
            let keystore = keys.open(revocation_keystore.as_deref())?;
            on_disk(ids, move |ids| ids.upgrade(&named, first.as_ref(), &keystore)).await?;
        }
        "revoke-partially" => {
            let WithRevocationKeys { revocation_keystore, request } = parse(body)?;
            let MinerIdJson { miner_id } = request;
            let revoked = RevokedMinerIds::BackTo(public_key(&miner_id)?);
            let node = node.ok_or_else(no_node)?;
            let keystore = keys.open_existing(revocation_keystore.as_deref())?;
            revoke_miner_ids(ids, node, alias, revoked, &keystore).await?;
        }
        "revoke-completely" => {
            let WithRevocationKeys { revocation_keystore, request: Nothing {} } = parse(body)?;
            let node = node.ok_or_else(no_node)?;
            let keystore = keys.open_existing(revocation_keystore.as_deref())?;
            revoke_miner_ids(ids, node, alias, RevokedMinerIds::All, &keystore).await?;
        }
        "revoke" => {
            revoke_vctx(ids, node.ok_or_else(no_node)?, alias).await?;
        }
        "confirm" => on_disk(ids, move |ids| ids.confirm(&named)).await?,
        "extensions" => {
            let extensions = CanonicalJson::from_text(text(body)?)
                .map_err(|error| Refusal::bad_request(error.to_string()))?;
            on_disk(ids, move |ids| ids.set_extensions(&named, extensions)).await?;
        }
        "data" => {
            let data = OperatorDataRefs::from_json(text(body)?)
                .map_err(|error| Refusal::unprocessable(error.to_string()))?;
            on_disk(ids, move |ids| ids.set_data(&named, data)).await?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

fn text(body: &Bytes) -> Result<&str, Refusal> {
    std::str::from_utf8(body).map_err(|_| Refusal::bad_request("the text is not UTF-8"))
}

fn public_key(text: &str) -> Result<PublicKey, Refusal> {
    text.parse().map_err(|error| Refusal::bad_request(format!("{error}")))
}

pub(super) fn no_node() -> Refusal {
    Refusal::unprocessable("no node is configured: set rpcUser and rpcPassword")
}

pub(super) fn contact_json(contact: &MinerContact) -> Value {
    serde_json::from_str(&contact.to_json()).unwrap_or_default()
}

pub(super) fn describe(identity: &Identity) -> Value {
    let record = identity.record();
    let keys: Vec<_> = record.keys.iter().map(|key| key.public_key.to_string()).collect();
    let mut description = json!({
        "alias": identity.alias().as_str(),
        "blindSigning": record.blind_signing,
        "protocol": record.protocol.version(),
        "minerId": record.current_key().public_key.to_string(),
        "minerIds": keys,
        "minerContact": contact_json(&record.contact()),
    });
    match &record.protocol {
        Protocol::Vctx(vctx) => description["vctx"] = vctx_json(vctx),
        Protocol::MinerInfo(miner_info) => {
            let announced = record.announcements();
            description["prevMinerId"] = json!(record.previous_key().public_key.to_string());
            description["announced"] = announced.iter().map(|what| announcement(*what)).collect();
            describe_miner_info(&mut description, miner_info);
        }
    }
    description
}

fn describe_miner_info(description: &mut Value, record: &MinerInfoRecord) {
    description["firstMinerId"] = json!(record.first_miner_id.to_string());
    description["revocationKey"] = json!(record.revocation_key.current.to_string());
    description["prevRevocationKey"] = json!(record.revocation_key.previous.to_string());
    description["state"] = json!(if record.is_closed { "closed" } else { "open" });
    if let Some(revocation) = &record.revocation {
        description["compromisedMinerId"] = json!(revocation.message.compromised.to_string());
        description["revocationTold"] = json!(revocation.is_told);
    }
}

fn announcement(announcement: Announcement) -> &'static str {
    match announcement {
        Announcement::Rotation => "rotation",
        Announcement::RevocationKey => "revocationKey",
        Announcement::PartialRevocation => "partialRevocation",
        Announcement::CompleteRevocation => "completeRevocation",
    }
}

fn vctx_json(vctx: &Vctx) -> Value {
    match vctx {
        Vctx::None => json!({ "state": "none" }),
        Vctx::AwaitingFunds => json!({ "state": "awaitingFunds" }),
        Vctx::Broadcasting(transaction) => {
            json!({ "state": "broadcasting", "txid": transaction.txid().to_string() })
        }
        Vctx::Recorded(outpoint, view) => {
            let state = match view {
                VctxView { is_spent: true, .. } => "spent",
                VctxView { gone_since: Some(_), .. } => "beingSpent",
                VctxView { last_seen: Some(_), .. } => "unspent",
                _ => "notSeen",
            };
            json!({ "state": state, "outpoint": outpoint.to_string() })
        }
        Vctx::Revoking(outpoint, spending) => json!({
            "state": "revoked",
            "outpoint": outpoint.to_string(),
            "txid": spending.txid().to_string(),
        }),
    }
}
