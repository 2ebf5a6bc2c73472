use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

/// The length of a secret, in bytes.
const SECRET_LEN: usize = 32;
/// The beginning of the text of every secret (Standard Webhooks, "Signature scheme").
const PREFIX: &str = "whsec_";

/// The secret of a webhook: the sender signs with it, and the receiver verifies with it. It is 32
/// random bytes, wiped when dropped and never printed.
pub struct WebhookSecret(Zeroizing<[u8; SECRET_LEN]>);

impl WebhookSecret {
    /// A random secret.
    pub fn random() -> Result<Self, getrandom::Error> {
        let mut bytes = Zeroizing::new([0; SECRET_LEN]);
        getrandom::fill(bytes.as_mut())?;
        Ok(Self(bytes))
    }

    /// The secret of these bytes, if there are 32.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut secret = Zeroizing::new([0; SECRET_LEN]);
        (bytes.len() == SECRET_LEN).then(|| {
            secret.copy_from_slice(bytes);
            Self(secret)
        })
    }

    /// Its bytes, for sealing.
    pub fn as_bytes(&self) -> &[u8; SECRET_LEN] {
        &self.0
    }

    /// The secret as text, which the receiver is shown once: `whsec_` and base64.
    pub fn text(&self) -> Zeroizing<String> {
        // The capacity suffices for the text, so the string never grows and leaves no copy behind.
        let mut text = Zeroizing::new(String::with_capacity(PREFIX.len() + SECRET_LEN * 2));
        text.push_str(PREFIX);
        BASE64_STANDARD.encode_string(self.0.as_slice(), &mut text);
        text
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(…)")
    }
}

/// The header `webhook-signature` of one attempt: a signature with each secret, with spaces between them
/// (Standard Webhooks). `seconds` is the time of the attempt, since 1970.
pub fn signatures<'s>(
    secrets: impl IntoIterator<Item = &'s WebhookSecret>,
    id: &str,
    seconds: u64,
    body: &[u8],
) -> String {
    let mut header = String::new();
    for secret in secrets {
        if !header.is_empty() {
            header.push(' ');
        }
        header.push_str(&signature(secret.as_bytes(), id, seconds, body));
    }
    header
}

/// `v1,` and the base64 of the HMAC-SHA-256 of what is signed.
fn signature(key: &[u8], id: &str, seconds: u64, body: &[u8]) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any key will do");
    mac.update(format!("{id}.{seconds}.").as_bytes());
    mac.update(body);
    format!("v1,{}", BASE64_STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example that the libraries of Standard Webhooks test themselves with.
    #[test]
    fn signatures_are_those_of_standard_webhooks() {
        let key = BASE64_STANDARD.decode("C2FVsBQIhrscChlQIMV+b5sSYspob7oD").unwrap();
        let body = br#"{"email":"test@example.com","username":"test_user"}"#;
        assert_eq!(
            signature(&key, "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk", 1_649_367_553, body),
            "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw="
        );
    }

    #[test]
    fn each_secret_signs() {
        let [old, new] = [(); 2].map(|()| WebhookSecret::random().unwrap());
        let one = |secret| signatures([secret], "evt_1", 5, b"{}");
        let both = signatures([&new, &old], "evt_1", 5, b"{}");
        assert_eq!(both, format!("{} {}", one(&new), one(&old)));
        assert_ne!(one(&new), one(&old));
        assert_ne!(one(&new), signatures([&new], "evt_1", 6, b"{}"));
    }

    #[test]
    fn a_secret_is_shown_as_text_and_never_printed() {
        let secret = WebhookSecret::random().unwrap();
        let text = secret.text();
        let bytes = BASE64_STANDARD.decode(text.strip_prefix("whsec_").unwrap()).unwrap();
        assert_eq!(bytes, secret.as_bytes());
        assert_eq!(WebhookSecret::from_bytes(&bytes).unwrap().as_bytes(), secret.as_bytes());
        assert!(WebhookSecret::from_bytes(&bytes[1..]).is_none());
        assert_eq!(format!("{secret:?}"), "WebhookSecret(…)");
        assert_ne!(WebhookSecret::random().unwrap().as_bytes(), secret.as_bytes());
    }
}
