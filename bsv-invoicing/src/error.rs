use bsv_store::{FileError, KeystoreError, StoreError};
use bsv_tx::KeyError;
use thiserror::Error;

use crate::fields::FieldErrors;
use crate::invoice::NOT_IN_THE_FUTURE;
use crate::store::WalletStoreError;

/// Why the wallet did not do what it was asked for. Nothing of it is left behind, unless the store
/// failed to commit ([`StoreError::Commit`]).
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    /// A body is not a JSON object.
    #[error("{0}")]
    Malformed(String),
    /// Fields are not as they should be.
    #[error("{0}")]
    Invalid(FieldErrors),
    /// There is no such invoice, or it is deleted.
    #[error("there is no invoice {0}")]
    UnknownInvoice(String),
    /// There is no such user.
    #[error("there is no user {0}")]
    UnknownUser(u64),
    /// A paid invoice cannot be deleted.
    #[error("invoice {0} is paid, and stays")]
    Paid(String),
    /// An idempotency key is empty, too long, or not printable ASCII.
    #[error("an idempotency key has from 1 to 255 printable ASCII characters")]
    BadIdempotencyKey,
    /// An idempotency key came with another request before.
    #[error("this idempotency key came with another request before")]
    KeyReused,
    /// All numbers that keys can be derived for are used up.
    #[error("the wallet is full: it has {0} of them")]
    Full(u64),
    /// No key could be made or derived.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The keystore failed.
    #[error(transparent)]
    Keystore(#[from] KeystoreError),
    /// The store belongs to a wallet whose seed is missing from the keystore.
    #[error("the keystore has no seed for this wallet: restore it from a backup")]
    SeedMissing,
    /// The store is new, and the seed had another one before.
    #[error(
        "the wallet's store is missing: restore wallet.redb, or remove wallet.adopted.key from the \
         keystore to begin an empty wallet whose invoices have the keys of earlier ones"
    )]
    StoreMissing,
    /// The keystore has the seed of another wallet than the store.
    #[error("the seed in the keystore is not that of this wallet")]
    OtherSeed,
    /// The seed in the keystore is not 24 words of BIP39.
    #[error("the seed in the keystore is damaged: it is not 24 BIP39 words")]
    BadSeed,
    /// The store's writer cannot be started.
    #[error(transparent)]
    File(#[from] FileError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Error {
    /// Whether the reason is that there is no room left on the disk.
    pub fn is_out_of_space(&self) -> bool {
        match self {
            Self::Store(error) => error.is_out_of_space(),
            Self::File(error) | Self::Keystore(KeystoreError::File(error)) => {
                error.is_out_of_space()
            }
            _ => false,
        }
    }
}

impl From<WalletStoreError> for Error {
    fn from(error: WalletStoreError) -> Self {
        match error {
            WalletStoreError::UnknownInvoice(number) => Self::UnknownInvoice(number.to_string()),
            WalletStoreError::Paid(number) => Self::Paid(number.to_string()),
            WalletStoreError::AlreadyExpired => {
                let mut errors = FieldErrors::default();
                errors.add("expiresAt", NOT_IN_THE_FUTURE);
                Self::Invalid(errors)
            }
            WalletStoreError::KeyReused => Self::KeyReused,
            WalletStoreError::Full(count) => Self::Full(count),
            WalletStoreError::OtherWallet => Self::OtherSeed,
            WalletStoreError::Store(error) => Self::Store(error),
        }
    }
}
