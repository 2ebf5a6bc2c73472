//! The deliveries of events to a webhook.

use bsv_invoicing::Wallet;
use bsv_invoicing::events::LogName;
use bsv_invoicing::ledger::webhooks::{GetDeliveries, ListedDelivery};
use bsv_invoicing::webhooks::{DeliveryState, WebhookId};
use hyper::{StatusCode, Uri};

use crate::http::{self, Answer, Problem, answer};
use crate::wallet::events::once;
use crate::wallet::headers::{number, set_next};
use crate::wire;

/// The most deliveries of a page.
const MAX_PAGE: usize = 100;

/// The parameters of a request.
#[derive(Clone, Copy, Debug, Default)]
struct Page {
    state: Option<&'static str>,
    after: Option<u64>,
    limit: Option<usize>,
}

impl Page {
    /// Parses the query. Reports all faults at once.
    fn parse(uri: &Uri) -> Result<Self, Problem> {
        let mut page = Self::default();
        let problem = http::read_parameters(uri, |name, value| page.set(name, value));
        problem.unless_faulty(page)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "state" => {
                let known = DeliveryState::NAMES.into_iter().find(|known| *known == value);
                let known = known.ok_or("must be pending, delivered or failed")?;
                once(&mut self.state, known)
            }
            "after" => once(&mut self.after, number(value).ok_or("must be a number")?),
            "limit" => {
                let limit = number(value).and_then(|it| usize::try_from(it).ok());
                let limit = limit.filter(|limit| (1..=MAX_PAGE).contains(limit));
                let limit = limit.ok_or_else(|| format!("must be from 1 to {MAX_PAGE}"))?;
                once(&mut self.limit, limit)
            }
            _ => Err(http::UNKNOWN_PARAMETER.to_owned()),
        }
    }
}

/// A page of deliveries, in the order of their events' numbers.
pub(super) async fn list(wallet: &Wallet, id: WebhookId, uri: &Uri) -> Result<Answer, Problem> {
    let Page { state, after, limit } = Page::parse(uri)?;
    let limit = limit.unwrap_or(MAX_PAGE);
    let query = GetDeliveries { id, state, after: after.unwrap_or_default(), limit };
    let (listed, next) = wallet.deliveries(query).await?;
    let log = wallet.event_log();
    let deliveries: Vec<_> = listed.iter().map(|it| wire::Delivery::new(it, log)).collect();
    let mut answer = answer::json(StatusCode::OK, &deliveries);
    if let Some(next) = next {
        let state = state.map(|state| format!("state={state}&")).unwrap_or_default();
        let path = format!("/api/v1/webhooks/{id}/deliveries?{state}after={next}&limit={limit}");
        set_next(&mut answer, &path);
    }
    Ok(answer)
}

/// A delivery.
pub(super) async fn show(wallet: &Wallet, id: WebhookId, number: &str) -> Result<Answer, Problem> {
    let listed = wallet.delivery(id, event_number(id, number)?).await?;
    Ok(answer::json(StatusCode::OK, &wire::Delivery::new(&listed, wallet.event_log())))
}

/// Sends an event again.
pub(super) async fn redeliver(
    wallet: &Wallet,
    id: WebhookId,
    number: &str,
) -> Result<Answer, Problem> {
    let number = event_number(id, number)?;
    wallet.redeliver(id, number).await?;
    let listed = wallet.delivery(id, number).await?;
    Ok(answer::json(StatusCode::ACCEPTED, &wire::Delivery::new(&listed, wallet.event_log())))
}

fn event_number(id: WebhookId, text: &str) -> Result<u64, Problem> {
    number(text).ok_or_else(|| {
        let detail = format!("there is no record of a delivery of event {text} to webhook {id}");
        Problem::new(StatusCode::NOT_FOUND, "unknown-delivery", detail)
    })
}

impl wire::Delivery {
    fn new(listed: &ListedDelivery, log: LogName) -> Self {
        let ListedDelivery { number, kind, delivery } = listed;
        Self {
            number: *number,
            event_id: log.event_id(*number),
            r#type: kind.name().to_owned(),
            state: delivery.state.name().to_owned(),
            next_attempt_at: delivery.state.next_attempt_at().map(|at| at.to_string()),
            attempts: delivery.attempts.iter().map(wire::Attempt::from).collect(),
        }
    }
}
