use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, PoisonError};

use crate::job_data::JobData;

/// What a document was asked for.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct TemplateKey<'a> {
    pub(crate) height: u32,
    /// The coinbase2 to be rewritten; `None` asks for the output script alone.
    pub(crate) coinbase2: Option<(&'a [u8], &'a JobData)>,
}

/// Remembers the latest answers of one identity, so that a pool which asks again for each of its
/// connections costs a look-up and not a signature.
#[derive(Debug, Default)]
pub(crate) struct TemplateCache {
    hasher: RandomState,
    entries: Mutex<Vec<Entry>>,
}

#[derive(Debug)]
struct Entry {
    hash: u64,
    height: u32,
    coinbase2: Option<(Vec<u8>, JobData)>,
    answer: Arc<[u8]>,
}

impl Entry {
    fn fits(&self, hash: u64, key: &TemplateKey<'_>) -> bool {
        let coinbase2 = self.coinbase2.as_ref().map(|(bytes, data)| (bytes.as_slice(), data));
        self.hash == hash && self.height == key.height && coinbase2 == key.coinbase2
    }
}

impl TemplateCache {
    const MAX_ENTRIES: usize = 32;
    /// Larger answers are not kept, so that the whole takes 4 MiB at most.
    const MAX_ANSWER_LEN: usize = 64 << 10;

    /// The remembered answer, or else the one that `make` makes.
    pub(crate) fn get_or_make<E>(
        &self,
        key: &TemplateKey<'_>,
        make: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<Arc<[u8]>, E> {
        let hash = self.hasher.hash_one(key);
        if let Some(answer) = self.find(hash, key) {
            return Ok(answer);
        }
        let answer: Arc<[u8]> = make()?.into();
        if answer.len() <= Self::MAX_ANSWER_LEN {
            self.remember(hash, key, &answer);
        }
        Ok(answer)
    }

    fn find(&self, hash: u64, key: &TemplateKey<'_>) -> Option<Arc<[u8]>> {
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let place = entries.iter().rposition(|entry| entry.fits(hash, key))?;
        let last = entries.len() - 1;
        if place < last / 2 {
            // Keeps what is asked for away from the front, where room is made.
            entries[place..].rotate_left(1);
            return entries.last().map(|entry| Arc::clone(&entry.answer));
        }
        Some(Arc::clone(&entries[place].answer))
    }

    fn remember(&self, hash: u64, key: &TemplateKey<'_>, answer: &Arc<[u8]>) {
        let entry = Entry {
            hash,
            height: key.height,
            coinbase2: key.coinbase2.map(|(bytes, data)| (bytes.to_vec(), data.clone())),
            answer: Arc::clone(answer),
        };
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() == Self::MAX_ENTRIES {
            entries.remove(0);
        }
        entries.push(entry);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::convert::Infallible;

    use super::*;

    #[test]
    fn the_same_question_is_answered_once_until_many_others_were_asked() {
        let cache = TemplateCache::default();
        let made = Cell::new(0);
        let ask = |height, coinbase2| {
            let key = TemplateKey { height, coinbase2 };
            let answer = cache.get_or_make(&key, || {
                made.set(made.get() + 1);
                Ok::<_, Infallible>(height.to_le_bytes().to_vec())
            });
            assert_eq!(*answer.unwrap(), height.to_le_bytes());
            made.get()
        };
        let empty = JobData::default();
        let other = JobData {
            block_info: Some(crate::BlockInfo { tx_count: 1, size_without_coinbase: 2 }),
            ..JobData::default()
        };
        assert_eq!(ask(1, None), 1);
        assert_eq!(ask(1, None), 1);
        assert_eq!(ask(1, Some((b"a", &empty))), 2);
        assert_eq!(ask(1, Some((b"b", &empty))), 3);
        assert_eq!(ask(1, Some((b"a", &other))), 4);
        assert_eq!(ask(1, Some((b"a", &empty))), 4);
        for height in 2..1000 {
            ask(height, None);
            let before = made.get();
            assert_eq!(ask(1, None), before, "asked for all the time, so never forgotten");
        }
        let before = made.get();
        assert_eq!(ask(2, None), before + 1);
        assert!(cache.entries.lock().unwrap().len() <= TemplateCache::MAX_ENTRIES);
    }

    #[test]
    fn large_answers_are_not_kept() {
        let cache = TemplateCache::default();
        let key = TemplateKey { height: 1, coinbase2: None };
        let large = vec![0; TemplateCache::MAX_ANSWER_LEN + 1];
        cache.get_or_make(&key, || Ok::<_, Infallible>(large)).unwrap();
        assert!(cache.entries.lock().unwrap().is_empty());
    }
}
