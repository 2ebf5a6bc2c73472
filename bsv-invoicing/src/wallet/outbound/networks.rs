use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use reqwest::Url;
use thiserror::Error;

/// The request leads to a forbidden address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("it leads to an internal address, which is not allowed")]
pub(crate) struct BlockedAddress;

/// IPv4 networks that do not belong to the public Internet: those of IANA's special-purpose
/// registry, multicast and reserved ones. Each entry is the first address and the length of the
/// prefix.
const V4: [(Ipv4Addr, u32); 15] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];

/// IPv6 networks that do not belong to the public Internet. Some of them embed IPv4 addresses of
/// any network.
const V6: [(Ipv6Addr, u32); 12] = [
    (Ipv6Addr::UNSPECIFIED, 128),
    (Ipv6Addr::LOCALHOST, 128),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
    (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0), 64),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96),
    (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48),
    (Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0), 16),
];

/// Whether an address is in a network that does not belong to the public Internet.
fn is_special(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => V4
            .iter()
            .any(|(network, len)| (address.to_bits() ^ network.to_bits()).leading_zeros() >= *len),
        IpAddr::V6(address) => V6
            .iter()
            .any(|(network, len)| (address.to_bits() ^ network.to_bits()).leading_zeros() >= *len),
    }
}

/// Whether an address belongs to this machine. Nothing is sent. Fails if the system cannot be asked,
/// for example because there are no descriptors left.
pub(super) fn is_of_this_machine(address: IpAddr) -> Result<bool, BlockedAddress> {
    is_local(address.to_canonical()).map_err(|_| BlockedAddress)
}

/// Asks the system with sockets. Other addresses can be bound, too, if `ip_nonlocal_bind` is set,
/// but the system connects nothing from them.
fn is_local(address: IpAddr) -> io::Result<bool> {
    /// Nothing is sent there.
    const ANY_PORT: u16 = 9;
    let bound = match UdpSocket::bind((address, 0)) {
        Err(error) if error.kind() == ErrorKind::AddrNotAvailable => return Ok(false),
        bound => bound?,
    };
    let socket = match address {
        IpAddr::V4(_) => bound,
        // IPv6 sockets connect from any address that they are bound to. Others connect to an
        // address of this machine from this address.
        IpAddr::V6(_) => UdpSocket::bind((Ipv6Addr::UNSPECIFIED, 0))?,
    };
    match socket.connect((address, ANY_PORT)) {
        Err(error) if is_refusal(error.kind()) => Ok(false),
        connected => {
            connected?;
            Ok(socket.local_addr()?.ip() == address)
        }
    }
}

/// Whether the system says that it has no such address, or no way from or to it.
fn is_refusal(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::InvalidInput
            | ErrorKind::AddrNotAvailable
            | ErrorKind::NetworkUnreachable
            | ErrorKind::HostUnreachable
    )
}

/// Whether an address does not belong to the public Internet, or belongs to this machine. Fails if
/// the system cannot be asked.
pub(super) fn is_internal(address: IpAddr) -> Result<bool, BlockedAddress> {
    Ok(is_special(address) || is_of_this_machine(address)?)
}

/// The address that stands in a URL itself, however it is spelt.
pub(super) fn literal(url: &Url) -> Option<IpAddr> {
    let host = url.host_str()?;
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;
    use std::process::Command;

    use super::*;

    #[test]
    fn the_edges_of_every_network_are_right() {
        for (first, last) in [
            ("0.0.0.0", "0.255.255.255"),
            ("10.0.0.0", "10.255.255.255"),
            ("100.64.0.0", "100.127.255.255"),
            ("127.0.0.0", "127.255.255.255"),
            ("169.254.0.0", "169.254.255.255"),
            ("172.16.0.0", "172.31.255.255"),
            ("192.0.0.0", "192.0.0.255"),
            ("192.0.2.0", "192.0.2.255"),
            ("192.88.99.0", "192.88.99.255"),
            ("192.168.0.0", "192.168.255.255"),
            ("198.18.0.0", "198.19.255.255"),
            ("198.51.100.0", "198.51.100.255"),
            ("203.0.113.0", "203.0.113.255"),
            ("224.0.0.0", "255.255.255.255"),
        ] {
            let [first, last]: [Ipv4Addr; 2] = [first, last].map(|text| text.parse().unwrap());
            let special = |bits: u32| is_special(Ipv4Addr::from_bits(bits).into());
            assert!(special(first.to_bits()) && special(last.to_bits()), "{first}");
            assert!(first.to_bits() == 0 || !special(first.to_bits() - 1), "{first}");
            assert!(last.to_bits() == u32::MAX || !special(last.to_bits() + 1), "{last}");
            assert!(is_special(first.to_ipv6_mapped().into()), "{first}");
        }
        for (first, last) in [
            ("::", "::1"),
            ("64:ff9b::", "64:ff9b::ffff:ffff"),
            ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"),
            ("100::", "100::ffff:ffff:ffff:ffff"),
            ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("5f00::", "5f00:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("fc00::", "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("fe80::", "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
        ] {
            let [first, last]: [Ipv6Addr; 2] = [first, last].map(|text| text.parse().unwrap());
            let special = |bits: u128| is_special(Ipv6Addr::from_bits(bits).into());
            assert!(special(first.to_bits()) && special(last.to_bits()), "{first}");
            assert!(first.to_bits() == 0 || !special(first.to_bits() - 1), "{first}");
            assert!(last.to_bits() == u128::MAX || !special(last.to_bits() + 1), "{last}");
        }
    }

    #[test]
    fn addresses_of_this_machine_are_recognised() {
        for address in ["127.0.0.1", "127.9.9.9", "::ffff:127.0.0.1"] {
            assert_eq!(is_of_this_machine(address.parse().unwrap()), Ok(true), "{address}");
        }
        for address in ["8.8.8.8", "192.0.2.1", "2606:4700::1111", "::ffff:8.8.8.8"] {
            assert_eq!(is_of_this_machine(address.parse().unwrap()), Ok(false), "{address}");
        }
    }

    /// Runs an ignored test of this file in a process of its own, which a shell prepares.
    fn run_alone(test: &str, mut shell: Command, preparation: &str) {
        let script = format!("{preparation}; exec \"$0\" --ignored --exact \"$1\"");
        let test = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
        let program = std::env::current_exe().unwrap();
        let output = shell.args(["-c", &script]).arg(program).arg(test).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains("1 passed"), "{output:?}");
    }

    #[test]
    fn addresses_that_can_only_be_bound_are_not_of_this_machine() {
        let mut shell = Command::new("unshare");
        shell.args(["--map-root-user", "--net"]);
        let is_allowed = shell.args(["ip", "link", "set", "lo", "up"]).output();
        if !is_allowed.is_ok_and(|output| output.status.success()) {
            // Not by a macro: those print nothing in a test that passes.
            let left_out = "left out: addresses that can only be bound, because this system lets \
                            nobody have a network of their own";
            return writeln!(io::stderr(), "{left_out}").unwrap();
        }
        let mut shell = Command::new("unshare");
        shell.args(["--map-root-user", "--net", "sh"]);
        run_alone(
            "with_a_network_of_its_own",
            shell,
            "set -e; cd /proc/sys/net; echo 1 > ipv4/ip_nonlocal_bind; \
             echo 1 > ipv6/ip_nonlocal_bind; ip link set lo up; \
             ip link add v0 type veth peer name v1; ip link set v0 up; ip link set v1 up; \
             ip address add 8.8.4.1/24 dev v0; ip address add 8.8.4.2/24 dev v0; \
             ip address add 2001:4860::1/64 dev v0 nodad; ip route add default via 8.8.4.9; \
             ip -6 route add default dev v0",
        );
    }

    #[test]
    #[ignore = "another test runs it in a network of its own"]
    fn with_a_network_of_its_own() {
        let bound = UdpSocket::bind("8.8.8.8:0");
        assert!(bound.is_ok(), "{bound:?}");
        for address in ["127.0.0.1", "127.9.9.9", "::1", "8.8.4.1", "8.8.4.2", "2001:4860::1"] {
            assert_eq!(is_of_this_machine(address.parse().unwrap()), Ok(true), "{address}");
        }
        for address in ["8.8.8.8", "8.8.4.9", "2606:4700::1111", "2001:4860::9"] {
            assert_eq!(is_of_this_machine(address.parse().unwrap()), Ok(false), "{address}");
        }
    }

    #[test]
    fn an_address_is_blocked_if_the_system_cannot_be_asked() {
        run_alone("without_descriptors", Command::new("sh"), "ulimit -n 64");
    }

    #[test]
    #[ignore = "another test runs it in a process of its own"]
    fn without_descriptors() {
        let mut files = Vec::new();
        files.extend(std::iter::from_fn(|| File::open("/dev/null").ok()));
        let [public, six] = ["8.8.8.8", "2606:4700::1111"].map(|it| it.parse().unwrap());
        let answers = [is_internal(public), is_internal(six)];
        drop(files);
        assert_eq!(answers, [Err(BlockedAddress); 2]);
        assert_eq!(is_internal(public), Ok(false));
    }
}
