use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// The tasks that are running, by key. There is at most one for each key.
#[derive(Debug)]
pub(crate) struct Running<K, V>(Arc<Mutex<HashMap<K, V>>>);

impl<K: Clone + Eq + Hash, V: Clone> Running<K, V> {
    /// Begins the task `value` for `key`. If a task is already running for the key, that task is
    /// the error. The task ends when the place is dropped.
    pub(crate) fn begin(&self, key: K, value: V) -> Result<Place<K, V>, V> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = running.get(&key) {
            return Err(other.clone());
        }
        running.insert(key.clone(), value);
        Ok(Place { running: Arc::clone(&self.0), key })
    }

    /// The running task for `key`.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }
}

impl<K, V> Default for Running<K, V> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

/// A running task.
#[derive(Debug)]
pub(crate) struct Place<K: Eq + Hash, V> {
    running: Arc<Mutex<HashMap<K, V>>>,
    key: K,
}

impl<K: Eq + Hash, V> Drop for Place<K, V> {
    fn drop(&mut self) {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.key);
    }
}
