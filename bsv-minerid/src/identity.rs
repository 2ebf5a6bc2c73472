use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use bsv_tx::{OutPoint, PrivateKey, PublicKey, Script, Signature, sha256};

use crate::alias::Alias;
use crate::coinbase2::Coinbase2;
use crate::document::{Document, Extensions, succession_digest};
use crate::error::Error;
use crate::job_data::JobData;
use crate::output_script;
use crate::store::{IdentityRecord, Vctx};
use crate::template_cache::{TemplateCache, TemplateKey};

/// One miner identity, ready to sign. Nothing here does any I/O.
///
/// While a document is built its key cannot change, so that a document always names the very key
/// that signed it.
#[derive(Debug)]
pub struct Identity {
    alias: Alias,
    state: RwLock<State>,
}

/// What holds between two changes of an identity.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) record: IdentityRecord,
    pub(crate) current_key: Arc<PrivateKey>,
    pub(crate) previous_key: Arc<PrivateKey>,
    /// What all documents have in common, or why there are none.
    common: Result<Document, Obstacle>,
    handed_out: AtomicBool,
    answers: TemplateCache,
}

#[derive(Clone, Copy, Debug)]
enum Obstacle {
    NoVctx,
    Revoked(OutPoint),
}

impl State {
    pub(crate) fn new(
        record: IdentityRecord,
        current_key: Arc<PrivateKey>,
        previous_key: Arc<PrivateKey>,
    ) -> Self {
        let common = match &record.vctx {
            Vctx::Recorded(outpoint, view) if view.is_spent => Err(Obstacle::Revoked(*outpoint)),
            Vctx::Recorded(outpoint, _) => {
                let previous_miner_id = record.previous_key().public_key;
                let miner_id = record.current_key().public_key;
                let succession = succession_digest(&previous_miner_id, &miner_id, &outpoint.txid);
                Ok(Document {
                    height: 0,
                    previous_miner_id,
                    previous_miner_id_signature: previous_key.sign(&succession),
                    miner_id,
                    vctx: *outpoint,
                    miner_contact: record.contact.clone(),
                    extensions: Extensions::default(),
                })
            }
            _ => Err(Obstacle::NoVctx),
        };
        let handed_out = AtomicBool::new(record.handed_out);
        let answers = TemplateCache::default();
        Self { record, current_key, previous_key, common, handed_out, answers }
    }

    /// The same keys, with another record.
    fn with_record(&self, record: IdentityRecord) -> Self {
        let (current_key, previous_key) = (&self.current_key, &self.previous_key);
        let state = Self::new(record, Arc::clone(current_key), Arc::clone(previous_key));
        state.handed_out.fetch_or(self.handed_out.load(Ordering::Relaxed), Ordering::Relaxed);
        state
    }

    fn document(&self, alias: &Alias, height: u32) -> Result<Document, Error> {
        match &self.common {
            Ok(common) => Ok(Document { height, ..common.clone() }),
            Err(Obstacle::NoVctx) => Err(Error::NoVctx(alias.clone())),
            Err(Obstacle::Revoked(outpoint)) => {
                Err(Error::Revoked { alias: alias.clone(), outpoint: *outpoint })
            }
        }
    }

    fn sign(&self, document: &Document) -> Script {
        let json = document.to_json();
        output_script::signed(&json, &self.current_key.sign(&sha256(json.as_bytes())))
    }
}

impl Identity {
    pub(crate) fn new(alias: Alias, state: State) -> Self {
        Self { alias, state: RwLock::new(state) }
    }

    /// The alias.
    pub fn alias(&self) -> &Alias {
        &self.alias
    }

    /// The current key: the miner id.
    pub fn public_key(&self) -> PublicKey {
        self.state().record.current_key().public_key
    }

    /// What is stored of the identity.
    pub fn record(&self) -> IdentityRecord {
        self.state().record.clone()
    }

    /// Signs a 32-byte digest as it stands with the current key. It signs anything.
    pub fn sign(&self, digest: &[u8; 32]) -> Signature {
        self.sign_and_name_key(digest).1
    }

    /// Signs like [`sign`](Self::sign), and tells the key that signed.
    pub fn sign_and_name_key(&self, digest: &[u8; 32]) -> (PublicKey, Signature) {
        let state = self.state();
        (state.record.current_key().public_key, state.current_key.sign(digest))
    }

    /// The locking script of an output, of zero satoshis, that carries the identity in the coinbase
    /// transaction of the block at `height`.
    pub fn output_script(&self, height: u32) -> Result<Arc<[u8]>, Error> {
        self.hand_out(|state| self.output_script_from(state, height))
    }

    /// The answer of [`output_script`](Self::output_script), which does not count as handed out.
    pub fn preview_output_script(&self, height: u32) -> Result<Arc<[u8]>, Error> {
        self.output_script_from(&self.state(), height)
    }

    /// `coinbase2`, the second part of a coinbase transaction as the stratum protocol splits it,
    /// with one output more, which carries the identity in the block at `height`. All else is byte
    /// for byte as it was. What `job_data` tells enters the document's extensions.
    pub fn coinbase2(
        &self,
        height: u32,
        coinbase2: &[u8],
        job_data: &JobData,
    ) -> Result<Arc<[u8]>, Error> {
        check_height(height)?;
        let key = TemplateKey { height, coinbase2: Some((coinbase2, job_data)) };
        self.hand_out(|state| {
            state.answers.get_or_make(&key, || {
                let coinbase2 = Coinbase2::parse(coinbase2)?;
                let mut document = state.document(&self.alias, height)?;
                document.extensions = Extensions::new(job_data, &coinbase2);
                Ok(coinbase2.with_output(&state.sign(&document))?)
            })
        })
    }

    /// Whether a document has been handed out since the last rotation, so that the key a caller
    /// sees is the one that blocks announce (the older generator's `isvalid`).
    pub fn is_valid(&self) -> bool {
        self.state().handed_out.load(Ordering::Relaxed)
    }

    fn output_script_from(&self, state: &State, height: u32) -> Result<Arc<[u8]>, Error> {
        check_height(height)?;
        let key = TemplateKey { height, coinbase2: None };
        state.answers.get_or_make(&key, || {
            let document = state.document(&self.alias, height)?;
            Ok(state.sign(&document).into_bytes())
        })
    }

    fn hand_out<T>(&self, make: impl FnOnce(&State) -> Result<T, Error>) -> Result<T, Error> {
        let state = self.state();
        let made = make(&state)?;
        if !state.handed_out.load(Ordering::Relaxed) {
            state.handed_out.store(true, Ordering::Relaxed);
        }
        Ok(made)
    }

    /// The number of the current key, if a document was handed out and the record does not say so.
    pub(crate) fn unrecorded_hand_out(&self) -> Option<u32> {
        let state = self.state();
        let is_unrecorded = state.handed_out.load(Ordering::Relaxed) && !state.record.handed_out;
        is_unrecorded.then_some(state.record.current_key().number)
    }

    pub(crate) fn mark_hand_out_recorded(&self, key_number: u32) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        if state.record.current_key().number == key_number {
            state.record.handed_out = true;
        }
    }

    pub(crate) fn state(&self) -> RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn replace_record(&self, record: IdentityRecord) {
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        *state = state.with_record(record);
    }

    pub(crate) fn replace_state(&self, state: State) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
    }
}

fn check_height(height: u32) -> Result<(), Error> {
    if !(1..=i32::MAX.cast_unsigned()).contains(&height) {
        return Err(Error::InvalidHeight);
    }
    Ok(())
}
