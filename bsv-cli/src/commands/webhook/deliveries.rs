//! The deliveries of events to a webhook.

use bsv_invoicing::webhooks::{DeliveryState, WebhookId};
use bsv_server::wire::{Attempt, Delivery, Replayed};
use clap::Args;
use clap::builder::PossibleValuesParser;
use serde_json::json;

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{self, Column, counted, line, optional, printable};
use crate::service::Service;

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// The id of the webhook
    id: WebhookId,
    /// The number of an event, to show its delivery in full
    #[arg(conflicts_with_all = ["state", "after", "limit"])]
    number: Option<u64>,
    /// List only deliveries in this state
    #[arg(long, value_parser = PossibleValuesParser::new(DeliveryState::NAMES))]
    state: Option<String>,
    /// List only events after the one with this number, the oldest first
    #[arg(long, value_name = "NUMBER")]
    after: Option<u64>,
    /// The most deliveries to list
    #[arg(long, value_name = "N", default_value_t = 100,
          value_parser = clap::value_parser!(u64).range(1..=100))]
    limit: u64,
}

#[derive(Debug, Args)]
pub(crate) struct RedeliverArguments {
    /// The id of the webhook
    id: WebhookId,
    /// The number of the event
    number: u64,
}

#[derive(Debug, Args)]
pub(crate) struct ReplayArguments {
    /// The id of the webhook
    id: WebhookId,
    /// Send the events after the one with this number
    #[arg(long, value_name = "NUMBER")]
    after: u64,
    /// Send events up to the one with this number [default: the last one]
    #[arg(long, value_name = "NUMBER")]
    until: Option<u64>,
    /// Send only events whose delivery has failed
    #[arg(long)]
    only_failed: bool,
}

pub(in crate::commands) const COLUMNS: &[Column] = &[
    Column::number("number"),
    Column::whole("state"),
    Column::whole("type"),
    Column::number("attempts").unless_narrow(0),
    Column::words("last outcome", 16),
    Column::whole("next attempt").unless_narrow(1),
];

/// The path of a webhook.
pub(super) fn path(id: WebhookId) -> String {
    format!("/api/v1/webhooks/{id}")
}

impl ListArguments {
    pub(super) async fn run(self, context: &Context) -> Result<(), CliError> {
        let Self { id, number, state, after, limit } = self;
        let list = format!("{}/deliveries", path(id));
        let mut service = context.service(Stores::Wallet).await?;
        if let Some(number) = number {
            let answer = service.get(format!("{list}/{number}")).await?;
            let delivery: Delivery = answer.read()?;
            return context.print(&answer.body, || describe(context, &delivery));
        }
        let is_any = state.is_none();
        let state = state.map(|state| format!("&state={state}")).unwrap_or_default();
        if after.is_none() && !context.is_json {
            let newest = newest(&mut service, &list, &state, limit).await?;
            output::print(&table(context, &newest, is_any))?;
            return match newest.len() as u64 == limit {
                true => context.advise("There may be older ones: --after 0 begins with the oldest"),
                false => Ok(()),
            };
        }
        let after = after.unwrap_or_default();
        let mut answer = service.get(format!("{list}?after={after}&limit={limit}{state}")).await?;
        let mut deliveries: Vec<Delivery> = answer.read()?;
        // A page with few matching deliveries may be empty without being the last one.
        while let Some(next) = answer.next.clone().filter(|_| deliveries.is_empty()) {
            answer = service.get(next).await?;
            deliveries = answer.read()?;
        }
        context.print(&answer.body, || table(context, &deliveries, is_any))?;
        match (answer.next, deliveries.last()) {
            (Some(_), Some(last)) => {
                context.advise(&format!("There are more: --after {}", last.number))
            }
            _ => Ok(()),
        }
    }
}

/// The newest deliveries, the newest first. Deliveries have the numbers of their events, so wider and
/// wider ranges of these are read, from the last event back.
async fn newest(
    service: &mut Service,
    list: &str,
    state: &str,
    limit: u64,
) -> Result<Vec<Delivery>, CliError> {
    let latest = service.get("/api/v1/events?after=latest").await?.value()?;
    let (mut until, mut width) = (latest["last"].as_u64().unwrap_or_default(), limit);
    let mut newest = Vec::new();
    while until > 0 && (newest.len() as u64) < limit {
        let after = until.saturating_sub(width);
        let mut range: Vec<Delivery> = Vec::new();
        let mut path = Some(format!("{list}?after={after}&limit=100{state}"));
        while let Some(page) = path {
            let answer = service.get(page).await?;
            range.extend(answer.read::<Vec<Delivery>>()?);
            let is_in_range = range.last().is_none_or(|last| last.number < until);
            path = answer.next.filter(|_| is_in_range);
        }
        newest.extend(range.into_iter().rev().filter(|delivery| delivery.number <= until));
        (until, width) = (after, width.saturating_mul(2));
    }
    newest.truncate(usize::try_from(limit).unwrap_or(usize::MAX));
    Ok(newest)
}

fn table(context: &Context, deliveries: &[Delivery], is_any: bool) -> String {
    if deliveries.is_empty() {
        let such = if is_any { "" } else { "such " };
        return format!("There is no {such}delivery\n");
    }
    let mut table = context.table(COLUMNS);
    for Delivery { number, state, r#type, attempts, next_attempt_at, .. } in deliveries {
        let (last, next) = (
            attempts.last().map(outcome),
            optional(next_attempt_at.as_ref().map(|at| context.time(at))),
        );
        table.add([number, state, r#type, &attempts.len(), &optional(last), &next]);
    }
    table.end()
}

/// A delivery with its attempts, the earliest first.
fn describe(context: &Context, delivery: &Delivery) -> String {
    let mut described = [
        format!("Delivery of event {} is {}\n", delivery.number, delivery.state),
        line("event", &delivery.event_id),
        line("type", &delivery.r#type),
        line(
            "next attempt",
            optional(delivery.next_attempt_at.as_ref().map(|at| context.time(at))),
        ),
    ]
    .concat();
    for attempt in &delivery.attempts {
        let text =
            [context.time(&attempt.at), outcome(attempt), printable(&attempt.answer)].join("  ");
        described.push_str(&format!("{}\n", text.trim_end()));
    }
    described
}

/// The outcome of an attempt, in a few words.
pub(super) fn outcome(attempt: &Attempt) -> String {
    let came = match attempt.status {
        Some(status) => format!("status {status}"),
        None => match attempt.failure.as_deref() {
            Some("connect") => "unreachable".to_owned(),
            Some("tls") => "no TLS".to_owned(),
            Some("timeout") => "no answer".to_owned(),
            Some("answer") => "no HTTP answer".to_owned(),
            Some("dns") => "no such host".to_owned(),
            Some("blocked-address") => "the address is not allowed".to_owned(),
            other => optional(other),
        },
    };
    format!("{came} after {} ms", attempt.milliseconds)
}

impl RedeliverArguments {
    pub(super) async fn run(self, context: &Context) -> Result<(), CliError> {
        let Self { id, number } = self;
        let mut service = context.service(Stores::Wallet).await?;
        let path = format!("{}/deliveries/{number}/redeliver", path(id));
        let answer = service.post(path, "{}").await?;
        context.print(&answer.body, || format!("Event {number} is sent again to webhook {id}\n"))
    }
}

impl ReplayArguments {
    pub(super) async fn run(self, context: &Context) -> Result<(), CliError> {
        let Self { id, after, until, only_failed } = self;
        let range = json!({ "after": after, "until": until, "onlyFailed": only_failed });
        let mut service = context.service(Stores::Wallet).await?;
        let answer = service.post(format!("{}/replay", path(id)), range).await?;
        let Replayed { count } = answer.read()?;
        context.print(&answer.body, || {
            let events = counted(count, "event is", "events are");
            format!("{events} sent again to webhook {id}\n")
        })
    }
}
