//! The path of a request through the server: sender, route, permission, body, answer.

use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::time::Instant;

use bytes::Bytes;
use hyper::body::Body;
use hyper::http::request::Parts;
use hyper::{Request, StatusCode};

use crate::access::{Caller, Denied, Scope, TokenKind};
use crate::common_routes;
use crate::control;
use crate::health;
use crate::http::{self, Answer, End, LargeBodies, Matched, NoRoute, Received, answer};
use crate::instance::Instance;
use crate::metrics::{self, Refused};
use crate::minerid::{self, MinerIdApi};
use crate::page;
use crate::payments::{self, PaymentsApi};
use crate::refusal::{Refusal, refuse};
use crate::surface::Surface;
use crate::wallet::{self, WalletApi};

/// The longest request body, in bytes, except on the payments listener and the control socket.
const MAX_BODY_LEN: usize = 1 << 20;
/// The longest request body of the command line, which hands over the files of home directories.
const MAX_CONTROL_LEN: usize = 32 << 20;

/// A request for an existing route by a caller with permission.
enum Call<'a> {
    Health(Matched<'a, common_routes::Route>, health::Route),
    Metrics(Matched<'a, common_routes::Route>),
    OpenApi(Matched<'a, common_routes::Route>, &'static str),
    MinerId(&'a MinerIdApi, minerid::Call<'a>),
    Wallet(&'a WalletApi, Matched<'a, wallet::Route>),
    Payments(&'a PaymentsApi, Matched<'a, payments::Route>),
    Control(Matched<'a, control::Route>),
}

impl Call<'_> {
    /// The pattern of its path.
    fn pattern(&self) -> &'static str {
        match self {
            Self::Health(matched, _) | Self::Metrics(matched) | Self::OpenApi(matched, _) => {
                matched.pattern
            }
            Self::MinerId(_, call) => call.pattern(),
            Self::Wallet(_, matched) => matched.pattern,
            Self::Payments(_, matched) => matched.pattern,
            Self::Control(matched) => matched.pattern,
        }
    }

    /// Whether its caller was identified.
    fn needs_caller(&self, surface: Surface) -> bool {
        match self {
            Self::Metrics(_) => true,
            Self::MinerId(..) => surface == Surface::MinerId,
            Self::Wallet(..) => surface == Surface::Wallet,
            Self::Health(..) | Self::OpenApi(..) | Self::Payments(..) | Self::Control(_) => false,
        }
    }
}

impl Instance {
    /// Answers a request from an address, unless too many requests come from there.
    pub(crate) async fn answer_peer<B>(
        &self,
        surface: Surface,
        address: Option<IpAddr>,
        request: Request<B>,
    ) -> Answer
    where
        B: Body<Data = Bytes> + Unpin + Send + 'static,
    {
        let (mut head, body) = request.into_parts();
        if surface == Surface::MinerId {
            minerid::lower_case(&mut head.uri);
        }
        let begun = Instant::now();
        let peer = match (surface, address) {
            (Surface::Payments, Some(address)) => self.payers.requester(address, &head.headers),
            _ => None,
        };
        let admitted = match peer {
            Some(peer) => self.payers.admit(peer, begun).map_err(|wait| {
                // The connection of a front end also carries requests of other peers.
                let closes = address.map(|it| it.to_canonical()) == Some(peer);
                Refusal::TooMany { wait, closes }
            }),
            None => Ok(()),
        };
        let (pattern, mut answer) = match admitted.and_then(|()| self.admit(surface, &head)) {
            Ok(call) => (Some(call.pattern()), self.serve(surface, peer, call, &head, body).await),
            Err(refusal) => {
                http::discard(body);
                let pattern = self.pattern(surface, head.uri.path());
                (pattern, self.refuse(surface, refusal, &head))
            }
        };
        if surface == Surface::Payments {
            let wallet = self.config.wallet.as_ref();
            if let Some(page) = wallet.and_then(|wallet| wallet.payments.page.as_ref()) {
                page::show_in_browser(page, &head, &mut answer);
            }
            http::cors::allow_pages(&head.method, &mut answer);
        }
        if let Some(counts) = self.metrics.listener(surface) {
            counts.note_answer(pattern, &head.method, answer.status(), begun.elapsed());
        }
        answer
    }

    /// Answers a refused request.
    fn refuse(&self, surface: Surface, refusal: Refusal, head: &Parts) -> Answer {
        if let Some(refused) = Refused::of(&refusal) {
            self.note_refused(surface, refused);
        }
        refusal.into_answer(surface, head)
    }

    fn note_refused(&self, surface: Surface, refused: Refused) {
        if let Some(counts) = self.metrics.listener(surface) {
            counts.note_refused(refused);
        }
    }

    /// Answers a request.
    pub async fn answer<B>(&self, surface: Surface, request: Request<B>) -> Answer
    where
        B: Body<Data = Bytes> + Unpin + Send + 'static,
    {
        self.answer_peer(surface, None, request).await
    }

    /// Determines what a request asks for, and checks everything that its head tells.
    fn admit<'a>(&'a self, surface: Surface, head: &'a Parts) -> Result<Call<'a>, Refusal> {
        self.check_browser(surface, head)?;
        let (path, method) = (head.uri.path(), &head.method);
        match self.common_routes.find(surface, path, method) {
            Ok(matched) => return self.admit_to_common(head, matched),
            Err(NoRoute::Path) => {}
            Err(missed) => return Err(missed.into()),
        }
        match surface {
            Surface::MinerId => {
                self.admit_to_minerid(head, surface, self.access.identify(&head.headers)?)
            }
            Surface::Node => self.admit_to_minerid(head, surface, Caller::Trusted),
            Surface::Wallet => self.admit_to_wallet(head, &self.access.identify(&head.headers)?),
            Surface::Payments => {
                let payments = self.payments.as_ref().ok_or_else(|| self.lacks(Surface::Wallet))?;
                Ok(Call::Payments(payments, payments.routes().find(path, method)?))
            }
            Surface::Control if path.starts_with(CONTROL_PREFIX) => {
                Ok(Call::Control(self.control.routes().find(path, method)?))
            }
            Surface::Control if path.starts_with(WALLET_PREFIX) => {
                self.admit_to_wallet(head, &Caller::Trusted)
            }
            Surface::Control => self.admit_to_minerid(head, surface, Caller::Trusted),
        }
    }

    fn admit_to_common<'a>(
        &'a self,
        head: &'a Parts,
        matched: Matched<'a, common_routes::Route>,
    ) -> Result<Call<'a>, Refusal> {
        match matched.route {
            common_routes::Route::Health(route) => Ok(Call::Health(matched, route)),
            common_routes::Route::OpenApi(document) => Ok(Call::OpenApi(matched, document)),
            common_routes::Route::Metrics => {
                self.access
                    .identify(&head.headers)?
                    .require(Scope::MetricsRead, || None::<&str>)?;
                Ok(Call::Metrics(matched))
            }
        }
    }

    fn admit_to_minerid<'a>(
        &'a self,
        head: &'a Parts,
        surface: Surface,
        caller: Caller,
    ) -> Result<Call<'a>, Refusal> {
        let api = self.minerid.as_ref().ok_or_else(|| self.lacks(Surface::MinerId))?;
        Ok(Call::MinerId(api, api.admit(head, surface, caller)?))
    }

    fn admit_to_wallet<'a>(
        &'a self,
        head: &'a Parts,
        caller: &Caller,
    ) -> Result<Call<'a>, Refusal> {
        let api = self.wallet.as_ref().ok_or_else(|| self.lacks(Surface::Wallet))?;
        Ok(Call::Wallet(api, api.admit(head, caller)?))
    }

    /// Why a service is missing.
    fn lacks(&self, service: Surface) -> Refusal {
        let name = match service {
            Surface::MinerId => "miner identity service",
            _ => "wallet",
        };
        match self.failures.reason(service) {
            Some(reason) => Refusal::Unavailable(name, reason.to_owned()),
            None => Refusal::Disabled(name),
        }
    }

    /// Refuses requests that a browser sends for a page of another origin, or to navigate.
    fn check_browser(&self, surface: Surface, head: &Parts) -> Result<(), Refusal> {
        if surface != Surface::Control && !head.method.is_safe() {
            http::check_navigation(&head.headers).map_err(Refusal::Forbidden)?;
        }
        match surface {
            Surface::MinerId | Surface::Node | Surface::Wallet => {
                http::check_origin(&head.headers, &self.config.allowed_hosts)
                    .map_err(Refusal::Forbidden)
            }
            // Strangers use the payments listener from any page.
            Surface::Payments | Surface::Control => Ok(()),
        }
    }

    /// Reads the body of a request, and answers the request.
    async fn serve<B>(
        &self,
        surface: Surface,
        peer: Option<IpAddr>,
        call: Call<'_>,
        head: &Parts,
        body: B,
    ) -> Answer
    where
        B: Body<Data = Bytes> + Unpin + Send + 'static,
    {
        let (max_len, large): (usize, &LargeBodies) = match (surface, &call) {
            (_, Call::Payments(_, matched)) => {
                (matched.route.max_body_len(&head.method), &self.large_payments)
            }
            (Surface::Control, _) => (MAX_CONTROL_LEN, &self.large_bodies),
            _ => (MAX_BODY_LEN, &self.large_bodies),
        };
        let is_awaited = !body.is_end_stream();
        if is_awaited && http::is_encoded(&head.headers) {
            http::discard(body);
            return self.refuse(surface, Refusal::Encoded, head);
        }
        let body = match http::collect(body, max_len, large, peer).await {
            Ok(body) => body,
            Err(error) => {
                self.note_refused(surface, Refused::of_body(&error));
                let reason = error.to_string();
                return refuse(surface, error.status(), &reason, || reason.clone());
            }
        };
        // A token may be revoked or expire while its bearer keeps back the body.
        if is_awaited
            && call.needs_caller(surface)
            && let Err(denied) = self.access.identify(&head.headers)
        {
            return self.refuse(surface, denied.into(), head);
        }
        let request = Received { head, body: &body.bytes };
        let answer = match call {
            // Boxed, because these rarer futures are larger: a future is moved as a whole.
            Call::Health(_, route) => Box::pin(self.health.answer(surface, route)).await,
            Call::OpenApi(_, document) => answer::json_text(StatusCode::OK, document),
            Call::Metrics(_) => Box::pin(metrics::answer(self, surface, &head.headers)).await,
            Call::MinerId(api, call) => {
                let answered = api.answer(call, request).await;
                answered.unwrap_or_else(|refusal| self.refuse(surface, refusal, head))
            }
            Call::Wallet(api, matched) => {
                // Pinned here, so that the future is held once, whoever awaits it.
                let answer = pin!(api.answer(matched, request));
                match self.end_of(surface, head) {
                    Some(end) => self.answer_until(end, head, answer).await,
                    None => answer.await,
                }
            }
            Call::Payments(api, matched) => Box::pin(api.answer(matched, request, peer)).await,
            Call::Control(matched) => Box::pin(self.control.answer(&matched, request)).await,
        };
        answer.map(|answered| answered.in_place(body.place))
    }

    /// When the answer to a caller of the wallet ends early. An answer to a request that changes
    /// something does not: its caller has to learn what was changed.
    fn end_of(&self, surface: Surface, head: &Parts) -> Option<End> {
        let may_last = surface == Surface::Wallet && head.method.is_safe();
        let end = may_last.then(|| self.access.end_of(&head.headers)).flatten()?;
        Some(Box::pin(end))
    }

    /// The answer that is being made, as long as its caller is accepted.
    async fn answer_until(
        &self,
        mut end: End,
        head: &Parts,
        answer: Pin<&mut impl Future<Output = Answer>>,
    ) -> Answer {
        tokio::select! {
            biased;
            answer = answer => answer.map(|body| body.until(end)),
            () = &mut end => {
                let denied = self.access.identify(&head.headers).err();
                let denied = denied.unwrap_or(Denied::Invalid(TokenKind::Own));
                self.refuse(Surface::Wallet, denied.into(), head)
            }
        }
    }

    /// The pattern that matches a path, such as `/minerid/{alias}`. The pattern describes a request
    /// without the values in its path.
    pub(crate) fn pattern(&self, surface: Surface, path: &str) -> Option<&'static str> {
        if let Some(pattern) = self.common_routes.pattern(surface, path) {
            return Some(pattern);
        }
        match surface {
            Surface::MinerId => self.minerid.as_ref()?.pattern(path),
            Surface::Node => self.minerid.as_ref()?.node_pattern(path),
            Surface::Wallet => self.wallet.as_ref()?.pattern(path),
            Surface::Payments => self.payments.as_ref()?.routes().pattern(path),
            Surface::Control if path.starts_with(CONTROL_PREFIX) => {
                self.control.routes().pattern(path)
            }
            Surface::Control if path.starts_with(WALLET_PREFIX) => {
                self.wallet.as_ref()?.pattern(path)
            }
            Surface::Control => self.minerid.as_ref()?.pattern(path),
        }
    }
}

const CONTROL_PREFIX: &str = "/control/";
const WALLET_PREFIX: &str = "/api/";
