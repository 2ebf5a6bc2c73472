//! The messages that payers read in their channels.

use bsv_invoicing::dpp::ChannelMessage;
use bsv_tests::{Purse, Reply};
use bsv_tx::{BlockHeader, Bump, MerkleRoot, Transaction, Txid, sha256d};
use serde_json::{Value, json};

use super::counter::{COIN, Counter, check_problem};
use super::merchant::{Merchant, json_of, wait_until};

/// A payer's channel, according to the acknowledgement.
struct Channel {
    path: String,
    token: String,
}

impl Channel {
    fn of(reply: &Reply) -> Self {
        assert_eq!(reply.status, 201, "{}", reply.body);
        let channel = &json_of(reply)["peer_channel"];
        let text = |name: &str| channel[name].as_str().unwrap();
        let path = format!("{}/api/v1/channel/{}", text("path"), text("channel_id"));
        Self { path, token: text("token").to_owned() }
    }

    fn send(&self, shop: &Merchant, method: &str, rest: &str, body: &str) -> Reply {
        let authorization = format!("Bearer {}", self.token);
        let headers = [("Authorization", authorization.as_str())];
        let path = [&self.path, rest].concat();
        shop.server.payments().send(method, &path, &headers, body.as_bytes())
    }

    fn get(&self, shop: &Merchant, query: &str) -> Reply {
        let reply = self.send(shop, "GET", query, "");
        assert_eq!(reply.status, 200, "{}", reply.body);
        assert_eq!(reply.header("content-type"), Some("application/json; charset=utf-8"));
        reply
    }

    /// The sequence numbers of the messages.
    fn sequences(&self, shop: &Merchant, query: &str) -> Vec<u64> {
        let messages = json_of(&self.get(shop, query));
        let messages = messages.as_array().unwrap().iter();
        messages.map(|message| message["sequence"].as_u64().unwrap()).collect()
    }

    fn mark(&self, shop: &Merchant, rest: &str, body: &str) -> u16 {
        self.send(shop, "POST", rest, body).status
    }
}

/// A payment of a new invoice, and its channel.
fn paid(counter: &Counter) -> (String, Transaction, Channel) {
    let (id, bill) = counter.bill();
    let transaction = counter.purse.transaction_for(&bill);
    let channel = Channel::of(&bill.post(&transaction));
    let again = Channel::of(&bill.post(&transaction));
    assert_eq!((&again.path, &again.token), (&channel.path, &channel.token));
    (id, transaction, channel)
}

fn wait_until_mined(counter: &Counter, id: &str, block: &str) {
    wait_until("the proof is found", || {
        let payment = &counter.shop.payments(id)[0];
        payment["state"] == "mined" && payment["blockHash"] == block
    });
}

/// Checks that the proof leads from a transaction to the Merkle root of its block. This needs only
/// the headers of the chain.
fn check_proof(counter: &Counter, message: &ChannelMessage, txid: Txid, block: &str) {
    let envelope: Value = serde_json::from_slice(&message.payload).unwrap();
    assert_eq!([&envelope["signature"], &envelope["publicKey"]], [&Value::Null; 2]);
    assert_eq!(envelope["encoding"], "UTF-8");
    assert_eq!(envelope["mimetype"], "application/json");
    let callback: Value = serde_json::from_str(envelope["payload"].as_str().unwrap()).unwrap();
    assert_eq!(callback["callbackReason"], "merkleProof");
    assert_eq!(callback["callbackTxId"], txid.to_string());
    assert_eq!(callback["blockHash"], block);
    let header = counter.node.call("getblockheader", json!([block]));
    assert_eq!(callback["blockHeight"], header["height"]);
    let bump = Bump::from_bytes(&hex::decode(callback["merklePath"].as_str().unwrap()).unwrap());
    let bump = bump.unwrap();
    let root = header["merkleroot"].as_str().unwrap();
    assert_eq!((json!(bump.height()), &*bump.root().to_string()), (header["height"].clone(), root));
    assert_eq!(bump.txids().collect::<Vec<_>>(), [txid]);
    let proof = &callback["callbackPayload"];
    assert_eq!(proof["txOrId"], txid.to_string());
    assert_eq!((&proof["targetType"], &proof["target"]), (&json!("hash"), &json!(block)));

    let mut index = proof["index"].as_u64().unwrap();
    let mut hash = *txid.as_bytes();
    for node in proof["nodes"].as_array().unwrap() {
        let sibling = match node.as_str().unwrap() {
            "*" => hash,
            sibling => *sibling.parse::<MerkleRoot>().unwrap().as_bytes(),
        };
        let pair = if index & 1 == 0 { [hash, sibling] } else { [sibling, hash] };
        hash = sha256d(&pair.concat());
        index >>= 1;
    }
    let header = counter.node.call("getblockheader", json!([block, false]));
    let header = BlockHeader::from_bytes(&hex::decode(header.as_str().unwrap()).unwrap()).unwrap();
    assert_eq!(header.block_hash().to_string(), block);
    assert_eq!((index, MerkleRoot::from_bytes(hash)), (0, header.merkle_root));
}

#[test]
fn payers_find_the_proof_once_mined() {
    let counter = Counter::new(6);
    let shop = &counter.shop;
    let payments: Vec<_> = (0..6).map(|_| paid(&counter)).collect();
    for (_, _, channel) in &payments {
        for query in ["", "?unread=true", "?unread=false"] {
            let reply = channel.get(shop, query);
            assert_eq!((reply.body.as_str(), reply.header("etag")), ("[]", Some("\"0\"")));
        }
        let head = channel.send(shop, "HEAD", "", "");
        assert_eq!((head.status, head.header("etag")), (200, Some("\"0\"")));
        assert_eq!(channel.mark(shop, "/1", r#"{"read":true}"#), 404);
    }
    let block = counter.node.mine(1)[0].to_string();
    for (id, transaction, channel) in &payments {
        wait_until_mined(&counter, id, &block);
        let reply = channel.get(shop, "?unread=true");
        assert_eq!(reply.header("etag"), Some("\"1\""));
        assert_eq!(channel.get(shop, "").body, reply.body);
        let messages = ChannelMessage::list_from_json(reply.body.as_bytes()).unwrap();
        assert_eq!(messages.len(), 1);
        assert_eq!((messages[0].sequence, &*messages[0].content_type), (1, "application/json"));
        check_proof(&counter, &messages[0], transaction.txid(), &block);
        let head = channel.send(shop, "HEAD", "", "");
        assert_eq!((head.status, head.header("etag"), &*head.body), (200, Some("\"1\""), ""));
    }
    let restarted = counter.restart_after_kill();
    for (_, transaction, channel) in &payments {
        let messages = channel.get(&restarted.shop, "").body;
        let messages = ChannelMessage::list_from_json(messages.as_bytes()).unwrap();
        check_proof(&restarted, &messages[0], transaction.txid(), &block);
    }
}

#[test]
fn two_invoices_of_one_transaction_have_a_channel_each() {
    let counter = Counter::new(1);
    let [(id, bill), (other_id, other)] = [counter.bill(), counter.bill()];
    let outputs = [bill.outputs(), other.outputs()].concat();
    let transaction = counter.purse.spend(&[counter.purse.coin()], outputs, 200);
    let channels = [bill, other].map(|bill| Channel::of(&bill.post(&transaction)));
    assert_ne!(channels[0].path, channels[1].path);
    assert_ne!(channels[0].token, channels[1].token);
    let block = counter.node.mine(1)[0].to_string();
    for (id, channel) in [&id, &other_id].into_iter().zip(&channels) {
        wait_until_mined(&counter, id, &block);
        let messages = channel.get(&counter.shop, "").body;
        let messages = ChannelMessage::list_from_json(messages.as_bytes()).unwrap();
        check_proof(&counter, &messages[0], transaction.txid(), &block);
    }
}

#[test]
fn callers_who_may_not_read_a_channel_learn_nothing() {
    let counter = Counter::new(2);
    let shop = &counter.shop;
    let [(_, transaction, channel), (_, _, other)] = [(); 2].map(|()| paid(&counter));
    let unpaid = shop.invoice(1);
    let client = shop.server.payments();
    let body = r#"{"read":true}"#;
    for (method, rest) in [("GET", ""), ("GET", "?unread=true"), ("POST", "/1")] {
        let path = [&channel.path, rest].concat();
        for headers in [
            vec![],
            vec![("Authorization", "")],
            vec![("Authorization", "Bearer")],
            vec![("Authorization", "Basic dXNlcjpwYXNz")],
            vec![("X-Authorization", channel.token.as_str())],
        ] {
            let reply = client.send(method, &path, &headers, body.as_bytes());
            check_problem(&reply, 401, "token-missing", &path);
            assert_eq!(reply.header("www-authenticate"), Some("Bearer realm=\"channel\""));
        }
        let wrong = |token: &str| Channel { path: channel.path.clone(), token: token.to_owned() };
        let flipped = channel.token.replace(|c| c == channel.token.chars().next().unwrap(), "z");
        for token in
            [&other.token, "x", &channel.token[1..], &flipped, &transaction.txid().to_string()]
        {
            let reply = wrong(token).send(shop, method, rest, body);
            check_problem(&reply, 404, "unknown-channel", token);
        }
        let txid = transaction.txid();
        let ids = [
            format!("{unpaid}{txid}"),
            txid.to_string(),
            unpaid.clone(),
            "é".repeat(6),
            "..".into(),
        ];
        for id in ids {
            let stranger =
                Channel { path: format!("/api/v1/channel/{id}"), token: channel.token.clone() };
            check_problem(&stranger.send(shop, method, rest, body), 404, "unknown-channel", &id);
        }
    }
    let head = client.request("HEAD", &channel.path, b"");
    assert_eq!((head.status, head.header("etag")), (401, None));
    for (method, rest, allowed) in [
        ("POST", "", "GET, HEAD, OPTIONS"),
        ("PUT", "", "GET, HEAD, OPTIONS"),
        ("DELETE", "", "GET, HEAD, OPTIONS"),
        ("GET", "/1", "POST, OPTIONS"),
        ("DELETE", "/1", "POST, OPTIONS"),
    ] {
        let reply = channel.send(shop, method, rest, "");
        check_problem(&reply, 405, "method-not-allowed", method);
        assert_eq!(reply.header("allow"), Some(allowed));
    }
    for token in [format!("bearer {}", channel.token), format!("BEARER  {}", channel.token)] {
        let reply = client.send("GET", &channel.path, &[("Authorization", &token)], b"");
        assert_eq!(reply.status, 200);
    }
}

#[test]
fn messages_are_marked_as_read_one_by_one_or_with_older_ones() {
    let counter = Counter::new(1);
    let shop = &counter.shop;
    let (id, _, channel) = paid(&counter);
    let mut blocks = vec![counter.node.mine(1)[0].to_string()];
    wait_until_mined(&counter, &id, &blocks[0]);
    for _ in 0..2 {
        counter.node.call("invalidateblock", json!([blocks.last().unwrap()]));
        // This mines another block. The payment is then in a block with another transaction too.
        Purse::filled(&counter.node, 1, COIN);
        wait_until("another proof is found", || {
            let payment = &shop.payments(&id)[0];
            payment["state"] == "mined" && payment["blockHash"] != *blocks.last().unwrap()
        });
        blocks.push(shop.payments(&id)[0]["blockHash"].as_str().unwrap().to_owned());
    }
    let all = || channel.sequences(shop, "");
    let unread = || channel.sequences(shop, "?unread=true");
    assert_eq!((all(), unread()), (vec![1, 2, 3], vec![1, 2, 3]));
    assert_eq!(channel.mark(shop, "/3", r#"{"read":true}"#), 200);
    assert_eq!(unread(), [1, 2]);
    assert_eq!(channel.get(shop, "?unread=true").header("etag"), Some("\"2\""));
    assert_eq!(channel.mark(shop, "/3", r#"{"read":true}"#), 200);
    assert_eq!(channel.mark(shop, "/3", r#"{"read":false}"#), 200);
    assert_eq!(unread(), [1, 2, 3]);
    assert_eq!(channel.mark(shop, "/2?older=true", r#"{"read":true}"#), 200);
    assert_eq!(unread(), [3]);
    assert_eq!(channel.mark(shop, "/3?older=false", r#"{"read":true}"#), 200);
    assert_eq!((all(), unread()), (vec![1, 2, 3], vec![]));
    assert_eq!(channel.mark(shop, "/3?older=true", r#"{"read":false}"#), 200);
    assert_eq!(unread(), [1, 2, 3]);

    for (rest, body, status, code) in [
        ("/0", r#"{"read":true}"#, 404, "unknown-message"),
        ("/4", r#"{"read":true}"#, 404, "unknown-message"),
        ("/4?older=true", r#"{"read":true}"#, 404, "unknown-message"),
        ("/-1", r#"{"read":true}"#, 404, "unknown-message"),
        ("/01x", r#"{"read":true}"#, 404, "unknown-message"),
        ("/99999999999999999999999", r#"{"read":true}"#, 404, "unknown-message"),
        ("/4294967297", r#"{"read":true}"#, 404, "unknown-message"),
        ("/1", "", 400, "malformed-body"),
        ("/1", "{}", 400, "malformed-body"),
        ("/1", r#"{"read":1}"#, 400, "malformed-body"),
        ("/1", r#"{"read":true"#, 400, "malformed-body"),
        ("/1?older=maybe", r#"{"read":true}"#, 400, "invalid-fields"),
    ] {
        check_problem(&channel.send(shop, "POST", rest, body), status, code, rest);
    }
    check_problem(&channel.send(shop, "GET", "?unread=1", ""), 400, "invalid-fields", "unread");
    assert_eq!(unread(), [1, 2, 3]);
    assert_eq!(channel.mark(shop, "/2", r#"{"read":true}"#), 200);
    let restarted = counter.restart_after_kill();
    assert_eq!(channel.sequences(&restarted.shop, "?unread=true"), [1, 3]);
}

/// An answer that repeats what a stranger has sent would fill the memory while nobody reads it.
#[test]
fn an_answer_is_not_much_longer_because_its_request_is_long() {
    const LONGEST: usize = 16 << 10;
    let counter = Counter::new(0);
    let (shop, id) = (&counter.shop, counter.shop.invoice(5_000));
    let channel = Channel { path: "/api/v1/channel/x".to_owned(), token: "x".to_owned() };
    // This character becomes six bytes in a text for people.
    let mark = |len: usize| format!("{{\"read\":\"{}\"}}", "\u{7f}".repeat(len));
    for (len, status) in [(4_000, 400), (9_900_000, 413)] {
        let reply = channel.send(shop, "POST", "/1", &mark(len));
        assert_eq!(reply.status, status, "{}", &reply.body[..200]);
        assert!(reply.body.len() < LONGEST, "{} bytes", reply.body.len());
    }
    let payment = json!({ "transaction": "zz", "memo": "a".repeat(9_900_000) }).to_string();
    let bip270 = [("Content-Type", "application/bitcoinsv-payment")];
    for path in ["/dpp/api/v1/payment/", "/api/v1/payment/"] {
        let path = format!("{path}{id}");
        let reply = shop.server.payments().send("POST", &path, &bip270, payment.as_bytes());
        assert_eq!(reply.status, 400);
        assert!(reply.body.len() < LONGEST, "{} bytes", reply.body.len());
    }
}
