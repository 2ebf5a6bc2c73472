#![doc = include_str!("../README.md")]

mod address;
mod base58check;
mod beef;
mod bump;
mod encode;
mod extended;
mod extended_keys;
mod form;
mod hash;
mod header;
mod keys;
mod merkle;
mod network;
mod script;
mod sighash;
#[cfg(feature = "serde")]
mod text_forms;
mod transaction;
mod unlocking;
mod view;

pub use address::{Address, AddressError};
pub use beef::{Ancestry, Beef, BeefError, BeefVerificationError, BeefVersion, Tip};
pub use bump::{Bump, BumpError};
pub use encode::{DecodeError, Reader, write_var_bytes, write_var_int};
pub use extended::ExtendedTransaction;
pub use extended_keys::{ExtendedPrivateKey, ExtendedPublicKey};
pub use form::{FormedTransaction, TransactionForm};
pub use hash::{BlockHash, HashParseError, MerkleRoot, Txid, hash160, sha256, sha256d};
pub use header::BlockHeader;
pub use keys::{KeyError, MIN_SIGNATURE_LEN, PrivateKey, PublicKey, Signature};
pub use merkle::{MerkleBranch, MerkleTree, Sibling};
pub use network::{Network, NetworkParseError};
pub use script::{
    Instruction, Instructions, Script, ScriptBuilder, ScriptError, opcode, public_key_hash,
};
pub use sighash::{SighashCache, SighashError, SighashType};
pub use transaction::{OutPoint, OutPointParseError, Transaction, TxIn, TxOut};
pub use unlocking::unlocks_p2pkh;
pub use view::TransactionView;
