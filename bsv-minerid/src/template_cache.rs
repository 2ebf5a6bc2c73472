use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, PoisonError};

use bsv_tx::Txid;

use crate::job_data::{BlockBindJob, JobData};

/// The request that an answer belongs to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum TemplateKey<'a> {
    /// The script of a document. The document may refer to data in a transaction.
    Script { height: u32, data_txid: Option<Txid> },
    /// A coinbase2 with a document of generation 0.2.
    Document { height: u32, coinbase2: Cow<'a, [u8]>, job_data: Cow<'a, JobData> },
    /// A coinbase2 with a reference of generation 1.0.
    Reference { miner_info_txid: Txid, coinbase2: Cow<'a, [u8]>, job: Cow<'a, BlockBindJob> },
}

/// Remembers the latest answers of one identity. A pool that asks again for each of its connections
/// then costs a look-up instead of a signature.
#[derive(Debug, Default)]
pub(crate) struct TemplateCache {
    hasher: RandomState,
    entries: Mutex<Vec<Entry>>,
}

#[derive(Debug)]
struct Entry {
    hash: u64,
    key: TemplateKey<'static>,
    answer: Arc<[u8]>,
}

impl TemplateKey<'_> {
    fn to_owned(&self) -> TemplateKey<'static> {
        match self.clone() {
            Self::Script { height, data_txid } => TemplateKey::Script { height, data_txid },
            Self::Document { height, coinbase2, job_data } => TemplateKey::Document {
                height,
                coinbase2: Cow::Owned(coinbase2.into_owned()),
                job_data: Cow::Owned(job_data.into_owned()),
            },
            Self::Reference { miner_info_txid, coinbase2, job } => TemplateKey::Reference {
                miner_info_txid,
                coinbase2: Cow::Owned(coinbase2.into_owned()),
                job: Cow::Owned(job.into_owned()),
            },
        }
    }
}

impl Entry {
    fn fits(&self, hash: u64, key: &TemplateKey<'_>) -> bool {
        self.hash == hash && self.key == *key
    }
}

impl TemplateCache {
    const MAX_ENTRIES: usize = 32;
    /// Larger answers are not kept, so that the cache takes at most 4 MiB.
    const MAX_ANSWER_LEN: usize = 64 << 10;

    /// The remembered answer, or the one that `make` makes.
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
            // Moves an entry that is in use away from the front, where entries are removed.
            entries[place..].rotate_left(1);
            return entries.last().map(|entry| Arc::clone(&entry.answer));
        }
        Some(Arc::clone(&entries[place].answer))
    }

    fn remember(&self, hash: u64, key: &TemplateKey<'_>, answer: &Arc<[u8]>) {
        let entry = Entry { hash, key: key.to_owned(), answer: Arc::clone(answer) };
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
        let ask = |height, document: Option<(&'static [u8], &JobData)>| {
            let key = match document {
                None => TemplateKey::Script { height, data_txid: None },
                Some((coinbase2, job_data)) => TemplateKey::Document {
                    height,
                    coinbase2: coinbase2.into(),
                    job_data: Cow::Borrowed(job_data),
                },
            };
            let answer = cache.get_or_make(&key, || {
                made.set(made.get() + 1);
                Ok::<_, Infallible>(height.to_le_bytes().to_vec())
            });
            assert_eq!(*answer.unwrap(), height.to_le_bytes());
            made.get()
        };
        let empty = JobData::default();
        let other = JobData {
            block_info: Some(crate::job_data::BlockInfo { tx_count: 1, size_without_coinbase: 2 }),
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
        let key = TemplateKey::Script { height: 1, data_txid: None };
        let large = vec![0; TemplateCache::MAX_ANSWER_LEN + 1];
        cache.get_or_make(&key, || Ok::<_, Infallible>(large)).unwrap();
        assert!(cache.entries.lock().unwrap().is_empty());
    }
}
