use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use secrecy::SecretString;
use sha2::Sha256;

use crate::hex_digits;
use crate::service::host_of;

/// How a broadcaster tells of changes. What it tells is only a reason to ask.
#[derive(Clone)]
pub struct Callback {
    /// The URL to which it posts, if it should. Real services post to no private addresses.
    pub url: Option<String>,
    /// The bearer token that it sends along, and by which Arcade gives a stream of events.
    pub token: SecretString,
}

/// What the token is made of. Every server with the same key has the same token.
const MESSAGE: &[u8] = b"bsv-network: token of callbacks";

impl Callback {
    /// The token of those who have this key: an HMAC-SHA-256.
    pub fn token_of(key: &[u8; 32]) -> SecretString {
        let digits = mac(key).finalize().into_bytes().into_iter().map(|byte| format!("{byte:02x}"));
        SecretString::from(digits.collect::<String>())
    }

    /// Whether a token is that of a key. The time that this takes tells nothing about the right token.
    pub fn is_token_of(key: &[u8; 32], token: &str) -> bool {
        let mut bytes = Vec::new();
        hex_digits::decode(token.as_bytes(), &mut bytes) && mac(key).verify_slice(&bytes).is_ok()
    }
}

fn mac(key: &[u8; 32]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any key will do");
    mac.update(MESSAGE);
    mac
}

impl fmt::Debug for Callback {
    /// Shows the host. Other parts of the URL may be secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Callback");
        shown.field("host", &self.url.as_deref().map(host_of)).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;

    #[test]
    fn a_token_is_known_again() {
        let token = Callback::token_of(&[1; 32]);
        let token = token.expose_secret();
        assert!(Callback::is_token_of(&[1; 32], token));
        assert!(!Callback::is_token_of(&[2; 32], token));
        let mut other = token.to_owned().into_bytes();
        other[0] ^= 1;
        let other = String::from_utf8(other).unwrap();
        for wrong in ["", "zz", &token[..62], &format!("{token}00"), &format!("{token} "), &other] {
            assert!(!Callback::is_token_of(&[1; 32], wrong), "{wrong}");
        }
    }

    #[test]
    fn the_token_stays_the_same_in_all_versions() {
        let token = Callback::token_of(&[0; 32]);
        assert_eq!(
            token.expose_secret(),
            "f50ad098398b4f32551e3632c336fb7f053baae12859c29b6212c79f8f0209dc"
        );
    }
}
