//! Secrets sealed with XChaCha20-Poly1305, under a key or under a key that Argon2id derives from a
//! passphrase.

use allocator_api2::alloc::System;
use allocator_api2::vec::Vec as VecIn;
use argon2::{Algorithm, Argon2, Block, Params, Version};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use secrecy::{ExposeSecret, SecretString};
use zeroize::Zeroizing;

/// The length of a key, in bytes.
pub(crate) const KEY_LEN: usize = 32;
const NONCE_LEN: usize = 24;

/// The Argon2id parameters for sealing: 64 MiB, 3 iterations and 4 lanes (RFC 9106, section 4, the
/// second recommended option).
pub(crate) fn params() -> Params {
    Params::new(64 << 10, 3, 4, Some(KEY_LEN)).expect("the parameters are within Argon2's bounds")
}

/// Checks stored Argon2id parameters: memory in KiB, iterations and lanes. Answers `None` if they
/// would take too much memory or time.
pub(crate) fn checked_params(memory_kib: u32, iterations: u32, lanes: u32) -> Option<Params> {
    let is_bearable = memory_kib <= 1 << 20 && iterations <= 100 && lanes <= 16;
    let params = is_bearable.then(|| Params::new(memory_kib, iterations, lanes, Some(KEY_LEN)));
    params?.ok()
}

/// The key that a passphrase and a salt of 8 to 64 bytes yield. The memory comes directly from the
/// system, and returns to it at once. A program's allocator would keep it for a while.
pub(crate) fn stretch(
    passphrase: &SecretString,
    salt: &[u8],
    params: &Params,
) -> Zeroizing<[u8; KEY_LEN]> {
    let mut key = Zeroizing::new([0; KEY_LEN]);
    let mut memory = VecIn::new_in(System);
    memory.resize(params.block_count(), Block::new());
    let passphrase = passphrase.expose_secret().as_bytes();
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params.clone())
        .hash_password_into_with_memory(passphrase, salt, key.as_mut(), memory.as_mut_slice())
        .expect("the lengths of salt and key are within Argon2's bounds");
    key
}

/// Seals a secret. Answers a random nonce, followed by the ciphertext.
pub(crate) fn seal(
    key: &[u8; KEY_LEN],
    associated: &[u8],
    secret: &[u8],
) -> Result<Vec<u8>, getrandom::Error> {
    let nonce = random::<NONCE_LEN>()?;
    let payload = Payload { msg: secret, aad: associated };
    let ciphertext = XChaCha20Poly1305::new(key.into())
        .encrypt(&XNonce::from(nonce), payload)
        .expect("a secret is far shorter than the cipher's limit");
    Ok([nonce.as_slice(), &ciphertext].concat())
}

/// Opens a sealed secret, if the key and the associated data are the same.
pub(crate) fn open(
    key: &[u8; KEY_LEN],
    associated: &[u8],
    sealed: &[u8],
) -> Option<Zeroizing<Vec<u8>>> {
    let (nonce, ciphertext) = sealed.split_first_chunk::<NONCE_LEN>()?;
    let payload = Payload { msg: ciphertext, aad: associated };
    let secret = XChaCha20Poly1305::new(key.into()).decrypt(&XNonce::from(*nonce), payload).ok()?;
    Some(Zeroizing::new(secret))
}

pub(crate) fn random<const N: usize>() -> Result<[u8; N], getrandom::Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}
