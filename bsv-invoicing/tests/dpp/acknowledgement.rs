use bsv_invoicing::dpp::{
    Acknowledgement, AnswerError, Dialect, MAX_REPEATED_LEN, MAX_WORDS_LEN, PeerChannel,
};
use bsv_tx::Txid;

use crate::{text, transaction};

const TXID: &str = "0707070707070707070707070707070707070707070707070707070707070707";

fn txid() -> Txid {
    Txid::from_bytes([7; 32])
}

fn acknowledgement() -> Acknowledgement {
    Acknowledgement {
        reference: "l2ZQnMo".to_owned(),
        txid: txid(),
        memo: "thanks".to_owned(),
        peer_channel: Some(PeerChannel {
            host: "127.0.0.1:25009".to_owned(),
            path: "/pay".to_owned(),
            channel_id: "l2".to_owned(),
            token: "secret".to_owned(),
        }),
    }
}

fn read(dialect: Dialect, status: u16, body: &str) -> Result<Acknowledgement, AnswerError> {
    Acknowledgement::from_answer(dialect, status, body.as_bytes(), &txid())
}

#[test]
fn acknowledgements_are_written_in_each_dialect() {
    let posted = r#" {"transaction": "00", "memo":1.0} "#;
    let written = |dialect| acknowledgement().to_json(dialect, posted.as_bytes());
    assert_eq!(
        text(&written(Dialect::GoDpp)),
        format!(
            r#"{{"id":"l2ZQnMo","tx_id":"{TXID}","memo":"thanks","peer_channel":{{"host":"127.0.0.1:25009","path":"/pay","channel_id":"l2","token":"secret"}}}}"#
        )
    );
    assert_eq!(
        text(&written(Dialect::Brc)),
        format!(
            r#"{{"modeId":"ef63d9775da5","mode":{{"transactionIds":["{TXID}"]}},"peerChannel":{{"host":"127.0.0.1:25009/pay","token":"secret","channel_id":"l2"}}}}"#
        )
    );
    assert_eq!(
        text(&written(Dialect::Bip270)),
        r#"{"payment":{"transaction": "00", "memo":1.0},"memo":"thanks"}"#
    );
    let refusal = Acknowledgement::bip270_refusal("too late", posted.as_bytes());
    assert_eq!(
        text(&refusal),
        r#"{"payment":{"transaction": "00", "memo":1.0},"memo":"too late","error":1}"#
    );
    for garbage in [&b"{"[..], b"", b"\"\xff\""] {
        let refusal = Acknowledgement::bip270_refusal("what?", garbage);
        assert_eq!(text(&refusal), r#"{"payment":null,"memo":"what?","error":1}"#);
    }
    for (len, is_repeated) in [(MAX_REPEATED_LEN, true), (MAX_REPEATED_LEN + 1, false)] {
        let posted = format!("\"{}\"", "a".repeat(len - 2));
        let refusal = Acknowledgement::bip270_refusal("too late", posted.as_bytes());
        assert_eq!(text(&refusal).contains(&posted), is_repeated, "{len}");
    }
    let without = Acknowledgement { peer_channel: None, ..acknowledgement() };
    assert!(text(&without.to_json(Dialect::GoDpp, b"")).ends_with(r#""peer_channel":null}"#));
    assert!(!text(&without.to_json(Dialect::Brc, b"")).contains("peerChannel"));
}

#[test]
fn acknowledgements_are_read_back_as_they_were_written() {
    for dialect in [Dialect::GoDpp, Dialect::Brc, Dialect::Bip270] {
        let written = acknowledgement().to_json(dialect, b"{}");
        let read = Acknowledgement::from_answer(dialect, 201, &written, &txid()).unwrap();
        let mut expected = acknowledgement();
        if dialect != Dialect::GoDpp {
            expected.reference.clear();
        }
        if dialect == Dialect::Brc {
            expected.memo.clear();
        }
        if dialect == Dialect::Bip270 {
            expected.peer_channel = None;
        }
        assert_eq!(read, expected);
    }
}

#[test]
fn the_token_is_never_shown() {
    assert!(!format!("{:?}", acknowledgement()).contains("secret"));
}

#[test]
fn an_acknowledgement_may_lack_members_or_have_more() {
    for (dialect, body) in [
        (Dialect::GoDpp, r#"{"id":"x","tx_id":"","memo":"","peer_channel":null}"#.to_owned()),
        (Dialect::GoDpp, r#"{"id":"x","error":0}"#.to_owned()),
        (Dialect::GoDpp, format!(r#"{{"tx_id":"{TXID}","error":null,"peer_channel":7}}"#)),
        (Dialect::GoDpp, r#"{"id":"x","peer_channel":{"host":"h","channel_id":"c"}}"#.to_owned()),
        (Dialect::Brc, r#"{"modeId":"ef63d9775da5"}"#.to_owned()),
        (Dialect::Brc, r#"{"mode":{"transactionIds":[]},"peerChannel":null}"#.to_owned()),
        (Dialect::Brc, format!(r#"{{"mode":{{"transactions":["{TXID}"]}},"redirectUrl":"x"}}"#)),
        (Dialect::Bip270, r#"{"payment":{},"error":0}"#.to_owned()),
        (Dialect::Bip270, r#"{"memo":"thanks"}"#.to_owned()),
    ] {
        let read = read(dialect, 200, &body).unwrap_or_else(|error| panic!("{body}: {error}"));
        assert_eq!((read.txid, read.peer_channel), (txid(), None), "{body}");
    }
    let hex = transaction().to_hex();
    let body = format!(r#"{{"modeId":"x","mode":{{"optionId":"o","transactions":["{hex}"]}}}}"#);
    let read = |txid| Acknowledgement::from_answer(Dialect::Brc, 201, body.as_bytes(), &txid);
    assert!(read(transaction().txid()).is_ok(), "some repeat the payment");
    assert!(matches!(read(txid()), Err(AnswerError::Nonsense(_))));
}

#[test]
fn long_texts_of_payees_are_cut() {
    let answer = |words: &str, token: &str| {
        let body = format!(
            r#"{{"id":"{words}","memo":"{words}","peer_channel":{{"host":"h","path":null,"channel_id":"c","token":"{token}"}}}}"#
        );
        read(Dialect::GoDpp, 201, &body).unwrap()
    };
    let longest = "é".repeat(MAX_WORDS_LEN);
    let token = "t".repeat(MAX_WORDS_LEN);
    let kept = answer(&longest, &token);
    assert_eq!((&kept.memo, &kept.reference), (&longest, &longest));
    let channel = kept.peer_channel.unwrap();
    assert_eq!((channel.path.as_str(), channel.token.as_str()), ("", token.as_str()));
    let kept = answer(&format!("{longest}x"), &format!("{token}t"));
    assert_eq!((&kept.memo, &kept.reference, kept.peer_channel), (&longest, &longest, None));
}

#[test]
fn refusals_say_why() {
    for (status, body, reason) in [
        (422, r#"{"id":"x","tx_id":"","memo":"no money","error":1}"#, "no money"),
        (201, r#"{"id":"x","tx_id":"","memo":"no money","error":1}"#, "no money"),
        (200, r#"{"payment":{},"memo":"no","error":7}"#, "no"),
        (200, r#"{"payment":{},"error":"x"}"#, "HTTP status 200"),
        (
            400,
            r#"{"type":"about:blank","title":"Bad","detail":"underpaid","code":"x"}"#,
            "underpaid",
        ),
        (
            404,
            r#"{"title":"not found","code":"N01","message":"no such invoice"}"#,
            "no such invoice",
        ),
        (404, r#"{"title":"not found","memo":" "}"#, "not found"),
        (409, "<html>", "HTTP status 409"),
        (404, "", "HTTP status 404"),
        (400, r#"{"memo":"a\u001b[2Jb\nc"}"#, "a [2Jb c"),
    ] {
        let refused = Err(AnswerError::Refused(reason.to_owned()));
        assert_eq!(read(Dialect::GoDpp, status, body), refused, "{status} {body}");
    }
    let long = format!(r#"{{"memo":"{}"}}"#, "é".repeat(5000));
    let Err(AnswerError::Refused(reason)) = read(Dialect::Brc, 400, &long) else { panic!() };
    assert_eq!(reason.chars().count(), 301);
}

#[test]
fn an_answer_that_the_payee_is_unavailable_is_not_a_refusal() {
    for status in [408, 413, 425, 429, 500, 502, 503, 504, 599] {
        let answer = read(Dialect::GoDpp, status, r#"{"memo":"busy","error":1}"#);
        assert_eq!(answer, Err(AnswerError::Unavailable("busy".to_owned())), "{status}");
    }
}

#[test]
fn nonsense_is_distinguished_from_refusals() {
    let other = TXID.replace('7', "8");
    for (dialect, status, body, reason) in [
        (Dialect::GoDpp, 201, String::new(), "not a JSON object"),
        (Dialect::GoDpp, 201, "<html>".to_owned(), "not a JSON object"),
        (Dialect::GoDpp, 201, "{}".to_owned(), "not an acknowledgement"),
        (Dialect::GoDpp, 201, r#"{"id":7}"#.to_owned(), "id: invalid type"),
        (Dialect::GoDpp, 201, format!(r#"{{"tx_id":"{other}"}}"#), "names transaction 0808"),
        (Dialect::GoDpp, 201, r#"{"tx_id":"x\u0007"}"#.to_owned(), "names transaction x "),
        (Dialect::GoDpp, 301, "{}".to_owned(), "HTTP status 301"),
        (Dialect::GoDpp, 100, "{}".to_owned(), "HTTP status 100"),
        (Dialect::Brc, 201, r#"{"id":"x"}"#.to_owned(), "not an acknowledgement"),
        (
            Dialect::Brc,
            201,
            format!(r#"{{"mode":{{"transactionIds":["{TXID}","{other}"]}}}}"#),
            "0808",
        ),
        (Dialect::Brc, 201, r#"{"mode":{"transactions":["00"]}}"#.to_owned(), "transaction 00"),
        (Dialect::Bip270, 200, "{}".to_owned(), "not an acknowledgement"),
    ] {
        match read(dialect, status, &body) {
            Err(AnswerError::Nonsense(given)) => assert!(given.contains(reason), "{body}: {given}"),
            answer => panic!("{body}: {answer:?}"),
        }
    }
}
