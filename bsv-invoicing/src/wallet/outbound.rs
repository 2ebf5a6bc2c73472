//! Outbound requests to URLs that strangers choose: which addresses they may reach.
//!
//! A name is looked up for every connection, and the addresses found then are checked, because the
//! owner of a name can change its addresses at any time. The environment has no influence, for
//! example by proxies, and nothing is kept, such as cookies.

mod listeners;
mod named;
mod networks;
mod reach;
mod webhooks;

use std::error::Error;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::{Client, ClientBuilder, Url, redirect};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt;
use thiserror::Error;
use tokio::net::lookup_host;

pub use self::listeners::OwnListeners;
pub(crate) use self::named::{channel_url, posting_reach};
use self::networks::{BlockedAddress, is_internal, literal};
pub(crate) use self::reach::Reach;
pub use self::webhooks::HttpWebhooks;
pub(crate) use self::webhooks::check_webhook_url;

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_REDIRECTS: usize = 5;

/// The name has no address.
#[derive(Debug, Error)]
#[error("the name cannot be looked up")]
struct UnknownName(#[source] Option<io::Error>);

/// Makes clients for requests.
#[derive(Debug, Default)]
pub(crate) struct Outbound {
    own: Arc<OwnListeners>,
    /// The networks that are open to webhooks.
    opened: Arc<[IpNet]>,
    /// Created when it is first needed, because it loads the system's certificates.
    tls: Arc<OnceLock<ClientConfig>>,
}

/// Decides which addresses one exchange may reach.
#[derive(Debug)]
struct Guard {
    own: Arc<OwnListeners>,
    opened: Arc<[IpNet]>,
    hop: Mutex<Hop>,
}

/// The current request of an exchange.
#[derive(Clone, Copy, Debug)]
struct Hop {
    /// The port. A look-up has only the name.
    port: u16,
    reach: Reach,
    /// Whether the URL that the owner chose leads to an internal address.
    began_internal: bool,
}

impl Outbound {
    /// For a process with these listeners.
    pub(crate) fn new(own: OwnListeners) -> Self {
        Self::with_opened(own, &[])
    }

    /// For a process with these listeners, with these networks open to webhooks.
    fn with_opened(own: OwnListeners, opened: &[IpNet]) -> Self {
        Self { own: Arc::new(own), opened: opened.into(), tls: Arc::default() }
    }

    /// Loads the system's certificates on a thread that may block.
    async fn load_certificates(&self) {
        let config = Arc::clone(&self.tls);
        // If the thread panics, the first client loads them.
        let _ = tokio::task::spawn_blocking(move || drop(config.get_or_init(tls).clone())).await;
    }

    /// A client for one request to `url`. It follows at most 5 redirects within the same scheme.
    /// Use it for no other URL.
    pub(crate) fn client(&self, url: &Url, reach: Reach) -> Result<Client, BlockedAddress> {
        let guard = self.guard(url, reach)?;
        let client = self
            .builder(&guard)
            .redirect(redirect::Policy::custom(move |attempt| guard.follow(attempt)))
            .connect_timeout(CONNECT_TIMEOUT);
        Ok(build(client))
    }

    /// The guard for requests to `url`.
    fn guard(&self, url: &Url, reach: Reach) -> Result<Arc<Guard>, BlockedAddress> {
        let hop = Hop { port: port(url), reach, began_internal: false };
        let (own, opened) = (Arc::clone(&self.own), Arc::clone(&self.opened));
        let guard = Arc::new(Guard { own, opened, hop: Mutex::new(hop) });
        guard.check_literal(url)?;
        Ok(guard)
    }

    fn builder(&self, guard: &Arc<Guard>) -> ClientBuilder {
        Client::builder()
            .no_proxy()
            .referer(false)
            .dns_resolver(Resolver(Arc::clone(guard)))
            .tls_backend_preconfigured(self.tls.get_or_init(tls).clone())
    }
}

fn build(client: ClientBuilder) -> Client {
    client.build().expect("a client that loads nothing is built from constants")
}

fn tls() -> ClientConfig {
    let builder = || {
        ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider knows the versions of TLS")
    };
    match builder().with_platform_verifier() {
        Ok(builder) => builder.with_no_client_auth(),
        Err(error) => {
            tracing::warn!(
                "https cannot be used: the system's certificates cannot be loaded: {error}"
            );
            builder().with_root_certificates(RootCertStore::empty()).with_no_client_auth()
        }
    }
}

impl Guard {
    /// The addresses that the current hop may connect to. Internal addresses are admitted only if
    /// all are internal: a name that also has a public address is not internal.
    fn admit(&self, addresses: &[IpAddr]) -> Result<Vec<SocketAddr>, BlockedAddress> {
        let mut hop = self.hop.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut internal, mut public) = (Vec::new(), Vec::new());
        for address in addresses {
            let is_internal = match hop.reach {
                Reach::Webhook { .. } if self.opens(*address) => false,
                Reach::Webhook { is_tls: false } => true,
                _ => is_internal(*address)?,
            };
            if is_internal { internal.push(*address) } else { public.push(*address) }
        }
        let is_internal = public.is_empty() && !internal.is_empty();
        let admitted = match (is_internal, hop.reach) {
            (false, _) => public,
            (true, Reach::Chosen | Reach::Anywhere) => internal,
            (true, Reach::Public | Reach::Webhook { .. }) => Vec::new(),
        };
        let is_own = |address: &SocketAddr| match hop.reach {
            Reach::Chosen => self.own.is_owners(*address),
            Reach::Anywhere | Reach::Public | Reach::Webhook { .. } => self.own.has(*address),
        };
        let admitted = admitted.into_iter().map(|address| SocketAddr::new(address, hop.port));
        let admitted: Vec<_> = admitted.filter(|address| !is_own(address)).collect();
        if admitted.is_empty() && !addresses.is_empty() {
            return Err(BlockedAddress);
        }
        hop.began_internal |= is_internal && hop.reach == Reach::Chosen;
        Ok(admitted)
    }

    /// Whether an address is in a network that is open to webhooks.
    fn opens(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.opened.iter().any(|network| network.contains(&address))
    }

    /// Checks an address that stands in the URL itself. Such an address is not looked up, so that
    /// the resolver does not check it.
    fn check_literal(&self, url: &Url) -> Result<(), BlockedAddress> {
        literal(url).map_or(Ok(()), |address| self.admit(&[address]).map(drop))
    }

    fn follow(&self, attempt: redirect::Attempt<'_>) -> redirect::Action {
        let to = attempt.url();
        if attempt.previous().iter().any(|url| url.scheme() != to.scheme()) {
            return attempt.error("it redirects to another scheme");
        }
        if attempt.previous().len() > MAX_REDIRECTS {
            return attempt.error("it redirects too often");
        }
        self.go_on_to(to);
        match self.check_literal(to) {
            Ok(()) => attempt.follow(),
            Err(blocked) => attempt.error(blocked),
        }
    }

    fn go_on_to(&self, url: &Url) {
        let mut hop = self.hop.lock().unwrap_or_else(PoisonError::into_inner);
        hop.port = port(url);
        hop.reach = match hop.reach {
            Reach::Chosen if hop.began_internal => Reach::Anywhere,
            Reach::Chosen => Reach::Public,
            reach => reach,
        };
    }
}

/// Looks up names, and returns only addresses that are admitted.
struct Resolver(Arc<Guard>);

impl Resolve for Resolver {
    fn resolve(&self, name: Name) -> Resolving {
        let guard = Arc::clone(&self.0);
        Box::pin(async move {
            let found = lookup_host((name.as_str(), 0)).await;
            let found = found.map_err(|error| UnknownName(Some(error)))?;
            let found: Vec<_> = found.map(|address| address.ip()).collect();
            if found.is_empty() {
                return Err(UnknownName(None).into());
            }
            let admitted = guard.admit(&found)?;
            Ok(Box::new(admitted.into_iter()) as Addrs)
        })
    }
}

/// Whether a request failed because it leads to a forbidden address.
pub(crate) fn is_blocked(error: &(dyn Error + 'static)) -> bool {
    has_cause(error, <dyn Error>::is::<BlockedAddress>)
}

/// Whether `is_so` holds for an error or for one of its causes.
fn has_cause(
    error: &(dyn Error + 'static),
    is_so: impl Fn(&(dyn Error + 'static)) -> bool,
) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if is_so(error) {
            return true;
        }
        cause = error.source();
    }
    false
}

fn port(url: &Url) -> u16 {
    url.port_or_known_default().unwrap_or(0)
}

#[cfg(test)]
mod tests;
