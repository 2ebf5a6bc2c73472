//! An overview of the whole service.

use clap::Args;
use serde_json::{Value, json};

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{ATTENTION, GOOD, elements, number, painted, printable, text};
use crate::service::Service;

#[derive(Debug, Args)]
pub(crate) struct StatusArguments {
    /// Only check that a server runs on the data directory and answers
    #[arg(long)]
    alive: bool,
}

impl StatusArguments {
    /// The command succeeds only if nothing needs attention.
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        if self.alive {
            return check_alive(context).await;
        }
        let mut service = context.service(Stores::All).await?;
        let waiting = context.wait("looking");
        let answer = service.get("/control/status").await?;
        drop(waiting);
        let status = answer.value()?;
        context.print(&answer.body, || {
            attention(&status, context.colors.stdout) + &describe(context, &status)
        })?;
        match is_well(&status) {
            true => Ok(()),
            false => Err(CliError::Told),
        }
    }
}

async fn check_alive(context: &Context) -> Result<(), CliError> {
    let dir = context.config()?.network_dir;
    let Some(mut server) = Service::of_server(&dir).await? else {
        return Err(CliError::CheckFailed(format!("no server runs on {}", dir.display())));
    };
    server.get("/healthz").await?;
    context.print(json!({ "alive": true }), || "The server answers\n".to_owned())
}

fn is_well(status: &Value) -> bool {
    elements(&status["attention"]).is_empty() && status["ready"] == true
}

/// The problems that need attention, which are printed first.
fn attention(status: &Value, is_colored: bool) -> String {
    if is_well(status) {
        return painted("All is well", GOOD, is_colored) + "\n";
    }
    let mut text = painted("This needs attention:", ATTENTION, is_colored) + "\n";
    let sentences = elements(&status["attention"]).iter().filter_map(Value::as_str);
    sentences.for_each(|sentence| text.push_str(&format!("  {}\n", printable(sentence))));
    if elements(&status["attention"]).is_empty() {
        text.push_str("  the service is not ready\n");
    }
    text
}

fn describe(context: &Context, status: &Value) -> String {
    let mut described = String::new();
    let mut line = |name: &str, value: String| {
        described.push_str(&format!("{name:<13}{value}\n"));
    };
    line("version", text(status, "version"));
    line(
        "network",
        match text(status, "network") {
            livenet if livenet == "livenet" => livenet,
            other => format!("{other}, for tests: nothing has a value"),
        },
    );
    line("data", text(status, "dataDir"));
    let listeners = elements(&status["listeners"]);
    for listener in listeners {
        line("listening", format!("{} {}", text(listener, "name"), text(listener, "url")));
    }
    if listeners.is_empty() {
        line("listening", "no server runs".to_owned());
    }
    line("node", node(context, &status["node"]));
    if !status["headers"].is_null() {
        line("headers", block(context, &status["headers"]));
    }
    line("stores", stores(&status["stores"]));
    line("clock", status["clock"].as_str().map_or("right".to_owned(), printable));
    line(
        "keys",
        match status["keystore"]["isSealed"].as_bool() {
            Some(true) => "sealed".to_owned(),
            Some(false) => "not sealed".to_owned(),
            None => "none".to_owned(),
        },
    );
    let last_backup = status["lastBackup"]["at"].as_str();
    line("last backup", last_backup.map_or("none".to_owned(), |at| printable(&context.time(at))));
    if let Some(wallet) = status["wallet"].as_object() {
        let figure = |name: &str| wallet.get(name).and_then(Value::as_u64).unwrap_or_default();
        line("balance", format!("{} satoshis", figure("balance")));
        line("payments", format!("{} open", figure("openPayments")));
        let webhooks = elements(&status["wallet"]["webhooks"]);
        if !webhooks.is_empty() {
            line("webhooks", states(webhooks));
        }
    }
    for identity in elements(&status["minerid"]["aliases"]) {
        line("alias", alias(context, identity));
    }
    described
}

fn node(context: &Context, node: &Value) -> String {
    let mut described = match node["state"].as_str() {
        Some("none") => "not configured: nothing can be known of what blocks show".to_owned(),
        Some("away") => "does not answer".to_owned(),
        _ => text(node, "state"),
    };
    if node["height"].is_u64() {
        described.push_str(&format!(", {}", block(context, node)));
    }
    if node["txindex"] == false {
        described.push_str(", without an index of transactions");
    }
    described
}

/// The newest block, and its age.
pub(crate) fn block(context: &Context, of: &Value) -> String {
    let (height, hash) = (number(of, "height"), context.key(text(of, "hash")));
    let old = of["tipAgeSeconds"].as_u64().map(|seconds| format!(", {} old", age(seconds)));
    format!("block {height} {hash}{}", old.unwrap_or_default())
}

fn stores(stores: &Value) -> String {
    let damaged = elements(&stores["damaged"]).iter().filter_map(Value::as_str);
    let damaged = damaged.map(|store| format!(", {} damaged", printable(store)));
    let state = if stores["state"] == "writable" { "writable" } else { "not writable" };
    state.to_owned() + &damaged.collect::<String>()
}

/// The number of webhooks in each state.
fn states(webhooks: &[Value]) -> String {
    let counted = ["enabled", "disabled", "gone"].map(|state| {
        let count = webhooks.iter().filter(|webhook| webhook["state"] == state).count();
        (count > 0).then(|| format!("{count} {state}"))
    });
    counted.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn alias(context: &Context, identity: &Value) -> String {
    let alarms = elements(&identity["alarms"]).iter().filter_map(Value::as_str);
    let alarms: Vec<_> = alarms.map(printable).collect();
    let alias = text(identity, "alias");
    let (protocol, key) = (text(identity, "protocol"), context.key(text(identity, "minerId")));
    match alarms.is_empty() {
        true => format!("{alias}, protocol {protocol}, {key}"),
        false => format!("{alias}, protocol {protocol}, {key}: {}", alarms.join("; ")),
    }
}

/// A duration in a suitable unit.
pub(crate) fn age(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7200 => format!("{} min", seconds / 60),
        7200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}
