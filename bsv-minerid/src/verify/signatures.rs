use std::ops::RangeInclusive;

use bsv_tx::{PublicKey, Signature};

use super::node_text::before_nul;
use super::report::{Check, Findings};

/// The result of verifying a signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// Valid: strict DER, low S, by the key.
    Good,
    /// By the key, but in a form that only nodes accept.
    Lax,
    /// Not by the key.
    Bad,
}

impl Standing {
    pub(super) fn of(key: &PublicKey, digest: &[u8; 32], signature: &[u8]) -> Self {
        if Signature::from_der(signature).is_ok_and(|signature| key.verify(digest, &signature)) {
            Self::Good
        } else if key.verify_lax(digest, signature) {
            Self::Lax
        } else {
            Self::Bad
        }
    }

    /// Verifies a signature in a 1.0 document. Nodes check its spelling first.
    pub(super) fn of_text(key: &PublicKey, digest: &[u8; 32], text: &[u8]) -> Self {
        let text = before_nul(text);
        if !is_spelled_well(text) {
            return Self::Bad;
        }
        hex::decode(text).map_or(Self::Bad, |signature| Self::of(key, digest, &signature))
    }

    /// Reports this result for `check`.
    pub(super) fn note(self, check: Check, findings: &mut Findings) {
        match self {
            Self::Good => findings.holds(check),
            Self::Lax => findings.fails(check, LAX),
            Self::Bad => findings.refused(check, BAD),
        }
    }
}

pub(super) const LAX: &str =
    "the signature has a high S or is not strict DER, which only nodes accept";
pub(super) const BAD: &str = "the signature is not by the key";

/// The lengths of signatures in 1.0 scripts and documents, in bytes. Nodes before 1.2.0 require at
/// least 69 in scripts.
pub(super) const LENGTHS: RangeInclusive<usize> = 64..=72;

pub(super) const BAD_LENGTH: &str = "the signature must be of 64 to 72 bytes";

/// The pattern that nodes require of signatures in 1.0 documents.
fn is_spelled_well(text: &[u8]) -> bool {
    text.len().is_multiple_of(2)
        && LENGTHS.contains(&(text.len() / 2))
        && text.starts_with(b"304")
        && matches!(text[3], b'0'..=b'8')
        && &text[4..6] == b"02"
        && text.iter().all(u8::is_ascii_hexdigit)
}
