//! A log of what happened to keys and to who may use them, to which entries are only added, and each of
//! which carries the hash of the one before.

#[cfg(feature = "database")]
mod table;

use sha2::{Digest, Sha256};

#[cfg(feature = "database")]
pub use self::table::{append_to_audit_log, create_audit_log, read_audit_log, verify_audit_log};

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

/// What was found when a log was read from its beginning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditCheck {
    /// How many entries fit, from the first on.
    pub entries: u64,
    /// The hash of the last of these; zeros if there is none. Whoever keeps it elsewhere sees later
    /// whether entries were cut off.
    pub head: [u8; 32],
    /// Why the next entry does not fit the ones before it, if there is such an entry.
    pub fault: Option<String>,
}
