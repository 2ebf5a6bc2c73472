use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::HeaderMap;
use hyper::header::HeaderName;

use crate::config::PeerConfig;

/// What each peer of a listener for strangers has taken of late.
#[derive(Debug)]
pub(crate) struct Peers {
    config: PeerConfig,
    connections: Mutex<HashMap<IpAddr, u32>>,
    requests: Mutex<Requests>,
}

/// The place of one connection of a peer, free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Place {
    peers: Arc<Peers>,
    peer: Option<IpAddr>,
}

/// When the requests of each peer, at the rate that it may send them, would all have come: a token
/// bucket, kept as one moment (the generic cell rate algorithm).
#[derive(Debug)]
struct Requests {
    recent: HashMap<IpAddr, Instant>,
    /// Those of before `recent` became full. A peer that is in neither has an untouched bucket.
    older: HashMap<IpAddr, Instant>,
}

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// Peers that are remembered are at most twice as many.
const MAX_PEERS: usize = 10_000;
/// How many entries of `X-Forwarded-For` are looked through.
const MAX_PROXIES: usize = 16;

impl Peers {
    pub(crate) fn new(config: PeerConfig) -> Arc<Self> {
        let requests = Requests { recent: HashMap::new(), older: HashMap::new() };
        Arc::new(Self { config, connections: Mutex::default(), requests: Mutex::new(requests) })
    }

    /// Takes a connection from `address`, unless that has its share already.
    pub(crate) fn connect(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let address = address.to_canonical();
        let is_free = self.is_trusted(address) || self.is_exempt(address);
        let peer = (!is_free).then(|| peer(address));
        if let Some(peer) = peer {
            let mut connections = self.connections();
            let count = connections.entry(peer).or_default();
            if *count >= self.config.connections {
                return None;
            }
            *count += 1;
        }
        Some(Place { peers: Arc::clone(self), peer })
    }

    /// Takes a request that came from `address` at the time `now`, or says how long to wait.
    pub(crate) fn admit(
        &self,
        address: IpAddr,
        headers: &HeaderMap,
        now: Instant,
    ) -> Result<(), Duration> {
        let address = address.to_canonical();
        let peer = match self.is_trusted(address) {
            true => self.forwarded_for(address, headers),
            false if self.is_exempt(address) => None,
            false => Some(peer(address)),
        };
        let Some(peer) = peer else { return Ok(()) };
        let interval = Duration::from_secs(1) / self.config.requests_per_second;
        let ahead = interval * (self.config.burst - 1);
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let due = requests.due(peer).map_or(now, |due| due.max(now));
        match due.duration_since(now).checked_sub(ahead) {
            Some(wait) if !wait.is_zero() => Err(wait),
            _ => {
                requests.set_due(peer, due + interval);
                Ok(())
            }
        }
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.config.trusted_proxies.iter().any(|proxies| proxies.contains(&address))
    }

    fn is_exempt(&self, address: IpAddr) -> bool {
        address.is_loopback() && !self.config.limit_loopback
    }

    /// The peer for whom a front end asks: the last that is no front end itself, as those before it
    /// could have been written by anybody. A front end that names nobody asks for itself, which is
    /// not limited; for one that cannot be read, it counts itself.
    fn forwarded_for(&self, proxy: IpAddr, headers: &HeaderMap) -> Option<IpAddr> {
        let lines: Vec<_> = headers.get_all(FORWARDED_FOR).iter().collect();
        let entries = lines.iter().rev().flat_map(|line| line.to_str().unwrap_or("?").rsplit(','));
        for entry in entries.take(MAX_PROXIES) {
            let Some(address) = address(entry.trim()) else { return Some(peer(proxy)) };
            if !self.is_trusted(address) {
                return Some(peer(address));
            }
        }
        None
    }

    fn connections(&self) -> MutexGuard<'_, HashMap<IpAddr, u32>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let Some(peer) = self.peer else { return };
        let mut connections = self.peers.connections();
        if let Some(count) = connections.get_mut(&peer) {
            *count -= 1;
            if *count == 0 {
                connections.remove(&peer);
            }
        }
    }
}

impl Requests {
    fn due(&self, peer: IpAddr) -> Option<Instant> {
        self.recent.get(&peer).or_else(|| self.older.get(&peer)).copied()
    }

    fn set_due(&mut self, peer: IpAddr, due: Instant) {
        if self.recent.len() >= MAX_PEERS && !self.recent.contains_key(&peer) {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(peer, due);
    }
}

/// Whoever has an address of IPv6 has 2^64 of them.
fn peer(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(address) => {
            IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & (u128::MAX << 64)))
        }
    }
}

/// An address as front ends write it, with a port or without one.
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
            peers.admit(ip(address), &HeaderMap::new(), now + Duration::from_millis(millis))
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
        assert_eq!(named(&["[2001:db8::7]:5000"]), Some(ip("2001:db8::")));
        assert_eq!(named(&["2001:db8::7"]), Some(ip("2001:db8::")));
        assert_eq!(named(&["::ffff:203.0.113.1"]), Some(ip("203.0.113.1")));
        assert_eq!(named(&["203.0.113.1, unknown"]), Some(ip("10.0.0.1")));
        assert_eq!(named(&["203.0.113.1,"]), Some(ip("10.0.0.1")));
        // Who asks directly cannot name anybody.
        let headers = forwarded(&["198.51.100.9"]);
        let now = Instant::now();
        for _ in 0..3 {
            assert_eq!(peers.admit(ip("203.0.113.1"), &headers, now), Ok(()));
        }
        assert!(peers.admit(ip("203.0.113.1"), &HeaderMap::new(), now).is_err());
        // A front end on this machine does not exempt those it names.
        for _ in 0..3 {
            assert_eq!(peers.admit(ip("127.0.0.1"), &headers, now), Ok(()));
        }
        assert!(peers.admit(ip("127.0.0.1"), &headers, now).is_err());
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
        assert!(peers.connections().is_empty());
    }

    #[test]
    fn few_peers_are_remembered() {
        let peers = peers(&[]);
        for n in 0..u32::try_from(5 * MAX_PEERS).unwrap() {
            let address = IpAddr::V4((0x0a00_0000 + n).into());
            assert_eq!(peers.admit(address, &HeaderMap::new(), Instant::now()), Ok(()));
        }
        let requests = peers.requests.lock().unwrap();
        assert!(requests.recent.len() + requests.older.len() <= 2 * MAX_PEERS);
    }
}
