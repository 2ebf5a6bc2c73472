//! Webhooks: URLs that receive events.

mod deliveries;

use std::fmt::Display;

use bsv_invoicing::webhooks::{MAX_SECRET_GRACE, WebhookId};
use bsv_server::wire::{Attempt, Webhook, WebhookSecret};
use clap::{Args, Subcommand};
use serde_json::json;

#[cfg(test)]
pub(super) use self::deliveries::COLUMNS as DELIVERY_COLUMNS;
use self::deliveries::path;
use super::event;
use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{Column, line, optional};
use crate::service::Answer;

#[derive(Debug, Subcommand)]
pub(crate) enum WebhookCommand {
    /// Make a webhook and print its secret, which is not shown again
    ///
    /// For example: bsv-cli webhook create URL --types invoice.paid,invoice.unpaid
    Create(CreateArguments),
    /// List the webhooks
    List,
    /// Show a webhook, without its secret
    Show(ShowArguments),
    /// Send events to a webhook again, starting at its cursor
    Enable(EnableArguments),
    /// Stop sending to a webhook until it is enabled; its cursor stays
    Disable(DisableArguments),
    /// Delete a webhook and the records of its deliveries
    Delete(DeleteArguments),
    /// Give a webhook a new secret and print the secret, which is not shown again
    Secret(SecretArguments),
    /// Send a test event to a webhook, and show the outcome
    ///
    /// The exit code is 0 if the endpoint has accepted the event, otherwise 1.
    Test(TestArguments),
    /// Send a sample event of a type to a webhook, and show the outcome
    ///
    /// The sample says that it is a test, and names nothing that exists. The exit code is 0 if the
    /// endpoint has accepted it, otherwise 1. For example: bsv-cli webhook trigger ID invoice.paid
    Trigger(TriggerArguments),
    /// List the deliveries of events to a webhook, or show one delivery with its attempts
    Deliveries(deliveries::ListArguments),
    /// Send an event to a webhook again
    Redeliver(deliveries::RedeliverArguments),
    /// Send a range of events to a webhook again
    Replay(deliveries::ReplayArguments),
}

#[derive(Debug, Args)]
pub(crate) struct CreateArguments {
    /// The URL that receives the events
    url: String,
    /// The types of events, such as invoice.*,user.created [default: all]
    #[arg(long, value_name = "TYPES")]
    types: Option<String>,
    /// A description of the webhook
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// Send the events after the one with this number, or after the last one (latest)
    #[arg(long, value_name = "NUMBER", default_value = "latest", value_parser = event::after)]
    after: String,
    /// Send one event at a time: the next one only after the one before is delivered or has failed
    /// for good
    #[arg(long)]
    in_order: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// The id of the webhook
    id: WebhookId,
}

#[derive(Debug, Args)]
pub(crate) struct EnableArguments {
    /// The id of the webhook
    id: WebhookId,
}

#[derive(Debug, Args)]
pub(crate) struct DisableArguments {
    /// The id of the webhook
    id: WebhookId,
}

#[derive(Debug, Args)]
pub(crate) struct DeleteArguments {
    /// The id of the webhook
    id: WebhookId,
}

#[derive(Debug, Args)]
pub(crate) struct SecretArguments {
    /// The id of the webhook
    id: WebhookId,
    /// How many seconds the previous secret still signs, at most a week
    #[arg(long, value_name = "N", default_value_t = 86_400,
          value_parser = clap::value_parser!(u64).range(..=MAX_SECRET_GRACE.as_secs()))]
    grace_seconds: u64,
}

#[derive(Debug, Args)]
pub(crate) struct TestArguments {
    /// The id of the webhook
    id: WebhookId,
}

#[derive(Debug, Args)]
pub(crate) struct TriggerArguments {
    /// The id of the webhook
    id: WebhookId,
    /// The type of the event, such as invoice.paid
    #[arg(value_name = "TYPE")]
    r#type: String,
}

pub(super) const COLUMNS: &[Column] = &[
    Column::whole("id"),
    Column::whole("state"),
    Column::number("behind"),
    Column::words("types", 12),
    Column::key("url", 24),
    Column::words("description", 12).unless_narrow(0),
];

impl WebhookCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::Create(arguments) => arguments.run(context).await,
            Self::List => list(context).await,
            Self::Show(ShowArguments { id }) => {
                let mut service = context.service(Stores::Wallet).await?;
                show(context, &service.get(path(id)).await?)
            }
            Self::Enable(EnableArguments { id }) => set_state(context, id, "enabled").await,
            Self::Disable(DisableArguments { id }) => set_state(context, id, "disabled").await,
            Self::Delete(arguments) => arguments.run(context).await,
            Self::Secret(arguments) => arguments.run(context).await,
            Self::Test(TestArguments { id }) => test(context, id, "{}").await,
            Self::Trigger(TriggerArguments { id, r#type }) => {
                test(context, id, json!({ "type": r#type })).await
            }
            Self::Deliveries(arguments) => arguments.run(context).await,
            Self::Redeliver(arguments) => arguments.run(context).await,
            Self::Replay(arguments) => arguments.run(context).await,
        }
    }
}

impl CreateArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let after = match self.after.parse::<u64>() {
            Ok(number) => json!(number),
            Err(_) => json!(self.after),
        };
        let webhook = json!({
            "url": self.url,
            "types": self.types,
            "description": self.description,
            "inOrder": self.in_order,
            "after": after,
        });
        let mut service = context.service(Stores::Wallet).await?;
        let answer = service.post("/api/v1/webhooks", webhook).await?;
        let Webhook { id, secret, .. } = answer.read()?;
        context.print(&answer.body, || format!("{}\n", *secret.unwrap_or_default()))?;
        context.advise(&format!("This is the secret of webhook {id}. It is not shown again."))
    }
}

async fn list(context: &Context) -> Result<(), CliError> {
    let answer = context.service(Stores::Wallet).await?.get("/api/v1/webhooks").await?;
    let webhooks: Vec<Webhook> = answer.read()?;
    context.print(&answer.body, || {
        if webhooks.is_empty() {
            return "There is no webhook: make one with webhook create\n".to_owned();
        }
        let mut table = context.table(COLUMNS);
        for Webhook { id, state, behind, types, url, description, .. } in webhooks.iter().rev() {
            table.add([id, state, behind, types, url, description]);
        }
        table.end()
    })
}

/// Shows a webhook, with a line for each field.
fn show(context: &Context, answer: &Answer) -> Result<(), CliError> {
    let webhook: Webhook = answer.read()?;
    context.print(&answer.body, || {
        let order = if webhook.in_order { "one event at a time" } else { "8 at once" };
        let time = |at: Option<String>| at.map(|at| context.time(&at));
        [
            format!("Webhook {} is {}\n", webhook.id, webhook.state),
            line("url", webhook.url),
            line("types", webhook.types),
            line("description", webhook.description),
            line("sends", order),
            line("created", context.time(&webhook.created_at)),
            line("cursor", webhook.cursor),
            line("behind", webhook.behind),
            line("last success", optional(time(webhook.last_success_at))),
            line("failing", optional(time(webhook.failing_since))),
            line("next attempt", optional(time(webhook.next_attempt_at))),
        ]
        .concat()
    })
}

async fn set_state(context: &Context, id: WebhookId, state: &str) -> Result<(), CliError> {
    let mut service = context.service(Stores::Wallet).await?;
    let answer = service.patch(path(id), json!({ "state": state })).await?;
    context.print(&answer.body, || format!("Webhook {id} is {state}\n"))
}

impl DeleteArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let id = self.id;
        let effect =
            format!("Webhook {id} receives no more events, including those not yet delivered.");
        context.ask(&effect, "Delete it?", "deleted")?;
        let mut service = context.service(Stores::Wallet).await?;
        service.delete(path(id)).await?;
        let json = json!({ "deleted": id.to_string() });
        context.print(json, || format!("Webhook {id} is deleted\n"))
    }
}

impl SecretArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let Self { id, grace_seconds } = self;
        let mut service = context.service(Stores::Wallet).await?;
        let grace = json!({ "graceSeconds": grace_seconds });
        let answer = service.post(format!("{}/secret", path(id)), grace).await?;
        let WebhookSecret { secret } = answer.read()?;
        context.print(&answer.body, || format!("{}\n", *secret))?;
        context.advise(&format!(
            "This is the new secret of webhook {id}. It is not shown again.\n\
             The previous secret also signs for another {grace_seconds} s."
        ))
    }
}

/// Sends a test event. The command succeeds only if the endpoint has accepted it.
async fn test(context: &Context, id: WebhookId, body: impl Display) -> Result<(), CliError> {
    let mut service = context.service(Stores::Wallet).await?;
    let waiting = context.wait("waiting for the endpoint");
    let answer = service.post(format!("{}/test", path(id)), body).await?;
    drop(waiting);
    let attempt: Attempt = answer.read()?;
    context.print(&answer.body, || {
        format!("{}\n{}", deliveries::outcome(&attempt), line("answer", &attempt.answer))
    })?;
    match attempt.status {
        Some(200..=299) => Ok(()),
        _ => Err(CliError::Told),
    }
}
