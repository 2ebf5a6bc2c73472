use std::time::Duration;

use sha2::{Digest, Sha256};

/// How long the wallet keeps a key.
pub const IDEMPOTENCY_PERIOD: Duration = Duration::from_secs(24 * 60 * 60);
/// The longest key, in characters.
pub const MAX_KEY_LEN: usize = 255;

/// A key that the caller chooses, and the hash of its request. A request that is repeated with its
/// key gets the answer to the first one, and is not done twice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdempotencyKey {
    pub(crate) key: String,
    pub(crate) request_hash: [u8; 32],
}

/// An idempotency key is empty, too long, or not printable ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an idempotency key has from 1 to {MAX_KEY_LEN} printable ASCII characters")]
pub struct BadIdempotencyKey;

impl IdempotencyKey {
    /// A key of 1 to [`MAX_KEY_LEN`] printable ASCII characters, and the body of the request.
    pub fn new(key: &str, request: &[u8]) -> Result<Self, BadIdempotencyKey> {
        let is_printable = key.bytes().all(|c| (b' '..=b'~').contains(&c));
        if !(1..=MAX_KEY_LEN).contains(&key.len()) || !is_printable {
            return Err(BadIdempotencyKey);
        }
        Ok(Self { key: key.to_owned(), request_hash: Sha256::digest(request).into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_short_printable_text() {
        for key in ["a", "5f0c8a0e-7d0e-4d9c", &" ~".repeat(127), &"k".repeat(255)] {
            assert!(IdempotencyKey::new(key, b"{}").is_ok(), "{key}");
        }
        for key in ["", &"k".repeat(256), "a\u{7f}", "a\nb", "é"] {
            let refused = IdempotencyKey::new(key, b"{}");
            assert!(matches!(refused, Err(BadIdempotencyKey)), "{key}");
        }
    }
}
