//! Headers that the services give: to our own client, and one by one.

use std::sync::Arc;

use bsv_network::headers::{
    CatchUpError, Chaintracks, Checkpoint, HeaderError, HeaderFile, HeaderSource,
};
use bsv_tests::services::{HeaderPart, Mood};
use bsv_tests::{Node, Service};
use bsv_tx::Network;
use serde_json::json;
use tokio::runtime::Runtime;

use super::{body, http_client};

#[test]
fn headers_are_hidden_and_altered() {
    let node = Node::start();
    node.mine(2_150);
    let service = Service::before(&node);
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("headers");
    let regtest = Network::Regtest;
    let file = Arc::new(HeaderFile::open(&path, regtest, &Checkpoint::of(regtest)).unwrap());
    let mut source =
        HeaderSource::Chaintracks(Chaintracks::new(http_client(), service.chaintracks_url()));
    let runtime = Runtime::new().unwrap();
    let mut catch_up = || runtime.block_on(source.catch_up(&file, || u64::MAX));

    for part in [HeaderPart::Bits, HeaderPart::Time, HeaderPart::Nonce] {
        service.be(Mood { withheld: 50, altered: Some(part), ..Mood::default() });
        let refusal = match catch_up() {
            Err(CatchUpError::Refused { refusal, .. }) => refusal,
            other => panic!("{part:?}: {other:?}"),
        };
        let is_right = match part {
            HeaderPart::Bits => matches!(refusal, HeaderError::Difficulty { .. }),
            HeaderPart::Time => matches!(refusal, HeaderError::TooOld { .. }),
            HeaderPart::Nonce => refusal == HeaderError::NoProofOfWork,
        };
        assert!(is_right, "{part:?}: {refusal}");
        assert_eq!(file.chain().tip().height, 2_099);
    }
    service.be(Mood { withheld: 1, ..Mood::default() });
    assert_eq!(catch_up().unwrap().height, Some(2_149));
    service.be(Mood::default());
    assert_eq!(catch_up().unwrap().height, Some(2_150));
    let tip = node.call("getbestblockhash", json!([]));
    assert_eq!(file.chain().tip().hash.to_string(), tip);
}

#[test]
fn a_header_is_found_by_height_and_hash() {
    let node = Node::start();
    node.mine(3);
    let service = Service::before(&node);
    let client = bsv_tests::Client::new(&service.address());
    let get = |path: &str| client.get(&format!("/chaintracks/v2{path}"));
    let hash = node.call("getblockhash", json!([2]));
    let expected = node.call("getblockheader", json!([hash]));
    let by_height = body(&get("/header/height/2"), 200);
    assert_eq!(by_height, body(&get(&format!("/header/hash/{}", hash.as_str().unwrap())), 200));
    assert_eq!((&by_height["hash"], &by_height["height"]), (&hash, &json!(2)));
    assert_eq!(by_height["merkleRoot"], expected["merkleroot"]);
    assert_eq!(by_height["previousHash"], expected["previousblockhash"]);
    assert_eq!((&by_height["time"], &by_height["nonce"]), (&expected["time"], &expected["nonce"]));
    assert_eq!(body(&get("/height"), 200), json!({ "height": 3 }));
    assert_eq!(body(&get("/tip"), 200)["height"], 3);
    assert_eq!(get("/headers.bin?height=4&count=9").header("x-header-count"), Some("0"));
    for (path, status) in
        [("/header/height/4", 404), ("/header/height/x", 400), ("/header/hash/x", 400)]
    {
        assert_eq!(get(path).status, status, "{path}");
    }
}
