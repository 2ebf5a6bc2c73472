use std::path::PathBuf;
use std::sync::Arc;

use bsv_invoicing::Wallet;
use bsv_minerid::{
    Alias, Error, Identity, MinerContact, MinerIds, Vctx, VctxSetup, VctxView, set_up_vctx,
};
use bsv_network::NodeRpc;
use bsv_tx::OutPoint;
use bytes::Bytes;
use hyper::{Method, Request, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::http::{Answer, Problem, answer};
use crate::minerid::Refusal;

/// Sets up identities and tells secrets: what the command line asks for and no listener offers.
///
/// | method and path | body | answer |
/// | --- | --- | --- |
/// | `GET /control/minerids` | | the identities |
/// | `POST /control/minerids` | `{"alias"}` | the new identity |
/// | `GET /control/minerids/{alias}` | | the identity |
/// | `POST /control/minerids/{alias}/rotate` | | the identity |
/// | `POST /control/minerids/{alias}/vctx` | `{"outpoint"?}` | what was done, or has to be |
/// | `POST /control/minerids/{alias}/contact` | an object of strings | the whole contact |
/// | `POST /control/import` | `{"from"}`, an absolute path | the aliases |
/// | `POST /control/wallet/backup-words` | | `{"words"}`: whoever has them has the money |
#[derive(Debug)]
pub(crate) struct SetUp {
    ids: Option<Arc<MinerIds>>,
    wallet: Option<Arc<Wallet>>,
    node: Option<NodeRpc>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GenerateJson {
    alias: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VctxJson {
    outpoint: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ImportJson {
    from: PathBuf,
}

impl SetUp {
    pub(crate) fn new(
        ids: Option<Arc<MinerIds>>,
        wallet: Option<Arc<Wallet>>,
        node: Option<NodeRpc>,
    ) -> Self {
        Self { ids, wallet, node }
    }

    /// Answers a request if its path is one of these.
    pub(crate) async fn answer(&self, request: &Request<Bytes>) -> Option<Answer> {
        let path = request.uri().path().strip_prefix("/control/")?;
        if path == "wallet/backup-words" && *request.method() == Method::POST {
            return Some(self.backup_words().unwrap_or_else(Problem::into_answer));
        }
        let answer = self.call(request.method(), path, request.body()).await;
        Some(answer.unwrap_or_else(|Refusal { status, text }| {
            Problem::of_status(status, text).into_answer()
        }))
    }

    fn backup_words(&self) -> Result<Answer, Problem> {
        let wallet = self
            .wallet
            .as_ref()
            .ok_or_else(|| Problem::of_status(StatusCode::NOT_FOUND, "the wallet is disabled"))?;
        let seed = wallet.seed()?;
        Ok(answer::json(StatusCode::OK, &json!({ "words": *seed.words() })))
    }

    async fn call(&self, method: &Method, path: &str, body: &Bytes) -> Result<Answer, Refusal> {
        let ids = self.ids.as_ref().ok_or(Refusal {
            status: StatusCode::NOT_FOUND,
            text: "the miner identity service is disabled".into(),
        })?;
        let ok = |value: Value| Ok(answer::json(StatusCode::OK, &value));
        let segments: Vec<_> = path.split('/').collect();
        match (method.as_str(), segments.as_slice()) {
            ("GET", ["minerids"]) => ok(ids.all().iter().map(|id| describe(id)).collect()),
            ("POST", ["minerids"]) => {
                let GenerateJson { alias } = parse(body)?;
                let alias = named(&alias)?;
                let made = alias.clone();
                on_disk(ids, move |ids| ids.generate(&made)).await?;
                let identity = ids.get(alias.as_str())?;
                Ok(answer::json(StatusCode::CREATED, &describe(&identity)))
            }
            ("GET", ["minerids", alias]) => ok(describe(&*ids.get(alias)?)),
            ("POST", ["minerids", alias, "rotate"]) => {
                let alias = named(alias)?;
                let rotated = alias.clone();
                on_disk(ids, move |ids| ids.rotate(&rotated)).await?;
                ok(describe(&*ids.get(alias.as_str())?))
            }
            ("POST", ["minerids", alias, "vctx"]) => {
                let VctxJson { outpoint } = parse(body)?;
                ok(self.set_up_vctx(ids, &named(alias)?, outpoint.as_deref()).await?)
            }
            ("POST", ["minerids", alias, "contact"]) => {
                let alias = named(alias)?;
                let contact = contact(body)?;
                let whole = on_disk(ids, move |ids| ids.set_contact(&alias, &contact)).await?;
                ok(contact_json(&whole))
            }
            ("POST", ["import"]) => {
                let ImportJson { from } = parse(body)?;
                let aliases = on_disk(ids, move |ids| ids.import(&from)).await?;
                let aliases: Vec<_> = aliases.iter().map(Alias::as_str).collect();
                ok(json!({ "aliases": aliases }))
            }
            _ => Err(Refusal::not_found()),
        }
    }

    async fn set_up_vctx(
        &self,
        ids: &MinerIds,
        alias: &Alias,
        outpoint: Option<&str>,
    ) -> Result<Value, Refusal> {
        let outpoint: Option<OutPoint> = outpoint
            .map(str::parse)
            .transpose()
            .map_err(|error| Refusal::bad_request(format!("{error}")))?;
        let node = self.node.as_ref().ok_or_else(|| {
            Refusal::unprocessable("no node is configured: set rpcUser and rpcPassword")
        })?;
        Ok(match set_up_vctx(ids, node, alias, outpoint).await? {
            VctxSetup::Done(outpoint) => {
                json!({ "state": "done", "outpoint": outpoint.to_string() })
            }
            VctxSetup::FundingNeeded { address, least_satoshis, found_satoshis } => json!({
                "state": "fundingNeeded",
                "address": address.to_string(),
                "leastSatoshis": least_satoshis,
                "foundSatoshis": found_satoshis,
            }),
        })
    }
}

/// Runs a change that waits for the disk.
async fn on_disk<T: Send + 'static>(
    ids: &Arc<MinerIds>,
    change: impl FnOnce(&MinerIds) -> Result<T, Error> + Send + 'static,
) -> Result<T, Refusal> {
    let ids = Arc::clone(ids);
    let changed = tokio::task::spawn_blocking(move || change(&ids)).await;
    Ok(changed.expect("changes do not panic, and are not cancelled")?)
}

fn named(alias: &str) -> Result<Alias, Refusal> {
    alias.parse().map_err(|error| Refusal::bad_request(format!("{error}")))
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal::bad_request(error.to_string()))
}

fn contact(body: &Bytes) -> Result<MinerContact, Refusal> {
    let text = std::str::from_utf8(body).unwrap_or_default();
    MinerContact::from_json(text).map_err(|error| Refusal::bad_request(error.to_string()))
}

fn contact_json(contact: &MinerContact) -> Value {
    serde_json::from_str(&contact.to_json()).unwrap_or_default()
}

fn describe(identity: &Identity) -> Value {
    let record = identity.record();
    let keys: Vec<_> = record.keys.iter().map(|key| key.public_key.to_string()).collect();
    json!({
        "alias": identity.alias().as_str(),
        "protocol": "0.2",
        "minerId": record.current_key().public_key.to_string(),
        "minerIds": keys,
        "vctx": vctx_json(&record.vctx),
        "minerContact": contact_json(&record.contact),
    })
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
    }
}
