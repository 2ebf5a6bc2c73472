//! A log of what happened to keys and to who may use them, to which entries are only added, and each of
//! which carries the hash of the one before.

#[cfg(feature = "database")]
mod table;

use sha2::{Digest, Sha256};

#[cfg(feature = "database")]
pub use self::table::{
    append_to_audit_log, copy_to_audit_log, create_audit_log, read_audit_log, verify_audit_log,
};

/// What can happen to a key, to who may use it, or by the owner's word alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum KeyEvent {
    /// It was made.
    Made,
    /// It was taken over from elsewhere.
    Imported,
    /// It was there before the log.
    Found,
    /// Another key takes its place.
    Rotated,
    /// It is declared to be no longer valid.
    Revoked,
    /// It is deleted.
    Deleted,
    /// It leaves the service in clear, as the words of a wallet do.
    Exported,
    /// It leaves the service in a sealed backup.
    BackedUp,
    /// The passphrase that seals all keys changes.
    PassphraseChanged,
    /// An identity signs any hash from now on.
    BlindSigningOn,
    /// An identity signs its documents only from now on.
    BlindSigningOff,
    /// A token is made, whose bearer may use keys.
    TokenMade,
    /// A token is not accepted any more.
    TokenRevoked,
    /// The coins of a validity check transaction are sent elsewhere.
    VctxSwept,
    /// An invoice is marked as paid, whatever was received.
    InvoiceMarked,
    /// What was announced by the entry before did not happen.
    Failed,
}

impl KeyEvent {
    /// The name in the log.
    pub fn name(self) -> &'static str {
        match self {
            Self::Made => "made",
            Self::Imported => "imported",
            Self::Found => "found",
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
    /// Its number, from 1 on.
    pub number: u64,
    /// When it was written, in microseconds since 1970; never before the entry before it.
    pub at_micros: u64,
    /// What happened: the name of a [`KeyEvent`], or one that a newer version wrote.
    pub event: String,
    /// To what.
    pub subject: String,
    /// The hash of the entry before; zeros in the first.
    pub previous: [u8; 32],
}

impl AuditEntry {
    /// The entry after these, at a time in microseconds since 1970 that is put off to the last one's.
    pub fn next(tail: AuditTail, event: KeyEvent, subject: &str, at_micros: u64) -> Self {
        Self {
            number: tail.number + 1,
            at_micros: at_micros.max(tail.at_micros),
            event: event.name().to_owned(),
            subject: subject.to_owned(),
            previous: tail.hash,
        }
    }

    /// What the next entry goes on from.
    pub fn tail(&self) -> AuditTail {
        AuditTail { number: self.number, at_micros: self.at_micros, hash: self.hash() }
    }

    /// The SHA-256 of the entry: of its number and time as eight bytes each, little-endian, of its event
    /// and subject, each after its length in eight bytes, and of the hash of the entry before.
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

/// What an entry goes on from; zeros before the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditTail {
    /// The number of the last entry.
    pub number: u64,
    /// When it was written, in microseconds since 1970.
    pub at_micros: u64,
    /// Its hash.
    pub hash: [u8; 32],
}

/// What was found when a log was read from its beginning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditCheck {
    /// How many entries fit, from the first on.
    pub entries: u64,
    /// The hash of the last of these; zeros if there is none. Whoever keeps it elsewhere sees later
    /// whether entries were cut off.
    pub head: [u8; 32],
    /// When the last of these was written, in microseconds since 1970.
    pub last_at_micros: u64,
    /// Why the next entry does not fit the ones before it, if there is such an entry.
    pub fault: Option<String>,
}

impl AuditCheck {
    /// Takes the next entry in. Answers whether it fits; one that does not is the last to be taken in.
    pub fn take(&mut self, entry: &AuditEntry) -> bool {
        let expected = self.entries + 1;
        self.fault = if entry.number != expected {
            Some(format!("entry {expected} is missing, and {} is there", entry.number))
        } else if entry.previous != self.head {
            Some(format!("entry {expected} does not carry the hash of the one before it"))
        } else if entry.at_micros < self.last_at_micros {
            Some(format!("entry {expected} is of an earlier time than the one before it"))
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
