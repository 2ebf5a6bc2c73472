use std::path::{Path, PathBuf};

use bsv_invoicing::{InvoiceDraft, InvoiceId, Timestamp, UserDraft};
use bsv_minerid::{Alias, MinerContact};
use bsv_server::{Config, Create, Grant};
use bsv_tx::{OutPoint, PublicKey};
use hyper::Method;
use serde_json::{Value, json};

use crate::reach::{Answer, Request};
use crate::{invoices, output};

/// One thing that the service is asked to do.
#[derive(Debug)]
pub(crate) enum Operation {
    Generate { alias: Alias, protocol: String, revocation_keystore: Option<PathBuf> },
    SetUpVctx { alias: Alias, funding: Option<OutPoint> },
    Rotate { alias: Alias, force: bool },
    RollRevocationKey { alias: Alias, revocation_keystore: Option<PathBuf> },
    RevokePartially { alias: Alias, miner_id: PublicKey, revocation_keystore: Option<PathBuf> },
    RevokeCompletely { alias: Alias, revocation_keystore: Option<PathBuf> },
    Revoke { alias: Alias },
    Confirm { alias: Alias },
    Upgrade { alias: Alias, first: Option<PublicKey>, revocation_keystore: Option<PathBuf> },
    SetExtensions { alias: Alias, json: String },
    SetData { alias: Alias, json: String },
    GetCurrent { alias: Alias },
    OpReturn { alias: Alias, height: u32 },
    SetContact { alias: Alias, pairs: Vec<(String, String)> },
    SetBlindSigning { alias: Alias, is_on: bool },
    Import { from: PathBuf, revocation_keystore: Option<PathBuf> },
    List,
    CreateInvoice(InvoiceDraft),
    GetInvoice { id: InvoiceId },
    DeleteInvoice { id: InvoiceId },
    CreateUser(UserDraft),
    GetUser { id: u64 },
    Balance,
    Pay { url: String },
    ListPayments { before: Option<u64> },
    CancelPayment { id: u64 },
    Faucet { url: String },
    BackupWords { is_confirmed: bool },
    AcceptClock,
    CreateToken { label: String, grants: Vec<Grant>, expires_at: Option<Timestamp> },
    ListTokens,
    RevokeToken { id: String },
}

/// Whom an operation is asked of.
enum Asked {
    MinerId,
    Wallet,
    /// What both have in common.
    Neither,
}

impl Operation {
    /// Leaves of `config` the service that this is asked of: another one is not opened for it.
    pub(crate) fn restrict(&self, config: Config) -> Config {
        match self.asked() {
            Asked::MinerId => Config { wallet: None, ..config },
            Asked::Wallet => Config { minerid: None, ..config },
            Asked::Neither => Config { minerid: None, wallet: None, ..config },
        }
    }

    /// What this makes where it is missing.
    pub(crate) fn creates(&self) -> Create {
        match self {
            Self::Generate { .. } | Self::Import { .. } => Create::Identities,
            _ => Create::Nothing,
        }
    }

    fn asked(&self) -> Asked {
        match self {
            Self::Generate { .. }
            | Self::SetUpVctx { .. }
            | Self::Rotate { .. }
            | Self::RollRevocationKey { .. }
            | Self::RevokePartially { .. }
            | Self::RevokeCompletely { .. }
            | Self::Revoke { .. }
            | Self::Confirm { .. }
            | Self::Upgrade { .. }
            | Self::SetExtensions { .. }
            | Self::SetData { .. }
            | Self::GetCurrent { .. }
            | Self::OpReturn { .. }
            | Self::SetContact { .. }
            | Self::SetBlindSigning { .. }
            | Self::Import { .. }
            | Self::List => Asked::MinerId,
            Self::CreateInvoice(_)
            | Self::GetInvoice { .. }
            | Self::DeleteInvoice { .. }
            | Self::CreateUser(_)
            | Self::GetUser { .. }
            | Self::Balance
            | Self::Pay { .. }
            | Self::ListPayments { .. }
            | Self::CancelPayment { .. }
            | Self::Faucet { .. }
            | Self::BackupWords { .. }
            | Self::AcceptClock => Asked::Wallet,
            Self::CreateToken { .. } | Self::ListTokens | Self::RevokeToken { .. } => {
                Asked::Neither
            }
        }
    }

    /// The request that asks for it.
    pub(crate) fn request(&self) -> Request {
        let get = |path: String| Request { method: Method::GET, path, body: None };
        let delete = |path: String| Request { method: Method::DELETE, path, body: None };
        let post = |path: String, body: Value| Request {
            method: Method::POST,
            path,
            body: Some(body.to_string()),
        };
        match self {
            Self::Generate { alias, protocol, revocation_keystore } => {
                let body = json!({
                    "alias": alias.as_str(),
                    "protocol": protocol,
                    "revocationKeystore": absolute(revocation_keystore.as_deref()),
                });
                post("/control/minerids".to_owned(), body)
            }
            Self::SetUpVctx { alias, funding } => post(
                format!("/control/minerids/{alias}/vctx"),
                json!({ "outpoint": funding.map(|outpoint| outpoint.to_string()) }),
            ),
            Self::Rotate { alias, force } => {
                post(format!("/control/minerids/{alias}/rotate"), json!({ "force": force }))
            }
            Self::RollRevocationKey { alias, revocation_keystore: keys } => post(
                format!("/control/minerids/{alias}/revocation-key"),
                json!({ "revocationKeystore": absolute(keys.as_deref()) }),
            ),
            Self::RevokePartially { alias, miner_id, revocation_keystore: keys } => post(
                format!("/control/minerids/{alias}/revoke-partially"),
                json!({
                    "minerId": miner_id.to_string(),
                    "revocationKeystore": absolute(keys.as_deref()),
                }),
            ),
            Self::RevokeCompletely { alias, revocation_keystore: keys } => post(
                format!("/control/minerids/{alias}/revoke-completely"),
                json!({ "revocationKeystore": absolute(keys.as_deref()) }),
            ),
            Self::Revoke { alias } => post(format!("/control/minerids/{alias}/revoke"), json!({})),
            Self::Confirm { alias } => {
                post(format!("/control/minerids/{alias}/confirm"), json!({}))
            }
            Self::Upgrade { alias, first, revocation_keystore: keys } => post(
                format!("/control/minerids/{alias}/upgrade"),
                json!({
                    "firstMinerId": first.map(|key| key.to_string()),
                    "revocationKeystore": absolute(keys.as_deref()),
                }),
            ),
            // Order and spelling enter documents.
            Self::SetExtensions { alias, json } => {
                let path = format!("/control/minerids/{alias}/extensions");
                Request { method: Method::POST, path, body: Some(json.clone()) }
            }
            Self::SetData { alias, json } => {
                let path = format!("/control/minerids/{alias}/data");
                Request { method: Method::POST, path, body: Some(json.clone()) }
            }
            Self::GetCurrent { alias } => get(format!("/minerid/{alias}")),
            Self::OpReturn { alias, height } => get(format!("/opreturn/{alias}/{height}")),
            Self::SetContact { alias, pairs } => {
                let path = format!("/control/minerids/{alias}/contact");
                // Their order enters documents.
                let contact: MinerContact = pairs.iter().cloned().collect();
                Request { method: Method::POST, path, body: Some(contact.to_json()) }
            }
            Self::SetBlindSigning { alias, is_on } => {
                let path = format!("/control/minerids/{alias}/blind-signing");
                post(path, json!({ "on": is_on }))
            }
            Self::Import { from, revocation_keystore: keys } => {
                let body = json!({
                    "from": absolute(Some(from)),
                    "revocationKeystore": absolute(keys.as_deref()),
                });
                post("/control/import".to_owned(), body)
            }
            Self::List => get("/control/minerids".to_owned()),
            Self::CreateInvoice(InvoiceDraft { satoshis, description, reference, expires_at }) => {
                let body = json!({
                    "satoshis": satoshis,
                    "description": description,
                    "reference": reference,
                    "expiresAt": expires_at.map(|time| time.to_string()),
                });
                post("/api/v1/invoices".to_owned(), body)
            }
            Self::GetInvoice { id } => get(format!("/api/v1/invoices/{id}")),
            Self::DeleteInvoice { id } => delete(format!("/api/v1/invoices/{id}")),
            Self::CreateUser(UserDraft { name, email, avatar, address, phone_number }) => {
                let body = json!({
                    "name": name,
                    "email": email,
                    "avatar": avatar,
                    "address": address,
                    "phoneNumber": phone_number,
                });
                post("/api/v1/users".to_owned(), body)
            }
            Self::GetUser { id } => get(format!("/api/v1/users/{id}")),
            Self::Balance => get("/api/v1/balance".to_owned()),
            Self::Pay { url } => post("/api/v1/pay".to_owned(), json!({ "payToURL": url })),
            Self::ListPayments { before: None } => get("/control/wallet/payments".to_owned()),
            Self::ListPayments { before: Some(id) } => {
                get(format!("/control/wallet/payments?before={id}"))
            }
            Self::CancelPayment { id } => {
                post(format!("/control/wallet/payments/{id}/cancel"), json!({}))
            }
            Self::Faucet { url } => post("/control/faucet".to_owned(), json!({ "url": url })),
            Self::BackupWords { .. } => post("/control/wallet/backup-words".to_owned(), json!({})),
            Self::AcceptClock => post("/control/wallet/accept-clock".to_owned(), json!({})),
            Self::CreateToken { label, grants, expires_at } => {
                let body = json!({
                    "label": label,
                    "scopes": grants.iter().map(ToString::to_string).collect::<Vec<_>>(),
                    "expiresAt": expires_at.map(|time| time.to_string()),
                });
                post("/control/tokens".to_owned(), body)
            }
            Self::ListTokens => get("/control/tokens".to_owned()),
            Self::RevokeToken { id } => delete(format!("/control/tokens/{id}")),
        }
    }

    /// The answer as JSON, for programs.
    pub(crate) fn json(&self, answer: &Answer) -> String {
        let Answer { body: answer, payment_url, .. } = answer;
        match self {
            Self::CreateInvoice(_) | Self::GetInvoice { .. } => {
                let payment_url = Value::from(payment_url.as_deref());
                format!("{},\"paymentUrl\":{payment_url}}}\n", answer.trim_end_matches('}'))
            }
            Self::DeleteInvoice { id } => format!("{}\n", json!({ "deleted": id.as_str() })),
            Self::GetCurrent { alias } => {
                format!("{}\n", json!({ "alias": alias.as_str(), "minerId": answer }))
            }
            Self::OpReturn { alias, height } => format!(
                "{}\n",
                json!({ "alias": alias.as_str(), "height": height, "script": answer })
            ),
            _ => format!("{answer}\n"),
        }
    }

    /// The answer for people.
    pub(crate) fn text(&self, answer: &Answer) -> String {
        let Answer { body: answer, payment_url, .. } = answer;
        let value: Value = serde_json::from_str(answer).unwrap_or_default();
        let member = |name: &str| value[name].as_str().unwrap_or_default();
        match self {
            Self::GetCurrent { .. } | Self::OpReturn { .. } => format!("{answer}\n"),
            Self::Generate { alias, .. } => {
                let made =
                    format!("Alias \"{alias}\" has the new miner id {}\n", member("minerId"));
                match value["revocationKey"].as_str() {
                    Some(key) => format!("{made}Its revocation key is {key}\n"),
                    None => made,
                }
            }
            Self::RollRevocationKey { alias, .. } => format!(
                "Alias \"{alias}\" now has the revocation key {}\n\
                 The next block that carries it announces the new key.\n",
                member("revocationKey")
            ),
            Self::RevokePartially { alias, .. } => format!(
                "The miner ids of alias \"{alias}\" are revoked back to {}, and the node has been told\n\
                 It now has the miner id {}\n\
                 The next block that carries it announces the revocation.\n",
                member("compromisedMinerId"),
                member("minerId")
            ),
            Self::RevokeCompletely { alias, .. } => format!(
                "All miner ids of alias \"{alias}\" are revoked, and the node has been told\n\
                 Documents announce the revocation until a block was seen to show it.\n"
            ),
            Self::Revoke { alias } => format!(
                "Alias \"{alias}\" is revoked\nIts VCTx {} is spent by transaction {}\n",
                value["vctx"]["outpoint"].as_str().unwrap_or_default(),
                value["vctx"]["txid"].as_str().unwrap_or_default()
            ),
            Self::Confirm { alias } => {
                format!("All that alias \"{alias}\" announced counts as seen in a block\n")
            }
            Self::Upgrade { alias, .. } => format!(
                "Alias \"{alias}\" is of protocol 1.0 now, with the revocation key {}\n",
                member("revocationKey")
            ),
            Self::SetExtensions { alias, .. } | Self::SetData { alias, .. } => {
                format!("Documents of alias \"{alias}\" change accordingly\n")
            }
            Self::Rotate { alias, .. } => format!(
                "Alias \"{alias}\" now has the miner id {}\n\
                 The next block that carries it announces the rotation.\n",
                member("minerId")
            ),
            Self::SetUpVctx { alias, .. } if member("state") == "done" => format!(
                "The VCTx of alias \"{alias}\" is on the network: {}\n\
                 Keep it unspent: spending it revokes the identity.\n",
                member("outpoint")
            ),
            Self::SetUpVctx { .. } => format!(
                "Send at least {} satoshis to {} ({} have arrived), then run this again.\n",
                value["leastSatoshis"],
                member("address"),
                value["foundSatoshis"]
            ),
            Self::SetContact { .. } => format!("{value:#}\n"),
            Self::SetBlindSigning { alias, is_on: true } => {
                format!("Alias \"{alias}\" signs any hash that it is asked to sign\n")
            }
            Self::SetBlindSigning { alias, is_on: false } => {
                format!("Alias \"{alias}\" signs documents only\n")
            }
            Self::Import { .. } => output::imported(&value),
            Self::List => output::identities(&value),
            Self::CreateInvoice(_) | Self::GetInvoice { .. } => {
                invoices::describe(&value, payment_url.as_deref())
            }
            Self::DeleteInvoice { id } => format!("Invoice {id} is deleted\n"),
            Self::CreateUser(_) | Self::GetUser { .. } => output::user(&value),
            Self::Balance => format!("{} satoshis\n", value["satoshis"]),
            Self::Pay { .. } => output::paid(&value),
            Self::ListPayments { .. } => output::payments(&value),
            Self::CancelPayment { id } => format!("Payment {id} is {}\n", member("state")),
            Self::Faucet { url } => {
                format!("The faucet has paid to {url}\ntransaction {}\n", member("txid"))
            }
            Self::BackupWords { .. } => format!("{}\n", member("words")),
            Self::AcceptClock => match value["doubt"].as_str() {
                Some(doubt) => format!("The clock is accepted as it is: {doubt}\n"),
                None => "The clock was not doubted\n".to_owned(),
            },
            Self::CreateToken { .. } => output::new_token(&value),
            Self::ListTokens => output::tokens(&value),
            Self::RevokeToken { id } => format!("Token {id} is revoked\n"),
        }
    }
}

/// The same path for the server, which has another working directory.
pub(crate) fn absolute(path: Option<&Path>) -> Option<PathBuf> {
    path.map(|path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned()))
}
