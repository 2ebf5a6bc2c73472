use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::Outgoing;

/// The result of reading all keys.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct KeysCheck {
    pub faults: Vec<String>,
    pub readable: BTreeSet<String>,
    /// The identities whose revocation key is in none of the examined keystores. Another keystore
    /// may hold it.
    pub unchecked: Vec<String>,
}

/// An entry of an audit log, with the hash of the entry before in hexadecimal.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct AuditEntry {
    pub at: String,
    pub event: String,
    pub number: u64,
    pub previous: String,
    pub subject: String,
}

/// The result of checking an audit log, with the hash of the last entry that fits.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct AuditCheck {
    pub entries: u64,
    pub fault: Option<String>,
    pub head: String,
}

/// A keystore: its directory, which is used only in messages, and its files in hexadecimal.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct HandedKeystore {
    pub dir: PathBuf,
    /// The files by name, in hexadecimal.
    pub files: BTreeMap<String, Zeroizing<String>>,
}

/// The code of an answer that names files to write before the request is repeated.
pub const WRITE_FIRST: &str = "write-first";

/// The files of a keystore to write before the request is repeated, in hexadecimal.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct FilesToWrite {
    pub code: String,
    pub detail: String,
    pub files: BTreeMap<String, String>,
}

/// The body of a request that needs no members.
#[derive(Debug, Deserialize, Serialize)]
pub struct Nothing {}

/// A wanted identity, and the generation of its protocol: `0.2` (default) or `1.0`.
#[derive(Debug, Deserialize, Serialize)]
pub struct NewIdentity {
    pub alias: String,
    pub protocol: Option<String>,
}

/// How to give an identity a new key.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Rotation {
    #[serde(default)]
    pub force: bool,
}

/// The oldest key to revoke.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RevokedBackTo {
    pub miner_id: String,
}

/// The first key of an identity that is upgraded, by default the one numbered 1.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Upgrade {
    pub first_miner_id: Option<String>,
}

/// Whether the keys of a deleted identity are deleted too.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Deletion {
    #[serde(default)]
    pub with_keys: bool,
}

/// The keys of contact information to remove.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ContactKeys {
    pub keys: Vec<String>,
}

/// Whether an identity signs any hash.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct BlindSigning {
    pub on: bool,
}

/// A wanted VCTx: the output that funds it, if the node's wallet does not find it.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Vctx {
    pub outpoint: Option<String>,
}

/// Where the coins of a VCTx go, and the output to spend if the node's wallet does not find it.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Sweep {
    pub address: String,
    pub outpoint: Option<String>,
    #[serde(default)]
    pub dry_run: bool,
}

/// The height of the first block to read again.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Rescan {
    pub from_height: u32,
}

/// The payment URL that a regtest node pays to.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Faucet {
    pub url: String,
}

/// The wanted properties of a token.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WantedToken {
    #[serde(default)]
    pub label: String,
    pub scopes: Vec<String>,
    pub expires_at: Option<String>,
}

/// A token, with its text if it is new.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Token {
    pub created_at: String,
    pub expires_at: Option<String>,
    pub id: String,
    pub is_expired: bool,
    pub label: String,
    pub scopes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<Zeroizing<String>>,
}

/// The consolidation that was made, if there was enough to combine.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Consolidated {
    pub payment: Option<Outgoing>,
}

/// What a payment would do.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(untagged)]
pub enum PayPreview {
    /// It would continue this earlier payment.
    Made { made: Outgoing },
    /// It would make a new payment.
    #[serde(rename_all = "camelCase")]
    Asked {
        expires_at: String,
        fee: u64,
        fee_rate: u64,
        link_satoshis: Option<u64>,
        memo: String,
        payee: String,
        satoshis: u64,
    },
}
