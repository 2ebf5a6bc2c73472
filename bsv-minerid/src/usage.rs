use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bsv_tx::{PublicKey, Signature};

use crate::signer::{Signer, SignerError};

/// Counts of an identity's use since it was opened.
#[derive(Debug)]
pub struct Usage {
    opened: Instant,
    signatures: AtomicU64,
    /// When a document was last handed out, in milliseconds after `opened`, or [`NEVER`].
    last_document: AtomicU64,
}

const NEVER: u64 = u64::MAX;

impl Usage {
    pub(crate) fn new() -> Self {
        let [signatures, last_document] = [0, NEVER].map(AtomicU64::new);
        Self { opened: Instant::now(), signatures, last_document }
    }

    /// The number of signatures that the identity's keys have made, including those in documents.
    pub fn signatures(&self) -> u64 {
        self.signatures.load(Ordering::Relaxed)
    }

    /// The time since a document was last handed out, if one ever was.
    pub fn document_age(&self) -> Option<Duration> {
        let last = self.last_document.load(Ordering::Relaxed);
        let last = (last != NEVER).then(|| Duration::from_millis(last))?;
        Some(self.opened.elapsed().saturating_sub(last))
    }

    pub(crate) fn note_document(&self) {
        self.last_document.store(self.opened.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    /// Wraps a key of the identity so that its signatures are counted.
    pub(crate) fn counting<'a>(&'a self, key: &'a dyn Signer) -> Counting<'a> {
        Counting { key, usage: self }
    }
}

/// A key whose signatures are counted.
#[derive(Debug)]
pub(crate) struct Counting<'a> {
    key: &'a dyn Signer,
    usage: &'a Usage,
}

impl Signer for Counting<'_> {
    fn public_key(&self) -> PublicKey {
        self.key.public_key()
    }

    fn sign(&self, digest: &[u8; 32]) -> Result<Signature, SignerError> {
        let signature = self.key.sign(digest)?;
        self.usage.signatures.fetch_add(1, Ordering::Relaxed);
        Ok(signature)
    }
}
