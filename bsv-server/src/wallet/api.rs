use std::sync::Arc;

use bsv_invoicing::coins::Holdings;
use bsv_invoicing::{Invoice, InvoiceDraft, PayDraft, UserDraft, Wallet};
use hyper::header::LINK;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

use super::event_blocks::EventPlaces;
use super::events::{self, Asked};
use super::headers::{check_content_type, header, idempotency_key, number, set_location};
use super::leaving;
use super::list::{self, Listing, Streams};
use super::{event_stream, export, receipts, webhooks};
use crate::access::{Caller, Scope};
use crate::http::{self, Answer, Declared, Matched, Problem, Received, Routes, answer};
use crate::page;
use crate::refusal::Refusal;
use crate::wire;

/// Answers the requests of the wallet specification.
#[derive(Debug)]
pub(crate) struct WalletApi {
    wallet: Arc<Wallet>,
    streams: Streams,
    places: EventPlaces,
    routes: Routes<Route>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Route {
    Invoices,
    Invoice,
    Payments,
    Settlement,
    Checkout,
    Mark,
    Refund,
    Pay,
    Outgoing,
    OutgoingPayment,
    OutgoingBeef,
    Cancel,
    Withdrawals,
    Withdrawal,
    Users,
    User,
    Balance,
    BalanceDetails,
    Receipts,
    Export,
    Events,
    EventStream,
    Webhooks(webhooks::Route),
}

const ROUTES: [Declared<Route>; 22] = [
    ("/api/v1/invoices", "GET, HEAD, POST", Route::Invoices),
    ("/api/v1/invoices/{id}", "GET, HEAD, DELETE", Route::Invoice),
    ("/api/v1/invoices/{id}/payments", "GET, HEAD", Route::Payments),
    ("/api/v1/invoices/{id}/settlement", "GET, HEAD", Route::Settlement),
    ("/api/v1/invoices/{id}/checkout", "GET, HEAD", Route::Checkout),
    ("/api/v1/invoices/{id}/mark", "POST", Route::Mark),
    ("/api/v1/invoices/{id}/refund", "POST", Route::Refund),
    ("/api/v1/pay", "POST", Route::Pay),
    ("/api/v1/outgoing", "GET, HEAD", Route::Outgoing),
    ("/api/v1/outgoing/{id}", "GET, HEAD", Route::OutgoingPayment),
    ("/api/v1/outgoing/{id}/beef", "GET, HEAD", Route::OutgoingBeef),
    ("/api/v1/outgoing/{id}/cancel", "POST", Route::Cancel),
    ("/api/v1/withdrawals", "GET, HEAD, POST", Route::Withdrawals),
    ("/api/v1/withdrawals/{id}", "GET, HEAD", Route::Withdrawal),
    ("/api/v1/users", "POST", Route::Users),
    ("/api/v1/users/{id}", "GET, HEAD", Route::User),
    ("/api/v1/balance", "GET, HEAD", Route::Balance),
    ("/api/v1/balance/details", "GET, HEAD", Route::BalanceDetails),
    ("/api/v1/receipts", "GET, HEAD", Route::Receipts),
    ("/api/v1/export", "GET, HEAD", Route::Export),
    ("/api/v1/events", "GET, HEAD", Route::Events),
    ("/api/v1/events/stream", "GET, HEAD", Route::EventStream),
];

/// All paths.
fn declared() -> impl Iterator<Item = Declared<Route>> {
    let of_webhooks = webhooks::ROUTES.into_iter();
    let of_webhooks =
        of_webhooks.map(|(pattern, methods, route)| (pattern, methods, Route::Webhooks(route)));
    ROUTES.into_iter().chain(of_webhooks)
}

impl Route {
    /// The scope that a request needs.
    fn scope(self, method: &Method) -> Scope {
        match (self, method.is_safe()) {
            (Self::Webhooks(_), _) => Scope::WalletWebhooks,
            (Self::Mark, _) => Scope::WalletMark,
            (Self::Pay | Self::Refund | Self::Cancel, _) | (Self::Withdrawals, false) => {
                Scope::WalletPay
            }
            (Self::Invoices | Self::Invoice | Self::Users, false) => Scope::WalletWrite,
            (Self::Invoices | Self::Invoice | Self::Users | Self::Withdrawals, true)
            | (
                Self::Payments
                | Self::Settlement
                | Self::Checkout
                | Self::Outgoing
                | Self::OutgoingPayment
                | Self::OutgoingBeef
                | Self::Withdrawal
                | Self::User
                | Self::Balance
                | Self::BalanceDetails
                | Self::Receipts
                | Self::Export
                | Self::Events
                | Self::EventStream,
                _,
            ) => Scope::WalletRead,
        }
    }

    /// Whether a request may have a query.
    fn takes_query(self, method: &Method) -> bool {
        let is_list = matches!(
            self,
            Self::Invoices
                | Self::Payments
                | Self::Outgoing
                | Self::Withdrawals
                | Self::Receipts
                | Self::Export
                | Self::Events
                | Self::EventStream
                | Self::Webhooks(webhooks::Route::Deliveries)
        );
        is_list && *method != Method::POST
    }
}

impl WalletApi {
    /// `places` limits the concurrent streams of events, and separately the requests that wait for
    /// an event.
    pub(crate) fn new(wallet: Arc<Wallet>, places: u32) -> Self {
        Self {
            wallet,
            streams: Streams::new(),
            places: EventPlaces::new(places),
            routes: Routes::new(declared()),
        }
    }

    /// Ends all requests that wait for events, now and later.
    pub(crate) fn stop(&self) {
        self.places.stop();
    }

    pub(crate) fn wallet(&self) -> &Arc<Wallet> {
        &self.wallet
    }

    /// The number of open streams of events.
    pub(crate) fn open_streams(&self) -> u64 {
        self.places.open_streams()
    }

    /// The patterns of all paths, with their methods.
    pub(crate) fn paths() -> impl Iterator<Item = (&'static str, &'static str)> {
        declared().map(|(pattern, methods, _)| (pattern, methods))
    }

    /// The pattern that matches a path, if there is one.
    pub(crate) fn pattern(&self, path: &str) -> Option<&'static str> {
        self.routes.pattern(path)
    }

    /// Determines the request, and checks that the caller may make it. Refuses requests that can be
    /// refused without their body.
    pub(crate) fn admit<'a>(
        &'a self,
        head: &'a Parts,
        caller: &Caller,
    ) -> Result<Matched<'a, Route>, Refusal> {
        let matched = self.routes.find(head.uri.path(), &head.method)?;
        caller.require(matched.route.scope(&head.method), || None::<&str>)?;
        Ok(matched)
    }

    /// Answers a matched request.
    pub(crate) async fn answer(
        &self,
        matched: Matched<'_, Route>,
        request: Received<'_>,
    ) -> Answer {
        self.call(&matched, request).await.unwrap_or_else(Problem::into_answer)
    }

    async fn call(
        &self,
        matched: &Matched<'_, Route>,
        request: Received<'_>,
    ) -> Result<Answer, Problem> {
        let (route, id) = (matched.route, matched.param("id"));
        if !route.takes_query(request.method()) {
            http::refuse_parameters(request.uri())?;
        }
        match route {
            Route::Invoices if request.method() == Method::POST => {
                self.create_invoice(request).await
            }
            Route::Invoices => {
                let listing = Listing::parse(&self.wallet, request.uri()).await?;
                list::answer(&self.wallet, &self.streams, listing, request.method()).await
            }
            Route::Invoice if request.method() == Method::DELETE => {
                self.wallet.delete_invoice(id).await?;
                Ok(answer::no_content())
            }
            Route::Invoice => {
                let invoice = self.wallet.invoice(id).await?;
                let body = invoice.to_json(self.wallet.expiry_time());
                Ok(self.with_links(answer::json_text(StatusCode::OK, body), &invoice))
            }
            Route::Payments => receipts::payments(&self.wallet, id, request.uri()).await,
            Route::Settlement => {
                let settlement = self.wallet.settlement(id).await?;
                let body = wire::Settlement::new(&settlement, self.wallet.expiry_time());
                Ok(answer::json(StatusCode::OK, &body))
            }
            Route::Checkout => self.checkout(id).await,
            Route::Mark => self.mark(id, request).await,
            Route::Pay => Box::pin(self.pay(request)).await,
            Route::Refund => Box::pin(leaving::refund(&self.wallet, id, request)).await,
            Route::Outgoing => leaving::payments(&self.wallet, request).await,
            Route::OutgoingPayment => leaving::payment(&self.wallet, id).await,
            Route::OutgoingBeef => Box::pin(leaving::beef(&self.wallet, id)).await,
            Route::Cancel => Box::pin(leaving::cancel(&self.wallet, id, request)).await,
            Route::Withdrawals if request.method() == Method::POST => {
                Box::pin(leaving::withdraw(&self.wallet, request)).await
            }
            Route::Withdrawals => leaving::withdrawals(&self.wallet, request).await,
            Route::Withdrawal => leaving::withdrawal(&self.wallet, id).await,
            Route::Users => self.create_user(request).await,
            Route::User => {
                let unknown = || {
                    let detail = format!("there is no user {id}");
                    Problem::new(StatusCode::NOT_FOUND, "unknown-user", detail)
                };
                let user = self.wallet.user(number(id).ok_or_else(unknown)?).await?;
                Ok(answer::json_text(StatusCode::OK, user.to_json()))
            }
            Route::Balance => {
                let satoshis = self.wallet.balance().await?;
                Ok(answer::json(StatusCode::OK, &wire::Balance { satoshis, parts: None }))
            }
            Route::BalanceDetails => {
                let holdings = self.wallet.holdings().await?;
                Ok(answer::json(StatusCode::OK, &wire::Balance::from(holdings)))
            }
            Route::Events => {
                let asked = Asked::parse(&self.wallet, request.uri()).await?;
                events::answer(&self.wallet, &self.places, &asked, request.method()).await
            }
            Route::EventStream => {
                let asked = event_stream::Asked::parse(request.uri(), request.headers())?;
                event_stream::answer(&self.wallet, &self.places, asked, request.method()).await
            }
            Route::Receipts => receipts::unassigned(&self.wallet, request.uri()).await,
            Route::Webhooks(route) => {
                let asked = webhooks::Asked { route, id, number: matched.param("number") };
                Box::pin(webhooks::answer(&self.wallet, asked, request)).await
            }
            Route::Export => {
                export::answer(&self.wallet, &self.streams, request.uri(), request.method()).await
            }
        }
    }

    async fn create_invoice(&self, request: Received<'_>) -> Result<Answer, Problem> {
        check_content_type(request.headers())?;
        let key = idempotency_key(request, "")?;
        let draft = InvoiceDraft::from_json(request.body(), self.wallet.now())?;
        let invoice = self.wallet.create_invoice(draft, key).await?;
        let created = invoice.as_created();
        let body = created.to_json(created.created_at);
        let mut answer = answer::json_text(StatusCode::CREATED, body);
        set_location(&mut answer, ["/api/v1/invoices/", created.id.as_str()].concat());
        Ok(self.with_links(answer, &created))
    }

    /// How an invoice can be paid. The script is watched before the answer leaves.
    async fn checkout(&self, id: &str) -> Result<Answer, Problem> {
        let checkout = self.wallet.checkout(id).await?;
        let payable = self.wallet.show_payable(&checkout).await?;
        let address = payable.as_ref().map(|it| it.address.as_ref());
        let (payment_url, page_url) = (self.wallet.payment_url(id), self.wallet.page_url(id));
        let body = wire::Checkout {
            bip21: address.map(|it| page::link(it, checkout.due, &payment_url)),
            qr_url: page_url
                .as_ref()
                .filter(|_| address.is_some())
                .map(|it| [it, "/qr.svg"].concat()),
            address: address.flatten().map(ToString::to_string),
            payment_url,
            page_url,
        };
        Ok(answer::json(StatusCode::OK, &body))
    }

    async fn mark(&self, id: &str, request: Received<'_>) -> Result<Answer, Problem> {
        check_content_type(request.headers())?;
        let MarkJson { state } = MarkJson::parse(request.body())?;
        let MarkedState::Paid = state;
        let invoice = self.wallet.mark_paid(id).await?;
        let body = invoice.to_json(self.wallet.expiry_time());
        Ok(self.with_links(answer::json_text(StatusCode::OK, body), &invoice))
    }

    async fn create_user(&self, request: Received<'_>) -> Result<Answer, Problem> {
        check_content_type(request.headers())?;
        let key = idempotency_key(request, "")?;
        let user = self.wallet.create_user(UserDraft::from_json(request.body())?, key).await?;
        let mut answer = answer::json_text(StatusCode::CREATED, user.to_json());
        set_location(&mut answer, format!("/api/v1/users/{}", user.id));
        Ok(answer)
    }

    async fn pay(&self, request: Received<'_>) -> Result<Answer, Problem> {
        check_content_type(request.headers())?;
        let key = idempotency_key(request, "")?;
        let paid = self.wallet.pay(PayDraft::from_json(request.body())?, key).await?;
        Ok(answer::json_text(StatusCode::OK, paid.to_json()))
    }

    fn with_links(&self, mut answer: Answer, invoice: &Invoice) -> Answer {
        let url = self.wallet.payment_url(invoice.id.as_str());
        let link = ["<", &url, ">; rel=\"payment\""].concat();
        answer.headers_mut().insert(LINK, header(link));
        if let Some(url) = self.wallet.page_url(invoice.id.as_str()) {
            let link = ["<", &url, ">; rel=\"alternate\"; type=\"text/html\""].concat();
            answer.headers_mut().append(LINK, header(link));
        }
        answer
    }
}

impl From<Holdings> for wire::Balance {
    fn from(holdings: Holdings) -> Self {
        let satoshis = holdings.balance();
        let Holdings { confirmed, unconfirmed, waiting, reserved, contested, immature, coins } =
            holdings;
        let parts = wire::BalanceParts {
            confirmed,
            unconfirmed,
            reserved,
            contested,
            immature,
            waiting,
            coins,
        };
        Self { satoshis, parts: Some(parts) }
    }
}

/// A decision of the owner about an invoice.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct MarkJson {
    state: MarkedState,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "lowercase")]
enum MarkedState {
    Paid,
}

impl MarkJson {
    fn parse(body: &[u8]) -> Result<Self, Problem> {
        serde_json::from_slice(body).map_err(|error| {
            let detail = format!("the body must be {{\"state\":\"paid\"}}: {error}");
            Problem::new(StatusCode::BAD_REQUEST, "malformed-body", detail)
        })
    }
}
