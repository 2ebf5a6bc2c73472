//! The log of events.

use clap::{Args, Subcommand};
use console::measure_text_width;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{self, number, printable, text};
use crate::service::{ReachError, Service};

#[derive(Debug, Subcommand)]
pub(crate) enum EventCommand {
    /// List the last 100 events of the wallet, the newest first
    ///
    /// With --after, --follow or --json, this lists all events from there on, the oldest first. With
    /// --json, each line is an event in the API's format. For example: bsv-cli event list
    /// --after latest --follow --json
    List(ListArguments),
}

#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// List the events after the one with this number, or after the last one (latest)
    #[arg(long, value_name = "NUMBER", value_parser = after)]
    after: Option<String>,
    /// Continue with new events until interrupted. This needs a running server
    #[arg(long)]
    follow: bool,
}

/// How many events are listed if nothing says where to begin.
const NEWEST: u64 = 100;
/// The most events in one answer.
const LIMIT: &str = "&limit=1000";
/// How long the server waits for an event, in seconds.
const WAIT: u32 = 30;

/// Parses the number of an event, or `latest`.
pub(super) fn after(text: &str) -> Result<String, String> {
    let is_number = text.bytes().all(|c| c.is_ascii_digit()) && text.parse::<u64>().is_ok();
    match is_number || text == "latest" {
        true => Ok(text.to_owned()),
        false => Err("expected the number of an event, or latest".to_owned()),
    }
}

impl EventCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::List(arguments) => arguments.run(context).await,
        }
    }
}

impl ListArguments {
    async fn run(self, context: &Context) -> Result<(), CliError> {
        let mut service = context.service(Stores::Wallet).await?;
        if self.follow && service.is_here() {
            let reason = "no server runs on the data directory, so there will be no events";
            return Err(CliError::Unfitting(reason.to_owned()));
        }
        let after = match self.after {
            None if !self.follow && !context.is_json => return newest(context, service).await,
            after => after.unwrap_or_else(|| "0".to_owned()),
        };
        let mut answer = service.get(format!("/api/v1/events?after={after}{LIMIT}")).await?;
        loop {
            let page: Page<'_> =
                serde_json::from_str(&answer.body).map_err(ReachError::Nonsense)?;
            for event in &page.events {
                match context.is_json {
                    true => output::print_json(&format!("{event}\n"))?,
                    false => output::print(&lines(context, event)?)?,
                }
            }
            let Page { log, next, last, .. } = page;
            let wait = match next < last {
                true => 0,
                false if self.follow => WAIT,
                false => return Ok(()),
            };
            let path = format!("/api/v1/events?after={next}{LIMIT}&wait={wait}&log={log}");
            answer = match service.get(path).await {
                Err(CliError::Reach(_)) => return Err(CliError::ServerStopped(next)),
                answer => answer?,
            };
        }
    }
}

/// Lists the last events, the newest first.
async fn newest(context: &Context, mut service: Service) -> Result<(), CliError> {
    let latest = service.get("/api/v1/events?after=latest").await?;
    let Page { last, .. } = serde_json::from_str(&latest.body).map_err(ReachError::Nonsense)?;
    let before = last.saturating_sub(NEWEST);
    let answer = service.get(format!("/api/v1/events?after={before}&limit={NEWEST}")).await?;
    let page: Page<'_> = serde_json::from_str(&answer.body).map_err(ReachError::Nonsense)?;
    let listed = page.events.iter().rev().map(|event| lines(context, event));
    let listed = listed.collect::<Result<String, _>>()?;
    output::print(if listed.is_empty() { "There is no event\n" } else { &listed })?;
    match before {
        0 => Ok(()),
        _ => context.advise("There are older ones: --after 0 lists all, the oldest first"),
    }
}

/// A page of events, with each event as it was received.
#[derive(Deserialize)]
struct Page<'a> {
    log: String,
    #[serde(borrow)]
    events: Vec<&'a RawValue>,
    next: u64,
    last: u64,
}

/// Describes an event for people: in a line, or in a narrow terminal in several that break between
/// members.
fn lines(context: &Context, event: &RawValue) -> Result<String, CliError> {
    let event: Value = serde_json::from_str(event.get()).map_err(ReachError::Nonsense)?;
    let (number, time) = (number(&event, "number"), context.time(&text(&event, "timestamp")));
    let kind = text(&event, "type");
    let mut line = format!("{number:>6}  {time}  {kind:<26}");
    let mut lines = String::new();
    for (name, value) in event["data"].as_object().into_iter().flatten() {
        if !value.is_null() {
            let member = format!("  {name} {}", shown(context, name, value));
            let len = measure_text_width(&line) + measure_text_width(&member);
            if context.width().is_some_and(|width| len > width) {
                lines.push_str(&format!("{}\n", line.trim_end()));
                line = " ".repeat(6);
            }
            line.push_str(&member);
        }
    }
    Ok(lines + line.trim_end() + "\n")
}

/// The value of a member. To a person, times and hashes are short.
fn shown(context: &Context, name: &str, value: &Value) -> String {
    let is_hash = |text: &str| text.len() == 64 && text.bytes().all(|c| c.is_ascii_hexdigit());
    match value {
        Value::String(text) if name.ends_with("At") => context.time(&printable(text)),
        Value::String(text) if is_hash(text) => context.key(text.clone()),
        Value::String(text) => printable(text),
        Value::Array(values) => {
            values.iter().map(|value| shown(context, name, value)).collect::<Vec<_>>().join(",")
        }
        value => value.to_string(),
    }
}
