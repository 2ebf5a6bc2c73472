use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use bsv_store::StoreError;

use crate::store::{IdentityStore, IdentityStoreError};

/// How long an answer waits for a note.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long no note is tried after one has failed.
const PAUSE: Duration = Duration::from_secs(1);

/// Where an identity notes what it has handed out.
///
/// A thread writes the notes, one at a time. If the disk hangs, answers stop waiting for it.
pub(crate) struct HandOutNotes {
    store: Arc<dyn IdentityStore>,
    /// Held during a change of any identity.
    changes: Arc<Mutex<()>>,
    progress: Arc<Progress>,
}

#[derive(Default)]
struct Progress {
    last: Mutex<Last>,
    ended: Condvar,
}

/// The last note.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Last {
    /// Written, or there was none.
    #[default]
    Written,
    UnderWay {
        since: Instant,
        /// Whether the log says that it takes too long.
        is_told: bool,
    },
    Failed(Instant),
}

impl HandOutNotes {
    pub(crate) fn new(store: Arc<dyn IdentityStore>, changes: Arc<Mutex<()>>) -> Self {
        Self { store, changes, progress: Arc::default() }
    }

    /// Begins to write a note during which nothing else changes, unless another note is under way.
    /// Answers whether to [wait](Self::wait) for a note. If not, the note under way takes too long,
    /// or one has failed just now. `fact` says in the log what is noted.
    pub(crate) fn begin(
        &self,
        fact: impl FnOnce() -> String,
        write: impl FnOnce(&dyn IdentityStore) -> Result<(), IdentityStoreError> + Send + 'static,
    ) -> bool {
        let mut last = self.progress.last();
        match &mut *last {
            Last::UnderWay { since, .. } if since.elapsed() < PATIENCE => return true,
            Last::UnderWay { is_told, .. } => {
                if !std::mem::replace(is_told, true) {
                    tracing::error!("the disk does not answer: it is not noted yet {}", fact());
                }
                return false;
            }
            Last::Failed(at) if at.elapsed() < PAUSE => return false,
            Last::Failed(_) | Last::Written => {}
        }
        *last = Last::UnderWay { since: Instant::now(), is_told: false };
        drop(last);
        let (store, changes) = (Arc::clone(&self.store), Arc::clone(&self.changes));
        // The store is let go of before anybody learns that the note has ended.
        let write = move || {
            let _changes = changes.lock().unwrap_or_else(PoisonError::into_inner);
            write(&*store)
        };
        let (progress, fact) = (Arc::clone(&self.progress), fact());
        let end = move |written: Result<(), String>| {
            let is_written = written.is_ok();
            if let Err(error) = written {
                tracing::error!("cannot note {fact}: {error}");
            }
            progress.end(is_written);
        };
        let thread = thread::Builder::new().name("hand-out note".to_owned());
        let told = end.clone();
        let spawned = thread.spawn(move || {
            // A note that never ends would keep all later ones from being tried.
            let written = catch_unwind(AssertUnwindSafe(write));
            let written = written.unwrap_or_else(|_| Err(StoreError::Panicked.into()));
            end(written.map_err(|error| error.to_string()));
        });
        if let Err(error) = spawned {
            told(Err(error.to_string()));
        }
        true
    }

    /// Waits until the note under way has ended, or has taken too long.
    pub(crate) fn wait(&self) {
        let last = self.progress.last();
        let Last::UnderWay { since, .. } = *last else { return };
        let is_same_note = |last: &mut Last| matches!(last, Last::UnderWay { since: begun, .. } if *begun == since);
        let left = PATIENCE.saturating_sub(since.elapsed());
        let _ = self.progress.ended.wait_timeout_while(last, left, is_same_note);
    }
}

impl Progress {
    fn last(&self) -> MutexGuard<'_, Last> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, is_written: bool) {
        *self.last() = if is_written { Last::Written } else { Last::Failed(Instant::now()) };
        self.ended.notify_all();
    }
}

impl fmt::Debug for HandOutNotes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandOutNotes").finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "store"))]
mod tests {
    use super::*;
    use crate::store::RedbIdentityStore;

    #[test]
    fn a_note_that_panics_has_failed() {
        let dir = tempfile::tempdir().unwrap();
        let store = RedbIdentityStore::open(dir.path(), "test").unwrap();
        let notes = HandOutNotes::new(Arc::new(store), Arc::default());
        assert!(notes.begin(|| "that".to_owned(), |_| panic!("on purpose")));
        notes.wait();
        assert!(matches!(*notes.progress.last(), Last::Failed(_)));
    }
}
