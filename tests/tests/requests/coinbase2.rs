use crate::requests::Service;
use crate::requests::service::{MALFORMED, ONE_OUTPUT, body_with, coinbase2, full_job_data, holds};

fn body(coinbase2: &str) -> String {
    body_with(&[("coinbase2", &format!("\"{coinbase2}\""))])
}

/// An output of zero satoshis with this script, which must be shorter than 253 bytes.
fn output(script: &str) -> String {
    format!("0000000000000000{:02x}{script}", script.len() / 2)
}

#[test]
fn bytes_that_are_not_the_end_of_a_coinbase_transaction_are_refused() {
    let service = Service::start();
    let right = coinbase2("01", ONE_OUTPUT);
    for len in (2..right.len()).step_by(2) {
        service.check_post(body(&right[..len]), 422, MALFORMED);
    }
    for trailing in ["00", "ff", "00000000"] {
        service.check_post(body(&format!("{right}{trailing}")), 422, MALFORMED);
    }
    service.post_ok(body(&right));
    service.check_alive();
}

#[test]
fn the_rest_of_the_script_stays_before_the_sequence_number() {
    let service = Service::start();
    let job = full_job_data().to_string();
    let body = |coinbase2: &str| {
        body_with(&[("coinbase2", &format!("\"{coinbase2}\"")), ("jobData", &job)])
    };
    let right = coinbase2("01", ONE_OUTPUT);
    let bare = service.post_ok(body(&right));
    assert!(holds(&bare, "\"modifiedMerkleRoot\":"));
    for script_end in [hex::encode("/a pool/"), "00".to_owned(), "2f".repeat(100)] {
        let answer = service.post_ok(body(&format!("{script_end}{right}")));
        assert_eq!(answer, format!("{script_end}{bare}"));
    }
    service.check_post(body(&format!("{}{right}", "2f".repeat(101))), 422, MALFORMED);

    let script = format!("51{}", &right[..right.len() - 8]);
    let nested = coinbase2("01", &output(&script));
    let twice = "Invalid Coinbase 2: it reads as the end of a coinbase transaction from offset 1 and from offset 16";
    service.check_post(body(&format!("2f{nested}")), 422, twice);
    service.check_alive();
}

#[test]
fn announced_counts_and_lengths_that_exceed_the_bytes_are_refused() {
    let service = Service::start();
    for count in [
        "02",
        "fc",
        "fdfd00",
        "fdffff",
        "fe00000100",
        "feffffffff",
        "ff0000000001000000",
        "ffffffffffffffff7f",
        "ffffffffffffffffff",
    ] {
        service.check_post(body(&coinbase2(count, ONE_OUTPUT)), 422, MALFORMED);
        let long_script = format!("0000000000000000{count}51");
        service.check_post(body(&coinbase2("01", &long_script)), 422, MALFORMED);
    }
    for longer_than_need_be in ["fd0100", "fe01000000", "ff0100000000000000"] {
        service.check_post(body(&coinbase2(longer_than_need_be, ONE_OUTPUT)), 422, MALFORMED);
    }
    service.check_alive();
}

#[test]
fn an_identity_output_is_added_only_if_there_are_outputs_and_no_identity_among_them() {
    let service = Service::start();
    let no_output = "Invalid Coinbase 2: it has no output";
    service.check_post(body(&coinbase2("00", "")), 422, no_output);

    let identified = "Invalid Coinbase 2: it holds an identity output already";
    for prefix in ["006a04ac1eed88", "006a04601dface"] {
        for script in [prefix, &format!("{prefix}0100"), &format!("{prefix}027b7d0130")] {
            let identity = output(script);
            for outputs in [
                ("01", identity.clone()),
                ("02", format!("{ONE_OUTPUT}{identity}")),
                ("02", format!("{identity}{ONE_OUTPUT}")),
            ] {
                service.check_post(body(&coinbase2(outputs.0, &outputs.1)), 422, identified);
            }
        }
    }
    for script_end in ["", "2f706f6f6c2f"] {
        let answered =
            service.post_ok(body(&(script_end.to_owned() + &coinbase2("01", ONE_OUTPUT))));
        service.check_post(body(&answered), 422, identified);
    }

    for other in ["6a04ac1eed88", "006a04ac1eed", "006a04601dfacf", "51006a04ac1eed88", ""] {
        let outputs = format!("{ONE_OUTPUT}{}", output(other));
        let answered = service.post_ok(body(&coinbase2("02", &outputs)));
        assert!(answered.starts_with(&format!("ffffffff03{outputs}0000000000000000fd")));
    }
    service.check_alive();
}

#[test]
fn the_output_count_grows_by_one_in_its_shortest_form_and_nothing_else_changes() {
    let service = Service::start();
    let output = "01000000000000000151";
    for (count, before, after) in [
        (1, "01", "02"),
        (251, "fb", "fc"),
        (252, "fc", "fdfd00"),
        (253, "fdfd00", "fdfe00"),
        (10_000, "fd1027", "fd1127"),
    ] {
        let outputs = output.repeat(count);
        let sent = coinbase2(before, &outputs);
        let answer = service.post_ok(body(&sent));
        let rest = answer.strip_prefix(&format!("ffffffff{after}{outputs}")).unwrap();
        let added = rest.strip_prefix("0000000000000000fd").unwrap();
        let script = added[4..].strip_suffix("00000000").unwrap();
        let len = u16::from_str_radix(&added[..4], 16).unwrap().swap_bytes();
        assert_eq!(script.len() / 2, usize::from(len), "{count}");
        assert!(script.starts_with("006a04ac1eed88"), "{count}");
        assert!(holds(script, "\"height\":1000,"), "{count}");
    }
    service.check_alive();
}

#[test]
fn sequence_lock_time_values_and_scripts_are_any_bytes() {
    let service = Service::start();
    let long_script = format!("fd2c01{}", "6a".repeat(300));
    for (start, outputs, end) in [
        ("00000000", ONE_OUTPUT, "ffffffff"),
        ("01020304", "ffffffffffffffff00", "04030201"),
        ("ffffffff", &format!("0000000000000080{long_script}"), "00000000"),
    ] {
        let answer = service.post_ok(body(&format!("{start}01{outputs}{end}")));
        assert!(answer.starts_with(&format!("{start}02{outputs}0000000000000000fd")));
        assert!(answer.ends_with(end));
    }
}
