//! Miner identities of both generations of the protocol: what mining pool software embeds to put its
//! identity into its blocks, and what anybody uses to verify the identities in blocks.
//!
//! An identity is selected by an [`Alias`] and has a key, which can be rotated. In generation 0.2 a
//! validity check transaction (VCTx), whose output must stay unspent, goes with it, and each coinbase
//! transaction carries a [`Document`]. In generation 1.0 a revocation key goes with it; a miner-info
//! transaction carries a [`MinerInfo`] document, and the coinbase transaction a [`CoinbaseReference`].
//!
//! Building and signing are synchronous and do no I/O. Changes are on the disk when they are
//! acknowledged. Only [`set_up_vctx`], [`revoke_vctx`], [`revoke_miner_ids`], [`observe_vctxs`],
//! [`observe_miner_ids`], [`check_newest_copy`] and [`gather`] talk to a node.
//!
//! ```
//! use bsv_minerid::{JobData, Keystore, MinerIds, Network, PlainKeys, RedbIdentityStore};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let home = tempfile::tempdir()?;
//! # let dir = home.path();
//! let keystore = Keystore::open(&dir.join("keystore"), None, PlainKeys::Allowed, "my pool")?;
//! let store = RedbIdentityStore::open(&dir.join("minerid"), "my pool")?;
//! let ids = MinerIds::open(store, keystore, Network::Regtest)?;
//! # let key = bsv_tx::PrivateKey::generate()?;
//! # let vctx = "6839008199026098cc78bf5f34c9a6bdf7a8009c9f019f8399c7ca1945b4a4ff:0".parse()?;
//! # let coinbase2 = "ffffffff0100f2052a010000001976a9145deb9155942e7d38febc15de8870222fd24d080e88ac00000000";
//! # let coinbase2 = bsv_tx::Script::from_hex(coinbase2)?.into_bytes();
//! # let job = r#"{"miningCandidate":{"num_tx":4,"sizeWithoutCoinbase":1052}}"#;
//!
//! let alias = "pool".parse()?;
//! ids.generate(&alias)?;
//! ids.adopt_vctx(&alias, vctx, &key)?; // or set_up_vctx(&ids, &node, &alias, None).await?
//!
//! // or, in generation 1.0, with a keystore of its own for revocation keys:
//! // ids.generate_miner_info(&alias, &revocation_keys)?;
//!
//! let pool = ids.get("pool")?;
//! let script = pool.output_script(800_000)?;
//! let coinbase2 = pool.coinbase2(800_000, &coinbase2, &JobData::from_json(job)?)?;
//! # assert!(script.starts_with(&[0x00, 0x6a, 0x04, 0xac, 0x1e, 0xed, 0x88]));
//! # assert_eq!(coinbase2[4], 2);
//! # Ok(())
//! # }
//! ```

mod alias;
mod blocks;
mod coinbase2;
mod coinbase_reference;
mod data_refs;
mod document;
mod error;
mod identity;
mod import;
mod job_data;
mod json;
mod json_object;
mod ledger;
mod miner_ids;
mod miner_info_script;
mod observe;
mod operator_members;
mod output_script;
mod revocation;
mod rotation;
mod signer;
mod state;
mod store;
mod succession;
mod take_over;
mod telling;
mod template_cache;
mod usage;
mod vctx;
mod vctx_sweep;
mod verify;

pub use alias::{Alias, AliasParseError};
pub use bsv_store::{Keystore, PlainKeys, StretchedPassphrase};
pub use bsv_tx::Network;
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
pub use observe::{carries_identity, check_newest_copy, observe_miner_ids};
pub use operator_members::{OperatorMembers, OperatorMembersError};
pub use output_script::{IdentityScript, IdentityScriptError, MinerInfoScriptError};
pub use revocation::revoke_miner_ids;
pub use rotation::rotate_miner_id;
pub use signer::{Signer, SignerError};
pub use state::{
    Announcement, BlockRef, ChainView, Change, Exposure, IdentityRecord, KeyRecord, LeftVctx,
    MinerInfoRecord, Protocol, Reference, RevocationRecord, Rotation, Shown, Sighted, Sighting,
    Sightings, Unseen, Vctx, VctxView,
};
pub use store::{
    FoundIdentity, IdentityStore, IdentityStoreError, OpenStoreError, RedbIdentityStore,
};
pub use succession::Succession;
pub use take_over::import_miner_ids;
pub use usage::Usage;
pub use vctx::{VctxSetup, observe_vctxs, revoke_vctx, set_up_vctx};
pub use vctx_sweep::{SweepProgress, VctxSweep, preview_vctx_sweep, sweep_vctx};
pub use verify::{
    BlockProof, Candidate, Check, Claim, DataCache, DataOutputs, Evidence, Finding, GatheredBlock,
    Generation, MinerInfoEvidence, Outcome, Report, RevocationKeys, VctxState, Verdict, gather,
    verify,
};
