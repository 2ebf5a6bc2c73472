use bsv_invoicing::dpp::{Dialect, Payment, PaymentError, ReceivedTerms, Terms};
use bsv_tx::{Ancestry, Beef, BeefVersion, Bump, MerkleBranch, Sibling, Transaction, Txid};

use crate::{terms, transaction};

fn read(json: &str) -> Result<Payment, PaymentError> {
    Payment::from_json(json.as_bytes())
}

fn payment(dialect: Dialect) -> Payment {
    Payment {
        dialect,
        transaction: vec![0x01, 0xab],
        memo: String::new(),
        refund_to: None,
        reference: None,
    }
}

#[test]
fn payments_are_read_in_each_dialect() {
    let json = r#"{"merchantData":{"avatar":"a","name":"n","extendedData":{"likes":3,"paymentReference":"l2ZQnMo"}},"refundTo":null,"memo":"","ancestry":"","rawTx":"01AB","proofCallbacks":{"https://customer:18443/api/v1/proofs/1":{"token":""}}}"#;
    let expected = Payment { reference: Some("l2ZQnMo".to_owned()), ..payment(Dialect::GoDpp) };
    assert_eq!(read(json), Ok(expected));

    let json = r#"{"modeId":"ef63d9775da5","mode":{"optionId":"choiceID0","transactions":["01ab"],"ancestors":{"x":{}}},"originator":{"name":"Ada","paymail":"ada@example.com"},"memo":"thanks"}"#;
    let expected = Payment {
        memo: "thanks".to_owned(),
        refund_to: Some("ada@example.com".to_owned()),
        ..payment(Dialect::Brc)
    };
    assert_eq!(read(json), Ok(expected));

    let json = r#"{"merchantData":"l2ZQnMo","transaction":"01ab","refundTo":"ada@example.com","memo":"thanks"}"#;
    let expected = Payment {
        memo: "thanks".to_owned(),
        refund_to: Some("ada@example.com".to_owned()),
        reference: Some("l2ZQnMo".to_owned()),
        ..payment(Dialect::Bip270)
    };
    assert_eq!(read(json), Ok(expected));
}

#[test]
fn a_payment_that_we_write_is_read_by_us() {
    for dialect in [Dialect::GoDpp, Dialect::Brc, Dialect::Bip270] {
        let network = terms().network;
        let json = terms().to_json(dialect);
        let received = ReceivedTerms::from_json(&json, network).unwrap();
        let read = Payment::from_json(&received.payment(&transaction(), None, "a memo")).unwrap();
        assert_eq!(read.dialect, dialect);
        assert_eq!(read.transaction, transaction().to_bytes());
        assert_eq!(read.memo, "a memo");
        let reference = (dialect != Dialect::Brc).then(|| "l2ZQnMo".to_owned());
        assert_eq!(read.reference, reference);
    }
}

#[test]
fn empty_members_count_as_missing() {
    for json in [
        r#"{"rawTx":"01ab","mode":null,"transaction":null}"#,
        r#"{"rawTx":"01ab","transaction":"","modeId":""}"#,
        r#"{"rawTx":"01ab","memo":null,"refundTo":"","merchantData":null}"#,
        r#" {"rawTx":"01ab","merchantData":[1,2],"originator":null} "#,
        r#"{"rawTx":"01ab","merchantData":{"extendedData":{"paymentReference":7}}}"#,
    ] {
        assert_eq!(read(json), Ok(payment(Dialect::GoDpp)), "{json}");
    }
    let json =
        r#"{"modeId":"ef63d9775da5","mode":{"transactions":["01ab"]},"rawTx":"","originator":{}}"#;
    assert_eq!(read(json), Ok(payment(Dialect::Brc)));
}

#[test]
fn refunds_go_to_the_first_place_that_is_named() {
    for (originator, expected) in [
        (r#"{"paymail":"p","return_address":"a","return_script":"s"}"#, Some("p")),
        (r#"{"paymail":"","return_address":"a","return_script":"s"}"#, Some("a")),
        (r#"{"paymail":null,"return_script":"s"}"#, Some("s")),
        (r#"{"name":"Ada"}"#, None),
        ("null", None),
    ] {
        let json = format!(
            r#"{{"modeId":"ef63d9775da5","mode":{{"transactions":["00"]}},"originator":{originator}}}"#
        );
        assert_eq!(read(&json).unwrap().refund_to.as_deref(), expected, "{originator}");
    }
    let json = |place: &str| format!(r#"{{"rawTx":"00","refundTo":"{place}"}}"#);
    let longest = "€".repeat(100);
    assert_eq!(read(&json(&longest)).unwrap().refund_to, Some(longest.clone()));
    assert_eq!(read(&json(&(longest + "x"))), Err(PaymentError::RefundToTooLong));
}

/// ElectrumSV always sends such a list, as BIP270 first had it.
#[test]
fn refunds_go_to_the_first_output_of_a_list_whose_script_can_be_kept() {
    let p2pkh = format!("76a914{}88ac", "11".repeat(20));
    let other = "22".repeat(50);
    let output = |script: &str| format!(r#"{{"amount":5,"script":"{script}","description":"d"}}"#);
    let upper = output(&p2pkh.to_uppercase());
    for (list, expected) in [
        (format!("[{}]", output(&p2pkh)), Some(&p2pkh)),
        (format!(r#"[{{"amount":null,"script":"{p2pkh}"}}]"#), Some(&p2pkh)),
        (format!(r#"[{{"script":"{p2pkh}"}}]"#), Some(&p2pkh)),
        (format!("[{upper}]"), Some(&p2pkh)),
        (format!("[{},{}]", output(&p2pkh), output(&other)), Some(&p2pkh)),
        (format!("[{},{}]", output(&other), output(&p2pkh)), Some(&other)),
        (format!("[{},{}]", output(&"22".repeat(51)), output(&p2pkh)), Some(&p2pkh)),
        (format!("[{},{},{upper}]", output(""), output("0x51")), Some(&p2pkh)),
        (format!(r#"[7,null,[],{{}},"51",{{"script":7}},{upper}]"#), Some(&p2pkh)),
        (format!("[{}{upper}]", "1,".repeat(15)), Some(&p2pkh)),
        (format!("[{}{upper}]", "1,".repeat(16)), None),
        (format!("[{}]", output(&"22".repeat(51))), None),
        ("[]".to_owned(), None),
    ] {
        for transaction in ["transaction", "rawTx"] {
            let json = format!(r#"{{"refundTo":{list},"{transaction}":"01ab"}}"#);
            assert_eq!(read(&json).unwrap().refund_to.as_ref(), expected, "{list}");
        }
    }
    let many = format!("[{}{upper}]", "1,".repeat(1_000_000));
    assert_eq!(read(&format!(r#"{{"refundTo":{many},"rawTx":"00"}}"#)).unwrap().refund_to, None);
    let escaped = r#"{"refundTo":"\u0061da@example.com","transaction":"00"}"#;
    assert_eq!(read(escaped).unwrap().refund_to.as_deref(), Some("ada@example.com"));
}

#[test]
fn the_deprecated_transaction_may_stand_beside_the_mode() {
    let json = |deprecated: &str| {
        format!(
            r#"{{"modeId":"ef63d9775da5","mode":{{"optionId":"choiceID0","transactions":["01ab"]}},"transaction":"{deprecated}"}}"#
        )
    };
    for same in ["01ab", "01AB", ""] {
        assert_eq!(read(&json(same)), Ok(payment(Dialect::Brc)), "{same}");
    }
    for other in ["01ac", "01ab00", "01"] {
        assert_eq!(read(&json(other)), Err(PaymentError::SeveralDialects), "{other}");
    }
}

#[test]
fn every_wrong_member_is_noticed_and_named() {
    for (json, reason) in [
        ("", "not a JSON object"),
        ("null", "not a JSON object"),
        (r#"["00"]"#, "not a JSON object"),
        ("{", "EOF"),
        (r#"{"rawTx":"00"}}"#, "trailing characters"),
        (r#"{"rawTx":"0"}"#, "rawTx: must be hexadecimal: Odd number of digits"),
        (r#"{"rawTx":"0x00"}"#, "rawTx: must be hexadecimal: Invalid character 'x' at position 1"),
        (r#"{"rawTx":" 00"}"#, "rawTx: must be hexadecimal"),
        (r#"{"rawTx":"\ud800"}"#, "rawTx"),
        (
            r#"{"rawTx":7}"#,
            "rawTx: invalid type: integer `7`, expected a string of hexadecimal digits",
        ),
        (r#"{"rawTx":["00"]}"#, "rawTx: invalid type: sequence"),
        (r#"{"rawTx":"00","rawTx":"00"}"#, "duplicate field `rawTx`"),
        (r#"{"transaction":{}}"#, "transaction: invalid type: map"),
        (r#"{"mode":"00"}"#, "mode: invalid type: string"),
        (r#"{"mode":{}}"#, "mode: missing field `transactions`"),
        (r#"{"mode":{"transactions":"00"}}"#, "mode.transactions: invalid type: string"),
        (
            r#"{"mode":{"transactions":[]}}"#,
            "mode.transactions: invalid length 0, expected a list of one",
        ),
        (
            r#"{"mode":{"transactions":["00","00"]}}"#,
            "mode.transactions: one transaction is asked for, not several",
        ),
        (r#"{"mode":{"transactions":["0"]}}"#, "mode.transactions[0]: must be hexadecimal"),
        (r#"{"mode":{"transactions":[null]}}"#, "mode.transactions[0]: invalid type: null"),
        (r#"{"rawTx":"00","memo":7}"#, "memo: invalid type: integer `7`"),
        (r#"{"rawTx":"00","refundTo":{}}"#, "refundTo: invalid type: map"),
        (r#"{"rawTx":"00","originator":"x"}"#, "originator: invalid type: string"),
    ] {
        let error = read(json).unwrap_err();
        assert!(matches!(error, PaymentError::Malformed(_)), "{json}: {error}");
        assert!(error.to_string().contains(reason), "{json}: {error}");
    }
    for json in
        ["{}", r#"{"rawTx":null}"#, r#"{"transaction":"","mode":null}"#, r#"{"spvEnvelope":{}}"#]
    {
        assert_eq!(read(json), Err(PaymentError::NoTransaction), "{json}");
    }
    let mode = r#""modeId":"ef63d9775da5","mode":{"transactions":["00"]}"#;
    for json in [
        r#"{"rawTx":"00","transaction":"00"}"#.to_owned(),
        format!(r#"{{{mode},"transaction":"01"}}"#),
        format!(r#"{{{mode},"rawTx":"00"}}"#),
        format!(r#"{{{mode},"rawTx":"00","transaction":"00"}}"#),
    ] {
        assert_eq!(read(&json), Err(PaymentError::SeveralDialects), "{json}");
    }
    for mode_id in ["", r#""modeId":null,"#, r#""modeId":"0123456789ab","#] {
        let json = format!(r#"{{{mode_id}"mode":{{"transactions":["00"]}}}}"#);
        assert_eq!(read(&json), Err(PaymentError::UnknownMode), "{json}");
    }
}

/// A transaction that spends a mined one, and that one as BEEF.
fn with_parent() -> (Transaction, Beef) {
    let parent = transaction();
    let mut child = transaction();
    child.inputs[0].previous_output.txid = parent.txid();
    let branch = MerkleBranch { position: 0, siblings: vec![Sibling::Hash([9; 32])] };
    let bumps = vec![Bump::of(7, &[(parent.txid(), branch)]).unwrap()];
    let beef = Beef::new(BeefVersion::V1, parent, Ancestry { bumps, ..Ancestry::default() });
    (child, beef.unwrap())
}

#[test]
fn ancestors_beside_the_transaction_make_it_a_beef() {
    let (child, parents) = with_parent();
    let ancestry = Ancestry {
        transactions: vec![parents.subject().clone()],
        bumps: parents.bumps().to_vec(),
        ..Ancestry::default()
    };
    let whole = Beef::new(BeefVersion::V1, child.clone(), ancestry).unwrap();
    for dialect in [Dialect::GoDpp, Dialect::Brc] {
        let network = terms().network;
        let json = Terms { wants_ancestry: true, ..terms() }.to_json(dialect);
        let received = ReceivedTerms::from_json(&json, network).unwrap();
        assert!(received.terms.wants_ancestry);
        let whole_one = received.payment(&child, Some(&whole), "");
        assert_eq!(Payment::from_json(&whole_one).unwrap().transaction, whole.to_bytes());
        // Some payers send the ancestors alone.
        let read = Payment::from_json(&received.payment(&child, Some(&parents), "")).unwrap();
        let beef = Beef::from_bytes(&read.transaction).unwrap();
        assert_eq!((beef.subject(), beef.bumps()), (&child, parents.bumps()));
    }
}

#[test]
fn only_ancestors_in_beef_are_read() {
    let (child, parents) = with_parent();
    let (raw, beef) = (child.to_hex(), hex::encode(parents.to_bytes()));
    let with = |transaction: &str, ancestry: &str| {
        read(&format!(r#"{{"rawTx":"{transaction}","ancestry":{ancestry}}}"#))
    };
    for other in [r#""""#, "null", "{}", r#"[{"a":1}]"#, r#""0100""#, r#""no""#, "7"] {
        assert_eq!(with(&raw, other).unwrap().transaction, child.to_bytes(), "{other}");
    }
    // One that brings its ancestors along needs no others, and one that cannot be read is left as it is.
    for transaction in [&beef, "01ab"] {
        let bytes = hex::decode(transaction).unwrap();
        assert_eq!(with(transaction, &format!("\"{beef}\"")).unwrap().transaction, bytes);
    }
    let cut = with(&raw, &format!("\"{}\"", &beef[..beef.len() - 2])).unwrap_err();
    assert!(cut.to_string().starts_with("the ancestry of the transaction"), "{cut}");
    let mut stranger = child.clone();
    stranger.inputs[0].previous_output.txid = Txid::from_bytes([8; 32]);
    // The receiver may need no ancestors, or have those that are missing.
    let grandchild = Transaction { inputs: stranger.inputs.clone(), ..transaction() };
    let incomplete = hex::encode(parents.followed_by(child.clone()).unwrap().to_bytes());
    let incomplete = incomplete.replace(&child.to_hex(), &grandchild.to_hex());
    for ancestry in [beef, incomplete] {
        let alone = with(&stranger.to_hex(), &format!("\"{ancestry}\"")).unwrap();
        assert_eq!(alone.transaction, stranger.to_bytes());
    }
}
