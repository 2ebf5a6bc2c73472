//! What an identity's work takes, in multiples of one bare ECDSA signature.
//!
//! The machine may be busy with other things, so every sample of the work is followed by bare
//! signatures for as long, and the median of the samples' ratios counts.

#![allow(clippy::unwrap_used, reason = "what fails here fails a measurement")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bsv_benches::{ALIAS, Job, Table, median, verdict};
use bsv_minerid::{
    Identity, JobData, Keystore, MinerContact, MinerIds, Network, PlainKeys, RedbIdentityStore,
};
use bsv_tests::{build, vectors};
use bsv_tx::Txid;
use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, Criterion, SamplingMode};
use secp256k1::{Message, SecretKey, ecdsa};

fn main() {
    let mut criterion = Criterion::default()
        .output_directory(&build::target_dir().join("criterion"))
        .without_plots()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    let table = measure(&mut criterion);
    criterion.final_summary();
    println!("\n{table}");
}

fn measure(criterion: &mut Criterion) -> Table<6> {
    let home = tempfile::tempdir().unwrap();
    let identity = identity(home.path());
    let job = Job::recorded();
    let (coinbase2, json) = (job.coinbase2(), job.job_data());
    let job_data = JobData::from_json(&json).unwrap();
    assert!(job_data.block_bind.is_some() && job_data.block_info.is_some());
    assert!(job_data.fee_spec.is_some() && job_data.miner_params.is_some());

    let mut group = criterion.benchmark_group("minerid");
    group.sampling_mode(SamplingMode::Flat);
    let mut comparison = Comparison {
        group,
        table: Table::new(["", "time", "bare signature", "multiple", "at most", ""]),
    };
    let mut heights = 1..;
    let mut next = || heights.next().unwrap();
    comparison.add("output script, new", Some(1.3), || identity.output_script(next()));
    comparison.add("output script, again", Some(1.0 / 50.0), || identity.output_script(1));
    comparison
        .add("coinbase2, new", Some(1.6), || identity.coinbase2(next(), &coinbase2, &job_data));
    comparison
        .add("coinbase2, again", Some(1.0 / 25.0), || identity.coinbase2(1, &coinbase2, &job_data));
    let miner_info = miner_info_identity(home.path());
    let block = job_data.block_bind.clone().unwrap();
    assert_eq!(block.merkle_branch.len(), 12);
    let txid = |number: u32| {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&number.to_le_bytes());
        Txid::from_bytes(bytes)
    };
    comparison.add("1.0: script, new", Some(1.3), || miner_info.output_script(next()));
    comparison.add("1.0: script, again", Some(1.0 / 50.0), || miner_info.output_script(1));
    comparison.add("1.0: coinbase2, new", Some(1.5), || {
        miner_info.coinbase2_with_reference(txid(next()), &coinbase2, &block)
    });
    comparison.add("1.0: coinbase2, again", Some(1.0 / 25.0), || {
        miner_info.coinbase2_with_reference(txid(1), &coinbase2, &block)
    });
    comparison.add("job data from JSON", None, || JobData::from_json(black_box(&json)));
    comparison.add("sign", None, || Ok::<_, ()>(identity.sign(black_box(&[7; 32]))));
    comparison.table
}

fn identity(dir: &Path) -> Arc<Identity> {
    let owner = "benchmark";
    let keystore = Keystore::open(&dir.join("keystore"), None, PlainKeys::Allowed, owner).unwrap();
    let store = RedbIdentityStore::open(&dir.join("minerid"), owner).unwrap();
    let ids = MinerIds::open(store, keystore, Network::Regtest).unwrap();
    ids.import(&vectors::write_home(&vectors::minerid_0_2(), dir), None).unwrap();
    ids.get(ALIAS).unwrap()
}

/// One of generation 1.0.
fn miner_info_identity(dir: &Path) -> Arc<Identity> {
    let owner = "benchmark";
    let open =
        |name: &str| Keystore::open(&dir.join(name), None, PlainKeys::Allowed, owner).unwrap();
    let store = RedbIdentityStore::open(&dir.join("minerid-1.0"), owner).unwrap();
    let ids = MinerIds::open(store, open("keystore-1.0"), Network::Regtest).unwrap();
    let alias = ALIAS.parse().unwrap();
    ids.generate_miner_info(&alias, &open("revocation-1.0")).unwrap();
    let contact = MinerContact::from_json(r#"{"name":"a pool","email":"ops@pool.example"}"#);
    ids.set_contact(&alias, &contact.unwrap()).unwrap();
    ids.get(ALIAS).unwrap()
}

struct Comparison<'a> {
    group: BenchmarkGroup<'a, WallTime>,
    table: Table<6>,
}

/// Seconds per call.
struct Sample {
    work: f64,
    bare: f64,
}

impl Comparison<'_> {
    /// Measures `work`, which may take `bar` signatures of time.
    fn add<T, E: std::fmt::Debug>(
        &mut self,
        name: &str,
        bar: Option<f64>,
        mut work: impl FnMut() -> Result<T, E>,
    ) {
        let key = SecretKey::from_secret_bytes([7; 32]).unwrap();
        let mut samples = Vec::new();
        self.group.bench_function(name, |bencher| {
            bencher.iter_custom(|count| {
                let started = Instant::now();
                for _ in 0..count {
                    black_box(work().unwrap());
                }
                let spent = started.elapsed();
                let bare = time_of_signature(&key, spent);
                samples.push(Sample { work: spent.as_secs_f64() / count as f64, bare });
                spent
            });
        });
        // A filter on the command line may leave it out.
        if !samples.is_empty() {
            self.table.row(row(name, bar, &samples));
        }
    }
}

/// Signs for at least `duration`.
fn time_of_signature(key: &SecretKey, duration: Duration) -> f64 {
    let started = Instant::now();
    let mut count = 0;
    loop {
        black_box(ecdsa::sign(Message::from_digest(black_box([7; 32])), key));
        count += 1;
        let spent = started.elapsed();
        if spent >= duration {
            return spent.as_secs_f64() / f64::from(count);
        }
    }
}

fn row(name: &str, bar: Option<f64>, samples: &[Sample]) -> [String; 6] {
    let microseconds = |seconds: f64| format!("{:.2} us", seconds * 1e6);
    let multiple = median(samples.iter().map(|sample| sample.work / sample.bare));
    [
        name.to_owned(),
        microseconds(median(samples.iter().map(|sample| sample.work))),
        microseconds(median(samples.iter().map(|sample| sample.bare))),
        format!("{multiple:.4}"),
        bar.map(|bar| format!("{bar:.4}")).unwrap_or_default(),
        bar.map(|bar| verdict(multiple <= bar)).unwrap_or_default(),
    ]
}
