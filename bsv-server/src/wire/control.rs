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
