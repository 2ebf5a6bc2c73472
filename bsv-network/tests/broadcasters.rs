//! Broadcasters that answer as they like. The answers are those of Arcade and ARC, word by word.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::time::Duration;

use bsv_network::SecretString;
use bsv_network::broadcasters::{
    Answer, Broadcaster, BroadcasterError, BroadcasterSet, Callback, Dialect, EventStream,
    ReasonToAsk, SeenByError, Standing, Submission, Told, Urgency, Word,
};
use bsv_network::bsv_tx::{
    Bump, ExtendedTransaction, MerkleTree, OutPoint, Script, Transaction, TxIn, TxOut, Txid,
};
use bsv_network::serde_json::{Value, json};
use futures_util::future::join_all;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::{Instant, pause, sleep, timeout};

use self::client::client;

#[path = "services/client.rs"]
mod client;

/// A service that gives every request the same answer. Answers its URL, and the heads of the
/// requests.
async fn serve(status: u16, headers: &str, body: Vec<u8>) -> (String, UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n"
    );
    let answer = [head.as_bytes(), &body].concat();
    let (sender, requests) = unbounded_channel();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            let end = loop {
                stream.read_buf(&mut request).await.unwrap();
                let end = request.windows(4).position(|four| four == b"\r\n\r\n");
                if let Some(end) = end {
                    break end;
                }
            };
            let head = String::from_utf8(request[..end].to_vec()).unwrap();
            let length = head.split("content-length: ").nth(1);
            let length = length.map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
            while request.len() < end + 4 + length {
                stream.read_buf(&mut request).await.unwrap();
            }
            sender.send(head).unwrap();
            // The client may have heard enough.
            let _ = stream.write_all(&answer).await;
        }
    });
    (url, requests)
}

fn transaction() -> ExtendedTransaction {
    let output = |satoshis| TxOut { satoshis, locking_script: Script::default() };
    let input = TxIn {
        previous_output: OutPoint { txid: Txid::from_bytes([9; 32]), vout: 0 },
        unlocking_script: Script::default(),
        sequence: u32::MAX,
    };
    let transaction =
        Transaction { version: 1, inputs: vec![input], outputs: vec![output(1)], lock_time: 0 };
    ExtendedTransaction::new(transaction, vec![output(2)]).unwrap()
}

fn txid() -> Txid {
    transaction().transaction().txid()
}

/// What a broadcaster of this dialect says when it is sent a transaction and answers so.
async fn sent(dialect: Dialect, status: u16, body: Value) -> Result<Answer, BroadcasterError> {
    let (url, _requests) = serve(status, "", body.to_string().into_bytes()).await;
    Broadcaster::new(dialect, client(), url).send(&transaction()).await
}

async fn word(dialect: Dialect, status: u16, body: Value) -> Word {
    sent(dialect, status, body).await.unwrap().word
}

#[tokio::test]
async fn arcade_is_asked_and_understood() {
    let body = json!({ "txid": txid(), "status": 202, "txStatus": "RECEIVED" });
    let (url, mut requests) = serve(202, "", body.to_string().into_bytes()).await;
    let callback = Callback {
        url: Some("https://shop.example/network/callback".to_owned()),
        token: SecretString::from("token"),
    };
    let broadcaster = Broadcaster::new(Dialect::Arcade, client(), url)
        .with_api_key(SecretString::from("key"))
        .with_callback(callback);
    let answer = broadcaster.send(&transaction()).await.unwrap();
    assert_eq!(answer, Answer { word: Word::Open, path: None });
    let request = requests.recv().await.unwrap();
    for part in [
        "POST /tx HTTP/1.1\r\n",
        "content-type: application/octet-stream\r\n",
        "x-callbackurl: https://shop.example/network/callback\r\n",
        "x-callbacktoken: token\r\n",
        "x-fullstatusupdates: true\r\n",
        "authorization: Bearer key\r\n",
    ] {
        assert!(request.contains(part), "{part}: {request}");
    }
    broadcaster.status(&txid()).await.unwrap();
    assert!(requests.recv().await.unwrap().starts_with(&format!("GET /tx/{} ", txid())));

    // Its verdicts have the status 400, and the code in the body.
    let refused = |status: u16| {
        json!({
            "error": "transaction failed validation", "reason": "script evaluation failed",
            "txid": txid(), "status": status, "title": "Malformed transaction",
            "detail": "Transaction unlocking scripts are invalid", "type": "about:blank",
        })
    };
    let reason = "script evaluation failed".to_owned();
    assert_eq!(
        word(Dialect::Arcade, 400, refused(461)).await,
        Word::Refused { code: Some(461), reason }
    );
    assert_eq!(word(Dialect::Arcade, 400, refused(476)).await, Word::NotYet);
    assert_eq!(word(Dialect::Arcade, 400, refused(460)).await, Word::InputsUnknown { code: 460 });
    let unreadable = json!({ "error": "failed to parse transaction" });
    let reason = "failed to parse transaction".to_owned();
    assert_eq!(word(Dialect::Arcade, 400, unreadable).await, Word::Refused { code: None, reason });
    let unclassified = json!({ "error": "transaction failed validation", "reason": "who knows" });
    let reason = "who knows".to_owned();
    assert_eq!(word(Dialect::Arcade, 400, unclassified).await, Word::Rejected { reason });
    // What is wrong with the request says nothing about the transaction.
    let body = json!({ "error": "invalid callback url: it is private" });
    let error = sent(Dialect::Arcade, 400, body).await.unwrap_err();
    assert!(matches!(error, BroadcasterError::Nonsense(_)), "{error}");
}

#[tokio::test]
async fn arc_is_asked_and_understood() {
    let body = json!({
        "blockHash": "", "blockHeight": 0, "competingTxs": null, "extraInfo": "", "merklePath": "",
        "status": 200, "timestamp": "2023-03-09T12:03:48.382910514Z", "title": "OK",
        "txStatus": "SEEN_ON_NETWORK", "txid": txid(),
    });
    let (url, mut requests) = serve(200, "", body.to_string().into_bytes()).await;
    let broadcaster = Broadcaster::new(Dialect::Arc, client(), url);
    assert_eq!(broadcaster.send(&transaction()).await.unwrap().word, Word::Taken);
    assert!(requests.recv().await.unwrap().starts_with("POST /v1/tx HTTP/1.1\r\n"));

    // Its verdicts have the code as the status.
    let refused = |code: u16| {
        json!({
            "type": "about:blank", "title": "Fee too low", "status": code,
            "detail": "Fees are insufficient", "instance": null, "txid": txid(),
            "extraInfo": "arc error 465: minimum expected fee: 22, actual fee: 1",
        })
    };
    let reason = "arc error 465: minimum expected fee: 22, actual fee: 1".to_owned();
    assert_eq!(
        word(Dialect::Arc, 465, refused(465)).await,
        Word::Refused { code: Some(465), reason }
    );
    let rival = Word::Rival { spenders: Vec::new(), is_refused: true };
    assert_eq!(word(Dialect::Arc, 466, refused(466)).await, rival);
    // It may have a transaction of which it says this.
    let doubted = json!({ "txid": txid(), "txStatus": "DOUBLE_SPEND_ATTEMPTED", "status": 200 });
    let rival = Word::Rival { spenders: Vec::new(), is_refused: false };
    assert_eq!(word(Dialect::Arc, 200, doubted).await, rival);
    // A generic refusal is no verdict.
    let generic = json!({ "title": "Bad request", "status": 400, "detail": "it cannot be read" });
    let error = sent(Dialect::Arc, 400, generic).await.unwrap_err();
    assert!(matches!(error, BroadcasterError::Nonsense(_)), "{error}");
}

#[tokio::test]
async fn no_record_proves_nothing_and_a_missing_route_is_a_fault() {
    let (url, _requests) = serve(404, "", br#"{"error":"transaction not found"}"#.to_vec()).await;
    let broadcaster = Broadcaster::new(Dialect::Arcade, client(), url);
    assert_eq!(broadcaster.status(&txid()).await.unwrap().word, Word::Unknown);
    assert!(matches!(broadcaster.send(&transaction()).await, Err(BroadcasterError::Nonsense(_))));
}

#[tokio::test]
async fn conditions_are_told_apart() {
    for status in [401, 403] {
        let error = sent(Dialect::Arc, status, Value::Null).await.unwrap_err();
        assert_eq!(error, BroadcasterError::Unauthorized(status));
    }
    for status in [408, 409, 413, 429, 500, 502, 503, 504] {
        let error = sent(Dialect::Arcade, status, json!({ "status": 461 })).await.unwrap_err();
        assert_eq!(error, BroadcasterError::Busy { status, retry_after: None });
    }
    for (asked, expected) in [(7, 7), (86_400, 3_600)] {
        let header = format!("retry-after: {asked}\r\n");
        let (url, _requests) = serve(503, &header, Vec::new()).await;
        let retry_after = Some(Duration::from_secs(expected));
        assert_eq!(
            Broadcaster::new(Dialect::Arc, client(), url).send(&transaction()).await,
            Err(BroadcasterError::Busy { status: 503, retry_after })
        );
    }
    let broadcaster = Broadcaster::new(Dialect::Arc, client(), "http://127.0.0.1:9/?secret");
    let error = broadcaster.send(&transaction()).await.unwrap_err();
    assert!(matches!(error, BroadcasterError::Unreachable(_)), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[tokio::test]
async fn a_condition_needs_no_body() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        for status in [401, 403, 429, 503] {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.read_buf(&mut Vec::new()).await.unwrap();
            // The rest of the body does not come.
            let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 100\r\n\r\nno");
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let broadcaster = Broadcaster::new(Dialect::Arcade, client(), url);
    for expected in [
        BroadcasterError::Unauthorized(401),
        BroadcasterError::Unauthorized(403),
        BroadcasterError::Busy { status: 429, retry_after: None },
        BroadcasterError::Busy { status: 503, retry_after: None },
    ] {
        assert_eq!(broadcaster.status(&txid()).await, Err(expected));
    }
}

#[tokio::test]
async fn no_secret_is_shown() {
    let secrets = ["an-api-key", "a-callback-token", "part-of-the-url", "key-of-the-callback"];
    let said = secrets.join(" or ");
    let nonsense = json!({ "txStatus": said.clone(), "status": said.clone() });
    let refused = json!({ "status": 461, "txid": txid(), "extraInfo": said.clone() });
    let rejected = json!({ "txStatus": "REJECTED", "txid": txid(), "extraInfo": said.clone() });
    for (status, body) in
        [(200, json!(said)), (200, nonsense), (302, json!(said)), (461, refused), (200, rejected)]
    {
        let (url, _requests) = serve(status, "", body.to_string().into_bytes()).await;
        let callback = Callback {
            url: Some("https://shop.example/key-of-the-callback".to_owned()),
            token: SecretString::from("a-callback-token"),
        };
        let broadcaster =
            Broadcaster::new(Dialect::Arc, client(), format!("{url}/part-of-the-url"))
                .with_api_key(SecretString::from("an-api-key"))
                .with_callback(callback.clone());
        let answer = broadcaster.send(&transaction()).await;
        let shown = format!("{answer:?} {broadcaster:?} {callback:?}");
        assert!(shown.contains("*** or ***"), "{shown}");
        for secret in secrets {
            assert!(!shown.contains(secret), "{shown}");
        }
        let host = url.strip_prefix("http://").unwrap();
        assert!(
            shown.contains(&format!("{host:?}")) && shown.contains("\"shop.example\""),
            "{shown}"
        );
    }
}

#[tokio::test]
async fn words_in_errors_are_short() {
    let long = "x".repeat(1_000);
    let (url, _requests) = serve(200, "", json!({ "status": long }).to_string().into_bytes()).await;
    let error = Broadcaster::new(Dialect::Arc, client(), url).status(&txid()).await.unwrap_err();
    assert!(error.to_string().len() < 500, "{error}");
}

#[tokio::test]
async fn nonsense_is_no_answer() {
    let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
    for (status, body) in [
        (200, "not JSON".to_owned()),
        (200, "{}".to_owned()),
        (200, deep),
        (200, json!({ "txStatus": "SEEN_ON_NETWORK" }).to_string()),
        (200, json!({ "txStatus": "SEEN_ON_NETWORK", "txid": "00".repeat(32) }).to_string()),
        (400, json!({ "status": 461, "txid": "00".repeat(32) }).to_string()),
        (302, json!({ "txStatus": "SEEN_ON_NETWORK", "txid": txid() }).to_string()),
    ] {
        let (url, _requests) = serve(status, "", body.clone().into_bytes()).await;
        let answer = Broadcaster::new(Dialect::Arc, client(), url).send(&transaction()).await;
        assert!(matches!(answer, Err(BroadcasterError::Nonsense(_))), "{body}: {answer:?}");
    }
    let (url, _requests) = serve(200, "", vec![b' '; (16 << 20) + 1]).await;
    let answer = Broadcaster::new(Dialect::Arc, client(), url).status(&txid()).await;
    assert!(matches!(answer, Err(BroadcasterError::Nonsense(_))), "{answer:?}");
}

#[tokio::test]
async fn a_fee_rate_is_told_for_1000_bytes() {
    for (satoshis, bytes, expected) in
        [(100_u64, 1000_u64, Some(100)), (1, 20, Some(50)), (5, 100_000, Some(1)), (1, 0, None)]
    {
        let fee = json!({ "satoshis": satoshis, "bytes": bytes });
        let body = json!({ "policy": { "miningFee": fee }, "timestamp": "2026-08-07T12:00:00Z" });
        let (url, mut requests) = serve(200, "", body.to_string().into_bytes()).await;
        let rate = Broadcaster::new(Dialect::Arc, client(), url).fee_rate().await;
        assert_eq!(rate.ok(), expected);
        assert!(requests.recv().await.unwrap().starts_with("GET /v1/policy "));
    }
}

#[tokio::test]
async fn a_broadcaster_tells_of_itself() {
    for (dialect, status, body, expected) in [
        (
            Dialect::Arcade,
            200,
            json!({ "healthy": true, "blockHeight": 958_779 }),
            Ok((Some(958_779), Some(true))),
        ),
        (Dialect::Arcade, 200, json!({ "healthy": true }), Ok((None, Some(true)))),
        (Dialect::Arcade, 404, json!({ "error": "not found" }), Ok((None, None))),
        (Dialect::Arcade, 200, json!({ "blockHeight": "high" }), Err(())),
        (
            Dialect::Arc,
            200,
            json!({ "healthy": false, "reason": "no db connection" }),
            Ok((None, Some(false))),
        ),
    ] {
        let date = "date: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
        let (url, mut requests) = serve(status, date, body.to_string().into_bytes()).await;
        let health = Broadcaster::new(dialect, client(), url).health().await;
        let clock = health.as_ref().ok().and_then(|health| health.date.clone());
        assert_eq!(clock.is_some(), expected.is_ok(), "{body}");
        let health = health.map(|health| (health.height, health.healthy));
        assert_eq!(health.map_err(drop), expected, "{body}");
        let route = if dialect == Dialect::Arcade { "GET /health " } else { "GET /v1/health " };
        assert!(requests.recv().await.unwrap().starts_with(route));
    }
}

#[tokio::test]
async fn a_hint_makes_the_next_question_sooner() {
    let body = json!({ "txid": txid(), "status": 202, "txStatus": "RECEIVED" });
    let (url, mut requests) = serve(202, "", body.to_string().into_bytes()).await;
    let arcade = Broadcaster::new(Dialect::Arcade, client(), url);
    let set = BroadcasterSet::new(vec![arcade], 1).unwrap();
    let payment = transaction();
    let hints = async {
        // The next question would come after a second.
        for method in ["POST", "GET", "GET"] {
            assert!(requests.recv().await.unwrap().starts_with(method));
        }
        sleep(Duration::from_millis(100)).await;
        let soon = Duration::from_millis(300);
        set.hint(&Txid::from_bytes([7; 32]));
        assert!(timeout(soon, requests.recv()).await.is_err());
        set.hint(&txid());
        assert!(timeout(soon, requests.recv()).await.is_ok());
    };
    let (told, ()) =
        tokio::join!(set.send(alone(&payment), Duration::from_secs(2), Urgency::Now), hints);
    assert_eq!(told.standing, Standing::Open);
}

fn alone(transaction: &ExtendedTransaction) -> Submission<'_> {
    Submission { ancestors: &[], transaction, newest_block: None }
}

/// How long many questions about a transaction take at most of which one of two broadcasters says this
/// and the other one says nothing, without the slowest quarter. The last answer is told, too.
async fn times(body: Value, holds: bool) -> (Duration, Told) {
    let (url, _requests) = serve(200, "", body.to_string().into_bytes()).await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent_url = format!("http://{}", silent.local_addr().unwrap());
    let arcade =
        |url| Broadcaster::new(Dialect::Arcade, client(), url).with_requests_per_second(1_000);
    let set = BroadcasterSet::new(vec![arcade(silent_url), arcade(url)], 1).unwrap();
    let (time, txid) = (Duration::from_secs(3), txid());
    let asked = (0..32).map(|_| async {
        let begun = Instant::now();
        let told = set.ask(&txid, time, Urgency::Now, |_| holds).await;
        (begun.elapsed(), told)
    });
    let mut asked = join_all(asked).await;
    asked.sort_by_key(|(time, _)| *time);
    asked.remove(24)
}

#[tokio::test]
async fn a_question_does_not_wait_for_the_slowest() {
    let soon = Duration::from_millis(400)..Duration::from_millis(1_500);
    let branch = MerkleTree::of(&[txid(), Txid::from_bytes([9; 32])]).branch(0).unwrap();
    let bump = Bump::of(7, &[(txid(), branch)]).unwrap();
    let mined = json!({
        "txid": txid(), "txStatus": "MINED", "merklePath": hex::encode(bump.to_bytes()),
    });
    let (time, told) = times(mined.clone(), true).await;
    assert!(time < soon.end, "{time:?}");
    assert_eq!(told.paths.len(), 1);
    // A path that does not hold, and an open word, say nothing.
    let open = json!({ "txid": txid(), "txStatus": "RECEIVED" });
    for body in [mined, open] {
        let (time, _) = times(body, false).await;
        assert!(time >= Duration::from_secs(3), "{time:?}");
    }
    let seen = json!({ "txid": txid(), "txStatus": "SEEN_ON_NETWORK" });
    let (time, told) = times(seen, false).await;
    assert!(soon.contains(&time), "{time:?}");
    assert_eq!(told.standing, Standing::Taken);
}

#[tokio::test]
async fn one_that_does_not_answer_is_asked_seldom_and_gets_a_payment_nevertheless() {
    let arcade = Broadcaster::new(Dialect::Arcade, client(), "http://127.0.0.1:9");
    let set = BroadcasterSet::new(vec![arcade], 1).unwrap();
    let second = Duration::from_secs(1);
    for _ in 0..20 {
        set.ask(&txid(), second, Urgency::Now, |_| true).await;
    }
    let asked = |set: &BroadcasterSet| set.reports().next().unwrap().outcomes.iter().sum::<u64>();
    assert_eq!(asked(&set), 2);
    let told = set.send(alone(&transaction()), second, Urgency::Later).await;
    assert_eq!((asked(&set), told.standing), (2, Standing::Open));
    set.send(alone(&transaction()), second, Urgency::Now).await;
    assert!(asked(&set) > 2);
}

#[test]
fn no_more_can_see_a_transaction_than_are_named() {
    let set = |named, seen_by| {
        let arc = Broadcaster::new(Dialect::Arc, client(), "http://127.0.0.1:9");
        BroadcasterSet::new(vec![arc; named], seen_by)
    };
    for (named, seen_by) in [(0, 0), (0, 1), (2, 0), (2, 3)] {
        assert_eq!(set(named, seen_by).err(), Some(SeenByError { seen_by, named }));
    }
    assert!(set(2, 1).is_ok() && set(2, 2).is_ok());
}

/// A broadcaster that tells events by a token.
fn telling(dialect: Dialect, url: String) -> Broadcaster {
    let callback = Callback { url: None, token: SecretString::from("to ken") };
    Broadcaster::new(dialect, client(), url).with_callback(callback)
}

#[tokio::test]
async fn a_stream_of_events_is_resumed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, mut requests) = unbounded_channel();
    let event = |id| format!("id: {id}\nevent: status\ndata: {{\"txid\":\"{}\"}}\n\n", txid());
    let answers = [event(17), event(18), String::new()];
    tokio::spawn(async move {
        let mut open = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                stream.read_buf(&mut request).await.unwrap();
            }
            sender.send(String::from_utf8(request).unwrap()).unwrap();
            let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
            stream.write_all(format!("{head}{answer}").as_bytes()).await.unwrap();
            // The last one stays open, and says nothing.
            open.extend(answer.is_empty().then_some(stream));
        }
        std::future::pending::<()>().await;
    });
    assert!(EventStream::of(&telling(Dialect::Arc, url.clone())).is_none());
    assert!(EventStream::of(&Broadcaster::new(Dialect::Arcade, client(), url.clone())).is_none());
    let mut events = EventStream::of(&telling(Dialect::Arcade, url)).unwrap();
    assert!(!events.is_live());
    // Nobody knows what happened before the first connection.
    assert_eq!(events.next().await, ReasonToAsk::Missed);
    assert!(events.is_live());
    for _ in 0..2 {
        assert_eq!(events.next().await, ReasonToAsk::Changed(txid()));
    }
    // A question that is given up loses nothing.
    assert!(timeout(Duration::from_secs(2), events.next()).await.is_err());
    for last_id in [None, Some("17"), Some("18")] {
        let request = requests.recv().await.unwrap();
        assert!(request.starts_with("GET /events?callbackToken=to+ken "), "{request}");
        assert!(request.contains("x-fullstatusupdates: true"));
        let sent = request.split_once("last-event-id: ").map(|(_, rest)| &rest[..2]);
        assert_eq!(sent, last_id);
    }
    pause();
    let begun = Instant::now();
    assert_eq!(events.next().await, ReasonToAsk::Missed);
    assert!((55..=61).contains(&begun.elapsed().as_secs()) && !events.is_live());
}
