use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bsv_tx::Network;
use futures_util::future::join_all;
use reqwest::Client;
use thiserror::Error;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::chaintracks::Chaintracks;
use super::file::HeaderFile;
use super::peer::{Peer, addresses};
use super::source::{Answers, CatchUpError, CaughtUp, HeaderSource};
use super::source_error::SourceError;

/// Where headers come from. Without any name, they come from nodes that the seeds of the network
/// name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceNames {
    /// The URLs of HTTP services, as [`Chaintracks`] takes them.
    pub urls: Vec<String>,
    /// Nodes, `host:port` each.
    pub peers: Vec<String>,
}

/// Keeps headers up to date from several sources at once, and tells what each of them does.
///
/// Each source is asked by itself, and asked again after a failure: an HTTP service after a second at
/// first and a minute at last, a node at an address after 30 seconds at first and half an hour at
/// last. Sources that answer nonsense are logged.
#[derive(Debug)]
pub struct HeaderFollower {
    file: Arc<HeaderFile>,
    network: Network,
    client: Client,
    places: Vec<Place>,
    /// Addresses of nodes that are in use, or failed.
    addresses: Mutex<HashMap<SocketAddr, Address>>,
    /// The deepest reorganisation.
    deepest: AtomicU32,
}

/// A place for one source at a time.
#[derive(Debug)]
struct Place {
    origin: Origin,
    report: Mutex<SourceReport>,
}

/// Where the source at a place comes from.
#[derive(Debug)]
enum Origin {
    Url(String),
    /// A node at any address of these names.
    Names(Vec<String>),
}

/// An address of a node.
#[derive(Clone, Copy, Debug)]
struct Address {
    is_used: bool,
    failures: u32,
    /// When it may be used again.
    free_at: Instant,
}

/// What is known of a source.
#[derive(Clone, Debug)]
pub struct SourceReport {
    /// `chaintracks` or `p2p`.
    pub kind: &'static str,
    /// The configured host and port, or `seeds`.
    pub host: String,
    /// What it does.
    pub state: SourceState,
    /// The time of its last answer that could be used, in seconds since 1970.
    pub last_answer: Option<u64>,
    /// How many questions had each outcome.
    pub outcomes: [u64; Outcome::ALL.len()],
    /// Whether it has valid headers that are not followed yet.
    is_behind: bool,
}

/// What a source does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceState {
    /// It has not answered yet.
    New,
    /// It answers.
    Live,
    /// It does not answer.
    Away,
    /// It answers nonsense.
    Wrong,
    /// It claims this height, and has not given the headers within a minute.
    Withholds(u32),
}

/// How a question to a source ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The answer can be used.
    Answered,
    /// There is no answer.
    Away,
    /// The answer is nonsense, or a header in it is not valid.
    Nonsense,
    /// It has not given the headers that it claims to have.
    Withheld,
}

/// Why headers may lack blocks of the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// The newest block is older than three hours, or its time is not known. Regtest has no such
    /// limit.
    OldTip,
    /// The best branch has less work than the main chain is known to have.
    LittleWork,
    /// A source has valid headers that are not followed yet.
    MoreToCome,
}

/// Why a source is left.
#[derive(Debug, Error)]
enum Left {
    #[error(transparent)]
    Failed(#[from] CatchUpError),
    #[error("{name} claims block {claimed}, and has not given its header within a minute")]
    Withholds { name: String, claimed: u32 },
}

impl From<SourceError> for Left {
    fn from(error: SourceError) -> Self {
        Self::Failed(error.into())
    }
}

/// How many nodes are used if the settings name no sources.
const SEEDED: usize = 4;
/// The age of the newest block, in seconds, from which headers are old.
const OLD: u64 = 3 * 60 * 60;
/// How many blocks a reorganisation takes back that the two kinds of node would not both follow.
const ALARMING: u32 = 100;
/// How long a source may take to give the headers that it claims to have.
const CLAIM_TIMEOUT: Duration = Duration::from_secs(60);
/// The time between two questions to a source that cannot tell of new blocks, or does not.
const PERIOD: Duration = Duration::from_secs(30);
/// The time between two questions to a source that has not given what it claims.
const CLAIM_PERIOD: Duration = Duration::from_secs(5);
/// How long an HTTP service is left alone after a failure, at first and at last.
const SERVICE_PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(60)];
/// How long an address of a node is left alone, likewise. Nodes ban clients who come back soon.
const NODE_PAUSES: [Duration; 2] = [Duration::from_secs(30), Duration::from_secs(1_800)];
/// How many addresses that failed are remembered.
const MOST_ADDRESSES: usize = 10_000;

impl Outcome {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Answered, Self::Away, Self::Nonsense, Self::Withheld];

    /// The name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Answered => "answered",
            Self::Away => "away",
            Self::Nonsense => "nonsense",
            Self::Withheld => "withheld",
        }
    }
}

impl SourceState {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Live => "live",
            Self::Away => "away",
            Self::Wrong => "wrong",
            Self::Withholds(_) => "withholds",
        }
    }
}

impl HeaderFollower {
    /// Prepares to ask sources. `client` should follow no redirects.
    pub fn new(
        file: Arc<HeaderFile>,
        network: Network,
        names: SourceNames,
        client: Client,
    ) -> Self {
        let SourceNames { urls, peers } = names;
        let mut places: Vec<_> = urls.into_iter().map(Place::of_url).collect();
        places.extend(peers.into_iter().map(|it| Place::of_names(it.clone(), vec![it])));
        let seeds = seeds(network);
        if places.is_empty() && !seeds.is_empty() {
            let seeds: Vec<_> = seeds.iter().map(|&seed| seed.to_owned()).collect();
            places.extend((0..SEEDED).map(|_| Place::of_names("seeds".to_owned(), seeds.clone())));
        }
        let (addresses, deepest) = (Mutex::default(), AtomicU32::new(0));
        Self { file, network, client, places, addresses, deepest }
    }

    /// The headers.
    pub fn file(&self) -> &Arc<HeaderFile> {
        &self.file
    }

    /// What is known of each source.
    pub fn sources(&self) -> impl Iterator<Item = SourceReport> {
        self.places.iter().map(|place| place.report().clone())
    }

    /// How many headers have left the best branch since the start, at the deepest reorganisation, if
    /// they are so many that the two kinds of node would follow different branches.
    pub fn alarming_depth(&self) -> Option<u32> {
        Some(self.deepest.load(Ordering::Relaxed)).filter(|depth| *depth > ALARMING)
    }

    /// Why the headers may lack blocks, if they may.
    pub fn behind(&self) -> Option<Behind> {
        let chain = self.file.chain();
        let age = chain.tip().time.map(|time| now().saturating_sub(time.into()));
        if self.places.iter().any(|place| place.report().is_behind) {
            Some(Behind::MoreToCome)
        } else if !chain.has_least_work() {
            Some(Behind::LittleWork)
        } else if self.network != Network::Regtest && age.is_none_or(|age| age > OLD) {
            Some(Behind::OldTip)
        } else {
            None
        }
    }

    /// Follows the network, for as long as it is polled.
    pub async fn follow(&self) {
        join_all(self.places.iter().map(|place| self.keep_asking(place))).await;
    }

    /// Asks each source once for all that it has. Answers what each one has brought.
    pub async fn catch_up(&self) -> Vec<(String, Result<CaughtUp, CatchUpError>)> {
        let asked = self.places.iter().map(|place| async {
            let (mut source, address) = match self.connect(place).await {
                Ok(connected) => connected,
                Err(error) => return (place.report().host.clone(), Err(error.into())),
            };
            let caught_up = self.ask(place, &mut source).await;
            self.release(address, caught_up.is_err());
            (source.name().to_owned(), caught_up)
        });
        join_all(asked).await
    }

    async fn keep_asking(&self, place: &Place) {
        let mut failures = 0;
        loop {
            let connected = self.connect(place).await;
            let (left, address) = match connected {
                Ok((source, address)) => {
                    let answered = place.report().outcomes[0];
                    let left = self.stay_with(place, source).await;
                    if place.report().outcomes[0] > answered {
                        failures = 0;
                    }
                    (left, address)
                }
                Err(error) => (error.into(), None),
            };
            place.note_left(&left);
            failures += 1;
            self.release(address, true);
            match place.origin {
                Origin::Url(_) => sleep(pause(SERVICE_PAUSES, failures)).await,
                Origin::Names(_) => self.wait_for_address().await,
            }
        }
    }

    /// Asks a source again and again until it fails. Answers why it is left.
    async fn stay_with(&self, place: &Place, mut source: HeaderSource) -> Left {
        let mut since = Instant::now();
        loop {
            let caught_up = match self.ask(place, &mut source).await {
                Ok(caught_up) => caught_up,
                Err(error) => return error.into(),
            };
            let reached = caught_up.height.max(Some(self.file.chain().tip().height));
            let claimed = match &source {
                HeaderSource::Peer(peer) => peer.claimed_height(),
                HeaderSource::Chaintracks(_) => 0,
            };
            if caught_up.valid > 0 {
                since = Instant::now();
            }
            if reached < Some(claimed) {
                if since.elapsed() > CLAIM_TIMEOUT {
                    return Left::Withholds { name: source.name().to_owned(), claimed };
                }
                sleep(CLAIM_PERIOD).await;
                continue;
            }
            if let HeaderSource::Peer(peer) = &mut source {
                if let Ok(Err(error)) = timeout(PERIOD, peer.announcement()).await {
                    return error.into();
                }
            } else {
                sleep(PERIOD).await;
            }
        }
    }

    /// Asks a source until it has no further headers.
    async fn ask(
        &self,
        place: &Place,
        source: &mut HeaderSource,
    ) -> Result<CaughtUp, CatchUpError> {
        let mut answers = Answers::default();
        loop {
            let has_more = answers.take_next(source, &self.file, now()).await;
            let CaughtUp { left, is_ahead, .. } = answers.caught_up;
            if self.deepest.fetch_max(left, Ordering::Relaxed) < left && left > ALARMING {
                tracing::error!(
                    source = source.name(),
                    "{left} blocks have left the best chain: Teranode does not follow such a branch"
                );
            }
            let has_more = has_more?;
            place.note_answer(is_ahead || (has_more && answers.is_full));
            if !has_more {
                return Ok(answers.caught_up);
            }
        }
    }

    /// Connects to the source of a place, and takes its address, if it has one.
    async fn connect(
        &self,
        place: &Place,
    ) -> Result<(HeaderSource, Option<SocketAddr>), SourceError> {
        let names = match &place.origin {
            Origin::Url(url) => {
                let service = Chaintracks::new(self.client.clone(), url);
                return Ok((HeaderSource::Chaintracks(service), None));
            }
            Origin::Names(names) => names,
        };
        let mut last = None;
        for found in join_all(names.iter().map(|name| addresses(name))).await {
            match found {
                Err(error) => last = Some(error),
                Ok(found) => {
                    for address in found {
                        if !self.take(address) {
                            continue;
                        }
                        let name = match names.as_slice() {
                            [name] => name.clone(),
                            _ => address.to_string(),
                        };
                        match Peer::connect_to(self.network, &name, address).await {
                            Ok(peer) => return Ok((HeaderSource::Peer(peer), Some(address))),
                            Err(error) => last = Some(error),
                        }
                        self.release(Some(address), true);
                    }
                }
            }
        }
        Err(last.unwrap_or_else(|| SourceError::Unreachable {
            name: place.report().host.clone(),
            reason: "all its addresses are in use, or have failed".to_owned(),
        }))
    }

    /// Takes an address, unless it is in use or has failed recently.
    fn take(&self, address: SocketAddr) -> bool {
        let mut all = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if all.len() > MOST_ADDRESSES {
            all.retain(|_, known| known.is_used || known.free_at > now);
        }
        let known =
            all.entry(address).or_insert(Address { is_used: false, failures: 0, free_at: now });
        let is_free = !known.is_used && known.free_at <= now;
        known.is_used |= is_free;
        is_free
    }

    fn release(&self, address: Option<SocketAddr>, has_failed: bool) {
        let mut all = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = address.and_then(|address| all.get_mut(&address)) {
            known.is_used = false;
            known.failures = if has_failed { known.failures + 1 } else { 0 };
            known.free_at = Instant::now() + pause(NODE_PAUSES, known.failures);
        }
    }

    /// Waits until an address that failed may be used again, or the names may have others.
    async fn wait_for_address(&self) {
        let free_at = {
            let all = self.addresses.lock().unwrap_or_else(PoisonError::into_inner);
            let unused = all.values().filter(|known| !known.is_used);
            unused.map(|known| known.free_at).min()
        };
        let latest = Instant::now() + PERIOD;
        // Other addresses than those of this place may be free.
        sleep(SERVICE_PAUSES[0]).await;
        sleep_until(free_at.unwrap_or(latest).min(latest)).await;
    }
}

impl Place {
    fn of_url(url: String) -> Self {
        let host = reqwest::Url::parse(&url).ok().and_then(|url| {
            let host = url.host_str()?.to_owned();
            Some(url.port().map_or(host.clone(), |port| format!("{host}:{port}")))
        });
        Self::new("chaintracks", host.unwrap_or_default(), Origin::Url(url))
    }

    fn of_names(host: String, names: Vec<String>) -> Self {
        Self::new("p2p", host, Origin::Names(names))
    }

    fn new(kind: &'static str, host: String, origin: Origin) -> Self {
        let report = Mutex::new(SourceReport {
            kind,
            host,
            state: SourceState::New,
            last_answer: None,
            outcomes: Default::default(),
            is_behind: false,
        });
        Self { origin, report }
    }

    fn report(&self) -> MutexGuard<'_, SourceReport> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_answer(&self, is_behind: bool) {
        let mut report = self.report();
        report.state = SourceState::Live;
        report.last_answer = Some(now());
        report.is_behind = is_behind;
        report.outcomes[Outcome::Answered as usize] += 1;
    }

    /// Notes and logs why the source is left.
    fn note_left(&self, left: &Left) {
        let mut report = self.report();
        let (state, outcome) = match left {
            Left::Failed(CatchUpError::Source(SourceError::Unreachable { .. })) => {
                (SourceState::Away, Outcome::Away)
            }
            Left::Failed(CatchUpError::File(error)) => {
                tracing::error!("headers cannot be stored: {error}");
                return;
            }
            Left::Failed(_) => (SourceState::Wrong, Outcome::Nonsense),
            Left::Withholds { claimed, .. } => {
                (SourceState::Withholds(*claimed), Outcome::Withheld)
            }
        };
        let is_same = report.state == state;
        report.outcomes[outcome as usize] += 1;
        report.is_behind = false;
        report.state = state;
        let (host, kind) = (report.host.as_str(), report.kind);
        match outcome {
            // Nodes often close connections.
            Outcome::Away if is_same => tracing::debug!(host, kind, "no headers: {left}"),
            Outcome::Away => tracing::info!(host, kind, "no headers: {left}"),
            _ => tracing::warn!(host, kind, "no headers: {left}"),
        }
    }
}

/// The pause after a number of failures: twice as long after each one.
fn pause([first, last]: [Duration; 2], failures: u32) -> Duration {
    match failures {
        0 => Duration::ZERO,
        _ => first.saturating_mul(1 << (failures - 1).min(16)).min(last),
    }
}

/// The names at which the network's nodes are found.
fn seeds(network: Network) -> &'static [&'static str] {
    match network {
        Network::Livenet => &[
            "seed.bitcoinsv.io:8333",
            "seed.satoshisvision.network:8333",
            "seed.bitcoinseed.directory:8333",
        ],
        Network::Testnet => &[
            "testnet-seed.bitcoinsv.io:18333",
            "testnet-seed.bitcoincloud.net:18333",
            "testnet-seed.bitcoinseed.directory:18333",
        ],
        Network::Regtest => &[],
    }
}

/// The time of this machine's clock, in seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use tokio::io::duplex;

    use super::super::checkpoint::Checkpoint;
    use super::super::peer::tests::play;
    use super::*;

    fn follower(directory: &tempfile::TempDir) -> HeaderFollower {
        let network = Network::Livenet;
        let path = directory.path().join("headers");
        let file = HeaderFile::open(&path, network, &Checkpoint::of(network)).unwrap();
        let tls = rustls::ClientConfig::builder_with_provider(Arc::new(
            rustls::crypto::ring::default_provider(),
        ))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
        let client = Client::builder().tls_backend_preconfigured(tls).build().unwrap();
        HeaderFollower::new(Arc::new(file), network, SourceNames::default(), client)
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_does_not_give_what_it_claims_is_set_aside_and_named() {
        let directory = tempfile::tempdir().unwrap();
        let mut follower = follower(&directory);
        follower.places = vec![Place::of_names("a:8333".to_owned(), Vec::new())];
        let (ours, theirs) = duplex(1 << 20);
        tokio::spawn(play(theirs, 1_000_000, vec![None]));
        let peer = Peer::greet(follower.network, "a:8333", ours).await.unwrap();
        let begun = Instant::now();
        let left = follower.stay_with(&follower.places[0], HeaderSource::Peer(peer)).await;
        assert!(begun.elapsed() > CLAIM_TIMEOUT && begun.elapsed() < 2 * CLAIM_TIMEOUT);
        follower.places[0].note_left(&left);
        let report = follower.sources().next().unwrap();
        assert_eq!(report.state, SourceState::Withholds(1_000_000));
        assert_eq!(report.outcomes[Outcome::Withheld as usize], 1);
        // Its word does not make the headers seem old.
        assert_eq!(follower.behind(), Some(Behind::OldTip));
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_that_failed_is_left_alone_for_longer_and_longer() {
        let directory = tempfile::tempdir().unwrap();
        let follower = follower(&directory);
        let address: SocketAddr = "127.0.0.1:8333".parse().unwrap();
        for pause in [30, 60, 120, 240, 480, 960, 1_800, 1_800] {
            assert!(follower.take(address) && !follower.take(address));
            follower.release(Some(address), true);
            sleep(Duration::from_secs(pause - 1)).await;
            assert!(!follower.take(address));
            sleep(Duration::from_secs(2)).await;
        }
        assert!(follower.take(address));
        follower.release(Some(address), false);
        assert!(follower.take(address));
    }
}
