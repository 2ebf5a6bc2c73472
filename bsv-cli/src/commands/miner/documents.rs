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
use crate::shared_arguments::{Name, height};

#[derive(Debug, Args)]
pub(crate) struct ScriptArguments {
    #[command(flatten)]
    name: Name,
    /// The height of the block
    #[arg(long, short = 't', value_name = "N", value_parser = height())]
    height: u32,
}

#[derive(Debug, Args)]
#[command(override_usage = "bsv-cli miner contact [OPTIONS] <ALIAS|--name <ALIAS>> [KEY=VALUE]...")]
pub(crate) struct ContactArguments {
    /// The alias of the identity, then members to set, such as email=me@example.com. Without any, the
    /// contact information is shown
    #[arg(value_name = "ALIAS|KEY=VALUE")]
    words: Vec<Word>,
    /// The same as ALIAS
    #[arg(long = "name", short = 'n', value_name = "ALIAS")]
    alias: Option<Alias>,
    /// A key to remove. May be given several times
    #[arg(long = "remove", value_name = "KEY")]
    removed: Vec<String>,
}

/// An argument without an option.
#[derive(Clone, Debug)]
enum Word {
    Alias(Alias),
    Pair(KeyValue),
}

impl FromStr for Word {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.contains('=') {
            true => text.parse().map(Self::Pair).map_err(str::to_owned),
            false => {
                text.parse().map(Self::Alias).map_err(|_| "expected ALIAS or KEY=VALUE".to_owned())
            }
        }
    }
}

#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct ExtensionsArguments {
    #[command(flatten)]
    name: Name,
    /// A JSON object, or - for standard input
    #[arg(value_name = "FILE", value_parser = files::text)]
    document: String,
}

#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct DataRefsArguments {
    #[command(flatten)]
    name: Name,
    /// JSON: {"dataRefs":{"refs":[{"brfcIds":[…],"data":{…},"vout":N}]}}, or - for standard input
    #[arg(value_name = "FILE", value_parser = files::text)]
    document: String,
}

#[derive(Debug, Args)]
#[command(allow_missing_positional = true)]
pub(crate) struct BlindSigningArguments {
    #[command(flatten)]
    name: Name,
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
        let words = pairs.into_iter().map(Word::Pair).collect();
        Self { words, alias: Some(alias), removed: Vec::new() }
    }

    /// The alias, the members to set, and the keys to remove.
    fn read(self) -> Result<(Alias, Vec<KeyValue>, Vec<String>), CliError> {
        let (mut alias, mut pairs) = (self.alias, Vec::new());
        for word in self.words {
            match word {
                Word::Alias(first) if alias.is_none() && pairs.is_empty() => alias = Some(first),
                Word::Alias(_) => {
                    return Err(CliError::WrongUsage("expected KEY=VALUE after the alias"));
                }
                Word::Pair(pair) => pairs.push(pair),
            }
        }
        let alias = alias.ok_or(CliError::WrongUsage("the alias of the identity is missing"))?;
        match pairs.is_empty() || self.removed.is_empty() {
            true => Ok((alias, pairs, self.removed)),
            false => Err(CliError::WrongUsage("KEY=VALUE and --remove exclude each other")),
        }
    }

    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let (alias, pairs, removed) = self.read()?;
        // Documents keep the order of the members.
        let pairs = pairs.into_iter().map(|KeyValue(key, value)| (key, value));
        let contact: MinerContact = pairs.collect();
        let mut service = context.service(Stores::Identities).await?;
        let path = format!("/control/minerids/{alias}/contact");
        let (path, body) = match removed.is_empty() {
            true => (path, contact.to_json()),
            false => (path + "/remove", output::json(&ContactKeys { keys: removed })),
        };
        let answer = service.post(path, body).await?;
        let whole = answer.value()?;
        context.print_exactly(&answer.body, || printable_json(&format!("{whole:#}\n")))
    }
}

impl ExtensionsArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        set(context, &self.name.alias(), "extensions", &self.document).await
    }
}

impl DataRefsArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        set(context, &self.name.alias(), "data", &self.document).await
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
        let alias = self.name.alias();
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
