use std::fmt;
use std::str::FromStr;

use secp256k1::{Message, SecretKey, ecdsa};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::base58check;
use crate::hash::hash160;
use crate::network::Network;

/// The length of the shortest signature that nodes of all versions take in a miner-info script or a
/// coinbase reference, in bytes. Nodes before 1.2.0 ignore an identity with a shorter one.
pub const MIN_SIGNATURE_LEN: usize = 69;

/// Why text or bytes are not a key or a signature. The messages never repeat the input.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum KeyError {
    /// Not a private key: not 32 bytes, zero, or not below the order of the curve.
    #[error("not a private key")]
    PrivateKey,
    /// Not a private key in wallet import format.
    #[error("not a private key in wallet import format (WIF)")]
    Wif,
    /// Not an extended private key.
    #[error("not an extended private key (xprv… or tprv…)")]
    ExtendedPrivateKey,
    /// Not a path of child numbers, or a path that leads to no key.
    #[error("not a path to a derived key, such as m/44'/236'/0'")]
    DerivationPath,
    /// Not a compressed public key.
    #[error("not a compressed public key (66 hexadecimal characters)")]
    PublicKey,
    /// Not a signature.
    #[error("not an ECDSA signature in DER form")]
    Signature,
    /// The operating system provides no random numbers.
    #[error("the operating system provides no random numbers: {0}")]
    NoRandomness(getrandom::Error),
}

/// A secp256k1 private key, which is wiped from memory when dropped, and never printed.
#[derive(Clone)]
pub struct PrivateKey(pub(crate) Zeroizing<[u8; 32]>);

impl PrivateKey {
    /// Makes a new key from random numbers of the operating system.
    pub fn generate() -> Result<Self, KeyError> {
        let mut bytes = Zeroizing::new([0; 32]);
        loop {
            getrandom::fill(bytes.as_mut()).map_err(KeyError::NoRandomness)?;
            // Fails one time in 2^127.
            if let Ok(key) = Self::from_bytes(&bytes) {
                return Ok(key);
            }
        }
    }

    /// Takes the key as a big-endian number.
    pub fn from_bytes(bytes: &[u8; 32]) -> Result<Self, KeyError> {
        let mut secret = SecretKey::from_secret_bytes(*bytes).map_err(|_| KeyError::PrivateKey)?;
        secret.non_secure_erase();
        Ok(Self(Zeroizing::new(*bytes)))
    }

    /// Reads a key in wallet import format (WIF) for `network`. The WIF must be of a compressed
    /// public key. All test networks share one form.
    pub fn from_wif(text: &str, network: Network) -> Result<Self, KeyError> {
        let payload = Zeroizing::new(base58check::decode(text).ok_or(KeyError::Wif)?);
        match payload.as_slice() {
            [version, key @ .., 0x01] if *version == network.wif_version() => {
                let bytes: &[u8; 32] = key.try_into().map_err(|_| KeyError::Wif)?;
                Self::from_bytes(bytes)
            }
            _ => Err(KeyError::Wif),
        }
    }

    /// The key in wallet import format.
    pub fn to_wif(&self, network: Network) -> Zeroizing<String> {
        let mut payload = Zeroizing::new([0; 34]);
        payload[0] = network.wif_version();
        payload[1..33].copy_from_slice(self.0.as_ref());
        payload[33] = 0x01;
        Zeroizing::new(base58check::encode(payload.as_ref()))
    }

    /// The public key.
    pub fn public_key(&self) -> PublicKey {
        self.with_secret(|secret| PublicKey(secp256k1::PublicKey::from_secret_key(secret)))
    }

    /// Signs a 32-byte digest. The nonce follows RFC 6979, and S is low. About one signature in 30,000
    /// would be shorter than [`MIN_SIGNATURE_LEN`]. It is made with the next nonce instead: a counter
    /// is the additional data of RFC 6979, section 3.6.
    pub fn sign(&self, digest: &[u8; 32]) -> Signature {
        let message = Message::from_digest(*digest);
        self.with_secret(|secret| {
            let mut signature = ecdsa::sign(message, secret);
            let mut data = [0; 32];
            while signature.serialize_der().len() < MIN_SIGNATURE_LEN {
                data[0] += 1;
                signature = ecdsa::sign_with_noncedata(message, secret, &data);
            }
            Signature(signature)
        })
    }

    fn with_secret<T>(&self, operation: impl FnOnce(&SecretKey) -> T) -> T {
        let mut secret = SecretKey::from_secret_bytes(*self.0)
            .expect("the bytes were checked when this key was made");
        let result = operation(&secret);
        secret.non_secure_erase();
        result
    }
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PrivateKey(…)")
    }
}

/// A secp256k1 public key, always written compressed: 33 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey(pub(crate) secp256k1::PublicKey);

impl PublicKey {
    /// Reads a compressed key.
    pub fn from_bytes(bytes: &[u8; 33]) -> Result<Self, KeyError> {
        secp256k1::PublicKey::from_slice(bytes).map(Self).map_err(|_| KeyError::PublicKey)
    }

    /// The compressed key.
    pub fn to_bytes(&self) -> [u8; 33] {
        self.0.serialize()
    }

    /// The hash of the compressed key that P2PKH scripts and addresses hold.
    pub fn hash(&self) -> [u8; 20] {
        hash160(&self.to_bytes())
    }

    /// Whether this key's private key made `signature` over `digest`. Only low-S signatures are
    /// valid, as in the consensus rules.
    pub fn verify(&self, digest: &[u8; 32], signature: &Signature) -> bool {
        ecdsa::verify(&signature.0, Message::from_digest(*digest), &self.0).is_ok()
    }

    /// As [`verify`](Self::verify), but accepts lax DER and high S, as nodes do for signatures
    /// outside of scripts.
    pub fn verify_lax(&self, digest: &[u8; 32], signature: &[u8]) -> bool {
        ecdsa::Signature::from_der_lax(signature).is_ok_and(|mut signature| {
            signature.normalize_s();
            ecdsa::verify(&signature, Message::from_digest(*digest), &self.0).is_ok()
        })
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.to_bytes()))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({self})")
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    /// Reads 66 hexadecimal digits of either case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut bytes = [0; 33];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| KeyError::PublicKey)?;
        Self::from_bytes(&bytes)
    }
}

/// An ECDSA signature, whose DER form has 70 or 71 bytes, seldom fewer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Signature(ecdsa::Signature);

impl Signature {
    /// Reads a signature in strict DER form.
    pub fn from_der(bytes: &[u8]) -> Result<Self, KeyError> {
        let signature = ecdsa::Signature::from_der(bytes).map_err(|_| KeyError::Signature)?;
        // The library also reads some forms that are not strict, but writes only strict ones.
        if signature.serialize_der().as_ref() != bytes {
            return Err(KeyError::Signature);
        }
        Ok(Self(signature))
    }

    /// The signature in DER form, without a sighash byte.
    pub fn to_der(&self) -> Vec<u8> {
        self.0.serialize_der().to_vec()
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0.serialize_der()))
    }
}

impl fmt::Debug for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signature({self})")
    }
}

impl FromStr for Signature {
    type Err = KeyError;

    /// Reads hexadecimal DER of either case.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::from_der(&hex::decode(text).map_err(|_| KeyError::Signature)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number of a digest whose plain signature by this key is short.
    const SHORT: u32 = 34_485;
    const WIF: &str = "L3d7a2ekpLcb3Dtfey3PWXVA7nFoEzDapBs6RedZ9GFcqHJxtgu4";

    #[test]
    fn wallet_import_format_reads_back_for_its_network_only() {
        let key = PrivateKey::from_wif(WIF, Network::Livenet).unwrap();
        assert_eq!(*key.to_wif(Network::Livenet), WIF);
        let test_wif = key.to_wif(Network::Regtest);
        assert!(test_wif.starts_with('c'));
        for network in [Network::Testnet, Network::Regtest] {
            let read = PrivateKey::from_wif(&test_wif, network).unwrap();
            assert_eq!(read.public_key(), key.public_key());
            assert_eq!(PrivateKey::from_wif(WIF, network).unwrap_err(), KeyError::Wif);
        }
        let uncompressed = "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ";
        for bad in ["", "L3d7", &WIF[1..], uncompressed, "1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH"] {
            let error = PrivateKey::from_wif(bad, Network::Livenet).unwrap_err();
            assert_eq!(error, KeyError::Wif, "{bad}");
        }
    }

    #[test]
    fn a_signature_that_old_nodes_would_ignore_is_made_with_another_nonce() {
        let key = PrivateKey::from_wif(WIF, Network::Livenet).unwrap();
        let digest = |number: u32| {
            let mut digest = [0; 32];
            digest[..4].copy_from_slice(&number.to_le_bytes());
            digest
        };
        let plain = |digest| key.with_secret(|it| ecdsa::sign(Message::from_digest(digest), it));
        let short = digest(SHORT);
        assert_eq!(plain(short).serialize_der().len(), 68);
        let signature = key.sign(&short);
        assert!((69..=72).contains(&signature.to_der().len()));
        assert!(key.public_key().verify(&short, &signature));
        assert_eq!(key.sign(&digest(0)), Signature(plain(digest(0))));
    }

    #[test]
    fn numbers_that_are_no_private_key_are_refused() {
        let order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
        for bytes in [[0; 32], hex::decode(order).unwrap().try_into().unwrap(), [0xff; 32]] {
            assert_eq!(PrivateKey::from_bytes(&bytes).unwrap_err(), KeyError::PrivateKey);
        }
    }

    #[test]
    fn private_keys_are_never_printed() {
        let key = PrivateKey::from_wif(WIF, Network::Livenet).unwrap();
        assert_eq!(format!("{key:?}"), "PrivateKey(…)");
    }

    #[test]
    fn a_signature_is_read_in_strict_der_only() {
        let key = PrivateKey::from_wif(WIF, Network::Livenet).unwrap();
        let digest = [7; 32];
        let signature = key.sign(&digest);
        assert!(key.public_key().verify(&digest, &signature));
        assert!(!key.public_key().verify(&[8; 32], &signature));
        let der = signature.to_der();
        assert_eq!(Signature::from_der(&der), Ok(signature));
        assert_eq!(signature.to_string().to_uppercase().parse(), Ok(signature));
        let trailing = [der.as_slice(), &[0]].concat();
        for bad in [&der[1..], &der[..der.len() - 1], &trailing, &[]] {
            assert_eq!(Signature::from_der(bad), Err(KeyError::Signature));
        }
        let lax = |signature: &[u8]| key.public_key().verify_lax(&digest, signature);
        assert!(lax(&der) && lax(&trailing));
        assert!(!lax(&der[1..]) && !lax(&[]));
        assert!(!key.public_key().verify_lax(&[8; 32], &der));
    }

    #[test]
    fn a_high_s_verifies_only_where_that_is_asked_for() {
        let key = PrivateKey::from_bytes(&[1; 32]).unwrap();
        let digest = [7; 32];
        let mut compact = key.sign(&digest).0.serialize_compact();
        let low: [u8; 32] = compact[32..].try_into().unwrap();
        let high = SecretKey::from_secret_bytes(low).unwrap().negate();
        compact[32..].copy_from_slice(&high.to_secret_bytes());
        let high = Signature(ecdsa::Signature::from_compact(&compact).unwrap());
        assert!(!key.public_key().verify(&digest, &high));
        assert!(key.public_key().verify_lax(&digest, &high.to_der()));
    }
}
