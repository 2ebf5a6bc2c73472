//! A pool that puts its miner identity into its blocks, without a runtime and without a node.
//!
//! The pool reads one job per line from standard input: the height of the block, the second part of
//! its coinbase transaction in hexadecimal, and the job data as JSON, separated by spaces. The pool
//! answers each job with the second part that carries the identity.
//!
//! ```text
//! cargo run -p bsv-minerid --no-default-features --features store --example pool -- DIRECTORY OUTPOINT KEY
//! ```
//!
//! OUTPOINT is the validity check output, written TXID:INDEX. KEY is the private key that can spend
//! it.

use std::error::Error;
use std::io;
use std::path::Path;

use bsv_minerid::store::RedbIdentityStore;
use bsv_minerid::{
    Alias, Identity, JobData, Keystore, MinerIds, Network, OutPoint, PlainKeys, PrivateKey,
};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [dir, outpoint, key] = &arguments[..] else {
        return Err("expected DIRECTORY OUTPOINT KEY".into());
    };
    let ids = open(Path::new(dir))?;
    let alias: Alias = "pool".parse()?;
    if ids.all().is_empty() {
        let key = PrivateKey::from_wif(key, Network::Regtest)?;
        set_up(&ids, &alias, outpoint.parse()?, &key)?;
    }
    let pool = ids.get(alias.as_str())?;
    for job in io::stdin().lines() {
        println!("{}", identify(&pool, &job?)?);
    }
    Ok(())
}

fn open(dir: &Path) -> Result<MinerIds<RedbIdentityStore>, Box<dyn Error>> {
    let keystore = Keystore::open(&dir.join("keystore"), None, PlainKeys::Allowed, "pool")?;
    let store = RedbIdentityStore::open(&dir.join("minerid"), "pool")?;
    Ok(MinerIds::open(store, keystore, Network::Regtest)?)
}

fn set_up(
    ids: &MinerIds<RedbIdentityStore>,
    alias: &Alias,
    vctx: OutPoint,
    key: &PrivateKey,
) -> Result<(), bsv_minerid::Error> {
    ids.generate(alias)?;
    ids.adopt_vctx(alias, vctx, key)
}

fn identify(pool: &Identity, job: &str) -> Result<String, Box<dyn Error>> {
    let mut parts = job.splitn(3, ' ');
    let (Some(height), Some(coinbase2), Some(job)) = (parts.next(), parts.next(), parts.next())
    else {
        return Err("expected a height, a coinbase2, and the job data as JSON".into());
    };
    let coinbase2 = hex::decode(coinbase2)?;
    let identified = pool.coinbase2(height.parse()?, &coinbase2, &JobData::from_json(job)?)?;
    Ok(hex::encode(identified))
}
