use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bsv_tx::Network;
use futures_util::future::join_all;
use reqwest::Client;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use super::chaintracks::Chaintracks;
use super::file::HeaderFile;
use super::peer::{Peer, addresses};
use super::place::{Behind, Origin, Place, SourceReport, now};
use super::pool::{Pool, Target};
use super::source::{CatchUpError, CaughtUp, HeaderSource};
use super::source_error::SourceError;
use super::visit::{PERIOD, Visit};

/// Where headers come from. Without any name, they come from nodes that the seeds of the network
/// name. Regtest has no seeds.
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
/// last. A service may ask for a longer pause, an hour at most. While the newest header is older than
/// an hour, a node that has brought nothing new for 10 minutes gives way to another address. Sources
/// that answer nonsense are logged.
#[derive(Debug)]
pub struct HeaderFollower {
    file: Arc<HeaderFile>,
    network: Network,
    client: Client,
    places: Vec<Place>,
    pool: Pool,
}

/// How many nodes are used if the settings name no sources.
const SEEDED: usize = 4;
/// The age of the newest block, in seconds, from which headers are old.
const OLD: u64 = 3 * 60 * 60;
/// How many addresses of one name are used.
const MOST_OF_NAME: usize = 32;
/// The time between two looks whether a source may be asked again.
const SHORTEST_REST: Duration = Duration::from_secs(1);

impl HeaderFollower {
    /// Prepares to ask sources. `client` should follow no redirects.
    pub fn new(
        file: Arc<HeaderFile>,
        network: Network,
        names: SourceNames,
        client: Client,
    ) -> Self {
        let SourceNames { urls, peers } = names;
        let mut origins: Vec<_> = urls.into_iter().map(Origin::Url).collect();
        origins.extend(peers.into_iter().map(Origin::Node));
        let seeds = seeds(network);
        if origins.is_empty() && !seeds.is_empty() {
            // Each place begins with another seed: the owner of one names only his own nodes, perhaps.
            origins.extend((0..SEEDED).map(|place| {
                let (before, from) = seeds.split_at(place % seeds.len());
                Origin::Seeds([from, before].concat())
            }));
        }
        let places = origins.into_iter().map(Place::new).collect();
        Self { file, network, client, places, pool: Pool::default() }
    }

    /// The headers.
    pub fn file(&self) -> &Arc<HeaderFile> {
        &self.file
    }

    /// What is known of each source.
    pub fn sources(&self) -> impl Iterator<Item = SourceReport> {
        self.places.iter().map(Place::report)
    }

    /// Why the headers may lack blocks, if they may.
    pub fn behind(&self) -> Option<Behind> {
        let told = self.places.iter().find_map(|place| place.report().behind);
        let time = self.file.chain().tip().time;
        let is_old = time.is_none_or(|time| now().saturating_sub(time.into()) > OLD);
        told.or((self.network != Network::Regtest && is_old).then_some(Behind::OldTip))
    }

    /// Follows the network, for as long as it is polled. Each source has a task of its own.
    pub async fn follow(self: &Arc<Self>) {
        let mut tasks = JoinSet::new();
        for place in 0..self.places.len() {
            let follower = Arc::clone(self);
            tasks.spawn(async move { follower.keep_asking(&follower.places[place]).await });
        }
        tasks.join_all().await;
    }

    /// Asks each source once for all that it has, for no longer than `limit`. Answers what each one
    /// has brought.
    pub async fn catch_up(&self, limit: Duration) -> Vec<(String, Result<CaughtUp, CatchUpError>)> {
        let asked = self.places.iter().map(|place| async move {
            let mut name = place.report().host;
            let caught_up = timeout(limit, self.catch_up_with_one(place, &mut name)).await;
            let caught_up = caught_up.unwrap_or_else(|_| {
                let reason =
                    format!("it has not given all its headers within {} s", limit.as_secs());
                Err(SourceError::unreachable(&name, reason).into())
            });
            (name, caught_up)
        });
        join_all(asked).await
    }

    /// Asks the first source of a place that can be reached. `name` becomes its name.
    async fn catch_up_with_one(
        &self,
        place: &Place,
        name: &mut String,
    ) -> Result<CaughtUp, CatchUpError> {
        let mut last = None;
        for target in &targets_of(place).await? {
            let Some(_taken) = self.pool.take(target, place.is_seeded()) else { continue };
            match self.connect(place, target).await {
                Ok(source) => {
                    source.name().clone_into(name);
                    return Visit::new(&self.file, place, source).catch_up().await;
                }
                Err(error) => last = Some(error),
            }
        }
        let none = || SourceError::unreachable(name, "all its addresses are in use".to_owned());
        Err(last.unwrap_or_else(none).into())
    }

    /// Asks the sources of a place, one after the other.
    async fn keep_asking(&self, place: &Place) {
        let (mut targets, mut look_up) = (Vec::new(), Instant::now());
        loop {
            if look_up <= Instant::now() {
                match targets_of(place).await {
                    Ok(found) => targets = found,
                    Err(error) => place.note_left(&error.into()),
                }
                look_up = Instant::now() + PERIOD;
            }
            self.pool.sort(&mut targets);
            for target in &targets {
                let Some(taken) = self.pool.take(target, place.is_seeded()) else { continue };
                let has_others = || self.pool.has_free(&targets);
                let (error, lasted) = self.visit(place, target, has_others).await;
                place.note_left(&error);
                let has_lasted = lasted > PERIOD;
                let is_own_fault = matches!(error, CatchUpError::File(_));
                let is_away =
                    matches!(error, CatchUpError::Source(SourceError::Unreachable { .. }));
                let asked_for = match &error {
                    CatchUpError::Source(error) => error.retry_after(),
                    _ => None,
                };
                taken.leave_alone(is_own_fault || is_away && has_lasted, asked_for);
                if is_own_fault || has_lasted {
                    // The names may have other addresses by this time.
                    break;
                }
            }
            let latest = Instant::now() + PERIOD;
            let next = self.pool.next_free(&targets, place.is_seeded()).unwrap_or(latest);
            sleep(SHORTEST_REST).await;
            sleep_until(next.min(latest)).await;
        }
    }

    /// Asks one source until it fails, or is idle while there are others. Answers why, and for how
    /// long it has answered.
    async fn visit(
        &self,
        place: &Place,
        target: &Target,
        has_others: impl Fn() -> bool,
    ) -> (CatchUpError, Duration) {
        match self.connect(place, target).await {
            Ok(source) => {
                let mut visit = Visit::new(&self.file, place, source);
                (visit.stay(has_others).await, visit.lasted())
            }
            Err(error) => (error.into(), Duration::ZERO),
        }
    }

    async fn connect(&self, place: &Place, target: &Target) -> Result<HeaderSource, SourceError> {
        let address = match target {
            Target::Service(url) => {
                let service = Chaintracks::new(self.client.clone(), url);
                return Ok(HeaderSource::Chaintracks(service));
            }
            Target::Node(address) => address,
        };
        let name = match &place.origin {
            Origin::Node(name) => name.clone(),
            _ => address.to_string(),
        };
        Peer::connect_to(self.network, &name, *address).await.map(HeaderSource::Peer)
    }
}

/// What can be asked at a place, one of each name in turn. An error if no name has an address.
async fn targets_of(place: &Place) -> Result<Vec<Target>, SourceError> {
    let found = match &place.origin {
        Origin::Url(url) => return Ok(vec![Target::Service(url.clone())]),
        Origin::Node(name) => vec![addresses(name).await],
        Origin::Seeds(seeds) => join_all(seeds.iter().map(|seed| addresses(seed))).await,
    };
    let (mut lists, mut failure) = (Vec::new(), None);
    for found in found {
        match found {
            Ok(addresses) => lists.push(addresses),
            Err(error) => failure = Some(error),
        }
    }
    let targets = in_turn(&lists);
    match failure {
        Some(error) if targets.is_empty() => Err(error),
        _ => Ok(targets),
    }
}

/// The first address of each list, then the second of each, and so on: a name may have addresses of
/// one owner only, and as many as it likes.
fn in_turn(lists: &[Vec<SocketAddr>]) -> Vec<Target> {
    let nth = |index| lists.iter().filter_map(move |list| list.get(index));
    (0..MOST_OF_NAME).flat_map(nth).copied().map(Target::Node).collect()
}

/// The names at which a network's nodes are found, `host:port` each. Regtest has none.
pub fn seeds(network: Network) -> &'static [&'static str] {
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

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use tokio::net::TcpListener;
    use tokio::task::yield_now;
    use tokio::time::advance;

    use super::super::checkpoint::Checkpoint;
    use super::super::peer::tests::play;
    use super::super::place::Outcome;
    use super::*;

    const NETWORK: Network = Network::Livenet;

    fn follower(directory: &tempfile::TempDir, peers: &[String]) -> HeaderFollower {
        let path = directory.path().join("headers");
        let file = HeaderFile::open(&path, NETWORK, &Checkpoint::of(NETWORK)).unwrap();
        let tls = rustls::ClientConfig::builder_with_provider(Arc::new(
            rustls::crypto::ring::default_provider(),
        ))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
        let client = Client::builder().tls_backend_preconfigured(tls).build().unwrap();
        let names = SourceNames { urls: Vec::new(), peers: peers.to_vec() };
        HeaderFollower::new(Arc::new(file), NETWORK, names, client)
    }

    /// A node that claims a height, and has no headers. Answers its address.
    async fn claiming(height: i32) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(play(stream, height, vec![None]));
            }
        });
        address
    }

    #[tokio::test]
    async fn a_source_that_is_no_longer_asked_can_be_asked_again() {
        let directory = tempfile::tempdir().unwrap();
        let follower = follower(&directory, &[claiming(0).await]);
        for _ in 0..2 {
            let answers = follower.catch_up(Duration::from_secs(60)).await;
            assert!(answers[0].1.is_ok(), "{answers:?}");
        }
    }

    #[tokio::test]
    async fn a_single_question_has_a_limit() {
        let directory = tempfile::tempdir().unwrap();
        let node = claiming(1_000_000).await;
        let follower = follower(&directory, std::slice::from_ref(&node));
        let (name, answer) = follower.catch_up(Duration::from_secs(1)).await.remove(0);
        let error = answer.unwrap_err().to_string();
        assert_eq!(name, node);
        assert!(error.contains("not given all its headers within 1 s"), "{error}");
    }

    /// Which nodes are in use after each answer, if this many are the addresses of one place.
    async fn used(nodes: usize, answers: u64) -> Vec<Vec<usize>> {
        let directory = tempfile::tempdir().unwrap();
        let mut seeds = Vec::new();
        for _ in 0..nodes {
            seeds.push(&*claiming(0).await.leak());
        }
        let targets: Vec<_> = seeds.iter().map(|it| Target::Node(it.parse().unwrap())).collect();
        let mut follower = follower(&directory, &[]);
        follower.places = vec![Place::new(Origin::Seeds(seeds))];
        let follower = Arc::new(follower);
        let following = Arc::clone(&follower);
        let following = tokio::spawn(async move { following.follow().await });
        let begun = std::time::Instant::now();
        let is_used =
            |node: &usize| follower.pool.next_free(&targets[*node..=*node], false).is_none();
        let mut used = Vec::new();
        for answer in 1..=answers {
            // The paused clock stands still while a task is ready.
            while follower.places[0].report().outcomes[Outcome::Answered as usize] < answer {
                assert!(begun.elapsed() < Duration::from_secs(60), "no answer after {used:?}");
                yield_now().await;
            }
            used.push((0..nodes).filter(is_used).collect());
            advance(PERIOD + SHORTEST_REST).await;
        }
        following.abort();
        used
    }

    #[tokio::test(start_paused = true)]
    async fn a_node_that_is_idle_for_ten_minutes_gives_way_if_there_is_another_address() {
        let used_alone = used(1, 50).await;
        assert_eq!(used_alone, vec![vec![0]; 50]);
        // A node is left after its 21st answer.
        let turn = |node: usize| [vec![vec![node]; 20], vec![vec![]]].concat();
        assert_eq!(used(2, 63).await, [turn(0), turn(1), turn(0)].concat());
    }

    #[tokio::test]
    async fn places_of_seeds_begin_with_different_seeds() {
        let directory = tempfile::tempdir().unwrap();
        let follower = follower(&directory, &[]);
        let first = |place: &Place| match &place.origin {
            Origin::Seeds(seeds) => seeds[0],
            other => panic!("{other:?}"),
        };
        assert_eq!(follower.places.len(), SEEDED);
        assert_eq!(follower.places.iter().map(first).collect::<HashSet<_>>().len(), 3);
    }

    #[test]
    fn the_addresses_of_names_come_in_turn_and_each_name_has_32_at_most() {
        let addresses = |name: u8, count: u8| -> Vec<SocketAddr> {
            (0..count).map(|number| ([10, name, 0, number], 8333).into()).collect()
        };
        let targets = in_turn(&[addresses(1, 2), Vec::new(), addresses(2, 200)]);
        assert_eq!(targets.len(), 2 + 32);
        let node = |name, number| Target::Node(([10, name, 0, number], 8333).into());
        let first = [node(1, 0), node(2, 0), node(1, 1), node(2, 1), node(2, 2)];
        assert_eq!(targets[..5], first);
    }
}
