use std::path::PathBuf;
use std::sync::Arc;

use bsv_invoicing::{OutgoingPayment, OwnListeners, Wallet, faucet};
use bsv_minerid::{Alias, Error, MinerContact, MinerIds, VctxSetup, set_up_vctx};
use bsv_network::NodeRpc;
use bsv_tx::{Network, OutPoint, Txid};
use bytes::Bytes;
use hyper::{Method, Request, StatusCode, Uri};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::identities::{self, WithRevocationKeys, contact_json, describe, no_node};
use super::{Keeping, RevocationKeys, tokens};
use crate::access::Tokens;
use crate::http::{Answer, Problem, answer, parameters};
use crate::minerid::Refusal;

/// Sets up identities and tells secrets: what the command line asks for and no listener offers.
///
/// | method and path | body | answer |
/// | --- | --- | --- |
/// | `GET /control/minerids` | | the identities |
/// | `POST /control/minerids` | `{"alias", "protocol"?}` | the new identity |
/// | `GET /control/minerids/{alias}` | | the identity |
/// | `POST /control/minerids/{alias}/rotate` | `{"force"?}` | the identity |
/// | `POST /control/minerids/{alias}/revocation-key` | | the identity, with a new revocation key |
/// | `POST /control/minerids/{alias}/revoke-partially` | `{"minerId"}` | the identity |
/// | `POST /control/minerids/{alias}/revoke-completely` | | the identity |
/// | `POST /control/minerids/{alias}/revoke` | | the identity, its VCTx spent |
/// | `POST /control/minerids/{alias}/confirm` | | the identity |
/// | `POST /control/minerids/{alias}/upgrade` | `{"firstMinerId"?}` | the identity |
/// | `POST /control/minerids/{alias}/extensions` | an object | the identity |
/// | `POST /control/minerids/{alias}/data` | the operator's data | the identity |
/// | `POST /control/minerids/{alias}/vctx` | `{"outpoint"?}` | what was done, or has to be |
/// | `POST /control/minerids/{alias}/contact` | an object of strings | the whole contact |
/// | `POST /control/minerids/{alias}/blind-signing` | `{"on"}` | the identity |
/// | `POST /control/import` | `{"from"}`, an absolute path | the aliases |
/// | `POST /control/wallet/backup-words` | | `{"words"}`: whoever has them has the money |
/// | `POST /control/wallet/accept-clock` | | `{"doubt"}`: what was doubted, or null |
/// | `GET /control/wallet/payments?before=N` | | payments by the wallet, the newest first |
/// | `POST /control/wallet/payments/{number}/cancel` | | the payment |
/// | `GET /control/tokens` | | the tokens, without their texts |
/// | `POST /control/tokens` | `{"label"?, "scopes", "expiresAt"?}` | the token, with its text |
/// | `DELETE /control/tokens/{id}` | | the token that is not accepted any more |
/// | `POST /control/faucet` | `{"url"}` | `{"txid"}`, of the node's wallet (regtest) |
///
/// Where revocation keys are needed, `"revocationKeystore"` names the directory of their keystore, an
/// absolute path.
#[derive(Debug)]
pub(crate) struct SetUp {
    ids: Option<Arc<MinerIds>>,
    revocation_keys: Arc<RevocationKeys>,
    wallet: Option<Arc<Wallet>>,
    tokens: Arc<Tokens>,
    keeping: Keeping,
    node: Option<NodeRpc>,
    network: Network,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FaucetJson {
    url: String,
}

#[derive(Deserialize)]
struct GenerateJson {
    alias: String,
    protocol: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RotateJson {
    #[serde(default)]
    force: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VctxJson {
    outpoint: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlindSigningJson {
    on: bool,
}

#[derive(Deserialize)]
struct ImportJson {
    from: PathBuf,
}

impl SetUp {
    pub(crate) fn new(
        ids: Option<Arc<MinerIds>>,
        wallet: Option<Arc<Wallet>>,
        tokens: Arc<Tokens>,
        keeping: Keeping,
        node: Option<NodeRpc>,
        network: Network,
        revocation_keys: Arc<RevocationKeys>,
    ) -> Self {
        Self { ids, revocation_keys, wallet, tokens, keeping, node, network }
    }

    /// What keeps keys and money.
    pub(crate) fn keeping(&self) -> &Keeping {
        &self.keeping
    }

    /// Answers a request if its path is one of these.
    pub(crate) async fn answer(&self, request: &Request<Bytes>) -> Option<Answer> {
        let path = request.uri().path().strip_prefix("/control/")?;
        if path == "tokens" || path.starts_with("tokens/") {
            let answer = tokens::answer(&self.tokens, &self.keeping, request, path).await;
            return Some(answer.unwrap_or_else(Problem::into_answer));
        }
        if Keeping::has(path) {
            let answer = self.keeping.answer(request, path).await;
            return Some(answer.unwrap_or_else(Problem::into_answer));
        }
        if path == "faucet" || path.starts_with("wallet/") {
            return Some(
                self.call_wallet(request, path).await.unwrap_or_else(Problem::into_answer),
            );
        }
        let answer = self.call(request.method(), path, request.body()).await;
        Some(answer.unwrap_or_else(|Refusal { status, text }| {
            Problem::of_status(status, text).into_answer()
        }))
    }

    async fn call_wallet(&self, request: &Request<Bytes>, path: &str) -> Result<Answer, Problem> {
        let disabled = || Problem::of_status(StatusCode::NOT_FOUND, "the wallet is disabled");
        let wallet = self.wallet.as_ref().ok_or_else(disabled)?;
        let segments: Vec<_> = path.split('/').collect();
        match (request.method().as_str(), segments.as_slice()) {
            ("POST", ["wallet", "backup-words"]) => {
                let seed = wallet.export_seed().await?;
                Ok(answer::json(StatusCode::OK, &json!({ "words": *seed.words() })))
            }
            ("POST", ["wallet", "accept-clock"]) => {
                let doubt = wallet.accept_clock().map(|doubt| doubt.to_string());
                Ok(answer::json(StatusCode::OK, &json!({ "doubt": doubt })))
            }
            ("GET", ["wallet", "payments"]) => {
                let before = before(request.uri())?;
                let payments = wallet.outgoing_payments(before, MAX_PAYMENTS).await?;
                let payments: Vec<_> = payments.iter().map(describe_payment).collect();
                Ok(answer::json(StatusCode::OK, &payments))
            }
            ("POST", ["wallet", "payments", number, "cancel"]) => {
                let unknown = || {
                    let detail = format!("there is no payment {number}");
                    Problem::new(StatusCode::NOT_FOUND, "unknown-payment", detail)
                };
                let number = number.parse().map_err(|_| unknown())?;
                let payment = wallet.cancel_payment(number).await?;
                Ok(answer::json(StatusCode::OK, &describe_payment(&payment)))
            }
            ("POST", ["faucet"]) => {
                let FaucetJson { url } = parse(request.body())
                    .map_err(|Refusal { status, text }| Problem::of_status(status, text))?;
                let own = wallet.own_listeners().clone();
                let txid = self.faucet(&url, own).await?;
                Ok(answer::json(StatusCode::OK, &json!({ "txid": txid.to_string() })))
            }
            _ => Err(Problem::of_status(StatusCode::NOT_FOUND, "there is nothing here")),
        }
    }

    async fn faucet(&self, url: &str, own: OwnListeners) -> Result<Txid, Problem> {
        if self.network != Network::Regtest {
            let detail = "the faucet gives coins of a regtest node only";
            return Err(Problem::of_status(StatusCode::UNPROCESSABLE_ENTITY, detail));
        }
        let Some(node) = &self.node else {
            let detail = "no node is configured: set rpcUser and rpcPassword";
            return Err(Problem::of_status(StatusCode::SERVICE_UNAVAILABLE, detail));
        };
        Ok(faucet(node, url, own).await?)
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
                let WithRevocationKeys { revocation_keystore, request } = parse(body)?;
                let GenerateJson { alias, protocol } = request;
                let alias = named(&alias)?;
                let made = alias.clone();
                match protocol.as_deref() {
                    None | Some("0.2") => {
                        on_disk(ids, move |ids| ids.generate(&made)).await?;
                    }
                    Some("1.0") => {
                        let keys = self.revocation_keys.open(revocation_keystore.as_deref())?;
                        on_disk(ids, move |ids| ids.generate_miner_info(&made, &keys)).await?;
                    }
                    Some(_) => return Err(Refusal::bad_request("the protocol is 0.2 or 1.0")),
                }
                let identity = ids.get(alias.as_str())?;
                Ok(answer::json(StatusCode::CREATED, &describe(&identity)))
            }
            ("GET", ["minerids", alias]) => ok(describe(&*ids.get(alias)?)),
            ("POST", ["minerids", alias, "rotate"]) => {
                let alias = named(alias)?;
                let rotated = alias.clone();
                let RotateJson { force } = parse(body)?;
                let rotate = if force { MinerIds::rotate_again } else { MinerIds::rotate };
                on_disk(ids, move |ids| rotate(ids, &rotated)).await?;
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
            ("POST", ["minerids", alias, "blind-signing"]) => {
                let alias = named(alias)?;
                let BlindSigningJson { on } = parse(body)?;
                let changed = alias.clone();
                on_disk(ids, move |ids| ids.set_blind_signing(&changed, on)).await?;
                ok(describe(&*ids.get(alias.as_str())?))
            }
            ("POST", ["import"]) => {
                let WithRevocationKeys { revocation_keystore, request } = parse(body)?;
                let ImportJson { from } = request;
                let keys = match from.join(REVOCATION_KEYS).is_dir() {
                    true => Some(self.revocation_keys.open(revocation_keystore.as_deref())?),
                    false => None,
                };
                let aliases = on_disk(ids, move |ids| ids.import(&from, keys.as_ref())).await?;
                let aliases: Vec<_> = aliases.iter().map(Alias::as_str).collect();
                ok(json!({ "aliases": aliases }))
            }
            ("POST", ["minerids", alias, action]) => {
                let alias = named(alias)?;
                let (node, keys) = (self.node.as_ref(), &self.revocation_keys);
                match identities::act(ids, node, keys, &alias, action, body).await? {
                    true => ok(describe(&*ids.get(alias.as_str())?)),
                    false => Err(Refusal::not_found()),
                }
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
        let node = self.node.as_ref().ok_or_else(no_node)?;
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

/// Where the older generator keeps the revocation keys of identities of generation 1.0.
const REVOCATION_KEYS: &str = ".revocationkeystore";

/// Runs a change that waits for the disk.
pub(super) async fn on_disk<T: Send + 'static>(
    ids: &Arc<MinerIds>,
    change: impl FnOnce(&MinerIds) -> Result<T, Error> + Send + 'static,
) -> Result<T, Refusal> {
    let ids = Arc::clone(ids);
    let changed = tokio::task::spawn_blocking(move || change(&ids)).await;
    Ok(changed.expect("changes do not panic, and are not cancelled")?)
}

/// How many payments are told at once.
const MAX_PAYMENTS: usize = 100;

/// The number before which payments are asked for.
fn before(uri: &Uri) -> Result<u64, Problem> {
    let Some((_, number)) = parameters(uri).find(|(name, _)| name == "before") else {
        return Ok(u64::MAX);
    };
    let wrong = |_| Problem::of_status(StatusCode::BAD_REQUEST, "before must be a number");
    number.parse().map_err(wrong)
}

fn describe_payment(payment: &OutgoingPayment) -> Value {
    json!({
        "id": payment.number,
        "url": payment.url,
        "txid": payment.txid.to_string(),
        "satoshis": payment.satoshis,
        "fee": payment.fee,
        "state": payment.state.name(),
        "createdAt": payment.created_at.to_string(),
        "expiresAt": payment.expires_at.to_string(),
        "memo": payment.memo,
        "blockHash": payment.block.map(|block| block.hash.to_string()),
        "blockHeight": payment.block.map(|block| block.height),
    })
}

fn named(alias: &str) -> Result<Alias, Refusal> {
    alias.parse().map_err(|error| Refusal::bad_request(format!("{error}")))
}

pub(super) fn parse<T: DeserializeOwned>(body: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal::bad_request(error.to_string()))
}

fn contact(body: &Bytes) -> Result<MinerContact, Refusal> {
    let text = std::str::from_utf8(body).unwrap_or_default();
    MinerContact::from_json(text).map_err(|error| Refusal::bad_request(error.to_string()))
}
