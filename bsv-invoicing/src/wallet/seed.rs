//! The seed that all keys of a wallet come from.

use std::fmt;

use bip39::Mnemonic;
use bsv_store::{Keystore, KeystoreError};
use bsv_tx::{
    ExtendedPrivateKey, ExtendedPublicKey, KeyError, Network, PrivateKey, PublicKey, Script,
};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::error::Error;
use crate::model::coin::{Chain, KeyPath};
use crate::model::invoice_id::IdCipher;

/// The seed's name in the keystore.
pub(crate) const NAME: &str = "wallet.seed";
/// Names the fact that a store belongs to the seed.
const ADOPTED: &str = "wallet.adopted";
/// Purpose 44' (BIP44), coin 236' (Bitcoin SV, SLIP-0044), the first account.
const ACCOUNT: &str = "m/44'/236'/0'";
/// Of the account's chains, after those of [`Chain`]: the users' keys.
const USERS_CHAIN: &str = "m/2";

/// A wallet's seed: 24 words of BIP39, wiped when dropped and never printed.
pub struct WalletSeed(Mnemonic);

impl WalletSeed {
    /// Reads 24 words of BIP39, in lower case or not, with any white space between and around them.
    pub fn from_words(words: &str) -> Result<Self, Error> {
        let mut normal = Zeroizing::new(String::with_capacity(words.len()));
        for word in words.split_whitespace() {
            if !normal.is_empty() {
                normal.push(' ');
            }
            normal.push_str(word);
        }
        normal.make_ascii_lowercase();
        Self::parse(&normal).ok_or(Error::BadWords)
    }

    fn parse(words: &str) -> Option<Self> {
        let mnemonic = Mnemonic::parse_normalized(words).ok()?;
        (mnemonic.word_count() == 24).then_some(Self(mnemonic))
    }

    /// Makes a new one.
    pub(crate) fn generate() -> Result<Self, KeyError> {
        let mut entropy = Zeroizing::new([0; 32]);
        getrandom::fill(entropy.as_mut()).map_err(KeyError::NoRandomness)?;
        Ok(Self(Mnemonic::from_entropy(entropy.as_ref()).expect("32 bytes make 24 words")))
    }

    /// Reads the one in the keystore, if there is one.
    pub(crate) fn load(keystore: &Keystore) -> Result<Option<Self>, Error> {
        let words = match keystore.get(NAME) {
            Ok(words) => words,
            Err(KeystoreError::Missing(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let words = std::str::from_utf8(&words).map_err(|_| Error::BadSeed)?;
        Self::parse(words).map(Some).ok_or(Error::BadSeed)
    }

    /// Puts it into a keystore that has none, durably.
    pub fn save(&self, keystore: &Keystore) -> Result<(), KeystoreError> {
        keystore.insert(NAME, self.words().as_bytes())
    }

    /// Whether a store was made for the seed in the keystore.
    pub(crate) fn is_adopted(keystore: &Keystore) -> Result<bool, KeystoreError> {
        match keystore.get(ADOPTED) {
            Ok(_) => Ok(true),
            Err(KeystoreError::Missing(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Notes that a store was made for the seed, durably.
    pub(crate) fn note_adopted(keystore: &Keystore) -> Result<(), KeystoreError> {
        keystore.insert(ADOPTED, b"")
    }

    /// The words, with spaces between them.
    pub fn words(&self) -> Zeroizing<String> {
        // Longer than any 24 words, so that no copy is left behind by growing.
        let mut words = Zeroizing::new(String::with_capacity(24 * 9));
        for (index, word) in self.0.words().enumerate() {
            if index > 0 {
                words.push(' ');
            }
            words.push_str(word);
        }
        words
    }

    /// The keys that come from it.
    pub(crate) fn keys(&self, network: Network) -> Result<WalletKeys, KeyError> {
        let seed = Zeroizing::new(self.0.to_seed_normalized(""));
        let account = ExtendedPrivateKey::from_seed(&seed, network)?.derive(ACCOUNT)?;
        let [id_key, token_key] =
            [&b"bsv-invoicing: invoice ids"[..], b"bsv-invoicing: channel tokens"]
                .map(|purpose| secret(&seed, purpose));
        Ok(WalletKeys {
            fingerprint: account.private_key().public_key().hash(),
            users: account.derive(USERS_CHAIN)?.public()?,
            ids: IdCipher::new(&id_key),
            receive: account.derive("m/0")?.public()?,
            change: account.derive("m/1")?.public()?,
            tokens: Hmac::new_from_slice(token_key.as_ref()).expect("any key will do"),
            account,
        })
    }
}

impl fmt::Debug for WalletSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WalletSeed(…)")
    }
}

/// A secret for a purpose that BIP32 has no keys for.
fn secret(seed: &[u8; 64], purpose: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut mac = Hmac::<Sha256>::new_from_slice(seed).expect("any key will do");
    mac.update(purpose);
    Zeroizing::new(mac.finalize().into_bytes().into())
}

/// What a wallet derives from its seed.
pub(crate) struct WalletKeys {
    /// Tells wallets apart: the hash of the account's public key.
    pub(crate) fingerprint: [u8; 20],
    /// Makes the users' keys.
    users: ExtendedPublicKey,
    /// Makes the ids of invoices.
    pub(crate) ids: IdCipher,
    /// Makes what invoices are paid to.
    receive: ExtendedPublicKey,
    /// Makes what change goes to.
    change: ExtendedPublicKey,
    /// Makes the tokens of channels.
    tokens: Hmac<Sha256>,
    account: ExtendedPrivateKey,
}

impl WalletKeys {
    /// The key of a user.
    pub(crate) fn user(&self, id: u64) -> Result<PublicKey, KeyError> {
        self.users.child(u32::try_from(id).map_err(|_| KeyError::DerivationPath)?)
    }

    /// The script that locks what is paid to the invoice of this number.
    pub(crate) fn destination(&self, invoice: u64) -> Result<Script, KeyError> {
        let index = u32::try_from(invoice).map_err(|_| KeyError::DerivationPath)?;
        Ok(Script::p2pkh(&self.coin_hash(KeyPath { chain: Chain::Receive, index })?))
    }

    /// The hash of the public key of a coin.
    pub(crate) fn coin_hash(
        &self,
        KeyPath { chain, index }: KeyPath,
    ) -> Result<[u8; 20], KeyError> {
        let chain = match chain {
            Chain::Receive => &self.receive,
            Chain::Change => &self.change,
        };
        Ok(chain.child(index)?.hash())
    }

    /// The key of a coin.
    pub(crate) fn coin(&self, path: KeyPath) -> Result<PrivateKey, KeyError> {
        let path = format!("m/{}/{}", path.chain as u8, path.index);
        Ok(self.account.derive(&path)?.private_key().clone())
    }

    /// The token that lets a payer read a channel.
    pub(crate) fn token(&self, channel_id: &str) -> String {
        let mut mac = self.tokens.clone();
        mac.update(channel_id.as_bytes());
        hex::encode(mac.finalize().into_bytes())
    }

    /// Whether this is the token of a channel. Takes as long for any of the same length.
    pub(crate) fn is_token(&self, channel_id: &str, token: &str) -> bool {
        let mut mac = self.tokens.clone();
        mac.update(channel_id.as_bytes());
        hex::decode(token).is_ok_and(|token| mac.verify_slice(&token).is_ok())
    }
}

impl fmt::Debug for WalletKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WalletKeys(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str = "abandon abandon abandon abandon abandon abandon abandon abandon abandon \
                         abandon abandon abandon abandon abandon abandon abandon abandon abandon \
                         abandon abandon abandon abandon abandon art";

    /// The expected key was made by `tests/vectors/user_key.py`.
    #[test]
    fn keys_come_from_the_words_as_the_standards_say() {
        let seed = WalletSeed(Mnemonic::parse_normalized(WORDS).unwrap());
        assert_eq!(*seed.words(), WORDS);
        let keys = seed.keys(Network::Livenet).unwrap();
        assert_eq!(
            keys.user(1).unwrap().to_string(),
            "0285985973b8733478b6d4bf7151f5ee444710e18c34bff44b3bd98180f6fd4f49"
        );
        assert_eq!(seed.keys(Network::Regtest).unwrap().fingerprint, keys.fingerprint);
    }

    #[test]
    fn new_seeds_differ_and_are_never_printed() {
        let [a, b] = [(); 2].map(|()| WalletSeed::generate().unwrap());
        assert_ne!(*a.words(), *b.words());
        assert_eq!(a.words().split(' ').count(), 24);
        let keys = a.keys(Network::Regtest).unwrap();
        assert_eq!(format!("{a:?} {keys:?}"), "WalletSeed(…) WalletKeys(…)");
    }
}
