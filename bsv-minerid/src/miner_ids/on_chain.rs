//! Changes that follow from a node's answers.

use std::sync::Arc;

use bsv_store::{KeystoreError, StoreError};
use bsv_tx::{Address, OutPoint, PrivateKey};
use tokio::task::spawn_blocking;

use super::MinerIds;
use crate::alias::Alias;
use crate::error::Error;
use crate::state::{Change, IdentityRecord, VctxView};
use crate::store::{IdentityStore, IdentityStoreError};
use crate::stored_keys::read_key;

impl<S: IdentityStore> MinerIds<S> {
    /// Runs what waits for the disk on a thread that may wait, one at a time: if the disk hangs,
    /// the others wait without a thread. It goes on if the caller leaves.
    pub async fn on_disk<T: Send + 'static>(
        self: &Arc<Self>,
        run: impl FnOnce(&Self) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let ids = Arc::clone(self);
        let ran = spawn_blocking(move || {
            let _turn = turn;
            run(&ids)
        });
        ran.await.unwrap_or_else(|_| Err(IdentityStoreError::from(StoreError::Panicked).into()))
    }

    /// Makes a change that keeps the keys.
    pub(crate) async fn change_on_disk(
        self: &Arc<Self>,
        alias: &Alias,
        change: Change,
    ) -> Result<(), Error> {
        let alias = alias.clone();
        self.on_disk(move |ids| ids.change(&alias, &change)).await
    }

    /// Closes an identity that nobody knows. Nobody has to be told.
    pub(crate) fn close(&self, alias: &Alias) -> Result<(), Error> {
        self.change_miner_info(alias, &Change::Close)
    }

    /// Makes and stores a key. Answers its address, which waits for the coins of a validity check
    /// transaction.
    pub(crate) fn await_vctx_funding(&self, alias: &Alias) -> Result<Address, Error> {
        let _changes = self.begin_change();
        let identity = self.get(alias.as_str())?;
        let name = IdentityRecord::vctx_key_name(alias);
        let wif = PrivateKey::generate()?.to_wif(self.network);
        match self.keystore.insert(&name, wif.as_bytes()) {
            // An existing key comes from an earlier attempt.
            Ok(()) | Err(KeystoreError::Exists(_)) => {}
            Err(error) => return Err(error.into()),
        }
        let key = self.vctx_key(alias)?;
        self.make(&identity, &Change::AwaitVctxFunding)?;
        Ok(Address::p2pkh(&key.public_key(), self.network))
    }

    pub(crate) fn vctx_key(&self, alias: &Alias) -> Result<PrivateKey, Error> {
        let name = IdentityRecord::vctx_key_name(alias);
        read_key(&self.keystore, &name, |text| PrivateKey::from_wif(text, self.network))
    }

    /// Records what the chain shows of validity check outputs. Documents stop or resume
    /// accordingly.
    pub(crate) fn note_vctx_views(
        &self,
        views: &[(Alias, OutPoint, VctxView)],
    ) -> Result<(), Error> {
        let _changes = self.begin_change();
        let change = |(alias, outpoint, view): &(Alias, OutPoint, VctxView)| {
            (alias.clone(), Change::NoteVctxView(*outpoint, *view))
        };
        let changes: Vec<_> = views.iter().map(change).collect();
        self.store.change_all(&changes)?;
        let mut noted = Ok(());
        for (alias, change) in &changes {
            match self.get(alias.as_str()) {
                Ok(identity) => identity.apply(change),
                // An identity that was deleted meanwhile does not affect the others.
                Err(error) => noted = noted.and(Err(error)),
            }
        }
        noted
    }
}
