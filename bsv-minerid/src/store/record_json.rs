//! Records as JSON, the format in which they are stored.

use std::fmt::Display;
use std::str::FromStr;

use bsv_store::StoreError;
use bsv_tx::Transaction;
use serde::{Deserialize, Serialize};

use crate::data_refs::{DataRef, OperatorDataRefs};
use crate::miner_info_script::Revocation;
use crate::operator_members::OperatorMembers;
use crate::state::{
    BlockRef, Exposure, IdentityRecord, KeyRecord, LeftVctx, MinerInfoRecord, Protocol, Reference,
    RevocationRecord, Sighted, Sighting, Sightings, Unseen, Vctx, VctxView,
};
use crate::succession::Succession;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct RecordJson {
    keys: Vec<KeyJson>,
    handed_out: bool,
    /// Written only if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    vouching: Option<u32>,
    /// Written only if it is known that no node knows the identity.
    #[serde(default, skip_serializing_if = "ExposureJson::is_known")]
    exposure: ExposureJson,
    sightings: SightingsJson,
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

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum ExposureJson {
    Kept,
    HandedOut,
    #[default]
    Known,
}

impl ExposureJson {
    fn is_known(&self) -> bool {
        matches!(self, Self::Known)
    }
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
    Revoking { outpoint: String, transaction: Option<String> },
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct MinerInfoJson {
    first_miner_id: String,
    revocation_key_number: u32,
    revocation_key: SuccessionJson,
    later_revocation_keys: Vec<SuccessionJson>,
    revocation: Option<RevocationJson>,
    /// JSON, in the operator's format.
    data: String,
    /// JSON, as in documents.
    data_refs: String,
    is_closed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    document_key: Option<u32>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    references: Vec<ReferenceJson>,
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

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SightingsJson {
    acknowledged: u32,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    recent: Vec<SightingJson>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_repeated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read_to: Option<BlockJson>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unseen: Option<UnseenJson>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct UnseenJson {
    since: u32,
    blocks: u32,
    own_blocks: Vec<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BlockJson {
    height: u32,
    hash: String,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SightingJson {
    block: BlockJson,
    sighted: SightedJson,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum SightedJson {
    Identity,
    Key { before: u32 },
    RevocationKey(SuccessionJson),
    Revocation(RevocationJson),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ReferenceJson {
    miner_info: String,
    key: u32,
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revocation_key: Option<SuccessionJson>,
}

pub(super) fn encode(record: &IdentityRecord) -> String {
    let json = RecordJson {
        keys: record
            .keys
            .iter()
            .map(|key| KeyJson { number: key.number, public_key: key.public_key.to_string() })
            .collect(),
        handed_out: record.handed_out,
        vouching: record.vouching,
        exposure: match record.exposure {
            Exposure::Kept => ExposureJson::Kept,
            Exposure::HandedOut => ExposureJson::HandedOut,
            Exposure::Known => ExposureJson::Known,
        },
        sightings: encode_sightings(&record.sightings),
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
        first_miner_id: record.first_miner_id.to_string(),
        revocation_key_number: record.revocation_key_number,
        revocation_key: encode_succession(&record.revocation_key),
        later_revocation_keys: record.later_revocation_keys.iter().map(encode_succession).collect(),
        revocation: record.revocation.as_ref().map(encode_revocation),
        data: record.data.to_json(),
        data_refs,
        is_closed: record.is_closed,
        document_key: record.document_key,
        references: record
            .references
            .iter()
            .map(|Reference { miner_info, key }| ReferenceJson {
                miner_info: miner_info.to_string(),
                key: *key,
            })
            .collect(),
        left_vctx: LeftVctxJson {
            outpoint: record.left_vctx.outpoint.map(|outpoint| outpoint.to_string()),
            sweep: record.left_vctx.sweep.as_ref().map(Transaction::to_hex),
        },
    }
}

fn encode_sightings(sightings: &Sightings) -> SightingsJson {
    SightingsJson {
        acknowledged: sightings.acknowledged,
        recent: sightings.recent.iter().map(encode_sighting).collect(),
        is_repeated: sightings.is_repeated,
        read_to: sightings.read_to.as_ref().map(encode_block),
        unseen: sightings.unseen.as_ref().map(|unseen| UnseenJson {
            since: unseen.since,
            blocks: unseen.blocks,
            own_blocks: unseen.own_blocks.clone(),
        }),
    }
}

fn encode_block(block: &BlockRef) -> BlockJson {
    BlockJson { height: block.height, hash: block.hash.to_string() }
}

fn encode_sighting(sighting: &Sighting) -> SightingJson {
    SightingJson {
        block: encode_block(&sighting.block),
        sighted: match &sighting.sighted {
            Sighted::Identity => SightedJson::Identity,
            Sighted::Key { before } => SightedJson::Key { before: *before },
            Sighted::RevocationKey(announced) => {
                SightedJson::RevocationKey(encode_succession(announced))
            }
            Sighted::Revocation(revocation) => {
                SightedJson::Revocation(encode_revocation(revocation))
            }
        },
    }
}

fn encode_revocation(revocation: &RevocationRecord) -> RevocationJson {
    let RevocationRecord { message, is_complete, is_told, revocation_key } = revocation;
    RevocationJson {
        compromised: message.compromised.to_string(),
        revocation_key_signature: message.revocation_key_signature.to_string(),
        miner_id_signature: message.miner_id_signature.to_string(),
        is_complete: *is_complete,
        is_told: *is_told,
        revocation_key: revocation_key.as_ref().map(encode_succession),
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
        vouching: json.vouching,
        exposure: match json.exposure {
            ExposureJson::Kept => Exposure::Kept,
            ExposureJson::HandedOut => Exposure::HandedOut,
            ExposureJson::Known => Exposure::Known,
        },
        sightings: decode_sightings(&json.sightings)?,
        blind_signing: !json.blind_signing_off,
        is_deleted: json.deleted,
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
            Vctx::Revoking(parse(outpoint)?, text.as_deref().map(transaction).transpose()?)
        }
    })
}

fn decode_miner_info(json: &MinerInfoJson) -> Result<MinerInfoRecord, StoreError> {
    Ok(MinerInfoRecord {
        first_miner_id: parse(&json.first_miner_id)?,
        revocation_key_number: json.revocation_key_number,
        revocation_key: decode_succession(&json.revocation_key)?,
        later_revocation_keys: decode_all(&json.later_revocation_keys, decode_succession)?,
        revocation: json.revocation.as_ref().map(decode_revocation).transpose()?,
        data: OperatorDataRefs::from_json(&json.data).map_err(StoreError::damaged)?,
        data_refs: DataRef::all_from_json(&json.data_refs).map_err(StoreError::damaged)?,
        is_closed: json.is_closed,
        document_key: json.document_key,
        references: decode_all(&json.references, |json| {
            Ok(Reference { miner_info: parse(&json.miner_info)?, key: json.key })
        })?,
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

fn decode_sightings(json: &SightingsJson) -> Result<Sightings, StoreError> {
    Ok(Sightings {
        acknowledged: json.acknowledged,
        recent: decode_all(&json.recent, decode_sighting)?,
        is_repeated: json.is_repeated,
        read_to: json.read_to.as_ref().map(decode_block).transpose()?,
        unseen: json.unseen.as_ref().map(|unseen| Unseen {
            since: unseen.since,
            blocks: unseen.blocks,
            own_blocks: unseen.own_blocks.clone(),
        }),
    })
}

fn decode_all<J, T>(
    all: &[J],
    decode: impl Fn(&J) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    all.iter().map(decode).collect()
}

fn decode_block(json: &BlockJson) -> Result<BlockRef, StoreError> {
    Ok(BlockRef { height: json.height, hash: parse(&json.hash)? })
}

fn decode_sighting(json: &SightingJson) -> Result<Sighting, StoreError> {
    let sighted = match &json.sighted {
        SightedJson::Identity => Sighted::Identity,
        SightedJson::Key { before } => Sighted::Key { before: *before },
        SightedJson::RevocationKey(json) => Sighted::RevocationKey(decode_succession(json)?),
        SightedJson::Revocation(json) => Sighted::Revocation(decode_revocation(json)?),
    };
    Ok(Sighting { block: decode_block(&json.block)?, sighted })
}

fn decode_revocation(json: &RevocationJson) -> Result<RevocationRecord, StoreError> {
    let message = Revocation {
        compromised: parse(&json.compromised)?,
        revocation_key_signature: parse(&json.revocation_key_signature)?,
        miner_id_signature: parse(&json.miner_id_signature)?,
    };
    Ok(RevocationRecord {
        message,
        is_complete: json.is_complete,
        is_told: json.is_told,
        revocation_key: json.revocation_key.as_ref().map(decode_succession).transpose()?,
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
