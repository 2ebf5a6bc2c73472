use std::collections::BTreeSet;
use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde::de::IgnoredAny;
use sha2::{Digest, Sha256};
use thiserror::Error;

/// The key of the JSON Web Tokens (RFC 7519, HS256) of the older generator's callers. As in that
/// generator, the bytes of its text are the key.
#[derive(Clone)]
pub struct JwtKey(SecretString);

/// Why a key is too easy to guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WeakJwtKey {
    /// HS256 requires at least as many bytes as its hash has (RFC 7518, section 3.2).
    #[error("auth.jwtKey is too short: it must have at least 32 bytes")]
    TooShort,
    /// The key consists of few different characters.
    #[error(
        "auth.jwtKey is easy to guess: make a new key of random characters, and new tokens with it"
    )]
    Guessable,
    /// The older generator publishes this key in its default configuration.
    #[error(
        "auth.jwtKey is a default key that the older generator publishes, so anybody can make tokens \
         with it: make a new key, and new tokens with it"
    )]
    Published,
}

/// Why a JSON Web Token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JwtError {
    /// The token is malformed, not signed with HS256 and this key, or not valid yet.
    Invalid,
    /// The token has expired (`exp`).
    Expired,
}

/// The shortest key, in bytes.
const MIN_KEY_LEN: usize = 32;
/// A random key nearly always has more different characters.
const MIN_DIFFERENT_BYTES: usize = 8;
/// SHA-256 of the keys in the older generator's default configurations: versions 1.2 and 1.3, then
/// version 2.
const PUBLISHED_KEYS: [&str; 2] = [
    "1f5792711d0e738d3f3a4a86a945e41897c624729105b0d4e5ff13be12ceaeb1",
    "df0790f236013511e91fa4532fb7761f62320a51a3868dabf4a13fe5f53e3263",
];

#[derive(Deserialize)]
struct Header {
    alg: String,
    /// Extensions that must be understood (RFC 7515, section 4.1.11). None is understood.
    crit: Option<IgnoredAny>,
}

/// The claims that limit a token. The older generator also writes `username` and `iat`, which limit
/// nothing.
#[derive(Deserialize)]
struct Claims {
    exp: Option<f64>,
    nbf: Option<f64>,
}

impl JwtKey {
    /// Takes a key that is long enough and not publicly known.
    pub fn new(text: SecretString) -> Result<Self, WeakJwtKey> {
        let bytes = text.expose_secret().as_bytes();
        if bytes.len() < MIN_KEY_LEN {
            return Err(WeakJwtKey::TooShort);
        }
        if PUBLISHED_KEYS.contains(&hex::encode(Sha256::digest(bytes)).as_str()) {
            return Err(WeakJwtKey::Published);
        }
        if bytes.iter().collect::<BTreeSet<_>>().len() < MIN_DIFFERENT_BYTES {
            return Err(WeakJwtKey::Guessable);
        }
        Ok(Self(text))
    }

    /// Checks a token at the time `now`, in seconds since 1970.
    pub(super) fn check(&self, token: &str, now: u64) -> Result<(), JwtError> {
        let (signed, signature) = token.rsplit_once('.').ok_or(JwtError::Invalid)?;
        let (header, claims) = signed.split_once('.').ok_or(JwtError::Invalid)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| JwtError::Invalid)?;
        let header: Header = decode(header)?;
        if header.alg != "HS256" || header.crit.is_some() {
            return Err(JwtError::Invalid);
        }
        let mut mac = Hmac::<Sha256>::new_from_slice(self.0.expose_secret().as_bytes())
            .expect("HMAC takes keys of any length");
        mac.update(signed.as_bytes());
        // The comparison takes constant time.
        mac.verify_slice(&signature).map_err(|_| JwtError::Invalid)?;
        let Claims { exp, nbf } = decode(claims)?;
        // A float represents each second exactly until the year 2 million.
        let now = now as f64;
        if nbf.is_some_and(|begin| now < begin) {
            return Err(JwtError::Invalid);
        }
        match exp {
            Some(end) if now >= end => Err(JwtError::Expired),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for JwtKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JwtKey")
    }
}

fn decode<T: for<'de> Deserialize<'de>>(part: &str) -> Result<T, JwtError> {
    let text = URL_SAFE_NO_PAD.decode(part).map_err(|_| JwtError::Invalid)?;
    // Ignored members could hold any bytes, so all of the text must be UTF-8.
    let text = String::from_utf8(text).map_err(|_| JwtError::Invalid)?;
    // Serde reads an array into a struct too, so arrays are refused here.
    if !text.starts_with('{') {
        return Err(JwtError::Invalid);
    }
    serde_json::from_str(&text).map_err(|_| JwtError::Invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef";
    const NOW: u64 = 1_800_000_000;

    fn key() -> JwtKey {
        JwtKey::new(KEY.into()).unwrap()
    }

    fn token(header: &str, claims: impl AsRef<[u8]>) -> String {
        let parts = [header.as_bytes(), claims.as_ref()];
        let signed = parts.map(|part| URL_SAFE_NO_PAD.encode(part)).join(".");
        let mut mac = Hmac::<Sha256>::new_from_slice(KEY.as_bytes()).unwrap();
        mac.update(signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes()))
    }

    const HS256: &str = r#"{"alg":"HS256","typ":"JWT"}"#;

    #[test]
    fn what_the_older_generator_writes_is_accepted() {
        // This token was made by the library of that generator (jsonwebtoken 9.0.3 for JavaScript).
        let recorded = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.\
                        eyJ1c2VybmFtZSI6InBvb2wiLCJpYXQiOjE3MDAwMDAwMDB9.\
                        7bRjaw28cuv1_ACQ7LDDQNFynCbS4KiBuUyNrIlogzM";
        assert_eq!(key().check(recorded, NOW), Ok(()));
        let limited = token(HS256, r#"{"exp":1800000001,"nbf":1800000000}"#);
        assert_eq!(key().check(&limited, NOW), Ok(()));
    }

    #[test]
    fn nothing_else_is() {
        for header in [
            r#"{"alg":"none"}"#,
            r#"{"alg":"hs256"}"#,
            r#"{"alg":"RS256"}"#,
            r#"{"typ":"JWT"}"#,
            r#"["HS256",null]"#,
            r#"{"alg":"HS256","crit":["exp"],"exp":1}"#,
        ] {
            assert_eq!(key().check(&token(header, "{}"), NOW), Err(JwtError::Invalid), "{header}");
        }
        for claims in ["", "[]", "[null,null]", r#"{"exp":"never"}"#, r#"{"nbf":1800000001}"#] {
            assert_eq!(key().check(&token(HS256, claims), NOW), Err(JwtError::Invalid), "{claims}");
        }
        let not_text = token(HS256, b"{\"username\":\"\x8d\"}");
        assert_eq!(key().check(&not_text, NOW), Err(JwtError::Invalid));
        for exp in ["1800000000", "0", "-1", "1799999999.5"] {
            let token = token(HS256, format!(r#"{{"exp":{exp}}}"#));
            assert_eq!(key().check(&token, NOW), Err(JwtError::Expired), "{exp}");
        }
        let good = token(HS256, "{}");
        let (signed, signature) = good.rsplit_once('.').unwrap();
        let padded = format!("{good}=");
        let unsigned = format!("{signed}.");
        let cut = &good[..good.len() - 1];
        let other = format!("{}.{signature}", signed.replace("e30", "e31"));
        for bad in ["", ".", "..", "...", signed, &unsigned, cut, &padded, &other] {
            assert_eq!(key().check(bad, NOW), Err(JwtError::Invalid), "{bad}");
        }
    }

    #[test]
    fn a_key_that_can_be_guessed_is_refused() {
        let refusal = |text: &str| JwtKey::new(text.into()).err();
        assert_eq!(refusal(&"f".repeat(64)), Some(WeakJwtKey::Published));
        assert_eq!(refusal(&"e".repeat(64)), Some(WeakJwtKey::Guessable));
        assert_eq!(refusal(&"secret".repeat(10)), Some(WeakJwtKey::Guessable));
        assert_eq!(refusal(&KEY[1..]), Some(WeakJwtKey::TooShort));
        assert_eq!(refusal(""), Some(WeakJwtKey::TooShort));
        assert_eq!(refusal(KEY), None);
        assert!(!format!("{:?}", key()).contains(KEY));
    }
}
