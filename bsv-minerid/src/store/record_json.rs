//! Records as JSON, the form in which they are stored.

use std::fmt::Display;
use std::str::FromStr;

use bsv_store::StoreError;
use bsv_tx::Transaction;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::data_refs::{DataRef, OperatorDataRefs};
use crate::miner_info::Revocation;
use crate::operator_members::{CONTACT, OperatorMembers};
use crate::store::{
    IdentityRecord, KeyRecord, MinerInfoRecord, Protocol, RevocationRecord, Vctx, VctxView,
};
use crate::succession::Succession;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RecordJson {
    keys: Vec<KeyJson>,
    handed_out: bool,
    /// Written only where it is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    blind_signing_off: bool,
    /// JSON, as it stands in documents.
    operator: String,
    protocol: ProtocolJson,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct KeyJson {
    number: u32,
    public_key: String,
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
    Revoking { outpoint: String, transaction: String },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct MinerInfoJson {
    first_miner_id: String,
    acknowledged: u32,
    revocation_key_number: u32,
    revocation_key: SuccessionJson,
    acknowledged_revocation_key: Option<SuccessionJson>,
    revocation: Option<RevocationJson>,
    /// JSON, in the form that operators write.
    data: String,
    /// JSON, as it stands in documents.
    data_refs: String,
    is_closed: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SuccessionJson {
    previous: String,
    current: String,
    signature: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RevocationJson {
    compromised: String,
    revocation_key_signature: String,
    miner_id_signature: String,
    is_complete: bool,
    is_told: bool,
}

/// A record of version 1 in the form of version 2.
pub(super) fn protocol_added(text: &str) -> Result<String, StoreError> {
    let mut record: Value = serde_json::from_str(text).map_err(StoreError::damaged)?;
    let members = record.as_object_mut().ok_or(StoreError::damaged("a record is no object"))?;
    let contact = members.remove("contact").unwrap_or_default();
    let operator = match contact.as_str() {
        None | Some("{}") => "{}".to_owned(),
        Some(contact) => format!(r#"{{"{CONTACT}":{contact}}}"#),
    };
    members.insert("operator".to_owned(), operator.into());
    let vctx = members.remove("vctx").unwrap_or_default();
    members.insert("protocol".to_owned(), json!({ "vctx": vctx }));
    Ok(record.to_string())
}

pub(super) fn encode(record: &IdentityRecord) -> String {
    let json = RecordJson {
        keys: record
            .keys
            .iter()
            .map(|key| KeyJson { number: key.number, public_key: key.public_key.to_string() })
            .collect(),
        handed_out: record.handed_out,
        blind_signing_off: !record.blind_signing,
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
            VctxJson::Revoking { outpoint: outpoint.to_string(), transaction: spending.to_hex() }
        }
    }
}

fn encode_miner_info(record: &MinerInfoRecord) -> MinerInfoJson {
    let mut data_refs = String::new();
    DataRef::write_all(&record.data_refs, &mut data_refs);
    MinerInfoJson {
        first_miner_id: record.first_miner_id.to_string(),
        acknowledged: record.acknowledged,
        revocation_key_number: record.revocation_key_number,
        revocation_key: encode_succession(&record.revocation_key),
        acknowledged_revocation_key: record
            .acknowledged_revocation_key
            .as_ref()
            .map(encode_succession),
        revocation: record.revocation.map(|RevocationRecord { message, is_complete, is_told }| {
            RevocationJson {
                compromised: message.compromised.to_string(),
                revocation_key_signature: message.revocation_key_signature.to_string(),
                miner_id_signature: message.miner_id_signature.to_string(),
                is_complete,
                is_told,
            }
        }),
        data: record.data.to_json(),
        data_refs,
        is_closed: record.is_closed,
    }
}

fn encode_succession(succession: &Succession) -> SuccessionJson {
    SuccessionJson {
        previous: succession.previous.to_string(),
        current: succession.current.to_string(),
        signature: succession.signature.to_string(),
    }
}

pub(super) fn decode(text: &str) -> Result<IdentityRecord, StoreError> {
    let json: RecordJson = serde_json::from_str(text).map_err(StoreError::damaged)?;
    let key =
        |key: &KeyJson| Ok(KeyRecord { number: key.number, public_key: parse(&key.public_key)? });
    let keys: Vec<_> = json.keys.iter().map(key).collect::<Result<_, StoreError>>()?;
    if keys.is_empty() {
        return Err(StoreError::damaged("an identity without a key"));
    }
    Ok(IdentityRecord {
        keys,
        handed_out: json.handed_out,
        blind_signing: !json.blind_signing_off,
        operator: OperatorMembers::from_json(&json.operator).map_err(StoreError::damaged)?,
        protocol: match json.protocol {
            ProtocolJson::Vctx(vctx) => Protocol::Vctx(decode_vctx(&vctx)?),
            ProtocolJson::MinerInfo(json) => {
                Protocol::MinerInfo(Box::new(decode_miner_info(&json)?))
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
            Vctx::Revoking(parse(outpoint)?, transaction(text)?)
        }
    })
}

fn decode_miner_info(json: &MinerInfoJson) -> Result<MinerInfoRecord, StoreError> {
    let revocation = |json: &RevocationJson| -> Result<_, StoreError> {
        let message = Revocation {
            compromised: parse(&json.compromised)?,
            revocation_key_signature: parse(&json.revocation_key_signature)?,
            miner_id_signature: parse(&json.miner_id_signature)?,
        };
        Ok(RevocationRecord { message, is_complete: json.is_complete, is_told: json.is_told })
    };
    let acknowledged_revocation_key = json.acknowledged_revocation_key.as_ref();
    Ok(MinerInfoRecord {
        first_miner_id: parse(&json.first_miner_id)?,
        acknowledged: json.acknowledged,
        revocation_key_number: json.revocation_key_number,
        revocation_key: decode_succession(&json.revocation_key)?,
        acknowledged_revocation_key: acknowledged_revocation_key
            .map(decode_succession)
            .transpose()?,
        revocation: json.revocation.as_ref().map(revocation).transpose()?,
        data: OperatorDataRefs::from_json(&json.data).map_err(StoreError::damaged)?,
        data_refs: DataRef::all_from_json(&json.data_refs).map_err(StoreError::damaged)?,
        is_closed: json.is_closed,
    })
}

fn decode_succession(json: &SuccessionJson) -> Result<Succession, StoreError> {
    Ok(Succession {
        previous: parse(&json.previous)?,
        current: parse(&json.current)?,
        signature: parse(&json.signature)?,
    })
}

fn parse<T: FromStr<Err: Display>>(text: &str) -> Result<T, StoreError> {
    text.parse().map_err(StoreError::damaged)
}
