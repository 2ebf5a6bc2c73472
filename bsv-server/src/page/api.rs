use std::net::IpAddr;
use std::sync::Arc;

use bsv_invoicing::dpp::Merchant;
use bsv_invoicing::{Checkout, Error, Payable, Wallet};
use bsv_tx::Network;
use bytes::Bytes;
use hyper::header::{ACCEPT_LANGUAGE, CONTENT_LANGUAGE, HeaderValue, LOCATION, VARY};
use hyper::{Method, StatusCode, Uri};

use super::address::link;
use super::assets::Assets;
use super::cache::Cache;
use super::headers::{content_policy, protect};
use super::html::{Frame, Shown};
use super::qr::Qr;
use super::state;
use super::stream::StateStream;
use super::texts::Texts;
use crate::config::WalletConfig;
use crate::http::event_stream::{self, Pace, Stopping, StreamPlaces};
use crate::http::{Answer, Declared, Peers, Problem, Received, answer, parameters};

/// Answers the requests of payment pages.
#[derive(Debug)]
pub(crate) struct Page {
    wallet: Arc<Wallet>,
    frame: Frame,
    policy: HeaderValue,
    cache: Cache,
    places: StreamPlaces,
    peers: Arc<Peers>,
    stopping: Stopping,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Route {
    Page,
    /// The path of a page with a slash at its end, as people may type it.
    Slash,
    State,
    Stream,
    Qr,
    Asset,
}

pub(crate) const ROUTES: [Declared<Route>; 6] = [
    ("/pay/{id}", "GET, HEAD", Route::Page),
    ("/pay/{id}/", "GET, HEAD", Route::Slash),
    ("/pay/{id}/state", "GET, HEAD", Route::State),
    ("/pay/{id}/stream", "GET, HEAD", Route::Stream),
    ("/pay/{id}/qr.svg", "GET, HEAD", Route::Qr),
    ("/pay/assets/{file}", "GET, HEAD", Route::Asset),
];

impl Route {
    /// The name of the parameter in its path.
    pub(crate) fn param(self) -> &'static str {
        if matches!(self, Self::Asset) { "file" } else { "id" }
    }
}

/// The content of a QR code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Address,
    Link,
}

impl Page {
    /// The pages of a wallet, if its settings enable them.
    pub(crate) fn new(
        wallet: &Arc<Wallet>,
        config: &WalletConfig,
        peers: &Arc<Peers>,
    ) -> Option<Self> {
        let page = config.payments.page.as_ref()?;
        let assets = Assets::all();
        let frame = Frame {
            script: assets.script().to_owned(),
            style: assets.style().to_owned(),
            icon: assets.icon().to_owned(),
            merchant: shown_merchant(&config.merchant, &config.payments.public_url()),
            browser_wallets: page.browser_wallets,
            show_reference: page.show_reference,
            test_network: match wallet.network() {
                Network::Livenet => None,
                network => Some(network.name()),
            },
        };
        let full = "streams of payment pages are open already: ask for /state";
        Some(Self {
            wallet: Arc::clone(wallet),
            frame,
            policy: content_policy(page),
            cache: Cache::default(),
            places: StreamPlaces::new(config.payments.streams, full),
            peers: Arc::clone(peers),
            stopping: Stopping::default(),
        })
    }

    /// Ends all streams.
    pub(crate) fn stop(&self) {
        self.stopping.stop();
    }

    /// The number of open streams.
    pub(crate) fn open_streams(&self) -> u64 {
        self.places.taken()
    }

    /// Answers a request for `param`. `peer` is the sender, if peers are limited.
    pub(crate) async fn answer(
        &self,
        route: Route,
        name: &str,
        request: Received<'_>,
        peer: Option<IpAddr>,
    ) -> Result<Answer, Problem> {
        match route {
            Route::Page => self.page(name, request).await,
            Route::Slash => Ok(without_slash(name, request.uri())),
            Route::State => {
                let checkout = self.wallet.checkout(name).await?;
                Ok(state::answer(&checkout, self.wallet.expiry_time(), request.headers()))
            }
            Route::Stream => self.stream(name, request.method(), peer).await,
            Route::Qr => self.qr(name, request.uri()).await,
            Route::Asset => asset(name),
        }
    }

    async fn page(&self, id: &str, request: Received<'_>) -> Result<Answer, Problem> {
        let texts = Texts::asked(request.head);
        let (status, html) = match self.wallet.checkout(id).await {
            Ok(checkout) => (StatusCode::OK, self.html(checkout, texts).await?),
            Err(Error::UnknownInvoice(_)) => {
                let html = self.frame.missing(texts).map_err(not_made)?;
                (StatusCode::NOT_FOUND, html.into())
            }
            Err(error) => return Err(error.into()),
        };
        let mut answer = answer::answer(status, "text/html; charset=utf-8", html);
        protect(&mut answer, self.policy.clone());
        describe_language(&mut answer, texts);
        Ok(answer)
    }

    async fn html(&self, invoice: Checkout, texts: &'static Texts) -> Result<Bytes, Problem> {
        if let Some(html) = self.cache.get(&invoice, texts.tag) {
            return Ok(html);
        }
        let id = invoice.id.as_str();
        let shown = Shown {
            word: state::word(&invoice),
            payable: self.wallet.show_payable(&invoice).await?,
            url: &self.wallet.page_url(id).unwrap_or_default(),
            payment_url: &self.wallet.payment_url(id),
            invoice: &invoice,
        };
        let html = Bytes::from(self.frame.page(texts, shown).map_err(not_made)?);
        self.cache.put(invoice, texts.tag, html.clone());
        Ok(html)
    }

    async fn stream(
        &self,
        id: &str,
        method: &Method,
        peer: Option<IpAddr>,
    ) -> Result<Answer, Problem> {
        match self.wallet.checkout(id).await {
            Ok(checkout) if checkout.is_final() => return Ok(answer::no_content()),
            // An invoice that was deleted still has a number.
            Err(Error::UnknownInvoice(_)) if self.wallet.invoice_number(id).await.is_ok() => {
                return Ok(answer::no_content());
            }
            checkout => checkout?,
        };
        if *method == Method::HEAD {
            return Ok(event_stream::head());
        }
        let place = self.places.take()?;
        let share = self.peers.begin_stream(peer).ok_or_else(too_many_streams)?;
        let stream = StateStream::new(Arc::clone(&self.wallet), id, (place, share));
        Ok(event_stream::answer(stream, Pace::USUAL, &self.stopping))
    }

    async fn qr(&self, id: &str, uri: &Uri) -> Result<Answer, Problem> {
        let form = Form::asked(uri)?;
        let checkout = self.wallet.checkout(id).await?;
        let Some(Payable { address, .. }) = self.wallet.show_payable(&checkout).await? else {
            let detail = "nothing is to be paid to this invoice";
            return Err(Problem::new(StatusCode::CONFLICT, "not-payable", detail));
        };
        let text = match (form, &address) {
            (Form::Address, Some(address)) => address.to_string(),
            _ => link(address.as_ref(), checkout.due, &self.wallet.payment_url(id)),
        };
        let qr = Qr::of(&text).ok_or_else(|| not_made("the link is too long for a QR code"))?;
        let mut answer = answer::answer(StatusCode::OK, "image/svg+xml", qr.to_svg());
        protect(&mut answer, HeaderValue::from_static("default-src 'none'"));
        Ok(answer)
    }
}

fn asset(name: &str) -> Result<Answer, Problem> {
    let missing = || {
        let detail = "there is no such file: load the page again";
        Problem::of_status(StatusCode::NOT_FOUND, detail)
    };
    Assets::all().answer(name).ok_or_else(missing)
}

/// Adds the headers about the language of a page.
pub(super) fn describe_language(answer: &mut Answer, texts: &'static Texts) {
    let headers = answer.headers_mut();
    headers.insert(CONTENT_LANGUAGE, HeaderValue::from_static(texts.tag));
    headers.insert(VARY, HeaderValue::from_static(ACCEPT_LANGUAGE.as_str()));
}

impl Form {
    fn asked(uri: &Uri) -> Result<Self, Problem> {
        let asked = parameters(uri).find(|(name, _)| name == "form");
        match asked.as_ref().map(|(_, form)| form.as_ref()) {
            None | Some("address") => Ok(Self::Address),
            Some("link") => Ok(Self::Link),
            Some(_) => {
                let detail = "form must be address or link";
                Err(Problem::new(StatusCode::BAD_REQUEST, "invalid-query", detail))
            }
        }
    }
}

/// Leads to the page without a slash at its end. The links of a page are relative, so they would
/// lead elsewhere from a path with a slash. The way there is relative too, because front ends may
/// put a prefix before the path.
fn without_slash(id: &str, uri: &Uri) -> Answer {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut answer = answer::text(StatusCode::PERMANENT_REDIRECT, "");
    if let Ok(there) = HeaderValue::try_from(format!("../{id}{query}")) {
        answer.headers_mut().insert(LOCATION, there);
    }
    answer
}

/// The merchant. The avatar is left out unless it has the origin of the pages, because pages load
/// nothing from elsewhere.
fn shown_merchant(merchant: &Merchant, public_url: &str) -> Merchant {
    let uri: Option<Uri> = public_url.parse().ok();
    let origin =
        uri.as_ref().and_then(|uri| Some(format!("{}://{}/", uri.scheme_str()?, uri.authority()?)));
    let avatar = &merchant.avatar;
    let is_near = origin.is_some_and(|origin| avatar.starts_with(&origin))
        || (avatar.starts_with('/') && !avatar.starts_with("//"));
    let avatar = if is_near { avatar.clone() } else { String::new() };
    Merchant { avatar, ..merchant.clone() }
}

fn too_many_streams() -> Problem {
    let detail = "too many streams are open from your address: ask for /state";
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "too-many-streams", detail)
}

fn not_made(error: impl std::fmt::Display) -> Problem {
    tracing::error!("a payment page cannot be made: {error}");
    Problem::of_status(StatusCode::INTERNAL_SERVER_ERROR, "the page cannot be made")
}
