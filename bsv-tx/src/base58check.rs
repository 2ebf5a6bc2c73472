//! Base58 text with a checksum, the form of addresses and of private keys.

use zeroize::Zeroizing;

use crate::hash::sha256d;

/// Base58 text of `payload` and the first four bytes of its SHA-256d.
pub(crate) fn encode(payload: &[u8]) -> String {
    let mut bytes = Zeroizing::new(payload.to_vec());
    bytes.extend_from_slice(&sha256d(payload)[..4]);
    bs58::encode(bytes.as_slice()).into_string()
}

/// The longest base58check text with a meaning, an extended key, has 111 characters.
const MOST_TEXT: usize = 128;

/// The payload of base58 text whose checksum fits.
pub(crate) fn decode(text: &str) -> Option<Vec<u8>> {
    // Decoding takes time that grows with the square of the length.
    if text.len() > MOST_TEXT {
        return None;
    }
    let mut bytes = bs58::decode(text).into_vec().ok()?;
    let payload_len = bytes.len().checked_sub(4)?;
    let checksum_fits = sha256d(&bytes[..payload_len])[..4] == bytes[payload_len..];
    bytes.truncate(payload_len);
    checksum_fits.then_some(bytes)
}
