//! Messages that no honest party writes.

use std::time::{Duration, Instant};

use bsv_invoicing::dpp::{
    Acknowledgement, ChannelMessage, Dialect, MerkleProof, Payment, ReceivedTerms,
};
use bsv_tx::{Network, Txid};

/// Reads a body as every kind of message, and returns the `Debug` texts of the results.
fn read(body: &[u8]) -> Vec<String> {
    let start = Instant::now();
    let txid = Txid::from_bytes([7; 32]);
    let answers = vec![
        Payment::from_json(body).map(drop).map_err(|e| e.to_string()),
        ReceivedTerms::from_json(body, Network::Regtest).map(drop).map_err(|e| e.to_string()),
        Acknowledgement::from_answer(Dialect::GoDpp, 201, body, &txid)
            .map(drop)
            .map_err(|e| e.to_string()),
        Acknowledgement::from_answer(Dialect::Brc, 400, body, &txid)
            .map(drop)
            .map_err(|e| e.to_string()),
        MerkleProof::from_envelope(body).map(drop).map_err(|e| e.to_string()),
        ChannelMessage::list_from_json(body).map(drop).map_err(|e| e.to_string()),
    ];
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    answers.into_iter().filter_map(Result::err).collect()
}

#[test]
fn the_cost_of_a_large_body_is_proportional_to_its_size() {
    const SIZE: usize = 2_000_000;
    let filled = |head: &str, part: &str, tail: &str| {
        format!("{head}{}{tail}", part.repeat(SIZE / part.len()))
    };
    for body in [
        filled("", "[", ""),
        filled("", "{\"mode\":", ""),
        filled("{\"x\":", "[", ""),
        filled("{\"x\":", "{\"x\":", "1"),
        filled("{\"mode\":{\"transactions\":", "[", ""),
        filled("{\"mode\":{\"transactions\":[", "\"00\",", "\"00\"]}}"),
        filled("{\"modes\":{\"ef63d9775da5\":{", "\"x\":{\"transactions\":[]},", "\"y\":[]}}}"),
        filled("{\"modes\":{\"ef63d9775da5\":", "[", ""),
        filled("{\"modes\":{", "\"x\":0,", "\"x\":0}}"),
        filled("{\"destinations\":{\"outputs\":[", "{\"amount\":1,\"script\":\"51\"},", "0]}}"),
        filled("{\"merchantData\":", "[", ""),
        filled("{\"peer_channel\":", "[", ""),
        filled("{\"payload\":\"", "[", "\"}"),
        filled("{\"payload\":\"{\\\"callbackPayload\\\":", "[", "\"}"),
        filled("{\"amount\":", "9", "}"),
        filled("{\"rawTx\":\"", "x", "\"}"),
        filled("{\"rawTx\":\"", "\\u0030", "\"}"),
        filled("{\"memo\":\"", "\\u001b", "\",\"error\":1}"),
        filled("{\"", "k", "\":7,\"modes\":{\"ef63d9775da5\":{}}}"),
        filled("{\"modes\":{\"ef63d9775da5\":{\"", "k", "\":[]}}}"),
        filled("{\"network\":\"", "n", "\",\"destinations\":7}"),
        filled("{\"tx_id\":\"", "00", "\"}"),
        filled("{", " ", ""),
        filled("[", "{},", "{}]"),
    ] {
        for shown in read(body.as_bytes()) {
            assert!(shown.len() < 2000, "{} bytes: {shown:.80}", shown.len());
            assert!(!shown.contains(char::is_control), "{shown:.80?}");
        }
    }
}

#[test]
fn bodies_that_are_not_text_are_refused() {
    for body in [
        &b"{\"rawTx\":\"\xff\"}"[..],
        b"{\"x\":\"\xff\",\"rawTx\":\"00\"}",
        b"\xff\xfe{\x00}\x00",
        b"\xef\xbb\xbf{}",
        b"{\"rawTx\":\"\xed\xa0\x80\"}",
        b"\0",
    ] {
        assert_eq!(read(body).len(), 6);
    }
}

#[test]
fn endless_numbers_are_refused() {
    for number in
        ["1e400", "-1e400", "1e-400", "99999999999999999999999", "NaN", "0x1", "01", "+1", "1."]
    {
        for body in [
            format!(
                r#"{{"network":"regtest","outputs":[{{"amount":{number},"script":"51"}}],"creationTimestamp":1}}"#
            ),
            format!(
                r#"{{"network":"regtest","outputs":[{{"amount":1,"script":"51"}}],"creationTimestamp":{number}}}"#
            ),
        ] {
            assert!(ReceivedTerms::from_json(body.as_bytes(), Network::Regtest).is_err(), "{body}");
        }
    }
}
