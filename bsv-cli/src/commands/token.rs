//! The tokens of callers.

use bsv_server::{Grant, wire};
use clap::{Args, Subcommand};

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{self, Column, optional};
use crate::shared_arguments::Expiry;

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print the token, which is not shown again
    ///
    /// For example: bsv-cli token create --scope minerid:read:pool --label "pool software"
    Create(CreateArguments),
    /// List the tokens, without their texts
    List,
    /// Revoke a token, which is then refused
    Revoke(RevokeArguments),
}

#[derive(Debug, Args)]
pub(crate) struct CreateArguments {
    /// A scope of the token: wallet:read, wallet:write, wallet:mark, wallet:pay, wallet:webhooks,
    /// metrics:read, minerid:read, minerid:sign or minerid:rotate. The last three can be limited to
    /// one alias, such as minerid:sign:ALIAS. May be given several times
    #[arg(long = "scope", value_name = "SCOPE", required = true)]
    scopes: Vec<Grant>,
    /// A name for the token
    #[arg(long, value_name = "TEXT", default_value = "")]
    label: String,
    #[command(flatten)]
    expiry: Expiry,
}

#[derive(Debug, Args)]
pub(crate) struct RevokeArguments {
    /// The id of the token: the 8 digits after bsv_
    #[arg(value_parser = token_id)]
    id: String,
}

pub(super) const COLUMNS: &[Column] = &[
    Column::whole("id"),
    Column::words("label", 16),
    Column::words("scopes", 16),
    Column::whole("created"),
    Column::whole("expires"),
];

impl TokenCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::Create(arguments) => arguments.run(context).await,
            Self::List => list(context).await,
            Self::Revoke(arguments) => arguments.run(context).await,
        }
    }
}

impl CreateArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let token = wire::WantedToken {
            label: self.label,
            scopes: self.scopes.iter().map(ToString::to_string).collect(),
            expires_at: self.expiry.moment(),
        };
        let mut service = context.service(Stores::Tokens).await?;
        let answer = service.post("/control/tokens", output::json(&token)).await?;
        let wire::Token { id, token, .. } = answer.read()?;
        context.print(&answer.body, || format!("{}\n", *token.unwrap_or_default()))?;
        context.advise(&format!("This is token {id}. It is not shown again."))
    }
}

async fn list(context: &Context) -> Result<(), CliError> {
    let answer = context.service(Stores::Tokens).await?.get("/control/tokens").await?;
    let tokens: Vec<wire::Token> = answer.read()?;
    context.print(&answer.body, || {
        if tokens.is_empty() {
            return "There is no token: make one with token create\n".to_owned();
        }
        let mut table = context.table(COLUMNS);
        let mut tokens: Vec<_> = tokens.iter().collect();
        tokens.sort_by(|one, other| other.created_at.cmp(&one.created_at));
        for wire::Token { id, label, scopes, created_at, expires_at, is_expired, .. } in tokens {
            let expired = if *is_expired { "expired " } else { "" };
            let expiry = optional(expires_at.as_ref().map(|at| context.time(at)));
            let expiry = expired.to_owned() + &expiry;
            table.add([id, label, &scopes.join(" "), &context.time(created_at), &expiry]);
        }
        table.end()
    })
}

impl RevokeArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let id = self.id;
        let effect = format!("Callers with token {id} are then refused.");
        context.ask(&effect, "Revoke it?", "revoked")?;
        let mut service = context.service(Stores::Tokens).await?;
        let answer = service.delete(format!("/control/tokens/{id}")).await?;
        context.print(&answer.body, || format!("Token {id} is revoked\n"))
    }
}

/// The id of a token, taken from the id or from the whole token.
fn token_id(text: &str) -> Result<String, String> {
    let id = text.strip_prefix("bsv_").and_then(|rest| rest.split('_').next()).unwrap_or(text);
    if id.len() == 8 && id.bytes().all(|c| c.is_ascii_hexdigit()) {
        Ok(id.to_ascii_lowercase())
    } else {
        Err("expected 8 hexadecimal digits".to_owned())
    }
}
