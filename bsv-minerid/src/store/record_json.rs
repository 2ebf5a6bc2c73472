//! Records as JSON, the format in which they are stored.

use std::fmt::Display;
use std::str::FromStr;

use bsv_store::StoreError;
use bsv_tx::{PublicKey, Transaction};
use serde::{Deserialize, Serialize};

use crate::data_refs::{DataRef, OperatorDataRefs};
use crate::operator_members::OperatorMembers;
use crate::state::{
    BlockRef, IdentityRecord, LeftVctx, MinerInfoRecord, Protocol, Reference, RevocationKeyRecord,
    Step, Unseen, Vctx, VctxView,
};

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RecordJson {
    steps: Vec<Step>,
    begins_with: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read_to: Option<BlockRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unseen: Option<Unseen>,
    /// Written only if true.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    blind_signing_off: bool,
    /// Written only if true.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    deleted: bool,
    /// JSON, as in documents.
    operator: String,
    protocol: ProtocolJson,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum ProtocolJson {
    Vctx(VctxJson),
    MinerInfo(Box<MinerInfoJson>),
}

#[derive(Serialize, Deserialize)]
#[serde(
    tag = "state",
    rename_all = "camelCase",
    rename_all_fields = "camelCase",
    deny_unknown_fields
)]
enum VctxJson {
    None {},
    AwaitingFunds {},
    Broadcasting { transaction: String },
    Recorded { outpoint: String, last_seen: Option<u32>, gone_since: Option<u32>, is_spent: bool },
    Revoking { outpoint: String, transaction: Option<String> },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct MinerInfoJson {
    first_miner_id: PublicKey,
    first_revocation_key: RevocationKeyRecord,
    /// JSON, in the operator's format.
    data: String,
    /// JSON, as in documents.
    data_refs: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    references: Vec<Reference>,
    #[serde(default, skip_serializing_if = "LeftVctxJson::is_nothing")]
    left_vctx: LeftVctxJson,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct LeftVctxJson {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    outpoint: Option<String>,
    /// A transaction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sweep: Option<String>,
}

impl LeftVctxJson {
    fn is_nothing(&self) -> bool {
        self.outpoint.is_none() && self.sweep.is_none()
    }
}

pub(super) fn encode(record: &IdentityRecord) -> String {
    let json = RecordJson {
        steps: record.steps.clone(),
        begins_with: record.begins_with,
        read_to: record.read_to,
        unseen: record.unseen.clone(),
        blind_signing_off: !record.blind_signing,
        deleted: record.is_deleted,
        operator: record.operator.to_json(),
        protocol: match &record.protocol {
            Protocol::Vctx(vctx) => ProtocolJson::Vctx(encode_vctx(vctx)),
            Protocol::MinerInfo(record) => {
                ProtocolJson::MinerInfo(Box::new(encode_miner_info(record)))
            }
        },
    };
    serde_json::to_string(&json).expect("numbers and strings always serialise")
}

fn encode_vctx(vctx: &Vctx) -> VctxJson {
    match vctx {
        Vctx::None => VctxJson::None {},
        Vctx::AwaitingFunds => VctxJson::AwaitingFunds {},
        Vctx::Broadcasting(transaction) => {
            VctxJson::Broadcasting { transaction: transaction.to_hex() }
        }
        Vctx::Recorded(outpoint, VctxView { last_seen, gone_since, is_spent }) => {
            VctxJson::Recorded {
                outpoint: outpoint.to_string(),
                last_seen: *last_seen,
                gone_since: *gone_since,
                is_spent: *is_spent,
            }
        }
        Vctx::Revoking(outpoint, spending) => {
            let transaction = spending.as_ref().map(Transaction::to_hex);
            VctxJson::Revoking { outpoint: outpoint.to_string(), transaction }
        }
    }
}

fn encode_miner_info(record: &MinerInfoRecord) -> MinerInfoJson {
    let mut data_refs = String::new();
    DataRef::write_all(&record.data_refs, &mut data_refs);
    MinerInfoJson {
        first_miner_id: record.first_miner_id,
        first_revocation_key: record.first_revocation_key,
        data: record.data.to_json(),
        data_refs,
        references: record.references.clone(),
        left_vctx: LeftVctxJson {
            outpoint: record.left_vctx.outpoint.map(|outpoint| outpoint.to_string()),
            sweep: record.left_vctx.sweep.as_ref().map(Transaction::to_hex),
        },
    }
}

pub(super) fn decode(text: &str) -> Result<IdentityRecord, StoreError> {
    let json: RecordJson = serde_json::from_str(text).map_err(StoreError::damaged)?;
    if json.steps.is_empty() {
        return Err(StoreError::damaged("an identity without a key"));
    }
    Ok(IdentityRecord {
        steps: json.steps,
        begins_with: json.begins_with,
        read_to: json.read_to,
        unseen: json.unseen,
        blind_signing: !json.blind_signing_off,
        is_deleted: json.deleted,
        operator: OperatorMembers::from_json(&json.operator).map_err(StoreError::damaged)?,
        protocol: match json.protocol {
            ProtocolJson::Vctx(vctx) => Protocol::Vctx(decode_vctx(&vctx)?),
            ProtocolJson::MinerInfo(json) => {
                Protocol::MinerInfo(Box::new(decode_miner_info(*json)?))
            }
        },
    })
}

fn decode_vctx(json: &VctxJson) -> Result<Vctx, StoreError> {
    let transaction = |text: &str| Transaction::from_hex(text).map_err(StoreError::damaged);
    Ok(match json {
        VctxJson::None {} => Vctx::None,
        VctxJson::AwaitingFunds {} => Vctx::AwaitingFunds,
        VctxJson::Broadcasting { transaction: text } => Vctx::Broadcasting(transaction(text)?),
        VctxJson::Recorded { outpoint, last_seen, gone_since, is_spent } => Vctx::Recorded(
            parse(outpoint)?,
            VctxView { last_seen: *last_seen, gone_since: *gone_since, is_spent: *is_spent },
        ),
        VctxJson::Revoking { outpoint, transaction: text } => {
            Vctx::Revoking(parse(outpoint)?, text.as_deref().map(transaction).transpose()?)
        }
    })
}

fn decode_miner_info(json: MinerInfoJson) -> Result<MinerInfoRecord, StoreError> {
    Ok(MinerInfoRecord {
        first_miner_id: json.first_miner_id,
        first_revocation_key: json.first_revocation_key,
        data: OperatorDataRefs::from_json(&json.data).map_err(StoreError::damaged)?,
        data_refs: DataRef::all_from_json(&json.data_refs).map_err(StoreError::damaged)?,
        references: json.references,
        left_vctx: LeftVctx {
            outpoint: json.left_vctx.outpoint.as_deref().map(parse).transpose()?,
            sweep: json
                .left_vctx
                .sweep
                .as_deref()
                .map(|text| Transaction::from_hex(text).map_err(StoreError::damaged))
                .transpose()?,
        },
    })
}

fn parse<T: FromStr<Err: Display>>(text: &str) -> Result<T, StoreError> {
    text.parse().map_err(StoreError::damaged)
}
