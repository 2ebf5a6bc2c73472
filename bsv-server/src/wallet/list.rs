//! The list of invoices, in pages or streamed as a whole, and places for answers of any length, which are made while
//! they are sent.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use bsv_invoicing::invoices::{InvoicePage, InvoiceQuery};
use bsv_invoicing::receiving::{PaidByPage, PaidByQuery};
use bsv_invoicing::{Error, Invoice, InvoiceState, Timestamp, Wallet};
use bsv_tx::Txid;
use bytes::Bytes;
use hyper::{Method, StatusCode, Uri};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{sleep, timeout};

use super::headers::set_next;
use crate::http::{self, Answer, Problem, answer};

/// The most invoices of a page. A streamed list is read in pages of this size.
const MAX_PAGE: usize = 1000;
/// The parameters of a request.
#[derive(Clone, Debug)]
pub(super) struct Listing {
    /// The size of a page. If it is missing, all invoices are streamed.
    limit: Option<usize>,
    /// The invoice at which the page before has ended. If `txid` is there, the output of that
    /// transaction.
    after: Option<u64>,
    state: Option<InvoiceState>,
    /// Only invoices that need a decision.
    needs_decision: bool,
    newest_first: bool,
    /// Only invoices with this reference.
    reference: Option<String>,
    /// Only invoices that this transaction pays.
    txid: Option<Txid>,
}

impl Listing {
    /// Parses the query. Reports all faults at once.
    pub(super) async fn parse(wallet: &Wallet, uri: &Uri) -> Result<Self, Problem> {
        let mut listing = Self {
            limit: None,
            after: None,
            state: None,
            needs_decision: false,
            newest_first: false,
            reference: None,
            txid: None,
        };
        let mut problem = http::query_problem();
        let is_of_transaction = http::parameters(uri).any(|(name, _)| name == "txid");
        for (name, value) in http::parameters(uri) {
            let set = match &*name {
                "after" if is_of_transaction => listing.set_output(&value),
                _ => listing.set(wallet, &name, &value).await?,
            };
            if let Err(message) = set {
                problem = problem.with_field(&name, &[message]);
            }
        }
        if listing.reference.is_some() && http::parameters(uri).count() > 1 {
            problem = problem.with_field("reference", &["must stand alone".to_owned()]);
        }
        let is_selected =
            |name: &str| matches!(name, "state" | "attention" | "order" | "reference");
        if is_of_transaction && http::parameters(uri).any(|(name, _)| is_selected(&name)) {
            let message = "only limit and after can stand beside it";
            problem = problem.with_field("txid", &[message.to_owned()]);
        }
        problem.unless_faulty(listing)
    }

    async fn set(
        &mut self,
        wallet: &Wallet,
        name: &str,
        value: &str,
    ) -> Result<Result<(), String>, Problem> {
        match name {
            "limit" => match value.parse() {
                Ok(limit) if (1..=MAX_PAGE).contains(&limit) && !value.starts_with('+') => {
                    self.limit = Some(limit);
                }
                _ => return Ok(Err(format!("must be from 1 to {MAX_PAGE}"))),
            },
            "state" => match value.parse() {
                Ok(state) => self.state = Some(state),
                Err(error) => return Ok(Err(format!("{error}"))),
            },
            "attention" => match value {
                "true" => self.needs_decision = true,
                "false" => self.needs_decision = false,
                _ => return Ok(Err("must be true or false".to_owned())),
            },
            "order" => match value {
                "asc" => self.newest_first = false,
                "desc" => self.newest_first = true,
                _ => return Ok(Err("must be asc or desc".to_owned())),
            },
            "after" => match wallet.invoice_number(value).await {
                Ok(number) => self.after = Some(number),
                Err(Error::UnknownInvoice(_)) => {
                    return Ok(Err("must be the id of an invoice".to_owned()));
                }
                Err(error) => return Err(error.into()),
            },
            "reference" => self.reference = Some(value.to_owned()),
            "txid" => match value.parse() {
                Ok(txid) => self.txid = Some(txid),
                Err(error) => return Ok(Err(format!("{error}"))),
            },
            _ => return Ok(Err(http::UNKNOWN_PARAMETER.to_owned())),
        }
        Ok(Ok(()))
    }

    fn set_output(&mut self, value: &str) -> Result<(), String> {
        let vout: Option<u32> = value.parse().ok().filter(|_| !value.starts_with('+'));
        self.after = Some(vout.ok_or("must be the index of an output")?.into());
        Ok(())
    }

    fn query(&self) -> InvoiceQuery {
        let Self { limit, after, state, needs_decision, newest_first, .. } = *self;
        let limit = limit.unwrap_or(MAX_PAGE);
        InvoiceQuery { after, state, needs_decision, newest_first, limit }
    }

    /// The URL of the page after this one.
    fn next(&self, limit: usize, id: &str) -> String {
        let mut uri = format!("/api/v1/invoices?limit={limit}&after={id}");
        if let Some(state) = self.state {
            uri.push_str(&format!("&state={state}"));
        }
        if self.needs_decision {
            uri.push_str("&attention=true");
        }
        if self.newest_first {
            uri.push_str("&order=desc");
        }
        uri
    }
}

pub(super) async fn answer(
    wallet: &Arc<Wallet>,
    streams: &Streams,
    listing: Listing,
    method: &Method,
) -> Result<Answer, Problem> {
    if let Some(reference) = &listing.reference {
        let invoices = wallet.invoices_of(reference, MAX_PAGE).await?;
        return Ok(page(&invoices, wallet.expiry_time()));
    }
    if let Some(txid) = listing.txid {
        return paid_by(wallet, txid, &listing).await;
    }
    let Some(limit) = listing.limit else {
        return match *method {
            Method::HEAD => Ok(answer::json_text(StatusCode::OK, Bytes::new())),
            _ => stream(Arc::clone(wallet), streams, listing.query()).await,
        };
    };
    let InvoicePage { invoices, next, now } = wallet.invoices(listing.query()).await?;
    let mut answer = page(&invoices, now);
    if let Some((_, id)) = next {
        set_next(&mut answer, &listing.next(limit, id.as_str()));
    }
    Ok(answer)
}

/// A page of the invoices that a transaction pays.
async fn paid_by(wallet: &Wallet, txid: Txid, listing: &Listing) -> Result<Answer, Problem> {
    let after = listing.after.and_then(|vout| u32::try_from(vout).ok());
    let limit = listing.limit.unwrap_or(MAX_PAGE);
    let PaidByPage { invoices, next } =
        wallet.invoices_paid_by(PaidByQuery { txid, after, limit }).await?;
    let mut answer = page(&invoices, wallet.expiry_time());
    if let Some(vout) = next {
        let next = format!("/api/v1/invoices?txid={txid}&limit={limit}&after={vout}");
        set_next(&mut answer, &next);
    }
    Ok(answer)
}

fn page(invoices: &[Invoice], now: Timestamp) -> Answer {
    let mut body = b"[".to_vec();
    write_invoices(invoices, now, &mut body);
    body.push(b']');
    answer::json_text(StatusCode::OK, body)
}

async fn stream(
    wallet: Arc<Wallet>,
    streams: &Streams,
    query: InvoiceQuery,
) -> Result<Answer, Problem> {
    let place = streams.begin().await?;
    // Besides the part that waits here, one is being sent and one is being made.
    let (parts, body) = mpsc::channel(1);
    tokio::spawn(async move {
        let _place = place;
        if let Err(error) = send_all(&wallet, query, &parts).await {
            tracing::error!("a list of invoices was cut off: {error}");
        }
    });
    Ok(answer::json_stream(body))
}

/// Sends page by page, up to the last one or until the reader is gone. Invoices that are created
/// meanwhile are left out, so that the list ends.
async fn send_all(
    wallet: &Wallet,
    mut query: InvoiceQuery,
    parts: &mpsc::Sender<Option<Bytes>>,
) -> Result<(), Error> {
    let newest = newest(wallet).await?;
    let mut part = b"[".to_vec();
    let mut has_any = false;
    loop {
        if parts.is_closed() {
            return Ok(());
        }
        let InvoicePage { mut invoices, mut next, now } = wallet.invoices(query).await?;
        let is_newer = |invoice: &Invoice| invoice.number > newest;
        if !query.newest_first && invoices.last().is_some_and(is_newer) {
            invoices.retain(|invoice| !is_newer(invoice));
            next = None;
        }
        if has_any && !invoices.is_empty() {
            part.push(b',');
        }
        has_any |= !invoices.is_empty();
        write_invoices(&invoices, now, &mut part);
        if next.is_none() {
            part.push(b']');
        }
        // A slow reader must not hold the invoices in memory twice.
        drop(invoices);
        if !part.is_empty() {
            // Sending fails if the reader is gone or the connection was given up.
            let _ = parts.send(Some(mem::take(&mut part).into())).await;
        }
        let Some((number, _)) = next else {
            let _ = parts.send(None).await;
            return Ok(());
        };
        query.after = Some(number);
        sleep(PAUSE).await;
    }
}

/// The number of the newest invoice.
async fn newest(wallet: &Wallet) -> Result<u64, Error> {
    let query = InvoiceQuery { newest_first: true, limit: 1, ..InvoiceQuery::default() };
    let InvoicePage { invoices, next, .. } = wallet.invoices(query).await?;
    let last_looked_at = next.map_or(0, |(number, _)| number);
    Ok(invoices.first().map_or(last_looked_at, |invoice| invoice.number))
}

/// Writes invoices as elements of a JSON array.
fn write_invoices(invoices: &[Invoice], now: Timestamp, text: &mut Vec<u8>) {
    for (index, invoice) in invoices.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        invoice.write_json(now, text);
    }
}

/// The most concurrent streams of lists.
const MAX_STREAMS: usize = 8;
/// How long a request waits for a place.
const PATIENCE: Duration = Duration::from_secs(5);

/// The pause between the parts of a stream, which leaves the processors to other requests.
pub(super) const PAUSE: Duration = Duration::from_micros(2_500);

/// The places for answers that are made while they are sent.
#[derive(Debug)]
pub(super) struct Streams(Arc<Semaphore>);

impl Streams {
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MAX_STREAMS)))
    }

    /// Takes a place. Waits for one if necessary.
    pub(super) async fn begin(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let place = timeout(PATIENCE, Arc::clone(&self.0).acquire_owned()).await.map_err(|_| {
            let detail = format!(
                "{MAX_STREAMS} lists are already being read: ask again later, or for pages (limit)"
            );
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too-many-lists", detail)
        })?;
        Ok(place.expect("the places are never closed"))
    }
}
