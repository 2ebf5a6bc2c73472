use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

use super::*;

pub(super) const SPECIAL: [&str; 66] = [
    "127.0.0.1",
    "127.1",
    "127.0.1",
    "127.0.0.1.",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0x7F.0x0.0x0.0x1",
    "017700000001",
    "0177.0.0.01",
    "127.0x0.0.0x1",
    "%31%32%37.0.0.1",
    "1２7.0.0.1",
    "①②⑦.0.0.1",
    "127。0。0。1",
    "0",
    "0.0.0.0",
    "0x0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "0xa.1",
    "012.0.0.1",
    "100.64.0.1",
    "100.127.255.255",
    "169.254.169.254",
    "2852039166",
    "0xa9fea9fe",
    "0251.0376.0251.0376",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "192.168.257",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "4294967295",
    "[::]",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:10.0.0.1]",
    "[::ffff:169.254.169.254]",
    "[::FFFF:C0A8:1]",
    "[fe80::1]",
    "[febf::1]",
    "[fc00::1]",
    "[fdff::1]",
    "[ff02::1]",
    "[2001:db8::1]",
    "[3fff::1]",
    "[100::1]",
    "[2002:7f00:1::]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::1]",
    "[5f00::1]",
];

pub(super) const PUBLIC: [&str; 14] = [
    "8.8.8.8",
    "1.1",
    "134744072",
    "11.0.0.1",
    "100.63.255.255",
    "100.128.0.1",
    "172.15.0.1",
    "172.32.0.1",
    "192.167.0.1",
    "198.20.0.1",
    "223.255.255.255",
    "[2606:4700::1111]",
    "[::ffff:8.8.8.8]",
    "[64:ff9b:2::1]",
];

fn url(text: &str) -> Url {
    Url::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn guard(reach: Reach, start: &str) -> Guard {
    let hop = Hop { port: port(&url(start)), reach, began_internal: false };
    let others = vec!["127.0.0.1:9002".parse().unwrap()];
    let own = OwnListeners { payments: Some("0.0.0.0:8445".parse().unwrap()), others };
    Guard { own: Arc::new(own), opened: Arc::default(), hop: Mutex::new(hop) }
}

fn admits(reach: Reach, text: &str) -> bool {
    guard(reach, text).check_literal(&url(text)).is_ok()
}

#[test]
fn addresses_are_known_in_every_spelling() {
    for host in SPECIAL {
        for scheme in ["http", "https"] {
            let text = format!("{scheme}://{host}:3000/x");
            assert!(literal(&url(&text)).is_some(), "{text} is looked up");
            assert!(!admits(Reach::Public, &text), "{text}");
            assert!(admits(Reach::Chosen, &text) && admits(Reach::Anywhere, &text), "{text}");
        }
    }
    for host in PUBLIC {
        let text = format!("http://{host}/x");
        assert!(literal(&url(&text)).is_some(), "{text} is looked up");
        for reach in [Reach::Public, Reach::Chosen, Reach::Anywhere] {
            assert!(admits(reach, &text), "{text}");
        }
    }
}

#[test]
fn our_own_listeners_are_known_in_every_spelling() {
    for host in ["127.0.0.1", "0x7f.1", "2130706433", "0", "[::ffff:7f00:1]"] {
        for reach in [Reach::Chosen, Reach::Anywhere, Reach::Public] {
            assert!(!admits(reach, &format!("http://{host}:9002/opreturn/pool/rotate")), "{host}");
        }
        assert!(admits(Reach::Chosen, &format!("http://{host}:8445/api/v1/payment/x")));
        assert!(!admits(Reach::Anywhere, &format!("http://{host}:8445/api/v1/payment/x")));
        assert!(admits(Reach::Anywhere, &format!("http://{host}:9003/")));
    }
}

#[test]
fn redirects_lead_to_internal_addresses_only_from_internal_ones() {
    let ip = |text: &str| -> IpAddr { text.parse().unwrap() };
    let (public, internal) = (ip("8.8.8.8"), ip("192.168.0.7"));
    for (first, may) in
        [(vec![public], false), (vec![internal], true), (vec![internal, public], false)]
    {
        let guard = guard(Reach::Chosen, "http://shop.example/x");
        let admitted = guard.admit(&first).unwrap();
        assert!(may || admitted == [SocketAddr::new(public, 80)], "{admitted:?}");
        for to in ["http://127.0.0.1:81/", "http://192.168.0.1/", "http://[fc00::1]/"] {
            guard.go_on_to(&url(to));
            assert_eq!(guard.check_literal(&url(to)).is_ok(), may, "{first:?} {to}");
            guard.go_on_to(&url("http://rebound.example:82/"));
            assert_eq!(guard.admit(&[internal]).is_ok(), may, "{first:?}");
            assert_eq!(guard.admit(&[public]), Ok(vec![SocketAddr::new(public, 82)]));
        }
        for own in ["http://127.0.0.1:9002/", "http://127.0.0.1:8445/"] {
            guard.go_on_to(&url(own));
            assert_eq!(guard.check_literal(&url(own)), Err(BlockedAddress), "{own}");
        }
    }
}

/// Answers every connection with a redirect, or with 200 without one. Returns the address and the
/// count of connections.
fn redirecting(to: Option<String>) -> (SocketAddr, Arc<Mutex<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let count = Arc::new(Mutex::new(0));
    let counted = Arc::clone(&count);
    let answer = move |mut stream: TcpStream| {
        let _ = stream.read(&mut [0; 4096]);
        let head = match &to {
            Some(to) => format!("HTTP/1.1 307 Elsewhere\r\nLocation: {to}\r\n"),
            None => "HTTP/1.1 200 OK\r\n".to_owned(),
        };
        let _ = write!(stream, "{head}Content-Length: 0\r\nConnection: close\r\n\r\n");
    };
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            *counted.lock().unwrap() += 1;
            answer(stream);
        }
    });
    (address, count)
}

#[tokio::test]
async fn a_redirect_to_a_listener_of_this_process_is_not_followed() {
    let (trap, trapped) = redirecting(None);
    let own = OwnListeners { payments: None, others: vec![trap] };
    let outbound = Outbound::new(own);
    for host in ["127.0.0.1", "localhost", "0x7f.1", "0", "[::ffff:127.0.0.1]"] {
        let (payee, _) = redirecting(Some(format!("http://{host}:{}/x", trap.port())));
        let start = url(&format!("http://{payee}/"));
        let client = outbound.client(&start, Reach::Chosen).unwrap();
        let error = client.get(start).send().await.unwrap_err();
        assert!(is_blocked(&error), "{host}: {error:?}");
    }
    let by_name = url(&format!("http://localhost:{}/", trap.port()));
    let client = outbound.client(&by_name, Reach::Chosen).unwrap();
    assert!(is_blocked(&client.get(by_name).send().await.unwrap_err()));
    assert_eq!(*trapped.lock().unwrap(), 0);

    let (shop, reached) = redirecting(None);
    let (payee, _) = redirecting(Some(format!("http://localhost:{}/x", shop.port())));
    let start = url(&format!("http://{payee}/"));
    let client = outbound.client(&start, Reach::Chosen).unwrap();
    assert!(client.get(start).send().await.unwrap().status().is_success());
    assert_eq!(*reached.lock().unwrap(), 1);
}

#[tokio::test]
async fn names_are_looked_up_and_their_addresses_checked() {
    let (trap, trapped) = redirecting(None);
    let start = url(&format!("http://localhost:{}/", trap.port()));
    let client = Outbound::default().client(&start, Reach::Public).unwrap();
    let error = client.get(start.clone()).send().await.unwrap_err();
    assert!(is_blocked(&error), "{error:?}");
    assert_eq!(*trapped.lock().unwrap(), 0);
    let client = Outbound::default().client(&start, Reach::Anywhere).unwrap();
    assert!(client.get(start).send().await.unwrap().status().is_success());
    assert_eq!(*trapped.lock().unwrap(), 1);
}
