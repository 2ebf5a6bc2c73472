use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use bsv_tx::{OutPoint, PublicKey, Script, Signature, Txid, sha256};

use crate::alias::Alias;
use crate::coinbase_reference::CoinbaseReference;
use crate::coinbase2::Coinbase2;
use crate::data_refs::OperatorDataRefs;
use crate::document::{Document, Extensions, succession_digest};
use crate::error::Error;
use crate::hand_out_notes::HandOutNotes;
use crate::job_data::{BlockBindJob, JobData};
use crate::miner_info_script::MinerInfo;
use crate::output_script;
use crate::signer::{Signer, SignerError};
use crate::state::{Change, IdentityRecord, MinerInfoRecord, Protocol, Reference, Vctx};
use crate::succession::Succession;
use crate::template_cache::{TemplateCache, TemplateKey};
use crate::usage::Usage;

/// One miner identity, ready to sign.
///
/// No method waits for I/O, with one exception: [`output_script`](Self::output_script) and
/// [`coinbase2`](Self::coinbase2) note durably that a document by a new key is handed out, before
/// they answer the first one. If the note cannot be written, or takes longer than a second, they
/// log an error and answer all the same, because the document may be worth a block.
///
/// The key cannot change while a document is built, so a document always names the key that signed
/// it.
#[derive(Debug)]
pub struct Identity {
    alias: Alias,
    state: Arc<RwLock<State>>,
    /// Whether the node knows a newer state of the identity than this copy.
    is_stale: AtomicBool,
    /// Whether older copies refuse to make documents.
    refuses_if_stale: Arc<AtomicBool>,
    notes: HandOutNotes,
    usage: Usage,
}

/// The state of an identity between two changes.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) record: IdentityRecord,
    pub(crate) current_key: Arc<dyn Signer>,
    pub(crate) previous_key: Arc<dyn Signer>,
    /// Earlier keys that may still sign references, by number.
    earlier_keys: BTreeMap<u32, Arc<dyn Signer>>,
    /// The part that all documents share, once the previous key has signed it.
    common: OnceLock<Common>,
    /// The number of announcements that no block has shown.
    announced: usize,
    /// The answer of [`Identity::is_valid`], unless the identity has ended.
    handed_out: AtomicBool,
    /// Whether this process has handed out a document in this state.
    was_handed_out: AtomicBool,
    answers: TemplateCache,
}

#[derive(Clone, Debug)]
enum Common {
    /// Generation 0.2.
    Document(Box<Document>),
    /// Generation 1.0.
    MinerInfo(Box<MinerInfo>),
}

impl State {
    pub(crate) fn new(
        record: IdentityRecord,
        current_key: Arc<dyn Signer>,
        previous_key: Arc<dyn Signer>,
    ) -> Self {
        let announced = record.announcements().len();
        let handed_out = AtomicBool::new(record.is_handed_out());
        let was_handed_out = AtomicBool::new(false);
        let answers = TemplateCache::default();
        Self {
            record,
            current_key,
            previous_key,
            earlier_keys: BTreeMap::new(),
            common: OnceLock::new(),
            announced,
            handed_out,
            was_handed_out,
            answers,
        }
    }

    pub(crate) fn with_earlier_keys(self, earlier_keys: BTreeMap<u32, Arc<dyn Signer>>) -> Self {
        Self { earlier_keys, ..self }
    }

    /// The same keys with another record.
    fn with_record(&self, record: IdentityRecord) -> Self {
        let (current_key, previous_key) = (&self.current_key, &self.previous_key);
        let state = Self::new(record, Arc::clone(current_key), Arc::clone(previous_key))
            .with_earlier_keys(self.earlier_keys.clone());
        state.keep_hand_out(self);
        state
    }

    /// Whether the keys of this state are those of a record.
    fn has_keys_of(&self, record: &IdentityRecord) -> bool {
        self.record.keys() == record.keys() && self.record.previous_key() == record.previous_key()
    }

    /// Makes a change of the record that keeps the keys, if the record allows it.
    fn apply(&mut self, change: &Change) {
        let mut record = self.record.clone();
        if record.apply(change).is_ok() && self.has_keys_of(&record) {
            *self = self.with_record(record);
        }
    }

    /// Keeps the note that a document was handed out, which may not be on the disk yet.
    pub(crate) fn keep_hand_out(&self, before: &Self) {
        for (flag, before) in
            [(&self.handed_out, &before.handed_out), (&self.was_handed_out, &before.was_handed_out)]
        {
            flag.fetch_or(before.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }

    fn note_hand_out(&self) {
        if !self.was_handed_out.load(Ordering::Relaxed) {
            self.handed_out.store(true, Ordering::Relaxed);
            self.was_handed_out.store(true, Ordering::Relaxed);
        }
    }

    /// Whether the record says that a document by the current key was handed out.
    fn is_hand_out_noted(&self) -> bool {
        self.record.is_handed_out() && !self.record.is_kept()
    }

    /// The number of the current key, if a document was handed out and the record does not say so.
    fn unnoted_hand_out(&self) -> Option<u32> {
        let is_unnoted = self.was_handed_out.load(Ordering::Relaxed) && !self.is_hand_out_noted();
        is_unnoted.then_some(self.record.current_key().number)
    }

    fn common(&self, alias: &Alias, usage: &Usage) -> Result<&Common, Error> {
        if let Some(common) = self.common.get() {
            return Ok(common);
        }
        let previous_key = usage.counting(&*self.previous_key);
        let made = match &self.record.protocol {
            Protocol::Vctx(vctx) => {
                let vctx = vctx_for_documents(alias, vctx)?;
                common_document(&self.record, vctx, &previous_key)?
            }
            Protocol::MinerInfo(_) if self.record.is_closed() => {
                return Err(Error::Closed(alias.clone()));
            }
            Protocol::MinerInfo(own) => common_miner_info(&self.record, own, &previous_key)?,
        };
        Ok(self.common.get_or_init(|| made))
    }

    /// The key that signs references to a miner-info transaction: the key of the first reference to
    /// it, otherwise the key of the last document that was handed out. Nodes reject a reference by
    /// another key than the document's.
    fn reference_key(&self, miner_info: &Txid) -> (u32, &dyn Signer) {
        let current = (self.record.current_key().number, &*self.current_key);
        let Some(own) = self.record.miner_info() else { return current };
        let noted = own.references.iter().find(|noted| noted.miner_info == *miner_info);
        let number = match noted {
            Some(noted) => Some(noted.key),
            None if self.handed_out.load(Ordering::Relaxed) => None,
            None => self.record.document_key().map(|key| key.number),
        };
        let earlier = number.and_then(|number| Some((number, &**self.earlier_keys.get(&number)?)));
        earlier.unwrap_or(current)
    }

    fn sign(&self, document: &Document, usage: &Usage) -> Result<Script, Error> {
        let json = document.to_json();
        let key = usage.counting(&*self.current_key);
        let signature = key.sign(&sha256(json.as_bytes()))?;
        Ok(output_script::signed(&json, &signature))
    }
}

/// The output that documents name. A spent output revokes the identity.
fn vctx_for_documents(alias: &Alias, vctx: &Vctx) -> Result<OutPoint, Error> {
    let alias = alias.clone();
    match vctx {
        Vctx::Recorded(outpoint, view) if !view.is_spent => Ok(*outpoint),
        Vctx::Recorded(outpoint, _) | Vctx::Revoking(outpoint, _) => {
            Err(Error::Revoked { alias, outpoint: *outpoint })
        }
        _ => Err(Error::NoVctx(alias)),
    }
}

fn common_document(
    record: &IdentityRecord,
    vctx: OutPoint,
    previous_key: &dyn Signer,
) -> Result<Common, SignerError> {
    let previous_miner_id = record.previous_key().public_key;
    let miner_id = record.current_key().public_key;
    let succession = succession_digest(&previous_miner_id, &miner_id, &vctx.txid);
    Ok(Common::Document(Box::new(Document {
        height: 0,
        previous_miner_id,
        previous_miner_id_signature: previous_key.sign(&succession)?,
        miner_id,
        vctx,
        miner_contact: record.contact(),
        extensions: Extensions::default(),
    })))
}

fn common_miner_info(
    record: &IdentityRecord,
    miner_info: &MinerInfoRecord,
    previous_key: &dyn Signer,
) -> Result<Common, SignerError> {
    Ok(Common::MinerInfo(Box::new(MinerInfo {
        height: 0,
        miner_id: Succession::sign(previous_key, record.current_key().public_key)?,
        revocation_key: record.revocation_key().unwrap_or(miner_info.first_revocation_key.itself),
        revocation: record.revocation().map(|revocation| revocation.message),
        operator: record.operator.clone(),
        data_refs: miner_info.data_refs.clone(),
    })))
}

impl Identity {
    pub(crate) fn new(
        alias: Alias,
        state: State,
        notes: HandOutNotes,
        refuses_if_stale: Arc<AtomicBool>,
    ) -> Self {
        let is_stale = AtomicBool::new(false);
        let usage = Usage::new();
        let state = Arc::new(RwLock::new(state));
        Self { alias, state, is_stale, refuses_if_stale, notes, usage }
    }

    /// What the identity was used for since it was opened.
    pub fn usage(&self) -> &Usage {
        &self.usage
    }

    /// The alias.
    pub fn alias(&self) -> &Alias {
        &self.alias
    }

    /// The current key: the miner id.
    pub fn public_key(&self) -> PublicKey {
        self.state().record.current_key().public_key
    }

    /// The stored record of the identity.
    pub fn record(&self) -> IdentityRecord {
        self.state().record.clone()
    }

    /// Signs any 32-byte digest with the current key, unless blind signing is off
    /// ([`MinerIds::set_blind_signing`](crate::MinerIds::set_blind_signing)).
    pub fn sign(&self, digest: &[u8; 32]) -> Result<Signature, Error> {
        Ok(self.sign_and_name_key(digest)?.1)
    }

    /// Signs like [`sign`](Self::sign), and also answers the key that signed.
    pub fn sign_and_name_key(&self, digest: &[u8; 32]) -> Result<(PublicKey, Signature), Error> {
        let state = self.state();
        if !state.record.blind_signing {
            return Err(Error::BlindSigningOff(self.alias.clone()));
        }
        let key = self.usage.counting(&*state.current_key);
        Ok((state.record.current_key().public_key, key.sign(digest)?))
    }

    /// The locking script of an output of zero satoshis that carries the identity of the block at
    /// `height`. The output belongs in the coinbase transaction or, in generation 1.0, first in the
    /// miner-info transaction.
    pub fn output_script(&self, height: u32) -> Result<Arc<[u8]>, Error> {
        self.hand_out(|state| self.output_script_from(state, height, None))
    }

    /// The script of [`output_script`](Self::output_script) without waiting, or `None` while a note
    /// is being written: ask again soon.
    pub fn output_script_if_noted(&self, height: u32) -> Result<Option<Arc<[u8]>>, Error> {
        self.hand_out_if_noted(|state| self.output_script_from(state, height, None))
    }

    /// The script of [`output_script`](Self::output_script). This call does not count as handing
    /// out a document.
    pub fn preview_output_script(&self, height: u32) -> Result<Arc<[u8]>, Error> {
        self.output_script_from(&self.state(), height, None)
    }

    /// The output script of a document of generation 1.0 that refers to the operator's data in the
    /// transaction `data_txid`. The call affects no later document, unlike
    /// [`MinerIds::output_script_with_data`](crate::MinerIds::output_script_with_data).
    pub fn preview_output_script_with_data(
        &self,
        height: u32,
        data_txid: Txid,
    ) -> Result<Arc<[u8]>, Error> {
        self.output_script_from(&self.state(), height, Some(data_txid))
    }

    pub(crate) fn output_script_with_data(
        &self,
        height: u32,
        data_txid: Txid,
    ) -> Result<Arc<[u8]>, Error> {
        self.hand_out(|state| self.output_script_from(state, height, Some(data_txid)))
    }

    /// The script of
    /// [`MinerIds::output_script_with_data`](crate::MinerIds::output_script_with_data) without
    /// waiting, or `None` if the disk has to be written first.
    pub fn output_script_with_data_if_noted(
        &self,
        height: u32,
        data_txid: Txid,
    ) -> Result<Option<Arc<[u8]>>, Error> {
        match self.refers_to_data(data_txid) {
            true => self
                .hand_out_if_noted(|state| self.output_script_from(state, height, Some(data_txid))),
            false => Ok(None),
        }
    }

    /// Whether documents refer to the operator's data in this transaction.
    pub(crate) fn refers_to_data(&self, data_txid: Txid) -> bool {
        let state = self.state();
        let record = state.record.miner_info();
        record.is_some_and(|record| record.data_refs == record.data.references(data_txid))
    }

    /// Adds an output with the identity, of generation 0.2, to `coinbase2`, the second part of a
    /// coinbase transaction in the stratum protocol's split. The block is at `height`. All other
    /// bytes stay the same. `job_data` provides the inputs of the document's extensions.
    pub fn coinbase2(
        &self,
        height: u32,
        coinbase2: &[u8],
        job_data: &JobData,
    ) -> Result<Arc<[u8]>, Error> {
        self.hand_out(|state| self.coinbase2_from(state, height, coinbase2, job_data))
    }

    /// The answer of [`coinbase2`](Self::coinbase2) without waiting, or `None` while a note is being
    /// written: ask again soon.
    pub fn coinbase2_if_noted(
        &self,
        height: u32,
        coinbase2: &[u8],
        job_data: &JobData,
    ) -> Result<Option<Arc<[u8]>>, Error> {
        self.hand_out_if_noted(|state| self.coinbase2_from(state, height, coinbase2, job_data))
    }

    fn coinbase2_from(
        &self,
        state: &State,
        height: u32,
        coinbase2: &[u8],
        job_data: &JobData,
    ) -> Result<Arc<[u8]>, Error> {
        check_height(height)?;
        self.check_may_sign()?;
        let key = TemplateKey::Document {
            height,
            coinbase2: coinbase2.into(),
            job_data: Cow::Borrowed(job_data),
        };
        state.answers.get_or_make(&key, || {
            let coinbase2 = Coinbase2::parse(coinbase2)?;
            let Common::Document(common) = state.common(&self.alias, &self.usage)? else {
                return Err(self.other_protocol("1.0"));
            };
            let extensions = Extensions::new(job_data, &coinbase2);
            let document = Document { height, extensions, ..*common.clone() };
            Ok(coinbase2.with_output(&state.sign(&document, &self.usage)?)?)
        })
    }

    /// Adds an output to `coinbase2` that refers to the miner-info transaction, of generation 1.0,
    /// and binds it to the block with the place in `job`. All other bytes stay the same. The call
    /// does not fix the key of later references, unlike
    /// [`MinerIds::coinbase2_with_reference`](crate::MinerIds::coinbase2_with_reference).
    pub fn preview_coinbase2_with_reference(
        &self,
        miner_info_txid: Txid,
        coinbase2: &[u8],
        job: &BlockBindJob,
    ) -> Result<Arc<[u8]>, Error> {
        self.check_may_sign()?;
        let key = TemplateKey::Reference {
            miner_info_txid,
            coinbase2: coinbase2.into(),
            job: Cow::Borrowed(job),
        };
        let state = self.state();
        state.answers.get_or_make(&key, || {
            let coinbase2 = Coinbase2::parse(coinbase2)?;
            let Common::MinerInfo(_) = state.common(&self.alias, &self.usage)? else {
                return Err(self.other_protocol("0.2"));
            };
            let reference = CoinbaseReference::sign(
                &self.usage.counting(state.reference_key(&miner_info_txid).1),
                miner_info_txid,
                &coinbase2,
                &job.previous_block,
                &job.merkle_branch,
            )?;
            Ok(coinbase2.with_output(&reference.to_script())?)
        })
    }

    /// The answer of
    /// [`MinerIds::coinbase2_with_reference`](crate::MinerIds::coinbase2_with_reference) without
    /// waiting, or `None` while the choice of the key is being written: ask again soon.
    pub fn coinbase2_with_reference_if_noted(
        &self,
        miner_info_txid: Txid,
        coinbase2: &[u8],
        job: &BlockBindJob,
    ) -> Result<Option<Arc<[u8]>>, Error> {
        let made = self.preview_coinbase2_with_reference(miner_info_txid, coinbase2, job)?;
        let is_awaited = !self.has_noted_reference(&miner_info_txid)
            && self.begin_reference_note(miner_info_txid);
        Ok((!is_awaited).then_some(made))
    }

    pub(crate) fn coinbase2_with_reference(
        &self,
        miner_info_txid: Txid,
        coinbase2: &[u8],
        job: &BlockBindJob,
    ) -> Result<Arc<[u8]>, Error> {
        loop {
            match self.coinbase2_with_reference_if_noted(miner_info_txid, coinbase2, job)? {
                Some(made) => return Ok(made),
                None => self.notes.wait(),
            }
        }
    }

    /// Whether the disk holds which key signs references to a miner-info transaction.
    fn has_noted_reference(&self, miner_info: &Txid) -> bool {
        let state = self.state();
        let references = state.record.miner_info().map(|own| &own.references);
        references.is_some_and(|all| all.iter().any(|noted| noted.miner_info == *miner_info))
    }

    /// Begins to note which key signs references to a miner-info transaction. Answers whether to
    /// wait for a note.
    fn begin_reference_note(&self, miner_info: Txid) -> bool {
        let fact = || format!("which key signs references to {miner_info}");
        let (alias, state) = (self.alias.clone(), Arc::clone(&self.state));
        self.notes.begin(fact, move |store| {
            let key = read(&state).reference_key(&miner_info).0;
            let change = Change::NoteReference(Reference { miner_info, key });
            store.change(&alias, &change)?;
            // The record in the store may have newer keys, which could not be loaded yet.
            write(&state).apply(&change);
            Ok(())
        })
    }

    /// The number of announcements that no block has shown.
    pub fn announced(&self) -> usize {
        self.state().announced
    }

    /// Whether a revocation is recorded that the node has not received.
    pub(crate) fn has_untold(&self) -> bool {
        let state = self.state();
        match &state.record.protocol {
            Protocol::Vctx(vctx) => matches!(vctx, Vctx::Revoking(_, None)),
            Protocol::MinerInfo(_) => state.record.untold_revocation().is_some(),
        }
    }

    /// Whether the operator of an identity of generation 1.0 has set no data.
    pub fn lacks_data(&self) -> bool {
        self.state().record.miner_info().is_some_and(|record| record.data.is_empty())
    }

    /// The scripts of the outputs with the operator's data. Documents of generation 1.0 can refer
    /// to these outputs.
    pub fn data_scripts(&self) -> Vec<Script> {
        let state = self.state();
        let data = state.record.miner_info().map(|record| &record.data);
        let refs = data.into_iter().flat_map(OperatorDataRefs::iter);
        refs.map(|data_ref| data_ref.script().to_script()).collect()
    }

    /// Whether the identity's blocks announce its current state: a document was handed out since
    /// the last change of keys or revocation (the older generator's `isvalid`). The answer is false
    /// for an identity that is revoked or closed, and for an older copy.
    pub fn is_valid(&self) -> bool {
        let state = self.state();
        state.handed_out.load(Ordering::Relaxed) && !state.record.is_closed() && !self.is_stale()
    }

    /// Whether the node knows a newer state of the identity than this copy.
    pub fn is_stale(&self) -> bool {
        self.is_stale.load(Ordering::Relaxed)
    }

    /// Notes whether the node knows a newer state of the identity than this copy.
    pub fn note_stale(&self, is_stale: bool) {
        match (self.is_stale.swap(is_stale, Ordering::Relaxed), is_stale) {
            (false, true) => tracing::error!("{}", Error::StaleCopy(self.alias.clone())),
            (true, false) => {
                tracing::info!(
                    "the node knows nothing newer of alias {} than this copy",
                    self.alias
                );
            }
            _ => {}
        }
    }

    fn check_may_sign(&self) -> Result<(), Error> {
        match self.is_stale() && self.refuses_if_stale.load(Ordering::Relaxed) {
            true => Err(Error::StaleCopy(self.alias.clone())),
            false => Ok(()),
        }
    }

    fn output_script_from(
        &self,
        state: &State,
        height: u32,
        data_txid: Option<Txid>,
    ) -> Result<Arc<[u8]>, Error> {
        check_height(height)?;
        self.check_may_sign()?;
        state.answers.get_or_make(&TemplateKey::Script { height, data_txid }, || {
            let script = match (state.common(&self.alias, &self.usage)?, data_txid) {
                (Common::Document(common), None) => {
                    state.sign(&Document { height, ..*common.clone() }, &self.usage)?
                }
                (Common::Document(_), Some(_)) => return Err(self.other_protocol("0.2")),
                (Common::MinerInfo(common), data_txid) => {
                    let mut document = MinerInfo { height, ..*common.clone() };
                    if let Some(txid) = data_txid {
                        let data = state.record.miner_info().map(|record| &record.data);
                        let data = data.filter(|data| !data.is_empty());
                        let data = data.ok_or_else(|| Error::NoData(self.alias.clone()))?;
                        document.data_refs = data.references(txid);
                    }
                    document.sign(&self.usage.counting(&*state.current_key))?.to_script()
                }
            };
            Ok(script.into_bytes())
        })
    }

    fn other_protocol(&self, protocol: &'static str) -> Error {
        Error::OtherProtocol { alias: self.alias.clone(), protocol }
    }

    /// Hands out a document once the disk says so. If the key is rotated meanwhile, makes another
    /// document.
    fn hand_out<T>(&self, make: impl Fn(&State) -> Result<T, Error>) -> Result<T, Error> {
        loop {
            match self.hand_out_if_noted(&make)? {
                Some(made) => return Ok(made),
                None => self.notes.wait(),
            }
        }
    }

    /// Hands out a document, unless the disk does not say so yet.
    fn hand_out_if_noted<T>(
        &self,
        make: impl Fn(&State) -> Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        let (made, unnoted) = {
            let state = self.state();
            let made = make(&state)?;
            state.note_hand_out();
            (made, state.unnoted_hand_out())
        };
        if unnoted.is_some_and(|number| self.begin_hand_out_note(number)) {
            return Ok(None);
        }
        self.usage.note_document();
        Ok(Some(made))
    }

    /// Begins to note that a document by this key is handed out. Answers whether to wait for a note.
    fn begin_hand_out_note(&self, number: u32) -> bool {
        let fact = || format!("that a document of alias {} is handed out", self.alias);
        let (alias, state) = (self.alias.clone(), Arc::clone(&self.state));
        self.notes.begin(fact, move |store| {
            // If the key was rotated meanwhile, another document is made.
            if read(&state).record.current_key().number == number {
                store.change(&alias, &Change::NoteHandedOut(number))?;
                write(&state).record.note_handed_out(number);
            }
            Ok(())
        })
    }

    /// Whether no document was ever handed out.
    #[cfg(feature = "node")]
    pub(crate) fn is_kept(&self) -> bool {
        let state = self.state();
        state.record.is_kept() && !state.was_handed_out.load(Ordering::Relaxed)
    }

    /// The number of the current key, if a document was handed out and the record does not say so
    /// yet.
    pub(crate) fn unrecorded_hand_out(&self) -> Option<u32> {
        self.state().unnoted_hand_out()
    }

    pub(crate) fn mark_hand_out_recorded(&self, key_number: u32) {
        write(&self.state).record.note_handed_out(key_number);
    }

    pub(crate) fn state(&self) -> RwLockReadGuard<'_, State> {
        read(&self.state)
    }

    /// Replaces the record. Changes nothing and answers false if the new one has other keys.
    pub(crate) fn replace_record(&self, record: &IdentityRecord) -> bool {
        let mut state = write(&self.state);
        let has_same_keys = state.has_keys_of(record);
        if has_same_keys {
            *state = state.with_record(record.clone());
        }
        has_same_keys
    }

    /// Makes a change of the record that keeps the keys, if the record allows it.
    pub(crate) fn apply(&self, change: &Change) {
        write(&self.state).apply(change);
    }

    /// Replaces the state by another one with the same keys.
    pub(crate) fn continue_with(&self, state: State) {
        let mut before = write(&self.state);
        state.keep_hand_out(&before);
        *before = state;
    }

    /// Replaces the state by one with new keys, of which no document was handed out.
    pub(crate) fn replace_state(&self, state: State) {
        *write(&self.state) = state;
    }
}

fn read(state: &RwLock<State>) -> RwLockReadGuard<'_, State> {
    state.read().unwrap_or_else(PoisonError::into_inner)
}

fn write(state: &RwLock<State>) -> RwLockWriteGuard<'_, State> {
    state.write().unwrap_or_else(PoisonError::into_inner)
}

fn check_height(height: u32) -> Result<(), Error> {
    if !(1..=i32::MAX.cast_unsigned()).contains(&height) {
        return Err(Error::InvalidHeight);
    }
    Ok(())
}
