use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bsv_invoicing::invoices::InvoiceQuery;
use bsv_invoicing::ledger::Exposure;
use bsv_invoicing::ledger::webhooks::LoadedWebhook;
use bsv_invoicing::{Timestamp, Wallet};
use bsv_network::{ChainTip, NodeRpc};
use bsv_store::{AuditPage, KeyEvent};
use bsv_tx::Network;
use hyper::StatusCode;
use serde_json::{Value, json};

use super::audit;
use super::identities::{alarms, describe};
use super::managed::Services;
use crate::api::Api;
use crate::headers;
use crate::health::{NodeState, Readiness, StoreState};
use crate::http::{Answer, Problem, answer};
use crate::opening::{open_to_others, open_to_others_text};
use crate::services::{self, Report};

/// The age of the newest block, in seconds, from which the node probably no longer follows the
/// network, or nobody mines.
const OLD_TIP_AGE: u64 = 3 * 60 * 60;

/// `GET /control/status`: an overview of the whole service, and the problems that need attention.
pub(super) async fn answer(managed: &Services) -> Result<Answer, Problem> {
    let readiness = managed.health.look(Api::Control).await;
    let tip = match managed.health.node() {
        Some(node) if readiness.node == NodeState::Reachable => tip(node).await,
        _ => None,
    };
    let last_backup = last_backup(managed).await?;
    let identities = describe_identities(managed);
    let wallet = describe_wallet(managed).await?;
    let is_sealed = managed.keystore().ok().map(|keystore| !keystore.is_plain());
    let mut attention: Vec<_> = managed.failures().map(str::to_owned).collect();
    attention.extend(of_readiness(&readiness));
    attention.extend(open_to_others(&managed.dirs).map(open_to_others_text));
    let headers = managed.health.headers();
    attention.extend(headers.map(headers::attention).into_iter().flatten());
    let services = services::reports(headers, managed.wallet().ok().map(Arc::as_ref));
    attention.extend(services.iter().filter_map(Report::attention));
    attention.extend(of_exposure(managed).await?);
    attention.extend(of_second_source(managed).await?.map(str::to_owned));
    attention.extend(of_tip(managed.network, tip.as_ref()));
    attention.extend(of_keys(managed.network, is_sealed, last_backup.as_deref()));
    attention.extend(of_invoices(wallet.as_ref()));
    attention.extend(of_webhooks(wallet.as_ref()));
    attention.extend(of_identities(&identities));
    let body = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "network": managed.network.name(),
        "dataDir": managed.network_dir,
        "ready": readiness.is_ready_for(Api::Control),
        "attention": attention,
        "listeners": managed.listening(),
        "node": {
            "state": readiness.node,
            "txindex": readiness.txindex,
            "height": tip.as_ref().map(|(tip, _)| tip.height),
            "hash": tip.as_ref().map(|(tip, _)| tip.hash.to_string()),
            "tipAgeSeconds": tip.as_ref().map(|(_, age)| age),
        },
        "headers": headers.map(headers::describe),
        "services": services.iter().map(Report::describe).collect::<Vec<_>>(),
        "stores": { "state": readiness.store, "damaged": readiness.damaged },
        "clock": readiness.clock,
        "keystore": { "isSealed": is_sealed },
        "lastBackup": last_backup.map(|at| json!({ "at": at })),
        "wallet": wallet,
        "minerid": identities.map(|aliases| json!({ "aliases": aliases })),
    });
    Ok(answer::json(StatusCode::OK, &body))
}

/// The tip, and its age in seconds.
async fn tip(node: &NodeRpc) -> Option<(ChainTip, u64)> {
    let tip = node.tip().await.ok()?;
    let header = node.block_header(&tip.hash).await.ok()??.header;
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    Some((tip, now.saturating_sub(u64::from(header.time))))
}

/// The most invoices that need a decision and are counted.
const MAX_CASES: usize = 1000;

/// How many invoices need a decision, and whether there may be more of them. Only one page is read,
/// which looks at a limited number of invoices.
async fn count_cases(wallet: &Wallet) -> Result<(usize, bool), Problem> {
    let limit = MAX_CASES;
    let query = InvoiceQuery { needs_decision: true, limit, ..InvoiceQuery::default() };
    let page = wallet.invoices(query).await?;
    Ok((page.invoices.len(), page.next.is_some()))
}

/// Payments wait for their blocks while the sum that counts without is near its limit.
async fn of_exposure(managed: &Services) -> Result<Option<String>, Problem> {
    let Ok(wallet) = managed.wallet() else { return Ok(None) };
    let Exposure { satoshis, limit } = wallet.exposure().await?;
    let limit = limit.filter(|limit| satoshis > 0 && satoshis >= limit / 10 * 9);
    Ok(limit.map(|limit| {
        format!(
            "{satoshis} satoshis count by the word of services alone, and the limit is {limit}: further payments \
             wait for a block (services.exposureSatoshis)"
        )
    }))
}

/// Payments wait while only one service shows the newest block.
async fn of_second_source(managed: &Services) -> Result<Option<&'static str>, Problem> {
    let Ok(wallet) = managed.wallet() else { return Ok(None) };
    Ok(wallet.awaits_second_source().await?.then_some(
        "only one service shows the newest block: payments above wallet.zeroConfLimitSatoshis begin to count \
         once a second one does",
    ))
}

async fn describe_wallet(managed: &Services) -> Result<Option<Value>, Problem> {
    let Ok(wallet) = managed.wallet() else { return Ok(None) };
    let (balance, open) = (wallet.balance().await?, wallet.count_open_payments().await?);
    let (cases, are_there_more) = count_cases(wallet).await?;
    let webhooks = wallet.webhooks().await?;
    let webhooks = webhooks.iter().map(|(id, LoadedWebhook { webhook, .. })| {
        json!({
            "id": id.to_string(),
            "state": webhook.state.name(),
            "failingSince": webhook.failing_since.map(|at| at.to_string()),
        })
    });
    let webhooks: Vec<_> = webhooks.collect();
    Ok(Some(json!({
        "balance": balance,
        "openPayments": open,
        "invoicesToDecide": cases,
        "moreToDecide": are_there_more,
        "webhooks": webhooks,
    })))
}

fn describe_identities(managed: &Services) -> Option<Vec<Value>> {
    let ids = managed.ids().ok()?;
    let identities = ids.all();
    let identities = identities.iter().map(|identity| {
        let mut description = describe(identity);
        json!({
            "alias": description["alias"].take(),
            "protocol": description["protocol"].take(),
            "minerId": description["minerId"].take(),
            "alarms": alarms(identity),
        })
    });
    let broken = ids.broken().map(|(alias, reason)| {
        json!({ "alias": alias.as_str(), "alarms": [format!("it cannot be used: {reason}")] })
    });
    Some(identities.chain(broken).collect())
}

/// How many entries of the audit log are looked at for the last backup.
const LOOKED_AT: usize = 10_000;

/// The start of the last backup that did not fail, if one of the last entries of the log is about
/// it.
async fn last_backup(managed: &Services) -> Result<Option<String>, Problem> {
    let log = match managed.wallet() {
        Ok(_) => "wallet",
        Err(_) => "minerid",
    };
    let (mut before, mut failed, mut looked_at) = (u64::MAX, 0, 0);
    while looked_at < LOOKED_AT {
        let entries = audit::entries(managed, log, AuditPage::Before(before)).await?;
        let Some(oldest) = entries.first() else { break };
        before = oldest.number;
        looked_at += entries.len();
        for entry in entries.iter().rev() {
            if entry.event == KeyEvent::Failed.name() && entry.subject == KeyEvent::BackedUp.name()
            {
                failed += 1;
            } else if entry.event == KeyEvent::BackedUp.name() && failed > 0 {
                failed -= 1;
            } else if entry.event == KeyEvent::BackedUp.name() {
                return Ok(Some(Timestamp::from_micros(entry.at_micros).to_string()));
            }
        }
    }
    Ok(None)
}

fn of_readiness(readiness: &Readiness) -> Vec<String> {
    let mut attention = Vec::new();
    if readiness.store == StoreState::NotWritable {
        attention.push("a store cannot be written to: see the log of the server".to_owned());
    }
    for store in &readiness.damaged {
        attention.push(format!(
            "the {store} store cannot be used: stop the server, put its data directory aside, and \
             restore the last backup"
        ));
    }
    match (readiness.node, readiness.txindex) {
        (NodeState::Away, _) => attention.push("the node does not answer".to_owned()),
        (_, Some(false)) => attention
            .push("the node keeps no index of transactions: run it with txindex=1".to_owned()),
        _ => {}
    }
    if let Some(doubt) = readiness.clock {
        attention.push(format!(
            "the system's clock is doubted ({doubt}): correct it, or run bsv-cli wallet accept-clock"
        ));
    }
    attention
}

/// Reports an old newest block, except on regtest, where blocks are mined on demand.
fn of_tip(network: Network, tip: Option<&(ChainTip, u64)>) -> Option<String> {
    let (_, age) = tip?;
    let is_old = network != Network::Regtest && *age > OLD_TIP_AGE;
    is_old.then(|| format!("the node's newest block is {} hours old", age / 3600))
}

/// Reports unsealed keys and a missing backup, except on regtest, where nothing has value.
fn of_keys(network: Network, is_sealed: Option<bool>, last_backup: Option<&str>) -> Vec<String> {
    let mut attention = Vec::new();
    let Some(is_sealed) = is_sealed.filter(|_| network != Network::Regtest) else {
        return attention;
    };
    if !is_sealed {
        attention.push("the keys are not sealed: run bsv-cli keystore passphrase".to_owned());
    }
    if last_backup.is_none() {
        attention.push("there is no backup: run bsv-cli backup FILE".to_owned());
    }
    attention
}

/// Reports the invoices that need a decision.
fn of_invoices(wallet: Option<&Value>) -> Option<String> {
    let needed = "a decision: see bsv-cli invoice list --attention";
    let wallet = wallet?;
    match (wallet["invoicesToDecide"].as_u64()?, wallet["moreToDecide"].as_bool()?) {
        (0, false) => None,
        (0, true) => Some(format!("some invoices may need {needed}")),
        (1, false) => Some(format!("1 invoice needs {needed}")),
        (count, false) => Some(format!("{count} invoices need {needed}")),
        (count, true) => Some(format!("{count} invoices or more need {needed}")),
    }
}

/// Reports the webhooks that are disabled because deliveries failed. The owner or a restore has
/// disabled the others.
fn of_webhooks(wallet: Option<&Value>) -> Vec<String> {
    let webhooks = wallet.and_then(|wallet| wallet["webhooks"].as_array()).into_iter().flatten();
    let of_webhook = |webhook: &Value| {
        let id = webhook["id"].as_str()?;
        let why = match (webhook["state"].as_str()?, webhook["failingSince"].as_str()) {
            ("gone", _) => "has answered 410".to_owned(),
            ("disabled", Some(since)) => format!("has failed since {since}"),
            _ => return None,
        };
        Some(format!("webhook {id} {why}, and receives nothing: enable it, or delete it"))
    };
    webhooks.filter_map(of_webhook).collect()
}

fn of_identities(identities: &Option<Vec<Value>>) -> Vec<String> {
    let identities = identities.iter().flatten();
    let alarmed = identities.filter_map(|identity| {
        let alarms = identity["alarms"].as_array()?.iter().filter_map(Value::as_str);
        let alias = identity["alias"].as_str()?;
        Some(alarms.map(move |alarm| format!("alias \"{alias}\": {alarm}")))
    });
    alarmed.flatten().collect()
}
