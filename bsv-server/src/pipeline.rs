//! The path of a request through the server: sender, route, permission, body, answer.

use std::net::IpAddr;
use std::pin::{Pin, pin};
use std::time::Instant;

use bytes::Bytes;
use hyper::body::Body;
use hyper::http::request::Parts;
use hyper::{Request, StatusCode};

use crate::access::{Caller, Denied, Scope, TokenKind};
use crate::api::Api;
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
    fn needs_caller(&self, api: Api) -> bool {
        match self {
            Self::Metrics(_) => true,
            Self::MinerId(..) => api == Api::MinerId,
            Self::Wallet(..) => api == Api::Wallet,
            Self::Health(..) | Self::OpenApi(..) | Self::Payments(..) | Self::Control(_) => false,
        }
    }
}

impl Instance {
    /// Answers a request from an address, unless too many requests come from there.
    pub(crate) async fn answer_peer<B>(
        &self,
        api: Api,
        address: Option<IpAddr>,
        request: Request<B>,
    ) -> Answer
    where
        B: Body<Data = Bytes> + Unpin + Send + 'static,
    {
        let (mut head, body) = request.into_parts();
        if api == Api::MinerId {
            minerid::lower_case(&mut head.uri);
        }
        let begun = Instant::now();
        let peer = match (api, address) {
            (Api::Payments, Some(address)) => self.payers.requester(address, &head.headers),
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
        let (pattern, mut answer) = match admitted.and_then(|()| self.admit(api, &head)) {
            Ok(call) => (Some(call.pattern()), self.serve(api, peer, call, &head, body).await),
            Err(refusal) => {
                http::discard(body);
                let pattern = self.pattern(api, head.uri.path());
                (pattern, self.refuse(api, refusal, &head))
            }
        };
        if api == Api::Payments {
            let wallet = self.config.wallet.as_ref();
            if let Some(page) = wallet.and_then(|wallet| wallet.payments.page.as_ref()) {
                page::show_in_browser(page, &head, &mut answer);
            }
            http::cors::allow_pages(&head.method, &mut answer);
        }
        if let Some(counts) = self.metrics.listener(api) {
            counts.note_answer(pattern, &head.method, answer.status(), begun.elapsed());
        }
        answer
    }

    /// Answers a refused request.
    fn refuse(&self, api: Api, refusal: Refusal, head: &Parts) -> Answer {
        if let Some(refused) = Refused::of(&refusal) {
            self.note_refused(api, refused);
        }
        refusal.into_answer(api, head)
    }

    fn note_refused(&self, api: Api, refused: Refused) {
        if let Some(counts) = self.metrics.listener(api) {
            counts.note_refused(refused);
        }
    }

    /// Answers a request.
    pub async fn answer<B>(&self, api: Api, request: Request<B>) -> Answer
    where
        B: Body<Data = Bytes> + Unpin + Send + 'static,
    {
        self.answer_peer(api, None, request).await
    }

    /// Determines what a request asks for, and checks everything that its head tells.
    fn admit<'a>(&'a self, api: Api, head: &'a Parts) -> Result<Call<'a>, Refusal> {
        self.check_browser(api, head)?;
        let (path, method) = (head.uri.path(), &head.method);
        match self.common_routes.find(api, path, method) {
            Ok(matched) => return self.admit_to_common(head, matched),
            Err(NoRoute::Path) => {}
            Err(missed) => return Err(missed.into()),
        }
        match api {
            Api::MinerId => self.admit_to_minerid(head, api, self.access.identify(&head.headers)?),
            Api::Node => self.admit_to_minerid(head, api, Caller::Trusted),
            Api::Wallet => self.admit_to_wallet(head, &self.access.identify(&head.headers)?),
            Api::Payments => {
                let payments = self.payments.as_ref().ok_or_else(|| self.lacks(Api::Wallet))?;
                Ok(Call::Payments(payments, payments.routes().find(path, method)?))
            }
            Api::Control if path.starts_with(CONTROL_PREFIX) => {
                Ok(Call::Control(self.control.routes().find(path, method)?))
            }
            Api::Control if path.starts_with(WALLET_PREFIX) => {
                self.admit_to_wallet(head, &Caller::Trusted)
            }
            Api::Control => self.admit_to_minerid(head, api, Caller::Trusted),
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
        api: Api,
        caller: Caller,
    ) -> Result<Call<'a>, Refusal> {
        let service = self.minerid.as_ref().ok_or_else(|| self.lacks(Api::MinerId))?;
        Ok(Call::MinerId(service, service.admit(head, api, caller)?))
    }

    fn admit_to_wallet<'a>(
        &'a self,
        head: &'a Parts,
        caller: &Caller,
    ) -> Result<Call<'a>, Refusal> {
        let service = self.wallet.as_ref().ok_or_else(|| self.lacks(Api::Wallet))?;
        Ok(Call::Wallet(service, service.admit(head, caller)?))
    }

    /// Why a service is missing.
    fn lacks(&self, service: Api) -> Refusal {
        let name = match service {
            Api::MinerId => "miner identity service",
            _ => "wallet",
        };
        match self.failures.reason(service) {
            Some(reason) => Refusal::Unavailable(name, reason.to_owned()),
            None => Refusal::Disabled(name),
        }
    }

    /// Refuses requests that a browser sends for a page of another origin, or to navigate.
    fn check_browser(&self, api: Api, head: &Parts) -> Result<(), Refusal> {
        if api != Api::Control && !head.method.is_safe() {
            http::check_navigation(&head.headers).map_err(Refusal::Forbidden)?;
        }
        match api {
            Api::MinerId | Api::Node | Api::Wallet => {
                http::check_origin(&head.headers, &self.config.allowed_hosts)
                    .map_err(Refusal::Forbidden)
            }
            // Strangers use the payments listener from any page.
            Api::Payments | Api::Control => Ok(()),
        }
    }

    /// Reads the body of a request, and answers the request.
    async fn serve<B>(
        &self,
        api: Api,
        peer: Option<IpAddr>,
        call: Call<'_>,
        head: &Parts,
        body: B,
    ) -> Answer
    where
        B: Body<Data = Bytes> + Unpin + Send + 'static,
    {
        let (max_len, large): (usize, &LargeBodies) = match (api, &call) {
            (_, Call::Payments(_, matched)) => {
                (matched.route.max_body_len(&head.method), &self.large_payments)
            }
            (Api::Control, _) => (MAX_CONTROL_LEN, &self.large_bodies),
            _ => (MAX_BODY_LEN, &self.large_bodies),
        };
        let is_awaited = !body.is_end_stream();
        if is_awaited && http::is_encoded(&head.headers) {
            http::discard(body);
            return self.refuse(api, Refusal::Encoded, head);
        }
        let body = match http::collect(body, max_len, large, peer).await {
            Ok(body) => body,
            Err(error) => {
                self.note_refused(api, Refused::of_body(&error));
                let reason = error.to_string();
                return refuse(api, error.status(), &reason, || reason.clone());
            }
        };
        // A token may be revoked or expire while its bearer keeps back the body.
        if is_awaited
            && call.needs_caller(api)
            && let Err(denied) = self.access.identify(&head.headers)
        {
            return self.refuse(api, denied.into(), head);
        }
        let request = Received { head, body: &body.bytes };
        let answer = match call {
            // Boxed, because these rarer futures are larger: a future is moved as a whole.
            Call::Health(_, route) => Box::pin(self.health.answer(api, route)).await,
            Call::OpenApi(_, document) => answer::json_text(StatusCode::OK, document),
            Call::Metrics(_) => Box::pin(metrics::answer(self, api, &head.headers)).await,
            Call::MinerId(service, call) => {
                let answered = service.answer(call, request).await;
                answered.unwrap_or_else(|refusal| self.refuse(api, refusal, head))
            }
            Call::Wallet(service, matched) => {
                // Pinned here, so that the future is held once, whoever awaits it.
                let answer = pin!(service.answer(matched, request));
                match self.end_of(api, head) {
                    Some(end) => self.answer_until(end, head, answer).await,
                    None => answer.await,
                }
            }
            Call::Payments(service, matched) => {
                Box::pin(service.answer(matched, request, peer)).await
            }
            Call::Control(matched) => Box::pin(self.control.answer(&matched, request)).await,
        };
        answer.map(|answered| answered.in_place(body.place))
    }

    /// When the answer to a caller of the wallet ends early. An answer to a request that changes
    /// something does not: its caller has to learn what was changed.
    fn end_of(&self, api: Api, head: &Parts) -> Option<End> {
        let may_last = api == Api::Wallet && head.method.is_safe();
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
                self.refuse(Api::Wallet, denied.into(), head)
            }
        }
    }

    /// The pattern that matches a path, such as `/minerid/{alias}`. The pattern describes a request
    /// without the values in its path.
    pub(crate) fn pattern(&self, api: Api, path: &str) -> Option<&'static str> {
        if let Some(pattern) = self.common_routes.pattern(api, path) {
            return Some(pattern);
        }
        match api {
            Api::MinerId => self.minerid.as_ref()?.pattern(path),
            Api::Node => self.minerid.as_ref()?.node_pattern(path),
            Api::Wallet => self.wallet.as_ref()?.pattern(path),
            Api::Payments => self.payments.as_ref()?.routes().pattern(path),
            Api::Control if path.starts_with(CONTROL_PREFIX) => self.control.routes().pattern(path),
            Api::Control if path.starts_with(WALLET_PREFIX) => self.wallet.as_ref()?.pattern(path),
            Api::Control => self.minerid.as_ref()?.pattern(path),
        }
    }
}

const CONTROL_PREFIX: &str = "/control/";
const WALLET_PREFIX: &str = "/api/";
