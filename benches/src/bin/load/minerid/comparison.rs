//! What is compared, and how answers are checked.

use std::fs;
use std::time::Duration;

use bsv_benches::{ALIAS, Job, median};
use bsv_minerid::formats::{Document, IdentityScript};
use bsv_tests::Server;
use bsv_tx::{PublicKey, Script, Signature, sha256};

use crate::bare::BareServer;
use crate::client::{self, Load, Numbers, Request, SLOT};

const CONNECTIONS: usize = 16;

/// One kind of request, sent to the server and to a bare one by turns.
#[derive(Debug)]
pub(crate) struct Comparison<'a> {
    pub(crate) name: &'static str,
    /// The least acceptable ratio of the rates.
    pub(crate) bar: Option<f64>,
    request: Request,
    check: fn(&PublicKey, u32, &str),
    server: &'a Server,
    bare: &'a BareServer,
    key: PublicKey,
    numbers: Numbers,
    /// What the server and the bare server did in each round.
    rounds: Vec<(Done, Done)>,
}

/// What a server did under load.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    /// Requests per second.
    pub(crate) rate: f64,
    /// Processor time per request, of the server's process alone, in microseconds.
    pub(crate) cpu: f64,
}

/// Medians over the rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) server: Done,
    pub(crate) bare: Done,
    /// Of the rates.
    pub(crate) ratio: f64,
}

impl Comparison<'_> {
    /// Makes one round.
    pub(crate) fn measure(&mut self, duration: Duration) {
        let (server, last) = self.load(self.server.id(), self.server.address(), duration);
        let (bare, _) = self.load(self.bare.id(), &self.bare.address, duration);
        for (number, answer) in last {
            (self.check)(&self.key, number, &answer);
        }
        self.rounds.push((server, bare));
    }

    fn load(&self, pid: u32, address: &str, duration: Duration) -> (Done, Vec<(u32, String)>) {
        let before = cpu_time(pid);
        let Load { count, rate, last, .. } =
            client::load(address, &self.request, &self.numbers, CONNECTIONS, duration);
        let cpu = (cpu_time(pid) - before) / f64::from(count);
        (Done { rate, cpu }, last)
    }

    pub(crate) fn measured(&self) -> Measured {
        let of = |figure: fn(&(Done, Done)) -> f64| median(self.rounds.iter().map(figure));
        Measured {
            server: Done { rate: of(|round| round.0.rate), cpu: of(|round| round.0.cpu) },
            bare: Done { rate: of(|round| round.1.rate), cpu: of(|round| round.1.cpu) },
            ratio: of(|round| round.0.rate / round.1.rate),
        }
    }
}

/// The processor time that a process has used, in microseconds.
fn cpu_time(pid: u32) -> f64 {
    const TICK: f64 = 1e4;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name, in parentheses, may hold spaces. Eleven fields stand between it and the two times.
    let numbers = stat.rsplit_once(") ").unwrap().1.split(' ');
    numbers.skip(11).take(2).map(|ticks| ticks.parse::<f64>().unwrap() * TICK).sum()
}

/// All comparisons.
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
        rounds: Vec::new(),
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
    // The last output's script, which stands before the lock time.
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
