use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::networks::is_of_this_machine;

/// The addresses on which this process itself listens. Requests that strangers cause must not reach
/// them. Unspecified addresses (`0.0.0.0`, `::`) stand for all addresses of this machine. A port of
/// 0 stands for no listener.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnListeners {
    /// The listener for payers. The wallet itself may pay there.
    pub payments: Option<SocketAddr>,
    /// The listeners for the owner: the wallet, miner identities.
    pub others: Vec<SocketAddr>,
}

impl OwnListeners {
    /// Whether an address reaches a listener for the owner.
    pub(super) fn is_owners(&self, address: SocketAddr) -> bool {
        self.others.iter().any(|listener| reaches(address, *listener))
    }

    /// Whether an address reaches any of the listeners.
    pub(super) fn has(&self, address: SocketAddr) -> bool {
        self.is_owners(address) || self.payments.is_some_and(|own| reaches(address, own))
    }
}

/// Whether a connection to an address reaches a listener.
fn reaches(address: SocketAddr, listener: SocketAddr) -> bool {
    let ip = match address.ip().to_canonical() {
        // The system connects these to the machine itself.
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    let bound = listener.ip().to_canonical();
    listener.port() != 0
        && listener.port() == address.port()
        && (bound == ip || bound.is_unspecified() && is_of_this_machine(ip).unwrap_or(true))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_this_machine_and_ports_tell_listeners_apart() {
        let parse = |text: &str| -> SocketAddr { text.parse().unwrap() };
        for (listener, address, expected) in [
            ("127.0.0.1:9002", "127.0.0.1:9002", true),
            ("127.0.0.1:9002", "127.0.0.1:9003", false),
            ("127.0.0.1:9002", "127.0.0.2:9002", false),
            ("127.0.0.1:9002", "0.0.0.0:9002", true),
            ("127.0.0.1:9002", "[::ffff:127.0.0.1]:9002", true),
            ("127.0.0.1:9002", "8.8.8.8:9002", false),
            ("0.0.0.0:9002", "127.0.0.1:9002", true),
            ("0.0.0.0:9002", "127.9.9.9:9002", true),
            ("0.0.0.0:9002", "0.0.0.0:9002", true),
            ("0.0.0.0:9002", "8.8.8.8:9002", false),
            ("0.0.0.0:9002", "127.0.0.1:80", false),
            ("[::]:9002", "127.0.0.1:9002", true),
            ("[::1]:9002", "[::1]:9002", true),
            ("[::1]:9002", "[::]:9002", true),
            ("[::1]:9002", "127.0.0.1:9002", false),
            ("203.0.113.7:9002", "203.0.113.7:9002", true),
            ("0.0.0.0:0", "127.0.0.1:0", false),
        ] {
            let others = OwnListeners { others: vec![parse(listener)], payments: None };
            assert_eq!(others.is_owners(parse(address)), expected, "{listener} {address}");
            let payments = OwnListeners { others: vec![], payments: Some(parse(listener)) };
            assert!(!payments.is_owners(parse(address)));
            assert_eq!(payments.has(parse(address)), expected, "{listener} {address}");
        }
    }
}
