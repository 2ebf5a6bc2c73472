//! Creating and showing identities.

use bsv_server::Create;
use bsv_server::wire::NewIdentity;
use clap::Args;
use serde_json::Value;

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{Column, elements, field, printable, text};
use crate::revocation_keystore::RevocationKeystore;
use crate::shared_arguments::Name;

#[derive(Debug, Args)]
pub(crate) struct CreateArguments {
    #[command(flatten)]
    name: Name,
    /// The generation of the protocol: 0.2, with a VCTx, or 1.0, with a revocation key
    #[arg(long, value_name = "VERSION", default_value = "0.2", value_parser = ["0.2", "1.0"])]
    protocol: String,
    #[command(flatten)]
    revocation_keystore: RevocationKeystore,
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {}

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    #[command(flatten)]
    name: Name,
}

pub(in crate::commands) const COLUMNS: &[Column] = &[
    Column::whole("alias"),
    Column::whole("protocol").unless_narrow(2),
    Column::key("miner id", 13),
    Column::number("keys").unless_narrow(1),
    Column::key("VCTx or revocation key", 22).unless_narrow(0),
    Column::words("announced", 12).unless_narrow(3),
];

impl CreateArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let alias = self.name.alias();
        let identity = NewIdentity { alias: alias.to_string(), protocol: Some(self.protocol) };
        let mut service = context.service_after(Create::Identities, Stores::Identities).await?;
        let (keystore, path) = (self.revocation_keystore, "/control/minerids");
        let answer = keystore.post(context, &mut service, path, identity).await?;
        let identity = answer.value()?;
        context.print(&answer.body, || {
            let key = text(&identity, "minerId");
            let made = format!("Alias \"{alias}\" has the new miner id\n  {key}\n");
            match identity["revocationKey"].as_str() {
                Some(key) => format!("{made}Its revocation key is\n  {key}\n"),
                None => made,
            }
        })
    }
}

impl ListArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let mut service = context.service(Stores::Identities).await?;
        let answer = service.get("/control/minerids").await?;
        let identities = answer.value()?;
        context.print(&answer.body, || {
            if elements(&identities).is_empty() {
                return "There is no identity: make one with miner create\n".to_owned();
            }
            let mut table = context.table(COLUMNS);
            for identity in elements(&identities) {
                table.add([
                    &text(identity, "alias"),
                    &text(identity, "protocol"),
                    &text(identity, "minerId"),
                    &elements(&identity["minerIds"]).len(),
                    &vctx_or_revocation_key(identity),
                    &announced(identity),
                ]);
            }
            table.end()
        })
    }
}

impl ShowArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let mut service = context.service(Stores::Identities).await?;
        let answer = service.get(format!("/control/minerids/{}", self.name.alias())).await?;
        let identity = answer.value()?;
        context.print(&answer.body, || describe("Alias", &identity))
    }
}

/// Describes an identity, with a line for each field. The first line begins with `what`.
pub(super) fn describe(what: &str, identity: &Value) -> String {
    let (alias, protocol) = (text(identity, "alias"), text(identity, "protocol"));
    let mut described = format!("{what} \"{alias}\" of protocol {protocol}\n");
    described.push_str(&field("miner id", &identity["minerId"]));
    for earlier in elements(&identity["minerIds"]).iter().rev().skip(1) {
        described.push_str(&field("before that", earlier));
    }
    let is_signing = identity["blindSigning"].as_bool().unwrap_or_default();
    described.push_str(&field("VCTx", &identity["vctx"]["state"]));
    described.push_str(&field("outpoint", &identity["vctx"]["outpoint"]));
    described.push_str(&field("revocation", &identity["revocationKey"]));
    described.push_str(&field("announced", &announced(identity).into()));
    described
        .push_str(&field("signs", &(if is_signing { "any hash" } else { "documents" }).into()));
    for (name, value) in identity["minerContact"].as_object().into_iter().flatten() {
        let value = printable(value.as_str().unwrap_or_default());
        described.push_str(&format!("contact      {}={value}\n", printable(name)));
    }
    described
}

fn vctx_or_revocation_key(identity: &Value) -> String {
    match identity["revocationKey"].as_str() {
        Some(key) => printable(key),
        None => vctx(identity),
    }
}

/// The state of a VCTx, and its outpoint.
fn vctx(identity: &Value) -> String {
    let vctx = &identity["vctx"];
    format!("{} {}", text(vctx, "state"), text(vctx, "outpoint")).trim_end().to_owned()
}

fn announced(identity: &Value) -> String {
    if identity["state"] == "closed" {
        return "closed".to_owned();
    }
    let announced = elements(&identity["announced"]).iter().filter_map(Value::as_str);
    let words = announced.map(|announcement| match announcement {
        "revocationKey" => "new revocation key".to_owned(),
        "partialRevocation" | "completeRevocation" => "revocation".to_owned(),
        other => printable(other),
    });
    words.collect::<Vec<_>>().join(", ")
}
