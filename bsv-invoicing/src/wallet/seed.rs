//! The seed that all keys of a wallet come from.

use std::fmt;
use std::path::Path;

use bip39::Mnemonic;
use bsv_store::{Keystore, KeystoreError};
use bsv_tx::{
    ExtendedPrivateKey, ExtendedPublicKey, KeyError, Network, PrivateKey, PublicKey, Script,
};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::error::Error;
use crate::ledger::SEED_NAME;
use crate::ledger::rows::AccountStart;
use crate::model::coin::{Chain, KeyPath};
use crate::model::invoice_id::IdCipher;
use crate::model::time::Timestamp;

/// The name of the keystore entry that says that a store was made for the seed.
const ADOPTED: &str = "wallet.adopted";
/// Purpose 44' (BIP44), coin 236' (Bitcoin SV, SLIP-0044).
const COIN_TYPE: &str = "m/44'/236'";
/// The beginning of 2026 in microseconds since 1970. The number of a later account is the number of
/// days since then.
const FIRST_DAY: u64 = 1_767_225_600_000_000;
const DAY: u64 = 24 * 60 * 60 * 1_000_000;

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

    /// Makes a new seed.
    pub(crate) fn generate() -> Result<Self, KeyError> {
        let mut entropy = Zeroizing::new([0; 32]);
        getrandom::fill(entropy.as_mut()).map_err(KeyError::NoRandomness)?;
        Ok(Self(Mnemonic::from_entropy(entropy.as_ref()).expect("32 bytes make 24 words")))
    }

    /// Reads the seed in the keystore, if there is one.
    pub(crate) fn load(keystore: &Keystore) -> Result<Option<Self>, Error> {
        let words = match keystore.get(SEED_NAME) {
            Ok(words) => words,
            Err(KeystoreError::Missing(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let words = std::str::from_utf8(&words).map_err(|_| Error::BadSeed)?;
        Self::parse(words).map(Some).ok_or(Error::BadSeed)
    }

    /// Whether the keystore in a directory has a seed.
    pub fn is_in(keystore_dir: &Path) -> bool {
        Keystore::has(keystore_dir, SEED_NAME)
    }

    /// Stores the seed durably in a keystore that has none.
    pub fn save(&self, keystore: &Keystore) -> Result<(), KeystoreError> {
        keystore.insert(SEED_NAME, self.words().as_bytes())
    }

    /// Whether a store was made for the seed in the keystore.
    pub(crate) fn is_adopted(keystore: &Keystore) -> Result<bool, KeystoreError> {
        match keystore.get(ADOPTED) {
            Ok(_) => Ok(true),
            Err(KeystoreError::Missing(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Records durably that a store was made for the seed.
    pub(crate) fn note_adopted(keystore: &Keystore) -> Result<(), KeystoreError> {
        keystore.insert(ADOPTED, b"")
    }

    /// The words, with spaces between them.
    pub fn words(&self) -> Zeroizing<String> {
        // The capacity exceeds any 24 words, so the string never grows and leaves no copy behind.
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
        let coin_type = ExtendedPrivateKey::from_seed(&seed, network)?.derive(COIN_TYPE)?;
        let [id_key, token_key, callbacks] = [
            &b"bsv-invoicing: invoice ids"[..],
            b"bsv-invoicing: channel tokens",
            b"bsv-invoicing: callbacks",
        ]
        .map(|purpose| secret(&seed, purpose));
        let start = AccountStart { last_invoice_before: 0, last_user_before: 0 };
        let first = Account::derive(&coin_type, 0, start)?;
        Ok(WalletKeys {
            fingerprint: coin_type.derive("m/0'")?.private_key().public_key().hash(),
            ids: IdCipher::new(&id_key),
            tokens: Hmac::new_from_slice(token_key.as_ref()).expect("any key will do"),
            callbacks,
            accounts: vec![first],
            coin_type,
        })
    }
}

impl fmt::Debug for WalletSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WalletSeed(…)")
    }
}

/// A secret for a purpose for which BIP32 has no keys.
fn secret(seed: &[u8; 64], purpose: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut mac = Hmac::<Sha256>::new_from_slice(seed).expect("any key will do");
    mac.update(purpose);
    Zeroizing::new(mac.finalize().into_bytes().into())
}

/// The account that a restore at this time begins.
pub(crate) fn account_of(time: Timestamp) -> u32 {
    let days = time.as_micros().saturating_sub(FIRST_DAY) / DAY;
    u32::try_from(days).expect("the last moment is less than three million days after")
}

/// The keys that a wallet derives from its seed.
pub(crate) struct WalletKeys {
    /// Identifies the wallet: the hash of the first account's public key.
    pub(crate) fingerprint: [u8; 20],
    /// Makes the ids of invoices.
    pub(crate) ids: IdCipher,
    /// Makes the tokens of channels.
    tokens: Hmac<Sha256>,
    /// Makes the token of callbacks.
    pub(crate) callbacks: Zeroizing<[u8; 32]>,
    /// The accounts whose keys were given out, in their order.
    accounts: Vec<Account>,
    coin_type: ExtendedPrivateKey,
}

/// The keys of an account: `m/44'/236'/<number>'`.
pub(crate) struct Account {
    number: u32,
    start: AccountStart,
    /// The keys that invoices are paid to.
    receive: ExtendedPublicKey,
    /// The keys that change goes to.
    change: ExtendedPublicKey,
    /// The keys of users.
    users: ExtendedPublicKey,
}

impl Account {
    fn derive(
        coin_type: &ExtendedPrivateKey,
        number: u32,
        start: AccountStart,
    ) -> Result<Self, KeyError> {
        let account = coin_type.derive(&format!("m/{number}'"))?;
        let chain = |chain: &str| account.derive(chain)?.public();
        let (receive, change, users) = (chain("m/0")?, chain("m/1")?, chain("m/2")?);
        Ok(Self { number, start, receive, change, users })
    }

    /// The hash of the public key with this index in a chain.
    pub(crate) fn hash(&self, chain: Chain, index: u32) -> Result<[u8; 20], KeyError> {
        let chain = match chain {
            Chain::Receive => &self.receive,
            Chain::Change => &self.change,
            Chain::User => &self.users,
        };
        Ok(chain.child(index)?.hash())
    }
}

impl WalletKeys {
    /// The same keys with further accounts, in their order.
    pub(crate) fn with_accounts(
        mut self,
        accounts: Vec<(u32, AccountStart)>,
    ) -> Result<Self, KeyError> {
        for (number, start) in accounts {
            self.accounts.push(Account::derive(&self.coin_type, number, start)?);
        }
        Ok(self)
    }

    /// An account, whether keys of it were given out or not.
    pub(crate) fn account(&self, number: u32) -> Result<Account, KeyError> {
        let start = AccountStart { last_invoice_before: 0, last_user_before: 0 };
        Account::derive(&self.coin_type, number, start)
    }

    /// The account of an invoice's or user's number, and the index of its key.
    fn place(
        &self,
        number: u64,
        last_before: impl Fn(&AccountStart) -> u64,
    ) -> Result<(&Account, u32), KeyError> {
        let account = self.accounts.iter().rfind(|account| last_before(&account.start) < number);
        let account = account.ok_or(KeyError::DerivationPath)?;
        let index = u32::try_from(number - last_before(&account.start));
        Ok((account, index.map_err(|_| KeyError::DerivationPath)?))
    }

    /// The public key of a user, and its path.
    pub(crate) fn user(&self, id: u64) -> Result<(PublicKey, KeyPath), KeyError> {
        let (account, index) = self.place(id, |start| start.last_user_before)?;
        let path = KeyPath { account: account.number, chain: Chain::User, index };
        Ok((account.users.child(index)?, path))
    }

    /// The locking script that the invoice with this number is paid to, and the path of its key.
    pub(crate) fn destination(&self, invoice: u64) -> Result<(Script, KeyPath), KeyError> {
        let (account, index) = self.place(invoice, |start| start.last_invoice_before)?;
        let key = KeyPath { account: account.number, chain: Chain::Receive, index };
        Ok((Script::p2pkh(&account.hash(key.chain, index)?), key))
    }

    /// The hash of the public key of a coin.
    pub(crate) fn coin_hash(&self, path: KeyPath) -> Result<[u8; 20], KeyError> {
        let KeyPath { account, chain, index } = path;
        match self.accounts.iter().find(|known| known.number == account) {
            Some(account) => account.hash(chain, index),
            None => self.account(account)?.hash(chain, index),
        }
    }

    /// The key of a coin.
    pub(crate) fn coin(&self, path: KeyPath) -> Result<PrivateKey, KeyError> {
        let KeyPath { account, chain, index } = path;
        let path = format!("m/{account}'/{}/{index}", chain as u8);
        Ok(self.coin_type.derive(&path)?.private_key().clone())
    }

    /// The token that lets a payer read a channel.
    pub(crate) fn token(&self, channel_id: &str) -> String {
        let mut mac = self.tokens.clone();
        mac.update(channel_id.as_bytes());
        hex::encode(mac.finalize().into_bytes())
    }

    /// Whether this is the token of a channel. The time that this takes depends only on the length
    /// of the token.
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
            keys.user(1).unwrap().0.to_string(),
            "0285985973b8733478b6d4bf7151f5ee444710e18c34bff44b3bd98180f6fd4f49"
        );
        assert_eq!(seed.keys(Network::Regtest).unwrap().fingerprint, keys.fingerprint);
        // Each server with the seed knows the callbacks of the others, whatever its version is.
        assert_eq!(
            hex::encode(&keys.callbacks),
            "7fe6cbc70851400a240b0b2aef329cbfb70db22aec30a0a07aa6b4048f838b83"
        );
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
