//! Base58 text with a checksum, the form of addresses and of private keys.

use zeroize::Zeroizing;

use crate::hash::sha256d;

/// Encodes `payload`, followed by the first four bytes of its SHA-256d, as base58.
pub(crate) fn encode(payload: &[u8]) -> String {
    let mut bytes = Zeroizing::new(payload.to_vec());
    bytes.extend_from_slice(&sha256d(payload)[..4]);
    bs58::encode(bytes.as_slice()).into_string()
}

/// The longest accepted text. An extended key, the longest kind in use, has 111 characters.
const MOST_TEXT: usize = 128;

/// The payload of base58 text, or `None` if the checksum is wrong.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_up_to_128_characters_is_read() {
        let of_len = |len| {
            let mut payloads =
                [89, 90].into_iter().flat_map(|len| (0..=u8::MAX).map(move |byte| vec![byte; len]));
            payloads.find(|payload| encode(payload).len() == len).unwrap()
        };
        for len in [126, 127, 128] {
            let payload = of_len(len);
            assert_eq!(decode(&encode(&payload)), Some(payload));
        }
        assert_eq!(decode(&encode(&of_len(129))), None);
    }
}
