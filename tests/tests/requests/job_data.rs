use serde_json::{Value, json};

use crate::requests::Service;
use crate::requests::service::{body_with, full_job_data, holds};

const HASH: &str = "70f5701644897c92b60e98dbbfe72e1cfd7a2728c6fa3a29c4b4f6e986b0ccaa";

fn body(job_data: &str) -> String {
    body_with(&[("jobData", job_data)])
}

/// The job data with all inputs, with one member replaced.
fn with(object: &str, member: &str, value: &str) -> String {
    let mut job = full_job_data();
    job[object][member] = json!("REPLACED");
    job.to_string().replace("\"REPLACED\"", value)
}

#[test]
fn a_member_of_a_wrong_type_is_named() {
    let service = Service::start();
    let many = json!(vec![HASH; 33]).to_string();
    let text = format!("\"{HASH}\"");
    let short = format!("\"{}\"", &HASH[1..]);
    let long = format!("\"{HASH}0\"");
    let no_hex = format!("\"{}\"", HASH.replace('7', "g"));
    let prevhash = ["1", "true", "[]", "{}", &short, &long, &no_hex, "\"\\ud83d\""];
    let proof = [
        "1".to_owned(),
        "{}".to_owned(),
        text.clone(),
        "[1]".to_owned(),
        "[null]".to_owned(),
        "[\"\"]".to_owned(),
        format!("[{short}]"),
        format!("[{text},{no_hex}]"),
        format!("[[{text}]]"),
        many,
    ];
    let integer = ["\"1x\"", "true", "[]", "{}", "-1", "-0", "1.0", "1.5", "1e3", "1e400"];
    let beyond = "18446744073709551616";

    let mut cases: Vec<(&str, &str, Vec<&str>)> = vec![
        ("miningCandidate", "prevhash", prevhash.to_vec()),
        ("miningCandidate", "merkleProof", proof.iter().map(String::as_str).collect()),
    ];
    for (object, member) in [
        ("miningCandidate", "num_tx"),
        ("miningCandidate", "sizeWithoutCoinbase"),
        ("getInfo", "maxblocksize"),
        ("getInfo", "maxminedblocksize"),
        ("getInfo", "maxstackmemoryusagepolicy"),
        ("getInfo", "maxstackmemoryusageconsensus"),
    ] {
        cases.push((object, member, [&integer[..], &[beyond]].concat()));
    }
    for (object, member, values) in cases {
        for value in values {
            let refusal = format!("Invalid jobData.{object}.{member}: …");
            service.check_post(body(&with(object, member, value)), 422, &refusal);
            let alone = format!("{{\"{object}\":{{\"{member}\":{value}}}}}");
            service.check_post(body(&alone), 422, &refusal);
        }
    }
    service.check_alive();
}

#[test]
fn an_object_of_a_wrong_type_is_named() {
    let service = Service::start();
    for value in ["1", "true", "\"x\"", "[]", "[{}]"] {
        service.check_post(body(value), 422, "Invalid jobData: must be an object");
        for member in ["miningCandidate", "getInfo", "feeSpec"] {
            let refusal = format!("Invalid jobData.{member}: must be an object");
            service.check_post(body(&format!("{{\"{member}\":{value}}}")), 422, &refusal);
        }
    }
    for (twice, member) in [
        (r#"{"getInfo":{},"getInfo":{}}"#, "jobData"),
        (r#"{"getInfo":{"maxblocksize":1,"maxblocksize":1}}"#, "jobData.getInfo"),
        (r#"{"miningCandidate":{"num_tx":1,"num_tx":1}}"#, "jobData.miningCandidate"),
        (r#"{"feeSpec":{"a":"\ud800"}}"#, "jobData.feeSpec"),
    ] {
        service.check_post(body(twice), 422, &format!("Invalid {member}: …"));
    }
    service.check_alive();
}

#[test]
fn an_extension_appears_when_all_its_inputs_do() {
    let service = Service::start();
    let without = service.post_ok(body_with(&[]));
    assert!(!holds(&without, "extensions"));
    for nothing in [
        "null".to_owned(),
        "{}".to_owned(),
        r#"{"miningCandidate":null,"getInfo":null,"feeSpec":null}"#.to_owned(),
        r#"{"miningCandidate":{},"getInfo":{}}"#.to_owned(),
        r#""""#.to_owned(),
        "0".to_owned(),
        "false".to_owned(),
        r#"{"miningCandidate":"","getInfo":0,"feeSpec":false}"#.to_owned(),
        r#"{"miningCandidate":0,"getInfo":false,"feeSpec":""}"#.to_owned(),
        r#"{"miningCandidate":false,"getInfo":"","feeSpec":0}"#.to_owned(),
        format!(r#"{{"miningCandidate":{{"prevhash":"{HASH}","merkleProof":""}}}}"#),
        r#"{"miningCandidate":{"prevhash":"","merkleProof":[]}}"#.to_owned(),
        r#"{"miningCandidate":{"num_tx":1,"sizeWithoutCoinbase":null,"merkleProof":[]}}"#
            .to_owned(),
        format!(r#"{{"miningCandidate":{{"prevhash":"{HASH}","num_tx":1}}}}"#),
        r#"{"getInfo":{"maxblocksize":1,"maxminedblocksize":1}}"#.to_owned(),
        r#"{"other":{"deep":[1.5,"x"]},"miningCandidate":{"id":1,"height":"x","nBits":[]}}"#
            .to_owned(),
        r#"{"getInfo":{"version":"x","balance":{},"testnet":0}}"#.to_owned(),
    ] {
        assert_eq!(service.post_ok(body(&nothing)), without, "{nothing}");
    }

    let extensions = ["blockbind", "blockinfo", "feeSpec", "minerparams"];
    let check = |job: &Value, present: [bool; 4]| {
        let answer = service.post_ok(body(&job.to_string()));
        for (name, present) in extensions.iter().zip(present) {
            assert_eq!(holds(&answer, &format!("\"{name}\":{{")), present, "{name}: {job}");
        }
    };
    let full = full_job_data();
    check(&full, [true; 4]);
    for (object, member, present) in [
        ("miningCandidate", "prevhash", [false, true, true, true]),
        ("miningCandidate", "merkleProof", [false, true, true, true]),
        ("miningCandidate", "num_tx", [true, false, true, true]),
        ("miningCandidate", "sizeWithoutCoinbase", [true, false, true, true]),
        ("getInfo", "maxblocksize", [true, true, true, false]),
        ("getInfo", "maxminedblocksize", [true, true, true, false]),
        ("getInfo", "maxstackmemoryusagepolicy", [true, true, true, false]),
        ("getInfo", "maxstackmemoryusageconsensus", [true, true, true, false]),
    ] {
        let mut job = full.clone();
        job[object].as_object_mut().unwrap().remove(member);
        check(&job, present);
        job[object][member] = Value::Null;
        check(&job, present);
    }
    let mut job = full;
    job["feeSpec"] = Value::Null;
    check(&job, [true, true, false, true]);
    service.check_alive();
}

#[test]
fn integers_keep_their_value_and_fees_their_spelling() {
    let service = Service::start();
    let job = r#"{"miningCandidate":{"num_tx":18446744073709551615,"sizeWithoutCoinbase":9007199254740993},
        "getInfo":{"maxblocksize":9223372036854775807,"maxstackmemoryusagepolicy":0,
        "maxminedblocksize":1,"maxstackmemoryusageconsensus":18446744073709551615},
        "feeSpec": { "z" : 1.50, "a": [1E400, -0 , 123456789012345678901234567890],
        "\u0061\/": "\u00e9 \u007f \t" , "z": null}}"#;
    let answer = service.post_ok(body(job));
    for text in [
        r#""blockinfo":{"txCount":18446744073709551615,"sizeWithoutCoinbase":9007199254740993}"#,
        r#""minerparams":{"policy":{"blockmaxsize":9223372036854775807,"maxstackmemoryusagepolicy":0},"#,
        r#""consensus":{"excessiveblocksize":1,"maxstackmemoryusageconsensus":18446744073709551615}"#,
        r#"{"z":1.50,"a":[1E400,-0,123456789012345678901234567890],"a/":"é \u007f \t","z":null}"#,
    ] {
        assert!(holds(&answer, text), "{text}");
    }
}

#[test]
fn hashes_are_read_in_either_case_and_32_merkle_branches_at_most() {
    let service = Service::start();
    let job = |hash: &str, branches: usize| {
        let branches = vec![hash; branches];
        let candidate = json!({"prevhash": hash, "merkleProof": branches});
        json!({"miningCandidate": candidate}).to_string()
    };
    for branches in [0, 1, 32] {
        let answer = service.post_ok(body(&job(HASH, branches)));
        assert!(holds(&answer, &format!("\"blockbind\":{{\"prevBlockHash\":\"{HASH}\"")));
        assert_eq!(service.post_ok(body(&job(&HASH.to_uppercase(), branches))), answer);
    }
    let refusal = "Invalid jobData.miningCandidate.merkleProof: \
                   has more branches than a block can have";
    service.check_post(body(&job(HASH, 33)), 422, refusal);
    service.check_post(body(&job(HASH, 10_000)), 422, refusal);
}
