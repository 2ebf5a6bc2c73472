#![doc = include_str!("../README.md")]

mod alias;
mod coinbase2;
mod coinbase_reference;
mod data_refs;
mod document;
mod error;
mod hand_out_notes;
mod identity;
pub mod import;
mod job_data;
mod json;
mod json_object;
pub mod ledger;
mod miner_ids;
mod miner_info_script;
#[cfg(feature = "node")]
pub mod node;
mod operator_members;
mod output_script;
mod signer;
mod state;
pub mod store;
mod stored_keys;
mod succession;
mod template_cache;
mod usage;
pub mod verify;

pub use alias::{Alias, AliasParseError};
#[cfg(feature = "node")]
pub use bsv_network::{self, NodeCredentials, NodeRpc, NodeSettings};
pub use bsv_store::{self, Keystore, PlainKeys, SecretString, StretchedPassphrase};
pub use bsv_tx::{self, Network, OutPoint, PrivateKey, PublicKey};
pub use error::Error;
pub use identity::Identity;
pub use job_data::{JobData, JobDataError};
pub use json::CanonicalJson;
pub use json_object::MinerContact;
pub use miner_ids::{MinerIds, RevokedMinerIds};
pub use signer::{Signer, SignerError};
pub use usage::Usage;

/// The documents, scripts and coinbase transactions of both generations.
pub mod formats {
    pub use crate::coinbase_reference::{CoinbaseReference, block_bind, modified_coinbase};
    pub use crate::coinbase2::{Coinbase2, Coinbase2Error};
    pub use crate::data_refs::{
        DataRef, DataRefsError, DataScript, OperatorDataRef, OperatorDataRefs,
    };
    pub use crate::document::{BlockBind, Document, DocumentError, Extensions, succession_digest};
    pub use crate::job_data::{BlockBindJob, BlockInfo, MinerParams};
    pub use crate::json::JsonError;
    pub use crate::json_object::JsonObject;
    pub use crate::miner_info_script::{MinerInfo, MinerInfoError, MinerInfoScript, Revocation};
    pub use crate::operator_members::{OperatorMembers, OperatorMembersError};
    pub use crate::output_script::{IdentityScript, IdentityScriptError, MinerInfoScriptError};
    pub use crate::succession::Succession;
}
