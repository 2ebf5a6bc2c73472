use bsv_invoicing::Timestamp;
use bsv_invoicing::dpp::{
    Dialect, FeeRate, Fees, MAX_DESTINATIONS, Merchant, ReceivedTerms, Terms, TermsError,
};
use bsv_invoicing::invoices::MAX_SATOSHIS;
use bsv_tx::Network;

use crate::{SCRIPT, terms, text, transaction};

const GO_DPP: &str = r#"{"network":"regtest","ancestryRequired":false,"destinations":{"outputs":[{"amount":20000,"script":"76a914111111111111111111111111111111111111111188ac","description":"payment reference l2ZQnMo"}]},"creationTimestamp":"2026-11-21T08:48:56.767571Z","expirationTimestamp":"2026-11-22T08:48:56.000000Z","paymentUrl":"http://127.0.0.1:8445/dpp/api/v1/payment/l2ZQnMo","memo":"invoice l2ZQnMo","merchantData":{"avatar":"https://shop.example/a.png","name":"Shop","email":"shop@shop.example","address":"1 the street","extendedData":{"paymentReference":"l2ZQnMo"}},"fees":{"data":{"miningFee":{"satoshis":250,"bytes":1000},"relayFee":{"satoshis":250,"bytes":1000}},"standard":{"miningFee":{"satoshis":500,"bytes":1000},"relayFee":{"satoshis":500,"bytes":1000}}}}"#;

const BRC: &str = r#"{"network":"regtest","version":"1.0","creationTimestamp":1795250936,"expirationTimestamp":1795337336,"memo":"invoice l2ZQnMo","paymentUrl":"http://127.0.0.1:8445/dpp/api/v1/payment/l2ZQnMo","beneficiary":{"name":"Shop","email":"shop@shop.example","address":"1 the street","paymentReference":"l2ZQnMo","avatar":"https://shop.example/a.png"},"modes":{"ef63d9775da5":{"choiceID0":{"transactions":[{"outputs":{"native":[{"amount":20000,"script":"76a914111111111111111111111111111111111111111188ac","description":"payment reference l2ZQnMo"}]},"policies":{"fees":{"data":{"satoshis":250,"bytes":1000},"standard":{"satoshis":500,"bytes":1000}},"SPVRequired":false}}]}}}}"#;

const BIP270: &str = r#"{"network":"test","outputs":[{"amount":20000,"script":"76a914111111111111111111111111111111111111111188ac","description":"payment reference l2ZQnMo"}],"creationTimestamp":1795250936,"expirationTimestamp":1795337336,"memo":"invoice l2ZQnMo","paymentUrl":"http://127.0.0.1:8445/dpp/api/v1/payment/l2ZQnMo","merchantData":"l2ZQnMo","feeRate":{"satoshisPerByte":0.5}}"#;

fn read(json: &str) -> Result<ReceivedTerms, TermsError> {
    ReceivedTerms::from_json(json.as_bytes(), Network::Regtest)
}

/// Terms with `right` replaced by `wrong`, and why they are refused.
fn refusal(json: &str, right: &str, wrong: &str) -> TermsError {
    let changed = json.replacen(right, wrong, 1);
    assert_ne!(changed, json, "{right}");
    match read(&changed) {
        Err(error) => error,
        Ok(read) => panic!("accepted {changed}: {read:?}"),
    }
}

#[test]
fn terms_are_written_in_each_dialect() {
    assert_eq!(text(&terms().to_json(Dialect::GoDpp)), GO_DPP);
    assert_eq!(text(&terms().to_json(Dialect::Brc)), BRC);
    assert_eq!(text(&terms().to_json(Dialect::Bip270)), BIP270);
}

#[test]
fn terms_with_few_members_are_written() {
    let little = Terms {
        expires_at: None,
        merchant: Merchant { avatar: String::new(), ..terms().merchant },
        fees: None,
        ..terms()
    };
    let json = little.to_json(Dialect::GoDpp);
    assert!(text(&json).contains(r#""expirationTimestamp":"0001-01-01T00:00:00Z""#));
    assert!(text(&json).contains(r#""fees":null"#));
    assert!(text(&json).contains(r#"{"avatar":"","#));
    for dialect in [Dialect::Brc, Dialect::Bip270] {
        let json = little.to_json(dialect);
        let read = ReceivedTerms::from_json(&json, Network::Regtest).unwrap();
        assert_eq!(read.terms.expires_at, None);
        assert_eq!(read.terms.fees, None);
        for member in ["expirationTimestamp", "fees", "feeRate", "avatar", "null"] {
            assert!(!text(&json).contains(member), "{member}");
        }
    }
}

#[test]
fn terms_are_read_in_each_dialect() {
    let go_dpp = read(GO_DPP).unwrap();
    assert_eq!((go_dpp.dialect(), go_dpp.terms), (Dialect::GoDpp, terms()));

    let whole_seconds =
        Terms { created_at: Timestamp::from_micros(1_795_250_936_000_000), ..terms() };
    let brc = read(BRC).unwrap();
    assert_eq!((brc.dialect(), brc.terms), (Dialect::Brc, whole_seconds.clone()));

    let bip270 = read(BIP270).unwrap();
    let rate = FeeRate { satoshis: 500_000, bytes: 1_000_000 };
    let fees = Some(Fees { standard: rate, data: rate });
    let expected = Terms { merchant: Merchant::default(), fees, ..whole_seconds };
    assert_eq!((bip270.dialect(), bip270.terms), (Dialect::Bip270, expected));
}

#[test]
fn every_network_has_its_names_and_no_other_is_paid() {
    let dialects = [Dialect::GoDpp, Dialect::Brc, Dialect::Bip270];
    let networks = [Network::Livenet, Network::Testnet, Network::Regtest];
    let expected = [
        ["mainnet", "testnet", "regtest"],
        ["bitcoin-sv", "testnet", "regtest"],
        ["bitcoin", "test", "test"],
    ];
    for (dialect, names) in dialects.into_iter().zip(expected) {
        for (network, name) in networks.into_iter().zip(names) {
            let json = Terms { network, ..terms() }.to_json(dialect);
            assert!(text(&json).starts_with(&format!(r#"{{"network":"{name}","#)));
            for ours in networks {
                let read = ReceivedTerms::from_json(&json, ours);
                // Test networks share names, and BRC-27 names the chain.
                let is_ambiguous =
                    ours != Network::Livenet && ["test", "bitcoin-sv"].contains(&name);
                match read {
                    Ok(read) => {
                        assert!(ours == network || is_ambiguous, "{name} on {ours}");
                        assert_eq!(read.terms.network, ours);
                    }
                    Err(TermsError::OtherNetwork { payee, .. }) => {
                        assert!(ours != network && !is_ambiguous, "{name} on {ours}");
                        assert_eq!(payee, name);
                    }
                    Err(error) => panic!("{error}"),
                }
            }
        }
    }
    let error = refusal(GO_DPP, "regtest", "stn");
    let expected = "the payee is on the network \"stn\", this wallet is on regtest";
    assert_eq!(error.to_string(), expected);
    let error = refusal(GO_DPP, "regtest", "\\u001b[2J");
    assert!(error.to_string().contains("\" [2J\""), "{error}");
}

#[test]
fn every_wrong_member_is_noticed_and_named() {
    let most = MAX_SATOSHIS.to_string();
    let one_more = (MAX_SATOSHIS + 1).to_string();
    let two =
        format!(r#"[{{"amount":{most},"script":"51"}},{{"amount":1,"script":"51"}},{{"amount":"#);
    let many =
        format!("[{}{{\"amount\":", r#"{"amount":1,"script":"51"},"#.repeat(MAX_DESTINATIONS));
    let members = [
        ("20000", "0", "must be worth from 1 to 2100000000000000 satoshis"),
        ("20000", one_more.as_str(), "amount: must be from 0 to 2100000000000000"),
        ("20000", "99999999999999999999", "amount: invalid type: floating point"),
        ("20000", "-1", "amount: invalid value: integer `-1`, expected u64"),
        ("20000", "20000.0", "amount: invalid type: floating point"),
        ("20000", "2e4", "amount: invalid type: floating point"),
        ("20000", "\"20000\"", "amount: invalid type: string \"20000\", expected u64"),
        ("20000", "null", "amount: invalid type: null"),
        ("\"amount\":20000,", "", "missing field `amount`"),
        ("\"amount\":20000,", "\"amount\":1,\"amount\":20000,", "duplicate field `amount`"),
        (SCRIPT, "", "script: must not be empty"),
        (SCRIPT, "5", "script: must be hexadecimal: Odd number of digits"),
        (SCRIPT, "5x", "script: must be hexadecimal: Invalid character 'x'"),
        ("[{\"amount\":", &two, "must be worth from 1 to 2100000000000000 satoshis"),
        ("[{\"amount\":", &many, "more than 1000 outputs"),
        ("\"network\":", "\"net\":", "missing field `network`"),
        ("\"memo\":", "\"memo\":7,\"Memo\":", "memo: invalid type: integer `7`"),
        ("\"creationTimestamp\":", "\"creation\":", "missing field `creationTimestamp`"),
    ];
    for (right, wrong, reason) in members {
        for json in [GO_DPP, BRC, BIP270] {
            let error = refusal(json, right, wrong).to_string();
            assert!(error.contains(reason), "{error}");
        }
    }
    for (right, wrong, reason) in [
        (
            "\"2026-11-21T08",
            "\"2026-11-21 08",
            "creationTimestamp: must be a time in RFC 3339 form",
        ),
        (
            "\"2026-11-22T08:48:56.000000Z\"",
            "1795250936",
            "expirationTimestamp: invalid type: integer",
        ),
        (
            "\"destinations\":",
            "\"destination\":",
            "none of the members destinations, modes and outputs",
        ),
        ("{\"outputs\":[{", "{\"outs\":[{", "destinations: missing field `outputs`"),
        ("\"fees\":", "\"fee\":", "missing field `fees`"),
        ("\"standard\":", "\"Standard\":", "fees: missing field `standard`"),
        ("\"satoshis\":500", "\"satoshis\":-1", "fees.standard.miningFee.satoshis: invalid value"),
        (
            "\"satoshis\":500,\"bytes\":1000",
            "\"satoshis\":500,\"bytes\":0",
            "fees.standard.miningFee.bytes: must be from 1",
        ),
        ("\"satoshis\":250", "\"satoshis\":1e99", "fees.data.miningFee.satoshis: invalid type"),
    ] {
        let error = refusal(GO_DPP, right, wrong).to_string();
        assert!(error.contains(reason), "{error}");
    }
    for (right, wrong, reason) in [
        ("1795250936", "\"2026-11-21T08:48:56Z\"", "creationTimestamp: invalid type: string"),
        ("1795250936", "1795250936.5", "creationTimestamp: invalid type: floating point"),
        ("1795337336", "-1", "expirationTimestamp: invalid value: integer `-1`"),
        ("ef63d9775da5", "ef63d9775da6", "asks for an unknown payment mode"),
        (
            "\"transactions\":[",
            "\"transactions\":[{\"outputs\":{}},",
            "no transaction or more than one",
        ),
        (
            "\"policies\":",
            "\"inputs\":{\"native\":[{}]},\"policies\":",
            "asks for inputs of its choice",
        ),
        ("\"native\":", "\"stas\":[{}],\"native\":", "asks for tokens"),
        ("\"native\":", "\"Native\":", "asks for tokens"),
        ("\"SPVRequired\":false", "\"lockTime\":7", "asks for a lock time"),
        ("\"satoshis\":500,\"bytes\":1000", "\"satoshis\":500,\"bytes\":0", "standard"),
        ("\"satoshis\":500,\"bytes\":1000", "\"satoshis\":500", "a fee has satoshis and bytes"),
    ] {
        let error = refusal(BRC, right, wrong).to_string();
        assert!(error.contains(reason), "{error}");
    }
    let no_option = BRC.split_once("{\"choiceID0\"").unwrap().0.to_owned() + "{}}}";
    assert!(read(&no_option).unwrap_err().to_string().contains("has no option"));
    let modes_list = BRC.split_once("{\"ef63").unwrap().0.to_owned() + "[]}";
    assert!(read(&modes_list).unwrap_err().to_string().contains("modes: invalid type: sequence"));
    for (json, member) in [(GO_DPP, "destinations.outputs"), (BRC, "native"), (BIP270, "outputs")] {
        let (head, tail) = json.split_once("[{\"amount\"").unwrap();
        let (_, tail) = tail.split_once("}]").unwrap();
        let error = read(&format!("{head}[]{tail}")).unwrap_err();
        assert!(error.to_string().ends_with(&format!("{member} is empty")), "{error}");
    }
}

#[test]
fn missing_and_additional_members_do_no_harm() {
    for (json, right, wrong) in [
        (GO_DPP, "\"memo\":\"invoice l2ZQnMo\"", "\"memo\":null"),
        (GO_DPP, "\"paymentUrl\":", "\"url\":"),
        (GO_DPP, "\"description\":", "\"words\":"),
        (GO_DPP, "\"ancestryRequired\":false,", ""),
        (GO_DPP, "2026-11-22T08:48:56.000000Z", "2026-11-22T08:48:56.000000999+00:00"),
        (GO_DPP, "{\"avatar\":\"https://shop.example/a.png\"", "{\"avatar\":[7]"),
        (GO_DPP, "{\"network\"", "{\"x\":[{\"amount\":-1}],\"network\""),
        (BRC, "\"policies\":", "\"inputs\":{\"native\":null},\"policies\":"),
        (BRC, "\"native\":", "\"stas\":[],\"native\":"),
        (BRC, "\"beneficiary\":", "\"beneficiary\":null,\"x\":"),
        (BRC, "\"modes\":{", "\"modes\":{\"0123456789ab\":{\"x\":7},"),
        (
            BRC,
            "{\"choiceID0\":",
            "{\"aTokenOption\":{\"transactions\":[{\"outputs\":{\"stas\":[1]}}]},\"choiceID0\":",
        ),
        (BRC, "\"modes\":", "\"outputs\":[],\"destinations\":null,\"modes\":"),
        (BRC, "\"SPVRequired\":false", "\"SPVRequired\":false,\"lockTime\":0"),
        (BIP270, "\"merchantData\":\"l2ZQnMo\"", "\"merchantData\":{\"a\":7}"),
    ] {
        let changed = json.replacen(right, wrong, 1);
        assert_ne!(changed, json, "{right}");
        let read = read(&changed).unwrap_or_else(|error| panic!("{error}: {changed}"));
        assert_eq!(read.terms.satoshis(), 20_000);
    }
}

#[test]
fn the_zero_time_of_go_means_no_expiry() {
    for none in ["\"0001-01-01T00:00:00Z\"", "null"] {
        let json = GO_DPP.replacen("\"2026-11-22T08:48:56.000000Z\"", none, 1);
        assert_eq!(read(&json).unwrap().terms.expires_at, None, "{none}");
    }
}

#[test]
fn fees_of_brc_payees_are_read_in_both_forms() {
    let flat = r#"{"data":{"satoshis":250,"bytes":1000},"standard":{"satoshis":500,"bytes":1000}}"#;
    let rate = |satoshis| FeeRate { satoshis, bytes: 1000 };
    let fees = |standard, data| Some(Fees { standard: rate(standard), data: rate(data) });
    for (other, expected) in [
        (
            r#"{"data":{"miningFee":{"satoshis":5,"bytes":1000},"relayFee":{}},"standard":{"miningFee":{"satoshis":7,"bytes":1000}}}"#,
            fees(7, 5),
        ),
        (r#"{"standard":{"satoshis":9,"bytes":1000}}"#, fees(9, 9)),
        (r#"{"data":{"satoshis":9,"bytes":1000}}"#, None),
        ("{}", None),
        ("null", None),
    ] {
        let read = read(&BRC.replacen(flat, other, 1)).unwrap();
        assert_eq!(read.terms.fees, expected, "{other}");
    }
}

#[test]
fn fee_rates_of_bip274_are_read_and_written() {
    for (satoshis, bytes, written) in [
        (100, 1000, "0.1"),
        (50, 1000, "0.05"),
        (7, 1000, "0.007"),
        (1, 1, "1.0"),
        (0, 1, "0.0"),
        (1, 1_000_000, "1e-6"),
    ] {
        let standard = FeeRate { satoshis, bytes };
        let fees = Some(Fees { standard, data: FeeRate { satoshis: 1, bytes: 4 } });
        let json = Terms { fees, ..terms() }.to_json(Dialect::Bip270);
        let member = format!(r#""feeRate":{{"satoshisPerByte":{written}}}"#);
        assert!(text(&json).contains(&member), "{}", text(&json));
        let read = ReceivedTerms::from_json(&json, Network::Regtest).unwrap().terms.fees.unwrap();
        assert_eq!(read.standard, read.data);
        for len in [1, 226, 1_000, 1_000_000] {
            assert_eq!(read.standard.fee(len), standard.fee(len), "{written}");
        }
    }
    for (other, expected) in [
        (r#"{"satoshisPerByte":1}"#, Some(1_000_000)),
        (r#"{"satoshisPerByte":0.25,"satoshisPerPushDataByte":7}"#, Some(250_000)),
        (r#"{"satoshisPerByte":1e-9}"#, Some(0)),
        (r#"{"satoshisPerByte":null}"#, None),
        (r#"{"satoshisPerByte":"1"}"#, None),
        (r#"{"satoshisPerByte":-0.5}"#, None),
        (r#"{"satoshisPerByte":1e300}"#, None),
        (r#"{"satoshisPerByte":1e999}"#, None),
        (r#"{"satoshisPerPushDataByte":1}"#, None),
        ("{}", None),
        ("null", None),
        ("0.5", None),
    ] {
        let json = BIP270.replace(r#"{"satoshisPerByte":0.5}"#, other);
        let fees = read(&json).unwrap().terms.fees;
        assert_eq!(fees.map(|fees| fees.standard.satoshis), expected, "{other}");
        assert!(fees.is_none_or(|fees| fees.standard.bytes == 1_000_000), "{other}");
    }
}

#[test]
fn fees_are_rounded_down_and_never_overflow() {
    let rate = FeeRate { satoshis: 500, bytes: 1000 };
    assert_eq!([0, 1, 2, 191, 1000].map(|bytes| rate.fee(bytes)), [0, 0, 1, 95, 500]);
    let high = FeeRate { satoshis: u64::MAX, bytes: 1 };
    assert_eq!((high.fee(1), high.fee(u64::MAX)), (u64::MAX, u64::MAX));
}

#[test]
fn payments_repeat_the_members_that_the_payee_wants_back() {
    let hex = transaction().to_hex();
    let merchant_data = r#"{"avatar":"https://shop.example/a.png","name":"Shop","email":"shop@shop.example","address":"1 the street","extendedData":{"paymentReference":"l2ZQnMo"}}"#;
    let payment = read(GO_DPP).unwrap().payment(&transaction(), None, "");
    let expected = format!(
        r#"{{"merchantData":{merchant_data},"refundTo":null,"memo":"","ancestry":"","rawTx":"{hex}","proofCallbacks":{{}}}}"#
    );
    assert_eq!(text(&payment), expected);
    // The payment repeats it with the same spelling.
    let odd = r#"{ "likes":1.50, "extendedData" : {"paymentReference":"\u006c2"} }"#;
    let payment =
        read(&GO_DPP.replacen(merchant_data, odd, 1)).unwrap().payment(&transaction(), None, "");
    assert_eq!(text(&payment), expected.replacen(merchant_data, odd, 1));

    let payment = read(BRC).unwrap().payment(&transaction(), None, "thanks");
    let expected = format!(
        r#"{{"modeId":"ef63d9775da5","mode":{{"optionId":"choiceID0","transactions":["{hex}"]}},"memo":"thanks"}}"#
    );
    assert_eq!(text(&payment), expected);
    let payment = read(BIP270).unwrap().payment(&transaction(), None, "");
    let expected = format!(r#"{{"merchantData":"l2ZQnMo","transaction":"{hex}","memo":""}}"#);
    assert_eq!(text(&payment), expected);
}

#[test]
fn a_payee_says_that_it_wants_the_ancestors() {
    for (json, no, yes) in [
        (GO_DPP, "\"ancestryRequired\":false", "\"ancestryRequired\":true"),
        (GO_DPP, "\"ancestryRequired\":false", "\"spvRequired\":true"),
        (BRC, "\"SPVRequired\":false", "\"SPVRequired\":true"),
    ] {
        let wanting = json.replacen(no, yes, 1);
        assert!(read(&wanting).unwrap().terms.wants_ancestry, "{wanting}");
        assert!(!read(json).unwrap().terms.wants_ancestry);
    }
}
