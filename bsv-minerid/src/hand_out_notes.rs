use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::alias::Alias;
use crate::state::Change;
use crate::store::{IdentityStore, IdentityStoreError};

/// Where an identity notes that it has handed out a document.
pub(crate) struct HandOutNotes {
    store: Arc<dyn IdentityStore>,
    /// Held during a change of any identity.
    changes: Arc<Mutex<()>>,
}

impl HandOutNotes {
    pub(crate) fn new(store: Arc<dyn IdentityStore>, changes: Arc<Mutex<()>>) -> Self {
        Self { store, changes }
    }

    /// Notes durably that documents by the key with this number were handed out, if the key is
    /// still the current one. Answers whether it is.
    pub(crate) fn note(
        &self,
        alias: &Alias,
        number: u32,
        current: impl FnOnce() -> u32,
    ) -> Result<bool, IdentityStoreError> {
        let _changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
        if current() != number {
            return Ok(false);
        }
        self.store.change(alias, &Change::NoteHandedOut(number))?;
        Ok(true)
    }
}

impl fmt::Debug for HandOutNotes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandOutNotes").finish_non_exhaustive()
    }
}
