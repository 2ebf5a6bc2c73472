//! The contents of documents, and signing.

use std::str::FromStr;

use bsv_minerid::{Alias, MinerContact};
use bsv_server::wire::{BlindSigning, ContactKeys};
use clap::{Args, ValueEnum};
use serde_json::json;

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::files;
use crate::output::{self, printable, printable_json};
use crate::shared_arguments::{Name, NameOption, height};

#[derive(Debug, Args)]
pub(crate) struct ScriptArguments {
    #[command(flatten)]
    name: Name,
    /// The height of the block
    #[arg(long, short = 't', value_name = "N", value_parser = height())]
    height: u32,
}

#[derive(Debug, Args)]
pub(crate) struct ContactArguments {
    #[command(flatten)]
    name: NameOption,
    /// Members to set, such as email=me@example.com. Without any, the contact information is shown
    #[arg(value_name = "KEY=VALUE")]
    pairs: Vec<KeyValue>,
    /// A key to remove. May be given several times
    #[arg(long = "remove", value_name = "KEY", conflicts_with = "pairs")]
    removed: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ExtensionsArguments {
    #[command(flatten)]
    name: NameOption,
    /// A JSON object, or - for standard input
    #[arg(value_name = "FILE", value_parser = files::text)]
    document: String,
}

#[derive(Debug, Args)]
pub(crate) struct DataRefsArguments {
    #[command(flatten)]
    name: NameOption,
    /// JSON: {"dataRefs":{"refs":[{"brfcIds":[…],"data":{…},"vout":N}]}}, or - for standard input
    #[arg(value_name = "FILE", value_parser = files::text)]
    document: String,
}

#[derive(Debug, Args)]
pub(crate) struct BlindSigningArguments {
    #[command(flatten)]
    name: NameOption,
    /// on: any hash; off: only documents
    #[arg(value_enum)]
    switch: Switch,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

/// A member of a minerContact.
#[derive(Clone, Debug)]
pub(crate) struct KeyValue(String, String);

impl FromStr for KeyValue {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok(Self(key.to_owned(), value.to_owned())),
            _ => Err("expected KEY=VALUE"),
        }
    }
}

impl ScriptArguments {
    pub(crate) fn new(alias: Alias, height: u32) -> Self {
        Self { name: Name::new(alias), height }
    }

    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let (alias, height) = (self.name.alias(), self.height);
        let mut service = context.service(Stores::Identities).await?;
        let script = service.get(format!("/opreturn/{alias}/{height}")).await?.body;
        let json = json!({ "alias": alias.as_str(), "height": height, "script": script });
        context.print(json, || format!("{}\n", printable(&script)))
    }
}

impl ContactArguments {
    pub(crate) fn new(alias: Alias, pairs: Vec<KeyValue>) -> Self {
        Self { name: NameOption { alias }, pairs, removed: Vec::new() }
    }

    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        // Documents keep the order of the members.
        let pairs = self.pairs.into_iter().map(|KeyValue(key, value)| (key, value));
        let contact: MinerContact = pairs.collect();
        let mut service = context.service(Stores::Identities).await?;
        let path = format!("/control/minerids/{}/contact", self.name.alias);
        let (path, body) = match self.removed.as_slice() {
            [] => (path, contact.to_json()),
            _ => (path + "/remove", output::json(&ContactKeys { keys: self.removed })),
        };
        let answer = service.post(path, body).await?;
        let whole = answer.value()?;
        context.print(&answer.body, || printable_json(&format!("{whole:#}\n")))
    }
}

impl ExtensionsArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        set(context, &self.name.alias, "extensions", &self.document).await
    }
}

impl DataRefsArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        set(context, &self.name.alias, "data", &self.document).await
    }
}

/// Sets what documents hold or refer to. Documents keep the order and spelling of `json`.
async fn set(context: &Context, alias: &Alias, what: &str, json: &str) -> Result<(), CliError> {
    let mut service = context.service(Stores::Identities).await?;
    let answer = service.post(format!("/control/minerids/{alias}/{what}"), json).await?;
    context.print(&answer.body, || format!("Documents of alias \"{alias}\" change from now on\n"))
}

impl BlindSigningArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let alias = self.name.alias;
        let switch = output::json(&BlindSigning { on: self.switch == Switch::On });
        let mut service = context.service(Stores::Identities).await?;
        let answer =
            service.post(format!("/control/minerids/{alias}/blind-signing"), switch).await?;
        context.print(&answer.body, || match self.switch {
            Switch::On => format!("Alias \"{alias}\" signs any hash on request\n"),
            Switch::Off => format!("Alias \"{alias}\" signs only documents\n"),
        })
    }
}
