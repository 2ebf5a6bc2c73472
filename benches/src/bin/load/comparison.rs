//! What is compared, and how answers are checked.

use std::time::Duration;

use bsv_benches::{ALIAS, Job, median};
use bsv_minerid::{Document, IdentityScript};
use bsv_tests::Server;
use bsv_tx::{PublicKey, Script, Signature, sha256};

use crate::bare::BareServer;
use crate::client::{self, Load, Numbers, Request, SLOT};

/// One kind of request, sent to the server and to a bare one by turns.
#[derive(Debug)]
pub(crate) struct Comparison<'a> {
    pub(crate) name: &'static str,
    /// The least ratio of the rates that is asked for.
    pub(crate) bar: Option<f64>,
    request: Request,
    check: fn(&PublicKey, u32, &str),
    server: &'a Server,
    bare: &'a BareServer,
    key: PublicKey,
    numbers: Numbers,
    /// The server's rate and the bare one's, per round.
    rates: Vec<(f64, f64)>,
}

/// Medians over the rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) server: f64,
    pub(crate) bare: f64,
    pub(crate) ratio: f64,
}

impl Comparison<'_> {
    /// Makes one round.
    pub(crate) fn measure(&mut self, duration: Duration) {
        let load = |address| client::load(address, &self.request, &self.numbers, duration);
        let Load { rate, last } = load(self.server.address());
        let bare = load(&self.bare.address).rate;
        for (number, answer) in last {
            (self.check)(&self.key, number, &answer);
        }
        self.rates.push((rate, bare));
    }

    pub(crate) fn measured(&self) -> Measured {
        let rates = self.rates.iter();
        Measured {
            server: median(rates.clone().map(|(server, _)| *server)),
            bare: median(rates.clone().map(|(_, bare)| *bare)),
            ratio: median(rates.map(|(server, bare)| server / bare)),
        }
    }
}

/// All that is compared.
pub(crate) fn all<'a>(
    server: &'a Server,
    constant: &'a BareServer,
    signature: &'a BareServer,
) -> Vec<Comparison<'a>> {
    let key = server.text(&format!("/minerid/{ALIAS}")).parse().unwrap();
    let numbers = Numbers::new();
    let comparison = |name, bar, bare, request, check| Comparison {
        name,
        bar,
        request,
        check,
        server,
        bare,
        key,
        numbers: numbers.clone(),
        rates: Vec::new(),
    };
    let hash = format!("{SLOT}{}", "0".repeat(64 - SLOT.len()));
    let minerid = Request::get(&format!("/minerid/{ALIAS}"));
    let sign = Request::get(&format!("/minerid/{ALIAS}/sign/{hash}"));
    let script = Request::get(&format!("/opreturn/{ALIAS}/{SLOT}"));
    let job = Job::recorded();
    let coinbase2 = Request::post("/coinbase2", &job.request(SLOT));
    let coinbase2_again = Request::post("/coinbase2", &job.request("1000000"));
    vec![
        comparison("GET /minerid, constant", Some(0.8), constant, minerid, check_key),
        comparison("GET /sign, new", Some(0.7), signature, sign, check_signature),
        comparison("GET /opreturn, new", Some(0.7), signature, script, check_script),
        comparison("POST /coinbase2, new", Some(0.7), signature, coinbase2, check_coinbase2),
        comparison("POST /coinbase2, again", None, signature, coinbase2_again, |key, _, answer| {
            check_coinbase2(key, 1_000_000, answer);
        }),
    ]
}

fn check_key(key: &PublicKey, _: u32, answer: &str) {
    assert_eq!(answer, key.to_string());
}

fn check_signature(key: &PublicKey, number: u32, answer: &str) {
    let hash = format!("{number:0<64}");
    let digest = hex::decode(hash).unwrap().try_into().unwrap();
    assert!(key.verify(&digest, &answer.parse().unwrap()), "{answer}");
}

fn check_script(key: &PublicKey, number: u32, answer: &str) {
    check_document(key, number, answer);
}

fn check_coinbase2(key: &PublicKey, number: u32, answer: &str) {
    // The last output's script, after its three byte length, and before the lock time.
    let start = answer.find("006a04ac1eed88").unwrap();
    let document = check_document(key, number, &answer[start..answer.len() - 8]);
    let extensions = document.extensions;
    assert!(extensions.block_bind.is_some() && extensions.block_info.is_some());
    assert!(extensions.fee_spec.is_some() && extensions.miner_params.is_some());
}

fn check_document(key: &PublicKey, height: u32, script: &str) -> Document {
    let script = IdentityScript::parse(&Script::from_hex(script).unwrap()).unwrap();
    let signature = Signature::from_der(&script.signature).unwrap();
    assert!(key.verify(&sha256(&script.document), &signature));
    let document = Document::from_json(std::str::from_utf8(&script.document).unwrap()).unwrap();
    assert_eq!((document.height, document.miner_id), (height, *key));
    document
}
