//! The log of events, page by page.

use std::time::Duration;

use bsv_invoicing::Wallet;
use bsv_invoicing::events::{EventFilter, EventQuery, LogName};
use hyper::{Method, StatusCode, Uri};
use tokio::time::sleep;

use super::event_blocks::EventPlaces;
use super::headers::{number, set_next};
use crate::http::{self, Answer, Problem, answer};

/// The most events of a page, and the default.
const MAX_PAGE: usize = 1000;
const PAGE: usize = 100;
/// The longest time that a request may wait, in seconds.
const MAX_WAIT: u64 = 30;

/// The parameters of a request.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    query: EventQuery,
    /// The types, as written in the query.
    types: Option<String>,
    /// How long the request waits, in seconds.
    pub(super) wait: u64,
}

/// A query, parameter by parameter.
#[derive(Debug, Default)]
struct Parameters {
    after: Option<After>,
    limit: Option<usize>,
    types: Option<(EventFilter, String)>,
    wait: Option<u64>,
    log: Option<LogName>,
}

/// The place after which events are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    /// The event with this number.
    Number(u64),
    /// The last event.
    Latest,
}

impl After {
    /// Parses a number, or `latest`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "latest" => Some(Self::Latest),
            text => number(text).map(Self::Number),
        }
    }

    pub(super) async fn number(self, wallet: &Wallet) -> Result<u64, Problem> {
        match self {
            Self::Number(number) => Ok(number),
            Self::Latest => Ok(wallet.latest_event().await?),
        }
    }
}

impl Asked {
    /// Parses the query. Reports all faults at once.
    pub(super) async fn parse(wallet: &Wallet, uri: &Uri) -> Result<Self, Problem> {
        let mut parameters = Parameters::default();
        http::read_parameters(uri, |name, value| parameters.set(name, value)).unless_faulty(())?;
        let Parameters { after, limit, types, wait, log } = parameters;
        let own = wallet.event_log();
        if let Some(log) = log.filter(|log| *log != own) {
            let detail = format!(
                "there is no log {log}: a backup was restored, and the log of events is now {own}"
            );
            return Err(Problem::new(StatusCode::CONFLICT, "other-log", detail));
        }
        let (filter, types) = types.unzip();
        let after = after.unwrap_or(After::Number(0)).number(wallet).await?;
        let (filter, limit) = (filter.unwrap_or_default(), limit.unwrap_or(PAGE));
        Ok(Self {
            query: EventQuery { after, filter, limit },
            types,
            wait: wait.unwrap_or_default(),
        })
    }

    /// The URL of the page after the event with this number.
    fn next(&self, log: LogName, number: u64) -> String {
        let limit = self.query.limit;
        let mut uri = format!("/api/v1/events?after={number}&limit={limit}&log={log}");
        if let Some(types) = &self.types {
            uri.push_str(&format!("&types={types}"));
        }
        if self.wait > 0 {
            uri.push_str(&format!("&wait={}", self.wait));
        }
        uri
    }
}

impl Parameters {
    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        let number = number(value);
        match name {
            "after" => {
                let after = After::parse(value).ok_or("must be a number, or latest")?;
                once(&mut self.after, after)
            }
            "limit" => {
                let limit = number.and_then(|it| usize::try_from(it).ok());
                let limit = limit.filter(|limit| (1..=MAX_PAGE).contains(limit));
                let limit = limit.ok_or_else(|| format!("must be from 1 to {MAX_PAGE}"))?;
                once(&mut self.limit, limit)
            }
            "types" => {
                let filter = value.parse().map_err(|error| format!("{error}"))?;
                once(&mut self.types, (filter, value.to_owned()))
            }
            "wait" => {
                let wait = number.filter(|wait| *wait <= MAX_WAIT);
                let wait = wait.ok_or_else(|| format!("must be from 0 to {MAX_WAIT} seconds"))?;
                once(&mut self.wait, wait)
            }
            "log" => once(&mut self.log, value.parse().map_err(|error| format!("{error}"))?),
            _ => Err(http::UNKNOWN_PARAMETER.to_owned()),
        }
    }
}

pub(super) fn once<T>(place: &mut Option<T>, value: T) -> Result<(), String> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err("must be there once".to_owned()),
    }
}

pub(super) async fn answer(
    wallet: &Wallet,
    places: &EventPlaces,
    asked: &Asked,
    method: &Method,
) -> Result<Answer, Problem> {
    let page = match asked.wait {
        wait @ 1.. if *method == Method::GET => {
            let _place = places.wait()?;
            let stopped = places.stopped();
            let end = async {
                tokio::select! {
                    () = stopped => {}
                    () = sleep(Duration::from_secs(wait)) => {}
                }
            };
            wallet.await_events(asked.query, end).await?
        }
        _ => wallet.event_page(asked.query).await?,
    };
    let log = wallet.event_log();
    let mut answer = answer::json_text(StatusCode::OK, page.to_json(log));
    set_next(&mut answer, &asked.next(log, page.next));
    Ok(answer)
}
