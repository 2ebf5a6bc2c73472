use bsv_tx::{Address, Signature, Transaction};
use tempfile::TempDir;

use super::*;
use crate::state::VctxView;
use crate::store::RedbIdentityStore;
use crate::{PlainKeys, SignerError};

const OUTPOINT: &str = "6839008199026098cc78bf5f34c9a6bdf7a8009c9f019f8399c7ca1945b4a4ff:0";
const SEEN: VctxView = VctxView { last_seen: Some(100), gone_since: None, is_spent: false };
const SPENT: VctxView = VctxView { last_seen: Some(100), gone_since: Some(101), is_spent: true };

fn open(dir: &TempDir) -> MinerIds<RedbIdentityStore> {
    let keys = dir.path().join("keystore");
    let keystore = Keystore::open(&keys, None, PlainKeys::Allowed, "test").unwrap();
    let store = RedbIdentityStore::open(&dir.path().join("minerid"), "test").unwrap();
    MinerIds::open(store, keystore, Network::Regtest).unwrap()
}

fn transaction() -> Transaction {
    let hex = "01000000010000000000000000000000000000000000000000000000000000000000000000ffffffff0151ffffffff01e803000000000000015100000000";
    Transaction::from_hex(hex).unwrap()
}

#[test]
fn a_spent_vctx_stops_documents_until_the_chain_shows_it_again() {
    let dir = tempfile::tempdir().unwrap();
    let ids = open(&dir);
    let pool: Alias = "pool".parse().unwrap();
    let outpoint: OutPoint = OUTPOINT.parse().unwrap();
    ids.generate(&pool).unwrap();
    ids.adopt_vctx(&pool, outpoint, &PrivateKey::generate().unwrap()).unwrap();
    let note = |ids: &MinerIds<RedbIdentityStore>, outpoint, view| {
        ids.note_vctx_views(&[(pool.clone(), outpoint, view)]).unwrap();
    };
    let document = |ids: &MinerIds<RedbIdentityStore>| ids.get("pool").unwrap().output_script(1);
    let before = document(&ids).unwrap();
    for view in [VctxView { gone_since: Some(101), ..SEEN }, SEEN] {
        note(&ids, outpoint, view);
        assert_eq!(document(&ids).unwrap(), before);
    }
    note(&ids, OutPoint { vout: 1, ..outpoint }, SPENT);
    assert_eq!(document(&ids).unwrap(), before);
    note(&ids, outpoint, SPENT);
    let identity = ids.get("pool").unwrap();
    for error in [
        identity.output_script(1).unwrap_err(),
        identity.preview_output_script(1).unwrap_err(),
        identity
            .coinbase2(
                1,
                &[&[0; 4][..], &[1], &[0; 8], &[0], &[0; 4]].concat(),
                &Default::default(),
            )
            .unwrap_err(),
    ] {
        assert!(
            matches!(&error, Error::Revoked { alias, outpoint: spent } if *alias == pool && *spent == outpoint),
            "{error}"
        );
    }
    let key = identity.public_key();
    assert!(key.verify(&[1; 32], &identity.sign(&[1; 32]).unwrap()));
    ids.rotate_without_node(&pool, false).unwrap();
    assert!(matches!(document(&ids), Err(Error::Revoked { .. })));
    drop((identity, ids));
    let ids = open(&dir);
    assert!(matches!(document(&ids), Err(Error::Revoked { .. })));
    note(&ids, outpoint, SEEN);
    document(&ids).unwrap();
}

#[test]
fn views_of_an_alias_that_is_not_there_are_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let ids = open(&dir);
    let views = [("other".parse().unwrap(), OUTPOINT.parse().unwrap(), SPENT)];
    assert!(matches!(ids.note_vctx_views(&views), Err(Error::UnknownAlias(_))));
}

#[test]
fn the_steps_to_a_vctx_can_be_repeated_after_reopening() {
    let dir = tempfile::tempdir().unwrap();
    let pool: Alias = "pool".parse().unwrap();
    let ids = open(&dir);
    ids.generate(&pool).unwrap();
    let address = ids.await_vctx_funding(&pool).unwrap();
    drop(ids);
    let ids = open(&dir);
    assert_eq!(ids.await_vctx_funding(&pool).unwrap(), address);
    let key = ids.vctx_key(&pool).unwrap();
    assert_eq!(Address::p2pkh(&key.public_key(), Network::Regtest), address);
    ids.change(&pool, &Change::BeginVctx(transaction())).unwrap();
    drop(ids);
    let ids = open(&dir);
    let vctx = || ids.get("pool").unwrap().record().vctx().cloned().unwrap();
    assert_eq!(vctx(), Vctx::Broadcasting(transaction()));
    assert!(matches!(ids.await_vctx_funding(&pool), Err(Error::Conflict { .. })));
    ids.change(&pool, &Change::AbandonVctx).unwrap();
    assert_eq!(vctx(), Vctx::AwaitingFunds);
    assert_eq!(ids.await_vctx_funding(&pool).unwrap(), address);
    ids.change(&pool, &Change::BeginVctx(transaction())).unwrap();
    assert!(matches!(ids.get("pool").unwrap().output_script(1), Err(Error::NoVctx(_))));
    let outpoint = OutPoint { txid: transaction().txid(), vout: 0 };
    ids.change(&pool, &Change::RecordVctx(outpoint)).unwrap();
    assert_eq!(vctx(), Vctx::Recorded(outpoint, VctxView::default()));
    ids.get("pool").unwrap().output_script(1).unwrap();
}

/// A key on a device that can be disconnected.
#[derive(Debug)]
struct OnDevice {
    key: PrivateKey,
    is_connected: AtomicBool,
}

impl Signer for OnDevice {
    fn public_key(&self) -> PublicKey {
        self.key.public_key()
    }

    fn sign(&self, digest: &[u8; 32]) -> Result<Signature, SignerError> {
        if self.is_connected.load(Ordering::Relaxed) {
            return Ok(self.key.sign(digest));
        }
        let reason = "the device is not connected".to_owned();
        Err(SignerError { public_key: self.key.public_key(), reason })
    }
}

#[test]
fn a_key_that_does_not_sign_fails_what_needs_it_until_it_signs_again() {
    let dir = tempfile::tempdir().unwrap();
    let ids = open(&dir);
    let pool: Alias = "pool".parse().unwrap();
    ids.generate(&pool).unwrap();
    ids.adopt_vctx(&pool, OUTPOINT.parse().unwrap(), &PrivateKey::generate().unwrap()).unwrap();
    let identity = ids.get("pool").unwrap();
    let before = identity.output_script(1).unwrap();

    let record = identity.record();
    let key = open_key(&ids.keystore, "pool_1".to_owned(), &record.current_key().public_key);
    let key = Arc::new(OnDevice { key: key.unwrap(), is_connected: AtomicBool::new(false) });
    let as_signer = || Arc::clone(&key) as Arc<dyn Signer>;
    identity.replace_state(State::new(record, as_signer(), as_signer()));
    for error in [identity.output_script(1).map(drop), identity.sign(&[1; 32]).map(drop)]
        .map(Result::unwrap_err)
    {
        assert_eq!(
            error.to_string(),
            format!("the key {} does not sign: the device is not connected", key.public_key())
        );
    }
    key.is_connected.store(true, Ordering::Relaxed);
    assert_eq!(identity.output_script(1).unwrap(), before);
    identity.sign(&[1; 32]).unwrap();
}
