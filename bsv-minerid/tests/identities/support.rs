use std::path::PathBuf;

use bsv_minerid::formats::{Document, IdentityScript, succession_digest};
use bsv_minerid::store::{ChainView, IdentityStore, MinerIdInfo, MinerIdState, RedbIdentityStore};
use bsv_minerid::{Alias, Error, Keystore, MinerIds, Network, PlainKeys};
use bsv_tx::{ExtendedPrivateKey, OutPoint, PrivateKey, PublicKey, Script, Signature, sha256};
use tempfile::TempDir;

pub(crate) const COINBASE2: &str =
    "ffffffff011a0a5325000000001976a9145deb9155942e7d38febc15de8870222fd24d080e88ac00000000";

/// The directories of a service, which can be opened repeatedly.
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn key_file(&self, name: &str) -> PathBuf {
        self.path("keystore").join(format!("{name}.key"))
    }

    pub(crate) fn keystore(&self) -> Keystore {
        self.keystore_named("keystore")
    }

    pub(crate) fn keystore_named(&self, name: &str) -> Keystore {
        Keystore::open(&self.path(name), None, PlainKeys::Allowed, "the holder").unwrap()
    }

    pub(crate) fn store(&self) -> RedbIdentityStore {
        RedbIdentityStore::open(&self.path("minerid"), "the holder").unwrap()
    }

    pub(crate) fn try_open(&self) -> Result<MinerIds<RedbIdentityStore>, Error> {
        MinerIds::open(self.store(), self.keystore(), Network::Regtest)
    }

    pub(crate) fn open(&self) -> MinerIds<RedbIdentityStore> {
        self.try_open().unwrap()
    }
}

pub(crate) fn alias(text: &str) -> Alias {
    text.parse().unwrap()
}

pub(crate) fn extended_key() -> ExtendedPrivateKey {
    ExtendedPrivateKey::generate(Network::Regtest).unwrap()
}

pub(crate) fn vctx() -> OutPoint {
    "6839008199026098cc78bf5f34c9a6bdf7a8009c9f019f8399c7ca1945b4a4ff:3".parse().unwrap()
}

/// Creates an identity that can make documents and that nodes may know. Answers its key.
pub(crate) fn begin<S: IdentityStore>(ids: &MinerIds<S>, name: &str) -> PublicKey {
    let key = ids.generate(&alias(name)).unwrap();
    ids.adopt_vctx(&alias(name), vctx(), &PrivateKey::generate().unwrap()).unwrap();
    ids.note_shown(&alias(name)).unwrap();
    ids.observe(&alias(name), known_to_node(key)).unwrap();
    key
}

/// The answer of a node that considers a first key current.
fn known_to_node(key: PublicKey) -> ChainView {
    let info = MinerIdInfo {
        miner_id: key,
        state: MinerIdState::Current,
        previous_miner_id: Some(key),
        revocation_key: None,
        previous_revocation_key: None,
    };
    ChainView { known: vec![info], ..ChainView::default() }
}

/// The document in an output script. Checks that the key it names has signed it, and that the
/// previous key vouches for that key.
pub(crate) fn verified(script: &[u8]) -> Document {
    let script = IdentityScript::parse(&Script::from_bytes(script)).unwrap();
    let document = Document::from_json(str::from_utf8(&script.document).unwrap()).unwrap();
    let signature = Signature::from_der(&script.signature).unwrap();
    assert!(document.miner_id.verify(&sha256(&script.document), &signature));
    let previous = &document.previous_miner_id;
    let digest = succession_digest(previous, &document.miner_id, &document.vctx.txid);
    assert!(previous.verify(&digest, &document.previous_miner_id_signature));
    document
}

/// The previous and the current key in the documents now, by a preview.
pub(crate) fn named_keys<S: IdentityStore>(ids: &MinerIds<S>, name: &str) -> [PublicKey; 2] {
    let script = ids.get(name).unwrap().preview_output_script(1).unwrap();
    let document = verified(&script);
    [document.previous_miner_id, document.miner_id]
}
