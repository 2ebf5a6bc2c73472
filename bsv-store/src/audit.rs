//! An append-only log of what happened to keys and to access. Each entry carries the hash of the
//! entry before it.

#[cfg(feature = "database")]
mod table;

use sha2::{Digest, Sha256};

#[cfg(feature = "database")]
pub use self::table::{
    append_to_audit_log, copy_to_audit_log, create_audit_log, read_audit_log, verify_audit_log,
};

/// What an entry of the log tells: an event of a key, of access, or an act of the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyEvent {
    /// A key was made.
    Made,
    /// A key was imported.
    Imported,
    /// Another key replaces a key.
    Rotated,
    /// A key is declared invalid.
    Revoked,
    /// A key is deleted.
    Deleted,
    /// A key leaves the service in clear, as the words of a wallet do.
    Exported,
    /// The keys leave the service in a sealed backup.
    BackedUp,
    /// The passphrase that seals all keys changes.
    PassphraseChanged,
    /// From now on, an identity signs any hash.
    BlindSigningOn,
    /// From now on, an identity signs only its documents.
    BlindSigningOff,
    /// A token is made, whose bearer may use keys.
    TokenMade,
    /// A token is no longer accepted.
    TokenRevoked,
    /// The coins of a validity check transaction are sent away.
    VctxSwept,
    /// An invoice is marked as paid, regardless of receipts.
    InvoiceMarked,
    /// The action that the entry before announced did not happen.
    Failed,
}

impl KeyEvent {
    /// The name in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Made => "made",
            Self::Imported => "imported",
            Self::Rotated => "rotated",
            Self::Revoked => "revoked",
            Self::Deleted => "deleted",
            Self::Exported => "exported",
            Self::BackedUp => "backed-up",
            Self::PassphraseChanged => "passphrase-changed",
            Self::BlindSigningOn => "blind-signing-on",
            Self::BlindSigningOff => "blind-signing-off",
            Self::TokenMade => "token-made",
            Self::TokenRevoked => "token-revoked",
            Self::VctxSwept => "vctx-swept",
            Self::InvoiceMarked => "invoice-marked",
            Self::Failed => "failed",
        }
    }
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    /// The number of the entry, from 1.
    pub number: u64,
    /// When the entry was written, in microseconds since 1970. Never earlier than the entry before.
    pub at_micros: u64,
    /// The name of a [`KeyEvent`], or a name that a newer version wrote.
    pub event: String,
    /// The key, identity, token or other thing that the event concerns.
    pub subject: String,
    /// The hash of the entry before. Zeros in the first entry.
    pub previous: [u8; 32],
}

impl AuditEntry {
    /// The entry after the one of `tail`. `at_micros` is its time in microseconds since 1970, or
    /// that of the entry before if that is later.
    pub fn next(tail: AuditTail, event: KeyEvent, subject: &str, at_micros: u64) -> Self {
        Self {
            number: tail.number + 1,
            at_micros: at_micros.max(tail.at_micros),
            event: event.name().to_owned(),
            subject: subject.to_owned(),
            previous: tail.hash,
        }
    }

    /// The values that the next entry depends on.
    pub fn tail(&self) -> AuditTail {
        AuditTail { number: self.number, at_micros: self.at_micros, hash: self.hash() }
    }

    /// The SHA-256 of the entry: of its number and time as eight bytes each, little-endian, of its
    /// event and subject, each after its length in eight bytes, and of the hash of the entry
    /// before.
    pub fn hash(&self) -> [u8; 32] {
        let mut hasher = Sha256::new();
        hasher.update(self.number.to_le_bytes());
        hasher.update(self.at_micros.to_le_bytes());
        for text in [&self.event, &self.subject] {
            hasher.update((text.len() as u64).to_le_bytes());
            hasher.update(text);
        }
        hasher.update(self.previous);
        hasher.finalize().into()
    }
}

/// Which entries of the log to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuditPage {
    /// The first ones after the entry with this number.
    After(u64),
    /// The last ones before the entry with this number.
    Before(u64),
}

/// The values of the last entry that the next entry depends on. Zeros before the first entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditTail {
    /// The number of the last entry.
    pub number: u64,
    /// When the last entry was written, in microseconds since 1970.
    pub at_micros: u64,
    /// The hash of the last entry.
    pub hash: [u8; 32],
}

/// The result of a check of the log from its beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditCheck {
    /// The number of entries that fit, from the first on.
    pub entries: u64,
    /// The hash of the last entry that fits, or zeros if there is none. Keep it elsewhere to notice
    /// later whether entries were cut off.
    pub head: [u8; 32],
    /// When the last entry that fits was written, in microseconds since 1970.
    pub last_at_micros: u64,
    /// Why the next entry does not fit, if there is one.
    pub fault: Option<String>,
}

impl AuditCheck {
    /// Takes the next entry in. Answers whether it fits; one that does not is the last to be taken in.
    pub fn take(&mut self, entry: &AuditEntry) -> bool {
        let expected = self.entries + 1;
        self.fault = if entry.number != expected {
            Some(format!("entry {expected} is missing; entry {} follows", entry.number))
        } else if entry.previous != self.head {
            Some(format!("entry {expected} does not carry the hash of the one before it"))
        } else if entry.at_micros < self.last_at_micros {
            Some(format!("entry {expected} has an earlier time than the one before it"))
        } else {
            None
        };
        if self.fault.is_some() {
            return false;
        }
        self.entries = expected;
        self.head = entry.hash();
        self.last_at_micros = entry.at_micros;
        true
    }
}
