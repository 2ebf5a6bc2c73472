//! The routes for payers: the Direct Payment Protocol, and channels with Merkle proofs.

use std::net::IpAddr;
use std::sync::Arc;

use bsv_invoicing::dpp::{
    Acknowledgement, ChannelMessage, Dialect, MAX_MESSAGE_LEN, Payment, PaymentError,
    read_posted_transaction,
};
use bsv_invoicing::receiving::IncomingState;
use bsv_invoicing::{Error, Wallet};
use bsv_tx::Txid;
use bytes::Bytes;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderValue, VARY, WWW_AUTHENTICATE,
};
use hyper::{Method, StatusCode};
use serde::{Deserialize, Serialize};

use crate::config::WalletConfig;
use crate::http::{
    Answer, Declared, Matched, Peers, Problem, Received, Routes, answer, parameters,
};
use crate::page::{self, Page};

/// Answers the requests of payers.
#[derive(Debug)]
pub(crate) struct PaymentsApi {
    wallet: Arc<Wallet>,
    page: Option<Page>,
    routes: Routes<Route>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Route {
    /// A payment URL, with the dialect of its terms.
    Payment(Dialect),
    /// The URL for a transaction that pays an invoice.
    Transaction,
    Channel,
    Message,
    /// Where broadcasters tell what changes.
    Callback,
    Page(page::Route),
}

/// The longest body of a request without a payment, in bytes.
const MAX_OTHER_LEN: usize = 4 << 10;
/// The same of a callback, which may hold paths and transactions.
const MAX_CALLBACK_LEN: usize = 256 << 10;
/// How many transactions of a callback are read. ARC names 50 at most.
const MOST_TOLD: usize = 50;

impl Route {
    /// The longest body that a request may have, in bytes.
    pub(crate) fn max_body_len(self, method: &Method) -> usize {
        match self {
            Self::Payment(_) | Self::Transaction if method == Method::POST => MAX_MESSAGE_LEN,
            Self::Callback => MAX_CALLBACK_LEN,
            _ => MAX_OTHER_LEN,
        }
    }
}

const ROUTES: [Declared<Route>; 6] = [
    ("/dpp/api/v1/payment/{id}", "GET, HEAD, POST", Route::Payment(Dialect::GoDpp)),
    ("/api/v1/payment/{id}", "GET, HEAD, POST", Route::Payment(Dialect::Brc)),
    ("/pay/{id}/transaction", "POST", Route::Transaction),
    ("/api/v1/channel/{id}", "GET, HEAD", Route::Channel),
    ("/api/v1/channel/{id}/{sequence}", "POST", Route::Message),
    ("/network/callback", "POST", Route::Callback),
];

/// What a broadcaster tells, as far as it is a reason to ask.
#[derive(Deserialize)]
struct Told {
    txid: Option<String>,
    #[serde(default)]
    callbacks: Vec<ToldOne>,
}

#[derive(Deserialize)]
struct ToldOne {
    txid: Option<String>,
}

/// All paths.
fn declared() -> impl Iterator<Item = Declared<Route>> {
    let of_page = page::ROUTES.into_iter();
    let of_page = of_page.map(|(pattern, methods, route)| (pattern, methods, Route::Page(route)));
    ROUTES.into_iter().chain(of_page)
}

impl PaymentsApi {
    /// `peers` holds the limits on strangers.
    pub(crate) fn new(wallet: Arc<Wallet>, config: &WalletConfig, peers: &Arc<Peers>) -> Self {
        let page = Page::new(&wallet, config, peers);
        let has_page = page.is_some();
        let routes = declared().filter(|(.., route)| has_page || !matches!(route, Route::Page(_)));
        Self { wallet, page, routes: Routes::new(routes) }
    }

    /// Ends all streams.
    pub(crate) fn stop(&self) {
        self.page.iter().for_each(Page::stop);
    }

    /// The number of open streams.
    pub(crate) fn open_streams(&self) -> u64 {
        self.page.as_ref().map_or(0, Page::open_streams)
    }

    /// The patterns of all paths, with their methods.
    pub(crate) fn paths() -> impl Iterator<Item = (&'static str, &'static str)> {
        declared().map(|(pattern, methods, _)| (pattern, methods))
    }

    pub(crate) fn routes(&self) -> &Routes<Route> {
        &self.routes
    }

    /// Answers a matched request. `peer` is the sender, if peers are limited.
    pub(crate) async fn answer(
        &self,
        matched: Matched<'_, Route>,
        request: Received<'_>,
        peer: Option<IpAddr>,
    ) -> Answer {
        let id = matched.param("id");
        let answered = match (matched.route, request.method()) {
            (Route::Payment(_), &Method::POST) => self.receive(id, request).await,
            (Route::Payment(dialect), _) => self.terms(id, asked_dialect(request, dialect)).await,
            (Route::Transaction, _) => self.receive_transaction(id, request).await,
            (Route::Channel, &Method::HEAD) => self.newest(id, request).await,
            (Route::Channel, _) => self.messages(id, request).await,
            (Route::Message, _) => self.mark_read(id, matched.param("sequence"), request).await,
            (Route::Callback, _) => self.hear_callback(request),
            (Route::Page(route), _) => match &self.page {
                Some(page) => page.answer(route, matched.param(route.param()), request, peer).await,
                None => {
                    Err(Problem::of_status(StatusCode::NOT_FOUND, "there are no payment pages"))
                }
            },
        };
        answered.unwrap_or_else(Problem::into_answer_for_payer)
    }

    async fn terms(&self, id: &str, dialect: Dialect) -> Result<Answer, Problem> {
        let terms = self.wallet.terms(id).await?;
        let mut answer = answer::json_text(StatusCode::OK, terms.to_json(dialect));
        answer.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
        Ok(with_type(answer, dialect.terms_type()))
    }

    async fn receive(&self, id: &str, request: Received<'_>) -> Result<Answer, Problem> {
        let body = request.body();
        let (dialect, received) = match Payment::from_json(body) {
            Ok(payment) => {
                let refund_to = payment.refund_to.as_deref();
                let received = self.wallet.receive(id, &payment.transaction, refund_to).await;
                (payment.dialect, received)
            }
            Err(error) if is_bip270(request) => {
                return Ok(bip270_refusal(&error.into(), body));
            }
            Err(error) => return Err(error.into()),
        };
        match received.map_err(|error| problem_for_payer(&error)) {
            Ok(acknowledgement) => {
                let text = acknowledgement.to_json(dialect, body);
                let answer = answer::json_text(StatusCode::CREATED, text);
                Ok(with_type(answer, dialect.acknowledgement_type()))
            }
            // A payment that may still be accepted is not refused.
            Err(problem) if dialect == Dialect::Bip270 && problem.status().is_client_error() => {
                Ok(bip270_refusal(&problem, body))
            }
            Err(problem) => Err(problem),
        }
    }

    /// Accepts a transaction without the messages of the payment protocol.
    async fn receive_transaction(
        &self,
        id: &str,
        request: Received<'_>,
    ) -> Result<Answer, Problem> {
        #[derive(Serialize)]
        struct Taken<'a> {
            txid: String,
            state: &'a str,
        }
        let transaction = read_posted_transaction(request.body())?;
        let received = self.wallet.receive(id, &transaction, None).await;
        let txid = received.map_err(|error| problem_for_payer(&error))?.txid;
        let state = self.wallet.payment_state(id, txid).await;
        // The invoice may have been deleted meanwhile.
        let state = state.ok().flatten().unwrap_or(IncomingState::Accepted).name();
        let taken = Taken { txid: txid.to_string(), state };
        Ok(answer::json(StatusCode::CREATED, &taken))
    }

    async fn messages(&self, id: &str, request: Received<'_>) -> Result<Answer, Problem> {
        let only_unread = query(request, "unread")?.unwrap_or(false);
        let messages = self.wallet.channel(id, channel_token(request)?, only_unread).await?;
        let text = ChannelMessage::list_to_json(&messages);
        Ok(with_newest(answer::json_text(StatusCode::OK, text), messages.last()))
    }

    /// Hears from a broadcaster that transactions may have changed. What became of them is asked.
    fn hear_callback(&self, request: Received<'_>) -> Result<Answer, Problem> {
        let code = match bearer(request) {
            Some(token) if self.wallet.is_callback_token(token) => None,
            Some(_) => Some("token-invalid"),
            None => Some("token-missing"),
        };
        if let Some(code) = code {
            let detail = "a callback has the header Authorization: Bearer and the token that went with \
                          the transaction";
            return Err(Problem::new(StatusCode::UNAUTHORIZED, code, detail)
                .with_header(WWW_AUTHENTICATE, "Bearer realm=\"callback\""));
        }
        let told: Told = serde_json::from_slice(request.body()).map_err(|error| {
            let detail = format!("the body must be a JSON object that names a txid: {error}");
            Problem::new(StatusCode::BAD_REQUEST, "malformed-body", detail)
        })?;
        self.wallet.hear_callback(&told.txids());
        Ok(answer::json_text(StatusCode::OK, Bytes::new()))
    }

    /// Answers only the number of the newest message.
    async fn newest(&self, id: &str, request: Received<'_>) -> Result<Answer, Problem> {
        let messages = self.wallet.channel(id, channel_token(request)?, false).await?;
        Ok(with_newest(answer::json_text(StatusCode::OK, Bytes::new()), messages.last()))
    }

    async fn mark_read(
        &self,
        id: &str,
        sequence: &str,
        request: Received<'_>,
    ) -> Result<Answer, Problem> {
        #[derive(Deserialize)]
        struct Mark {
            read: bool,
        }
        let token = channel_token(request)?;
        let Mark { read } = serde_json::from_slice(request.body()).map_err(|error| {
            let detail = format!("the body must be {{\"read\": true}} or false: {error}");
            Problem::new(StatusCode::BAD_REQUEST, "malformed-body", detail)
        })?;
        let older = query(request, "older")?.unwrap_or(false);
        let sequence_number = sequence.parse().unwrap_or(0);
        if self.wallet.mark_read(id, token, sequence_number, older, read).await? {
            return Ok(answer::json_text(StatusCode::OK, Bytes::new()));
        }
        let detail = format!("the channel has no message {sequence}");
        Err(Problem::new(StatusCode::NOT_FOUND, "unknown-message", detail))
    }
}

impl Told {
    /// The transactions that a callback names: one, or those of a batch.
    fn txids(&self) -> Vec<Txid> {
        let all = self.txid.iter().chain(self.callbacks.iter().filter_map(|it| it.txid.as_ref()));
        all.take(MOST_TOLD).filter_map(|txid| txid.parse().ok()).collect()
    }
}

impl From<PaymentError> for Problem {
    fn from(error: PaymentError) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed-payment", error.to_string())
    }
}

/// The problem for a payer, which does not tell where the node is.
fn problem_for_payer(error: &Error) -> Problem {
    let (code, detail) = match error {
        Error::NetworkAway(_) => {
            ("network-unavailable", "the network is not available: send the payment again later")
        }
        Error::OutcomeUnknown(_) => (
            "payment-outcome-unknown",
            "the network does not answer, so it is unknown whether the payment went through: the \
             wallet follows it, and you may send it again",
        ),
        error => return error.into(),
    };
    tracing::debug!("{error}");
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, code, detail)
}

fn bip270_refusal(problem: &Problem, posted: &[u8]) -> Answer {
    let text = Acknowledgement::bip270_refusal(&problem.detail(), posted);
    let answer = answer::json_text(problem.status(), text);
    with_type(answer, Dialect::Bip270.acknowledgement_type())
}

/// Every payment URL also supports BIP270, if the request asks for it.
fn asked_dialect(request: Received<'_>, dialect: Dialect) -> Dialect {
    let bip270 = Dialect::Bip270.request_type();
    let accepted = request.headers().get_all(ACCEPT).iter();
    let is_bip270 = accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|range| is_type(range, bip270));
    if is_bip270 { Dialect::Bip270 } else { dialect }
}

/// Whether the headers of a posted payment say that it is of BIP270.
fn is_bip270(request: Received<'_>) -> bool {
    let content_type = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    content_type.is_some_and(|value| is_type(value, Dialect::Bip270.payment_type()))
}

fn is_type(value: &str, essence: &str) -> bool {
    value.split(';').next().is_some_and(|found| found.trim().eq_ignore_ascii_case(essence))
}

fn bearer<'a>(request: Received<'a>) -> Option<&'a str> {
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let (scheme, token) = header?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

fn channel_token<'a>(request: Received<'a>) -> Result<&'a str, Problem> {
    bearer(request).ok_or_else(|| {
        Problem::new(
            StatusCode::UNAUTHORIZED,
            "token-missing",
            "the channel is read with the header Authorization: Bearer and its token",
        )
        .with_header(WWW_AUTHENTICATE, "Bearer realm=\"channel\"")
    })
}

/// Reads a query parameter that is true or false.
fn query(request: Received<'_>, name: &str) -> Result<Option<bool>, Problem> {
    let value = parameters(request.uri()).find(|(key, _)| key == name);
    value
        .map(|(_, value)| {
            value.parse().map_err(|_| {
                let detail = format!("{name} must be true or false");
                Problem::new(StatusCode::BAD_REQUEST, "invalid-fields", detail)
            })
        })
        .transpose()
}

fn with_newest(mut answer: Answer, newest: Option<&ChannelMessage>) -> Answer {
    let sequence = newest.map_or(0, |message| message.sequence);
    let tag =
        HeaderValue::try_from(format!("\"{sequence}\"")).expect("a quoted number is printable");
    answer.headers_mut().insert(ETAG, tag);
    answer
}

fn with_type(mut answer: Answer, content_type: &'static str) -> Answer {
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    answer
}
