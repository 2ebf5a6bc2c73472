use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::HeaderMap;
use hyper::header::HeaderName;
use ipnet::IpNet;

use crate::config::PeerConfig;

/// The recent use of each peer of a listener for strangers.
#[derive(Debug)]
pub(crate) struct Peers {
    config: PeerConfig,
    connections: Arc<Counts>,
    streams: Arc<Counts>,
    requests: Mutex<Requests>,
}

/// A count for each peer.
#[derive(Debug)]
struct Counts {
    /// The limit of one peer.
    limit: u32,
    networks: Mutex<HashMap<IpNet, u32>>,
}

/// The slot of a peer's connection or stream, which becomes free when this is dropped.
#[derive(Debug)]
pub(crate) struct Slot {
    counts: Arc<Counts>,
    address: Option<IpAddr>,
}

/// The times at which the requests of each peer would all be due, at the peer's rate: a token
/// bucket, stored as one moment (the generic cell rate algorithm).
#[derive(Debug)]
struct Requests {
    recent: HashMap<IpNet, Instant>,
    /// The entries from before `recent` became full. A peer in neither map has a full bucket.
    older: HashMap<IpNet, Instant>,
}

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// At most twice as many networks are remembered.
const MAX_NETWORKS: usize = 30_000;
/// How many entries of `X-Forwarded-For` are examined.
const MAX_PROXIES: usize = 16;
/// The IPv6 networks that count as one peer, with their shares: everybody has a network of 64 bits,
/// and many have one of 56 or 48 bits.
const NETWORKS_V6: [(u8, u32); 3] = [(64, 1), (56, 4), (48, 16)];

impl Peers {
    pub(crate) fn new(config: PeerConfig) -> Arc<Self> {
        let requests = Requests { recent: HashMap::new(), older: HashMap::new() };
        let [connections, streams] =
            [config.connections, config.streams].map(|limit| Arc::new(Counts::new(limit)));
        Arc::new(Self { config, connections, streams, requests: Mutex::new(requests) })
    }

    /// Admits a connection from `address`, unless the peer has its share.
    pub(crate) fn connect(&self, address: IpAddr) -> Option<Slot> {
        let address = address.to_canonical();
        let is_free = self.is_trusted(address) || self.is_exempt(address);
        Counts::take(&self.connections, (!is_free).then_some(address))
    }

    /// Admits a stream of `requester`, unless the peer has its share.
    pub(crate) fn begin_stream(&self, requester: Option<IpAddr>) -> Option<Slot> {
        Counts::take(&self.streams, requester)
    }

    /// The peer that sent a request from `address` with these headers, if the peer is limited.
    pub(crate) fn requester(&self, address: IpAddr, headers: &HeaderMap) -> Option<IpAddr> {
        let address = address.to_canonical();
        match self.is_trusted(address) {
            true => self.forwarded_for(address, headers),
            false => (!self.is_exempt(address)).then_some(address),
        }
    }

    /// Admits a request of `requester` at the time `now`, or answers how long to wait.
    pub(crate) fn admit(&self, requester: IpAddr, now: Instant) -> Result<(), Duration> {
        let interval = Duration::from_secs(1) / self.config.requests_per_second;
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let due = |network| requests.due(network).map_or(now, |due: Instant| due.max(now));
        let waits = networks(requester).filter_map(|(network, shares)| {
            let burst = self.config.burst.saturating_mul(shares);
            let ahead = interval / shares * (burst - 1);
            let wait = due(network).duration_since(now).checked_sub(ahead)?;
            (!wait.is_zero()).then_some(wait)
        });
        if let Some(wait) = waits.max() {
            return Err(wait);
        }
        for (network, shares) in networks(requester) {
            let due = requests.due(network).map_or(now, |due| due.max(now));
            requests.set_due(network, due + interval / shares);
        }
        Ok(())
    }

    /// Admits a TLS handshake from `address`, unless there are too many. A handshake counts as a
    /// request.
    pub(crate) fn admit_handshake(&self, address: IpAddr) -> bool {
        let requester = self.requester(address, &HeaderMap::new());
        requester.is_none_or(|requester| self.admit(requester, Instant::now()).is_ok())
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.config.trusted_proxies.iter().any(|proxies| proxies.contains(&address))
    }

    fn is_exempt(&self, address: IpAddr) -> bool {
        address.is_loopback() && !self.config.limit_loopback
    }

    /// The peer that a front end names: the last entry that is not a front end, because anybody can
    /// write the entries before it. A front end that names nobody is not limited. If its entry
    /// cannot be parsed, the front end itself counts.
    fn forwarded_for(&self, proxy: IpAddr, headers: &HeaderMap) -> Option<IpAddr> {
        let lines: Vec<_> = headers.get_all(FORWARDED_FOR).iter().collect();
        let entries = lines.iter().rev().flat_map(|line| line.to_str().unwrap_or("?").rsplit(','));
        for entry in entries.take(MAX_PROXIES) {
            let Some(address) = address(entry.trim()) else { return Some(proxy) };
            if !self.is_trusted(address) {
                return Some(address);
            }
        }
        None
    }
}

impl Counts {
    fn new(limit: u32) -> Self {
        Self { limit, networks: Mutex::default() }
    }

    /// Admits one more for a peer, unless the peer has its share. Without an address, there is no
    /// limit.
    fn take(counts: &Arc<Self>, address: Option<IpAddr>) -> Option<Slot> {
        let mut taken = counts.networks();
        let is_full = |(network, shares): (IpNet, u32)| {
            let count = taken.get(&network).copied().unwrap_or(0);
            count >= counts.limit.saturating_mul(shares)
        };
        if address.is_some_and(|address| networks(address).any(is_full)) {
            return None;
        }
        for (network, _) in address.into_iter().flat_map(networks) {
            *taken.entry(network).or_default() += 1;
        }
        Some(Slot { counts: Arc::clone(counts), address })
    }

    fn networks(&self) -> MutexGuard<'_, HashMap<IpNet, u32>> {
        self.networks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Slot {
    /// The peer's widest network, if the peer is counted.
    pub(crate) fn peer(&self) -> Option<IpNet> {
        self.address.map(widest_network)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.counts.networks();
        for (network, _) in self.address.into_iter().flat_map(networks) {
            if let Some(count) = taken.get_mut(&network) {
                *count -= 1;
                if *count == 0 {
                    taken.remove(&network);
                }
            }
        }
    }
}

impl Requests {
    fn due(&self, network: IpNet) -> Option<Instant> {
        self.recent.get(&network).or_else(|| self.older.get(&network)).copied()
    }

    fn set_due(&mut self, network: IpNet, due: Instant) {
        if self.recent.len() >= MAX_NETWORKS && !self.recent.contains_key(&network) {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(network, due);
    }
}

/// The widest network of an address that counts as one peer.
pub(super) fn widest_network(address: IpAddr) -> IpNet {
    networks(address).last().map_or_else(|| address.into(), |(network, _)| network)
}

/// The networks of an address that count as one peer, the narrowest first, with their shares.
fn networks(address: IpAddr) -> impl Iterator<Item = (IpNet, u32)> {
    let lengths: &[(u8, u32)] = match address {
        IpAddr::V4(_) => &[(32, 1)],
        IpAddr::V6(_) => &NETWORKS_V6,
    };
    let network =
        move |len| IpNet::new(address, len).expect("an address is at least so long").trunc();
    lengths.iter().map(move |(len, shares)| (network(*len), *shares))
}

/// Parses an address in the format of front ends, with or without a port.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse().or_else(|_| text.parse().map(|address: SocketAddr| address.ip()));
    address.ok().map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers(trusted: &[&str]) -> Arc<Peers> {
        Peers::new(PeerConfig {
            connections: 2,
            streams: 1,
            requests_per_second: 10,
            burst: 3,
            trusted_proxies: trusted.iter().map(|text| text.parse().unwrap()).collect(),
            limit_loopback: false,
        })
    }

    fn forwarded(lines: &[&'static str]) -> HeaderMap {
        lines.iter().map(|line| (FORWARDED_FOR, line.parse().unwrap())).collect()
    }

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn a_peer_has_its_burst_and_then_its_rate() {
        let peers = peers(&[]);
        let now = Instant::now() + Duration::from_secs(1);
        let admit = |address: &str, millis: u64| {
            let requester = peers.requester(ip(address), &HeaderMap::new());
            requester.map_or(Ok(()), |it| peers.admit(it, now + Duration::from_millis(millis)))
        };
        for _ in 0..3 {
            assert_eq!(admit("203.0.113.1", 0), Ok(()));
        }
        assert_eq!(admit("203.0.113.1", 0), Err(Duration::from_millis(100)));
        assert_eq!(admit("203.0.113.1", 60), Err(Duration::from_millis(40)));
        assert_eq!(admit("::ffff:203.0.113.1", 60), Err(Duration::from_millis(40)));
        assert_eq!(admit("203.0.113.2", 60), Ok(()));
        assert_eq!(admit("203.0.113.1", 100), Ok(()));
        assert!(admit("203.0.113.1", 100).is_err());
        for _ in 0..3 {
            assert_eq!(admit("203.0.113.1", 10_000), Ok(()));
        }
        assert!(admit("203.0.113.1", 10_000).is_err());
        for n in 0..3 {
            assert_eq!(admit(&format!("2001:db8::{n}"), 0), Ok(()));
        }
        assert!(admit("2001:db8::ffff:1:2:3", 0).is_err());
        assert_eq!(admit("2001:db8:0:1::", 0), Ok(()));
        let admitted = (2..=0xff).filter(|n| admit(&format!("2001:db8:0:{n:x}::"), 0).is_ok());
        assert_eq!(admitted.count(), 3 * 4 - 4, "they share a network of 56 bits");
        let admitted = (0..=0xff).filter(|n| admit(&format!("2001:db8:0:{n:x}00::"), 0).is_ok());
        assert_eq!(admitted.count(), 3 * 16 - 12, "and one of 48");
        for _ in 0..10 {
            assert_eq!(admit("127.0.0.1", 0), Ok(()));
        }
    }

    #[test]
    fn front_ends_name_their_peers() {
        let peers = peers(&["10.0.0.0/8", "127.0.0.1/32"]);
        let named = |lines| peers.forwarded_for(ip("10.0.0.1"), &forwarded(lines));
        assert_eq!(named(&[]), None);
        assert_eq!(named(&["203.0.113.1"]), Some(ip("203.0.113.1")));
        assert_eq!(named(&["198.51.100.9, 203.0.113.1"]), Some(ip("203.0.113.1")));
        assert_eq!(named(&["198.51.100.9, 203.0.113.1 , 10.1.2.3"]), Some(ip("203.0.113.1")));
        assert_eq!(named(&["198.51.100.9", "203.0.113.1"]), Some(ip("203.0.113.1")));
        assert_eq!(named(&["203.0.113.1:5000"]), Some(ip("203.0.113.1")));
        assert_eq!(named(&["[2001:db8::7]:5000"]), Some(ip("2001:db8::7")));
        assert_eq!(named(&["2001:db8::7"]), Some(ip("2001:db8::7")));
        assert_eq!(named(&["::ffff:203.0.113.1"]), Some(ip("203.0.113.1")));
        assert_eq!(named(&["203.0.113.1, unknown"]), Some(ip("10.0.0.1")));
        assert_eq!(named(&["203.0.113.1,"]), Some(ip("10.0.0.1")));
        // A direct peer cannot name another one.
        let headers = forwarded(&["198.51.100.9"]);
        assert_eq!(peers.requester(ip("203.0.113.1"), &headers), Some(ip("203.0.113.1")));
        // A front end on this machine does not exempt the peers that it names.
        assert_eq!(peers.requester(ip("127.0.0.1"), &headers), Some(ip("198.51.100.9")));
    }

    #[test]
    fn a_peer_has_its_share_of_connections() {
        let peers = peers(&["10.0.0.1/32"]);
        let held: Vec<_> = [(); 2].map(|()| peers.connect(ip("203.0.113.1")).unwrap()).into();
        assert!(peers.connect(ip("203.0.113.1")).is_none());
        assert!(peers.connect(ip("203.0.113.2")).is_some());
        for free in ["127.0.0.1", "::1", "10.0.0.1"] {
            let many: Vec<_> = (0..10).map(|_| peers.connect(ip(free))).collect();
            assert!(many.iter().all(Option::is_some), "{free}");
        }
        drop(held);
        assert!(peers.connect(ip("203.0.113.1")).is_some());
        // A network of 64 bits has the share of one peer, one of 56 bits that of four, and one of
        // 48 bits that of sixteen.
        let connect = |subnet: u16| peers.connect(ip(&format!("2001:db8:0:{subnet:x}::1")));
        let held: Vec<_> = (0..0x1000).step_by(0x10).filter_map(connect).collect();
        assert_eq!(held.len(), 32);
        drop(held);
        let held: Vec<_> =
            (0..0x100).flat_map(|subnet| [connect(subnet), connect(subnet)]).collect();
        assert_eq!(held.iter().flatten().count(), 8);
        assert!(connect(0x100).is_some());
        assert!(peers.connect(ip("2001:db8:1::1")).is_some());
        drop(held);
        assert!(peers.connections.networks().is_empty());
    }

    #[test]
    fn a_peer_has_its_share_of_streams() {
        let peers = peers(&[]);
        let held = peers.begin_stream(Some(ip("203.0.113.1"))).unwrap();
        assert!(peers.begin_stream(Some(ip("203.0.113.1"))).is_none());
        assert!(peers.begin_stream(Some(ip("203.0.113.2"))).is_some());
        let many: Vec<_> = (0..10).map(|_| peers.begin_stream(None)).collect();
        assert!(many.iter().all(Option::is_some), "who is not limited");
        drop(held);
        assert!(peers.begin_stream(Some(ip("203.0.113.1"))).is_some());
    }

    #[test]
    fn few_peers_are_remembered() {
        let peers = peers(&[]);
        for n in 0..u32::try_from(5 * MAX_NETWORKS).unwrap() {
            let address = IpAddr::V4((0x0a00_0000 + n).into());
            assert_eq!(peers.admit(address, Instant::now()), Ok(()));
        }
        let requests = peers.requests.lock().unwrap();
        assert!(requests.recent.len() + requests.older.len() <= 2 * MAX_NETWORKS);
    }
}
