//! Nodes that cannot be used, and stand-ins whose answers break off or never end.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bsv_network::{NodeCredentials, NodeError, NodeRpc, NodeSettings};
use bsv_tests::Node;
use bsv_tx::Transaction;

use crate::node::setup::{Payee, code_of, place_of};

#[tokio::test]
async fn a_nodes_policy_is_that_of_its_settings() {
    let policy = Node::start().rpc().policy().await.unwrap();
    assert_eq!(policy.mining_fee_rate, 1);
    assert_eq!((policy.max_transaction_size, policy.max_data_size), (10_000_000, u32::MAX.into()));
    let rules = policy.consolidation;
    let rules = (rules.min_factor, rules.max_script_size, rules.min_confirmations);
    assert_eq!(rules, (20, 150, 6));
    let node = Node::start_with(&[
        "minminingtxfee=0.00000500",
        "datacarrier=0",
        "minconsolidationfactor=30",
        "maxconsolidationinputscriptsize=120",
        "minconfconsolidationinput=7",
    ]);
    let policy = node.rpc().policy().await.unwrap();
    assert_eq!((policy.mining_fee_rate, policy.max_data_size), (500, 0));
    let rules = policy.consolidation;
    let rules = (rules.min_factor, rules.max_script_size, rules.min_confirmations);
    assert_eq!(rules, (30, 120, 7));
}

#[tokio::test]
async fn the_errors_of_an_unusable_node_and_of_a_refusing_node_differ() {
    let mut node = Node::start();
    let tip = node.mine(1)[0];
    let stranger = NodeRpc::new(NodeSettings {
        credentials: NodeCredentials::password(&node.user, "wrong"),
        ..node.settings()
    });
    let error = stranger.tip().await.unwrap_err();
    assert_eq!(error, NodeError::Unauthorized);
    assert!(error.is_unavailable());
    let error = node.rpc().call("nosuchmethod", &[]).await.unwrap_err();
    assert_eq!(code_of(&error), -32601);

    node.stop();
    let error = node.rpc().tip().await.unwrap_err();
    assert!(error.is_unavailable());
    let NodeError::Unreachable { address, .. } = &error else { panic!("{error}") };
    assert_eq!(*address, format!("{}:{}", node.host, node.port));
    node.restart();
    assert_eq!(place_of(&node.rpc().tip().await.unwrap()), (1, tip));
    node.restart();
    assert_eq!(place_of(&node.rpc().tip().await.unwrap()), (1, tip));
}

#[tokio::test]
async fn more_calls_at_once_than_a_node_queues() {
    let node = Node::start();
    let calls: Vec<_> = (0..300)
        .map(|_| {
            let rpc = node.rpc().clone();
            tokio::spawn(async move { rpc.tip().await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().height, 0);
    }
}

#[tokio::test]
async fn a_cookie_is_read_again_after_the_node_has_written_another() {
    let mut node = Node::start_with(&["rpcpassword="]);
    let copy = tempfile::NamedTempFile::new().unwrap();
    let credentials = NodeCredentials::CookieFile(copy.path().to_owned());
    let rpc = NodeRpc::new(NodeSettings { credentials, ..node.settings() });
    let copy_cookie = |node: &Node, end: &str| {
        let cookie = std::fs::read_to_string(node.cookie_file()).unwrap();
        std::fs::write(copy.path(), format!("{}{end}", cookie.trim_end())).unwrap();
    };
    // An editor ends the file with a line feed.
    copy_cookie(&node, "\n");
    assert_eq!(rpc.tip().await.unwrap().height, 0);
    node.restart();
    assert_eq!(rpc.tip().await.unwrap_err(), NodeError::Unauthorized);
    copy_cookie(&node, "");
    let at_once = std::iter::repeat_with(|| rpc.tip()).take(5);
    for tip in futures_util::future::join_all(at_once).await {
        assert_eq!(tip.unwrap().height, 0);
    }
    // What the client holds works without the file.
    std::fs::remove_file(copy.path()).unwrap();
    assert_eq!(rpc.tip().await.unwrap().height, 0);
    let stranger = NodeRpc::new(NodeSettings {
        credentials: NodeCredentials::CookieFile(copy.path().to_owned()),
        ..node.settings()
    });
    let error = stranger.tip().await.unwrap_err();
    assert!(error.is_unavailable(), "{error}");
    assert!(error.to_string().contains("cookie file"), "{error}");
}

/// A client of a stand-in for a node that calls `serve` with every connection.
pub(crate) fn client_of(serve: impl Fn(TcpStream) + Send + 'static) -> NodeRpc {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || listener.incoming().for_each(|stream| serve(stream.unwrap())));
    NodeRpc::new(NodeSettings {
        host: "127.0.0.1".to_owned(),
        port,
        credentials: NodeCredentials::password("bitcoin", "bitcoin"),
    })
}

#[tokio::test]
async fn silence_ends_with_the_time_out() {
    let rpc = client_of(|stream| drop(thread::spawn(move || (stream, thread::park()))));
    let start = Instant::now();
    let error = rpc.with_timeout(Duration::from_millis(300)).tip().await.unwrap_err();
    assert!(start.elapsed() < Duration::from_secs(3), "{:?}", start.elapsed());
    assert!(matches!(error, NodeError::Unreachable { .. }), "{error}");
}

#[tokio::test]
async fn an_answer_cut_short_is_no_answer() {
    for answer in ["", "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"result\":"] {
        let rpc = client_of(move |mut stream| {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        });
        let error = rpc.tip().await.unwrap_err();
        assert!(matches!(error, NodeError::Unreachable { .. }), "{error}");
    }
}

#[tokio::test]
async fn only_harmless_calls_are_repeated_after_a_hang_up() {
    let requests = Arc::new(AtomicUsize::new(0));
    let counter = requests.clone();
    let rpc = client_of(move |mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        counter.fetch_add(1, Ordering::SeqCst);
    });
    let payee = Payee::new();
    let nothing = Transaction { version: 1, inputs: vec![], outputs: vec![], lock_time: 0 };
    let mut total = 0;
    for (error, expected) in [
        (rpc.tip().await.unwrap_err(), 2),
        (rpc.submit_transaction(&nothing).await.unwrap_err(), 2),
        (rpc.send_to_address(&payee.address, 1).await.unwrap_err(), 1),
        (rpc.generate(1).await.unwrap_err(), 1),
        (rpc.call("getinfo", &[]).await.unwrap_err(), 1),
    ] {
        assert!(matches!(error, NodeError::Unreachable { .. }), "{error}");
        total += expected;
    }
    assert_eq!(requests.load(Ordering::SeqCst), total);
}

#[tokio::test]
async fn an_answer_that_no_node_gives_is_unexpected() {
    let http =
        |body: &str| format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    for (answer, reason) in [
        ("220 mail.example ESMTP\r\n".to_owned(), "not HTTP"),
        (http("<html>"), "HTTP status 200 OK"),
        (http(r#"{"result":{"blocks":-1},"error":null}"#), "expected u32"),
        (http(r#"{"result":null,"error":null}"#), "invalid type: null"),
        ("HTTP/1.1 302 Found\r\nlocation: /\r\ncontent-length: 0\r\n\r\n".to_owned(), "302"),
    ] {
        let rpc = client_of(move |mut stream| {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(answer.as_bytes());
        });
        let error = rpc.tip().await.unwrap_err();
        let NodeError::Unexpected { method, reason: given } = &error else { panic!("{error}") };
        assert_eq!(method, "getblockchaininfo");
        assert!(given.contains(reason), "{error}");
    }
}

#[tokio::test]
async fn an_endless_answer_is_not_read_to_the_end() {
    let rpc = client_of(|mut stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n\"");
        let spaces = [b' '; 1 << 16];
        while stream.write_all(&spaces).is_ok() {}
    });
    let error = rpc.tip().await.unwrap_err();
    assert!(matches!(error, NodeError::Unexpected { .. }), "{error}");
    assert!(error.to_string().contains("longer than"), "{error}");
}
