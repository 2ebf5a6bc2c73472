//! What the services tell by themselves.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::Duration;

use bsv_tests::Receiver;
use bsv_tests::payee::Request;
use bsv_tests::services::{Callbacks, Mood};
use serde_json::json;

use super::Scene;

/// The status in each callback.
fn statuses(requests: &[Request]) -> Vec<String> {
    requests.iter().map(|it| it.json()["txStatus"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn callbacks_come_as_the_mood_is() {
    let scene = Scene::new(5);
    let (seen, mined) = ("SEEN_ON_NETWORK", "MINED");
    for (path, callbacks, told) in [
        ("/tx", Callbacks::Honest, [seen, mined].as_slice()),
        ("/v1/tx", Callbacks::Doubled, &[seen, seen, mined, mined]),
        ("/tx", Callbacks::Reordered, &[mined, seen]),
        ("/v1/tx", Callbacks::Forged, &[mined, seen, mined, mined]),
        ("/tx", Callbacks::Dropped, &[]),
    ] {
        scene.service.be(Mood { callbacks, ..Mood::default() });
        let (receiver, payment) = (Receiver::start(), scene.payment());
        let wish = [
            ("X-CallbackUrl", receiver.url()),
            ("X-CallbackToken", "secret".to_owned()),
            ("X-FullStatusUpdates", "true".to_owned()),
        ];
        scene.submit(path, &payment, &wish.each_ref().map(|(name, value)| (*name, value.as_str())));
        match callbacks {
            // The first one is held back.
            Callbacks::Dropped | Callbacks::Reordered => sleep(Duration::from_millis(500)),
            _ => drop(receiver.until_count(told.len() / 2)),
        }
        let block = scene.node.mine(1)[0].to_string();
        let received = receiver.until_count(told.len());
        assert_eq!(statuses(&received), told, "{callbacks:?}");
        for request in &received {
            assert_eq!(request.header("authorization"), Some("Bearer secret"));
            assert_eq!(request.json()["txid"], payment.txid().to_string());
        }
        if callbacks == Callbacks::Forged {
            assert_ne!(received[0].json()["blockHash"], block);
            assert_eq!(received[3].json()["blockHash"], block);
        }
    }
}

/// A stream of events, which is read line by line.
struct Events(BufReader<TcpStream>);

impl Events {
    fn open(scene: &Scene, path: &str, last: &str) -> Self {
        let mut stream = TcpStream::connect(scene.service.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let last =
            if last.is_empty() { String::new() } else { format!("Last-Event-ID: {last}\r\n") };
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\n{last}\r\n").unwrap();
        let mut events = Self(BufReader::new(stream));
        while !events.line().is_empty() {}
        events
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// The id and the status of the next event.
    fn next(&mut self) -> (String, String) {
        let [id, event, data, end] = [(); 4].map(|()| self.line());
        assert_eq!((event.as_str(), end.as_str()), ("event: status", ""));
        let data: serde_json::Value =
            serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        (id.strip_prefix("id: ").unwrap().to_owned(), data["txStatus"].as_str().unwrap().to_owned())
    }
}

#[test]
fn streams_resume_and_end() {
    let scene = Scene::new(2);
    let mut tips = Events::open(&scene, "/chaintracks/v2/tip/stream", "");
    let payment = scene.payment();
    let mut events = Events::open(&scene, "/events?callbackToken=t", "");
    let mut others = Events::open(&scene, "/events?callbackToken=u", "");
    scene.submit("/tx", &payment, &[("X-CallbackToken", "t")]);
    let (id, word) = events.next();
    assert_eq!(word, "SEEN_ON_NETWORK");
    scene.service.change(|mood| mood.is_mute = true);
    let tip = scene.node.mine(1)[0].to_string();
    sleep(Duration::from_millis(500));
    let mut again = Events::open(&scene, "/events?callbackToken=t", &id);
    assert_eq!(again.next().1, "MINED");
    scene.service.say("event: gap\ndata: {\"reason\":\"catchup_truncated\"}\n\n");
    assert_eq!(events.line(), "event: gap");
    assert_eq!(others.line(), "event: gap");
    scene.service.be(Mood::default());
    let first: serde_json::Value = serde_json::from_str(&tips.line()[6..]).unwrap();
    assert_eq!(first["height"], json!(102));
    assert!(tips.line().is_empty());
    assert!(tips.line().contains(&tip));
    scene.service.restart_empty();
    let mut rest = String::new();
    again.0.read_to_string(&mut rest).unwrap();
    assert_eq!(rest.lines().next(), Some("event: gap"));
    assert_eq!(scene.client().get(&format!("/tx/{}", payment.txid())).status, 404);
}
