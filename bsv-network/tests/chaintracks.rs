//! Headers from an HTTP service that answers as it likes.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bsv_network::bsv_tx::{BlockHeader, Network};
use bsv_network::headers::{
    Behind, CatchUpError, CaughtUp, Chaintracks, Checkpoint, HeaderFile, HeaderFollower,
    HeaderSource, Outcome, SourceError, SourceNames, SourceReport, SourceState,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};

use self::client::client;
use self::regtest::regtest;

#[path = "services/client.rs"]
mod client;
#[path = "headers/regtest.rs"]
mod regtest;

/// The headers of blocks 900,000 to 909,999.
const HEADERS: &[u8] = include_bytes!("headers/main-900000-909999.headers");
const WINDOW: usize = 147 * BlockHeader::LEN;
const FIRST: u32 = 900_000;
const TRUSTED: u32 = FIRST + 146;
/// After the last header.
const NOW: u64 = 1_759_000_000;

/// A service that answers each request with a status and a body, made of the height and the count
/// that it asks for. Answers its URL.
async fn serve(answer: impl Fn(u32, usize) -> (u16, Vec<u8>) + Send + 'static) -> String {
    serve_with_tip(None, answer).await
}

/// Such a service that claims a height.
async fn serve_with_tip(
    tip: Option<u32>,
    answer: impl Fn(u32, usize) -> (u16, Vec<u8>) + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/chaintracks/v2", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                stream.read_buf(&mut request).await.unwrap();
            }
            let request = String::from_utf8(request).unwrap();
            let path = request.split(' ').nth(1).unwrap();
            let (status, height, body) = match path
                .strip_prefix("/chaintracks/v2/headers.bin?height=")
            {
                Some(query) => {
                    let (height, count) = query.split_once("&count=").unwrap();
                    let (status, body) = answer(height.parse().unwrap(), count.parse().unwrap());
                    (status, None, body)
                }
                None => {
                    assert_eq!(path, "/chaintracks/v2/tip.bin");
                    (tip.map_or(404, |_| 200), tip, Vec::new())
                }
            };
            let height = height.map_or(String::new(), |it| format!("x-block-height: {it}\r\n"));
            let length = body.len();
            let head = format!(
                "HTTP/1.1 {status} X\r\n{height}content-length: {length}\r\nconnection: close\r\n\r\n"
            );
            stream.write_all(&[head.as_bytes(), &body].concat()).await.unwrap();
        }
    });
    url
}

fn headers(height: u32, count: usize) -> Vec<u8> {
    let start = (height - FIRST) as usize * BlockHeader::LEN;
    HEADERS
        .get(start..)
        .unwrap_or_default()
        .iter()
        .take(count * BlockHeader::LEN)
        .copied()
        .collect()
}

fn source(url: String) -> HeaderSource {
    HeaderSource::Chaintracks(Chaintracks::new(client(), url))
}

fn open(directory: &tempfile::TempDir) -> Arc<HeaderFile> {
    let checkpoint =
        Checkpoint::from_headers(Network::Livenet, TRUSTED, &HEADERS[..WINDOW], 0).unwrap();
    let path = directory.path().join("headers");
    Arc::new(HeaderFile::open(&path, Network::Livenet, &checkpoint).unwrap())
}

#[tokio::test]
async fn a_service_is_asked_until_it_has_no_further_headers() {
    let directory = tempfile::tempdir().unwrap();
    let file = open(&directory);
    // The service lags behind at first.
    let short = |height, count: usize| {
        let known = 905_000_u32.saturating_sub(height) as usize;
        (200, headers(height, count.min(known)))
    };
    for (url, last) in [
        (serve(short).await, 904_999),
        (serve(|height, count| (200, headers(height, count))).await, 909_999),
    ] {
        let valid = (last - file.chain().tip().height) as usize;
        let mut source = source(url);
        let caught_up = source.catch_up(&file, || NOW).await.unwrap();
        let height = Some(last);
        assert_eq!(caught_up, CaughtUp { valid, height, ..CaughtUp::default() });
        assert_eq!(file.chain().tip().height, last);
        assert_eq!(source.catch_up(&file, || NOW).await.unwrap(), CaughtUp::default());
    }
}

#[tokio::test]
async fn a_service_that_lacks_the_tip_is_asked_where_its_chain_parts() {
    let directory = tempfile::tempdir().unwrap();
    let file = open(&directory);
    let upto = |last: u32| {
        serve(move |height, count: usize| {
            let known = (last + 1).saturating_sub(height) as usize;
            (200, headers(height, count.min(known)))
        })
    };
    source(upto(903_000).await).catch_up(&file, || NOW).await.unwrap();
    // What it gives is known, so that nothing changes.
    let caught_up = source(upto(902_500).await).catch_up(&file, || NOW).await.unwrap();
    assert!(caught_up.valid > 0);
    assert_eq!((caught_up.left, file.chain().tip().height), (0, 903_000));
}

#[tokio::test]
async fn nonsense_is_told_with_what_was_answered_and_changes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let file = open(&directory);
    type Answer = fn(u32, usize) -> (u16, Vec<u8>);
    let answers: [(Answer, &str); 5] = [
        (
            |_, _| (400, b"no \x1b[1m height".to_vec()),
            r"status 400 Bad Request: no \u{1b}[1m height",
        ),
        (|height, count| (200, headers(height, count)[1..].to_vec()), "159999 bytes"),
        (|height, count| (200, headers(height, count + 1)), "more headers than it was asked for"),
        (|height, count| (200, headers(height + 1, count)), "follow no block that is known"),
        (|_, _| (404, Vec::new()), "status 404"),
    ];
    for (answer, expected) in answers {
        let url = serve(answer).await;
        let error = source(url.clone()).catch_up(&file, || NOW).await.unwrap_err();
        let CatchUpError::Source(SourceError::Nonsense { name, reason }) = &error else {
            panic!("{error}")
        };
        // A path may hold a key.
        assert!(url.contains(name) && !name.contains("chaintracks"), "{name}");
        assert!(reason.contains(expected), "{reason}");
        assert_eq!(file.chain().tip().height, TRUSTED);
    }
}

#[tokio::test]
async fn a_header_that_is_not_valid_is_refused_after_those_that_are() {
    let directory = tempfile::tempdir().unwrap();
    let file = open(&directory);
    let url = serve(|height, count| {
        let mut bytes = headers(height, count);
        bytes[50 * BlockHeader::LEN + 70] ^= 1;
        (200, bytes)
    })
    .await;
    let refused = source(url).catch_up(&file, || NOW).await;
    assert!(matches!(refused, Err(CatchUpError::Refused { .. })), "{refused:?}");
    assert_eq!(file.chain().tip().height, TRUSTED + 49);
}

#[tokio::test]
async fn a_service_that_does_not_answer_is_unreachable() {
    let directory = tempfile::tempdir().unwrap();
    let file = open(&directory);
    let mut source = source("http://127.0.0.1:1/chaintracks/v2".to_owned());
    let error = source.catch_up(&file, || NOW).await.unwrap_err();
    assert!(matches!(error, CatchUpError::Source(SourceError::Unreachable { .. })), "{error}");
    assert!(error.to_string().contains("Connection refused"), "{error}");
}

#[tokio::test]
async fn a_service_that_is_ill_or_busy_is_asked_later() {
    let directory = tempfile::tempdir().unwrap();
    let file = open(&directory);
    for status in [408, 429, 500, 503] {
        let url = serve(move |_, _| (status, b"later".to_vec())).await;
        let error = source(url).catch_up(&file, || NOW).await.unwrap_err();
        let CatchUpError::Source(SourceError::Unreachable { reason, .. }) = &error else {
            panic!("{error}")
        };
        assert!(reason.starts_with(&format!("status {status}")), "{reason}");
        assert!(reason.ends_with(": later"), "{reason}");
    }
}

/// A service that asks to be left alone for some seconds. Answers its URL, and how many requests it
/// has had.
async fn busy(seconds: u32) -> (String, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/chaintracks/v2", listener.local_addr().unwrap());
    let requests = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&requests);
    let answer = format!(
        "HTTP/1.1 503 X\r\nretry-after: {seconds}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Ordering::Relaxed);
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                stream.read_buf(&mut request).await.unwrap();
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    (url, requests)
}

#[tokio::test]
async fn a_service_says_how_long_it_wants_to_be_left_alone() {
    for (seconds, expected) in [(7, 7), (7_200, 3_600)] {
        let (url, _) = busy(seconds).await;
        let error = source(url).claimed_height().await.unwrap_err();
        let SourceError::Unreachable { retry_after, .. } = error else { panic!("{error}") };
        assert_eq!(retry_after, Some(Duration::from_secs(expected)));
    }
}

#[tokio::test]
async fn a_service_is_left_alone_for_as_long_as_it_asks_for() {
    for (seconds, expected) in [(0, 2), (60, 1)] {
        let directory = tempfile::tempdir().unwrap();
        let (url, requests) = busy(seconds).await;
        let names = SourceNames { urls: vec![url], peers: Vec::new() };
        let file = open(&directory);
        let follower = HeaderFollower::new(file, Network::Livenet, names, client());
        // Without a wish, a service is asked again after a second.
        let followed = timeout(Duration::from_millis(1_900), Arc::new(follower).follow()).await;
        assert!(followed.is_err());
        assert_eq!(requests.load(Ordering::Relaxed), expected);
    }
}

#[tokio::test]
async fn a_service_claims_the_height_of_its_tip() {
    let claimed = async |tip, status| {
        let url = serve_with_tip(tip, move |_, _| (status, Vec::new())).await;
        source(url).claimed_height().await.unwrap()
    };
    assert_eq!(claimed(Some(909_999), 200).await, 909_999);
    assert_eq!(claimed(None, 200).await, 0);
}

#[tokio::test]
async fn a_branch_that_begins_deep_is_followed() {
    let directory = tempfile::tempdir().unwrap();
    let (path, network) = (directory.path().join("headers"), Network::Regtest);
    let file = Arc::new(HeaderFile::open(&path, network, &Checkpoint::of(network)).unwrap());
    let genesis = file.chain().header_at(0).unwrap();
    // The locator leads to a block far below the fork, so that many known headers come first.
    let common = regtest(genesis, 8_000, 1);
    file.extend(&common, NOW).unwrap();
    file.extend(&regtest(common[7_999], 8_500, 2), NOW).unwrap();
    let branch = regtest(common[7_999], 9_000, 3);
    let branch = [vec![genesis], common, branch].concat();
    let tip = branch[17_000].block_hash();
    let served = move |height: u32, count| {
        let headers = branch.iter().skip(height as usize).take(count);
        (200, headers.flat_map(BlockHeader::to_bytes).collect())
    };
    let caught_up = source(serve(served).await).catch_up(&file, || NOW).await.unwrap();
    assert_eq!((caught_up.left, caught_up.height), (8_500, Some(17_000)));
    assert_eq!(file.chain().tip().hash, tip);
}

#[tokio::test]
async fn a_header_ahead_of_the_clock_is_asked_for_again() {
    let directory = tempfile::tempdir().unwrap();
    let file = open(&directory);
    let time_of = |height: u32| {
        let header = headers(height, 1);
        u64::from(BlockHeader::from_bytes(&header).unwrap().time)
    };
    let now = time_of(901_001) - 7_201;
    let mut source = source(serve(|height, count| (200, headers(height, count))).await);
    let caught_up = source.catch_up(&file, || now).await.unwrap();
    assert!(caught_up.is_ahead && file.chain().tip().height < 901_001);
    assert!(!source.catch_up(&file, || NOW).await.unwrap().is_ahead);
    assert_eq!(file.chain().tip().height, 909_999);
}

#[tokio::test]
async fn headers_are_behind_while_those_of_a_source_are_ahead_of_the_clock() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs() as u32;
    // How far the last header is ahead of the clock, and whether it tells that the clock is slow.
    for (seconds, is_awaited) in [(7_300, true), (20_000, false), (60, false)] {
        let directory = tempfile::tempdir().unwrap();
        let (path, network) = (directory.path().join("headers"), Network::Regtest);
        let file = Arc::new(HeaderFile::open(&path, network, &Checkpoint::of(network)).unwrap());
        let genesis = file.chain().header_at(0).unwrap();
        let mut branch = [vec![genesis], regtest(genesis, 3, 1)].concat();
        branch[3].time = now + seconds;
        while !branch[3].has_proof_of_work() {
            branch[3].nonce += 1;
        }
        let url = serve(move |height: u32, count| {
            let headers = branch.iter().skip(height as usize).take(count);
            (200, headers.flat_map(BlockHeader::to_bytes).collect())
        });
        let names = SourceNames { urls: vec![url.await], peers: Vec::new() };
        let follower = HeaderFollower::new(file, network, names, client());
        let (_, caught_up) = follower.catch_up(Duration::from_secs(30)).await.remove(0);
        assert_eq!(caught_up.unwrap().is_ahead, is_awaited);
        assert_eq!(follower.behind(), is_awaited.then_some(Behind::SlowClock));
    }
}

#[tokio::test]
async fn a_source_that_hangs_or_lies_does_not_hold_up_the_others() {
    let directory = tempfile::tempdir().unwrap();
    let file = open(&directory);
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = silent.local_addr().unwrap();
    let liar = serve(|_, _| (200, b"nonsense".to_vec())).await;
    let first = serve(|height, count| (200, headers(height, count.min(700)))).await;
    let second = serve(|height, count| (200, headers(height, count))).await;
    let urls = vec![format!("http://{silent}"), liar, first, second];
    let names = SourceNames { urls, peers: vec![silent.to_string()] };
    let follower = HeaderFollower::new(Arc::clone(&file), Network::Livenet, names, client());
    let follower = Arc::new(follower);
    let reached = async {
        let is_reached = || {
            let live = |it: &SourceReport| it.state == SourceState::Live;
            follower.behind() == Some(Behind::OldTip)
                && file.chain().tip().height == 909_999
                && follower.sources().filter(live).count() == 2
        };
        while !is_reached() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::select! {
        () = follower.follow() => {}
        () = reached => {}
    }
    let sources: Vec<_> = follower.sources().collect();
    let states: Vec<_> = sources.iter().map(|source| source.state).collect();
    let [live, wrong, new] = [SourceState::Live, SourceState::Wrong, SourceState::New];
    assert_eq!(states, [new, wrong, live, live, new]);
    assert!(sources[1].outcomes[Outcome::Nonsense as usize] > 0);
    assert_eq!(sources[4].host, silent.to_string());
    assert_eq!(file.chain().tip().height, 909_999);
}
