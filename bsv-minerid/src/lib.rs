#![doc = include_str!("../README.md")]

mod alias;
mod coinbase2;
mod coinbase_reference;
mod data_refs;
mod document;
mod error;
mod hand_out_notes;
mod identity;
mod import;
mod job_data;
mod json;
mod json_object;
mod ledger;
mod miner_ids;
mod miner_info_script;
#[cfg(feature = "node")]
mod node;
mod operator_members;
mod output_script;
mod signer;
mod state;
mod store;
mod stored_keys;
mod succession;
mod template_cache;
mod usage;
mod verify;

pub use alias::{Alias, AliasParseError};
#[cfg(feature = "node")]
pub use bsv_network::{self, NodeError, NodeRpc, NodeSettings};
pub use bsv_store::{self, KeyEvent, Keystore, PlainKeys, SecretString, StretchedPassphrase};
pub use bsv_tx::{
    self, Address, BlockHash, MerkleBranch, Network, OutPoint, PrivateKey, PublicKey, Script,
    Signature, Transaction, Txid,
};
pub use coinbase_reference::{CoinbaseReference, block_bind, modified_coinbase};
pub use coinbase2::{Coinbase2, Coinbase2Error};
pub use data_refs::{DataRef, DataRefsError, DataScript, OperatorDataRef, OperatorDataRefs};
pub use document::{BlockBind, Document, DocumentError, Extensions, succession_digest};
pub use error::Error;
pub use identity::Identity;
pub use import::{HomeFiles, Import, VctxFinding};
pub use job_data::{BlockBindJob, BlockInfo, JobData, JobDataError, MinerParams};
pub use json::{CanonicalJson, JsonError};
pub use json_object::{JsonObject, MinerContact};
pub use ledger::{Entry, Event, Key, KeyState, Ledger, Miner, Refusal, Reputation};
pub use miner_ids::{MinerIds, RevokedMinerIds};
pub use miner_info_script::{MinerInfo, MinerInfoError, MinerInfoScript, Revocation};
#[cfg(feature = "node")]
pub use node::{
    ChainSign, DataCache, GatheredBlock, SweepProgress, VctxSetup, VctxSweep, carries_identity,
    check_newest_copy, gather, import_miner_ids, observe_miner_ids, observe_vctxs,
    preview_vctx_sweep, revoke_miner_ids, revoke_vctx, rotate_miner_id, set_up_vctx, sweep_vctx,
};
pub use operator_members::{OperatorMembers, OperatorMembersError};
pub use output_script::{IdentityScript, IdentityScriptError, MinerInfoScriptError};
pub use signer::{Signer, SignerError};
pub use state::{
    Announcement, BlockRef, ChainView, Change, Exposure, IdentityRecord, KeyRecord, LeftVctx,
    MinerIdInfo, MinerIdState, MinerInfoRecord, Protocol, Reference, RevocationRecord, Rotation,
    Shown, Sighted, Sighting, Sightings, Unseen, Vctx, VctxView,
};
pub use store::{FoundIdentity, IdentityStore, IdentityStoreError};
#[cfg(feature = "store")]
pub use store::{OpenStoreError, RedbIdentityStore};
pub use succession::Succession;
pub use usage::Usage;
pub use verify::{
    BlockProof, Candidate, Check, Claim, DataOutputs, Evidence, Finding, Generation,
    MinerInfoEvidence, Outcome, Report, RevocationKeys, VctxState, Verdict, verify,
};
