use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

/// What is being done at this moment, by what it is done to: at most one thing to each.
#[derive(Debug)]
pub(crate) struct Running<K, V>(Arc<Mutex<HashMap<K, V>>>);

impl<K: Clone + Eq + Hash, V: Clone> Running<K, V> {
    /// Begins what `value` stands for, if nothing is being done to `key`; else answers what is. It is
    /// done when the place is dropped.
    pub(crate) fn begin(&self, key: K, value: V) -> Result<Place<K, V>, V> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(other) = running.get(&key) {
            return Err(other.clone());
        }
        running.insert(key.clone(), value);
        Ok(Place { running: Arc::clone(&self.0), key })
    }

    /// What is being done to `key`.
    pub(crate) fn get(&self, key: &K) -> Option<V> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }
}

impl<K, V> Default for Running<K, V> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

/// Something that is being done.
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
