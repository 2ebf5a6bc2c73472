//! Aliases of generation 1.0 in a home directory of the older generator.

use std::path::Path;

use bsv_tx::{PublicKey, Signature};
use serde::Deserialize;

use super::files::{parse, read_contact, read_keys};
use super::home_files::{HomeFiles, REVOCATION_KEYSTORE, fault};
use super::identity::{NumberedKey, OlderIdentity, OlderProtocol, key_record};
use super::outcome::VctxFinding;
use crate::alias::Alias;
use crate::data_refs::{DataRef, OperatorDataRefs};
use crate::error::Error;
use crate::miner_info_script::Revocation;
use crate::operator_members::OperatorMembers;
use crate::state::{Deed, KeyRecord, MinerInfoRecord, RevocationKeyRecord, RevocationRecord};
use crate::succession::Succession;

/// The file with the key names of an alias of generation 1.0.
pub(super) const KEY_NAMES: &str = "minerIdAliases";
const DATA: &str = "minerIdData";

/// `minerIdData`. The last two members exist once a document was made.
#[derive(Deserialize)]
struct MinerIdDataJson {
    #[serde(rename = "first_minerId")]
    first_miner_id: Option<PublicKey>,
    #[serde(rename = "opreturn_status")]
    handed_out: Option<bool>,
    #[serde(rename = "prevMinerId")]
    previous_miner_id: Option<PublicKey>,
}

/// `revocationKeyData`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RevocationKeyDataJson {
    #[serde(flatten)]
    announced: SuccessionJson,
    next_doc_data: Option<SuccessionJson>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SuccessionJson {
    prev_revocation_key: PublicKey,
    revocation_key: PublicKey,
    prev_revocation_key_sig: Signature,
}

/// `minerIdRevocationData`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RevocationJson {
    #[serde(rename = "complete_revocation")]
    is_complete: bool,
    revocation_message: MessageJson,
    revocation_message_sig: SignaturesJson,
}

#[derive(Deserialize)]
struct MessageJson {
    #[serde(rename = "compromised_minerId")]
    compromised: PublicKey,
}

#[derive(Deserialize)]
struct SignaturesJson {
    sig1: Signature,
    sig2: Signature,
}

/// `dataRefs`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct DataRefsJson<'a> {
    #[serde(borrow)]
    data_refs: &'a serde_json::value::RawValue,
}

pub(super) fn read_identity(
    files: &HomeFiles,
    alias: Alias,
    dir: &Path,
    keystore: &Path,
) -> Result<OlderIdentity, Error> {
    let keys = read_keys(files, &alias, &dir.join(KEY_NAMES), keystore)?;
    let revocation_keystore = keystore.with_file_name(REVOCATION_KEYSTORE);
    let names = dir.join("revocationKeyAliases");
    let revocation_keys = read_keys(files, &alias, &names, &revocation_keystore)?;
    let path = dir.join(DATA);
    let text = files.text(&path)?.ok_or_else(|| fault(&path, "it is missing"))?;
    let data: MinerIdDataJson = parse(&path, &text)?;

    let optional = dir.join("minerIdOptionalData");
    let operator = match files.text(&optional)? {
        Some(text) => OperatorMembers::from_json(&text).map_err(|error| fault(&optional, error))?,
        None => read_contact(files, &dir.join("config"))?,
    };
    let acknowledged = acknowledged(&path, &data, &keys)?.number;
    let (revocation_key, roll) = read_revocation_key(files, dir, &revocation_keys)?;
    Ok(OlderIdentity {
        acknowledged,
        handed_out: data.handed_out.unwrap_or(true),
        operator,
        protocol: OlderProtocol::MinerInfo {
            record: Box::new(read_record(files, dir, &data, &keys, revocation_key)?),
            roll: roll.map(Box::new),
            revocation: read_revocation(files, dir, acknowledged, revocation_key.number)?,
            revocation_keys,
        },
        keys,
        vctx: VctxFinding::None,
        alias,
    })
}

/// The alias's key that a member of a file names.
fn key_of(
    path: &Path,
    name: &str,
    public_key: &PublicKey,
    keys: &[NumberedKey],
) -> Result<KeyRecord, Error> {
    let key = keys.iter().map(key_record).find(|key| key.public_key == *public_key);
    key.ok_or_else(|| fault(path, format!("{name} is no key of the alias")))
}

/// The number of the last acknowledged key. An upgraded alias without a document still announces
/// its last rotation.
fn acknowledged(
    path: &Path,
    data: &MinerIdDataJson,
    keys: &[NumberedKey],
) -> Result<KeyRecord, Error> {
    match &data.previous_miner_id {
        Some(key) => key_of(path, "prevMinerId", key, keys),
        None => Ok(key_record(keys.iter().rev().nth(1).unwrap_or(&keys[0]))),
    }
}

fn read_record(
    files: &HomeFiles,
    dir: &Path,
    data: &MinerIdDataJson,
    keys: &[NumberedKey],
    revocation_key: RevocationKeyRecord,
) -> Result<MinerInfoRecord, Error> {
    let first = match &data.first_miner_id {
        Some(key) => key_of(&dir.join(DATA), "first_minerId", key, keys)?,
        None => key_record(&keys[0]),
    };
    let (data, data_refs) = read_data(files, dir)?;
    let RevocationKeyRecord { number, itself } = revocation_key;
    Ok(MinerInfoRecord { data, data_refs, ..MinerInfoRecord::new(&first, number, itself) })
}

/// Reads the revocation key that blocks have shown, as far as the directory tells, and the step
/// that announces another one.
fn read_revocation_key(
    files: &HomeFiles,
    dir: &Path,
    keys: &[NumberedKey],
) -> Result<(RevocationKeyRecord, Option<Deed>), Error> {
    let path = dir.join("revocationKeyData");
    let text = files.text(&path)?.ok_or_else(|| fault(&path, "it is missing"))?;
    let json: RevocationKeyDataJson = parse(&path, &text)?;
    let succession = |json: &SuccessionJson| {
        let succession = Succession {
            previous: json.prev_revocation_key,
            current: json.revocation_key,
            signature: json.prev_revocation_key_sig,
        };
        let is_current = keys
            .last()
            .is_some_and(|(_, key)| key.private_key().public_key() == succession.current);
        match (is_current, succession.holds()) {
            (false, _) => Err(fault(&path, "its revocationKey is not the last of the alias")),
            (_, false) => Err(fault(&path, "its signature is not of its prevRevocationKey")),
            _ => Ok(succession),
        }
    };
    let announced = succession(&json.announced)?;
    let number = keys.last().map(|(number, _)| *number).unwrap_or_default();
    let Some(next) = &json.next_doc_data else {
        return Ok((RevocationKeyRecord { number, itself: announced }, None));
    };
    let key = RevocationKeyRecord { number, itself: succession(next)? };
    let known = keys.iter().map(|(number, key)| (*number, key.private_key()));
    let known = known.rev().find(|(_, key)| key.public_key() == announced.previous);
    let known = match known {
        Some((number, key)) => {
            RevocationKeyRecord { number, itself: Succession::sign(key, announced.previous)? }
        }
        // Without the key, no revocation can begin in which documents would name it alone.
        None => RevocationKeyRecord { number: number.saturating_sub(1), itself: announced },
    };
    Ok((known, Some(Deed::RevocationKey { announced, key })))
}

fn read_revocation(
    files: &HomeFiles,
    dir: &Path,
    miner_id: u32,
    revocation_key: u32,
) -> Result<Option<RevocationRecord>, Error> {
    let path = dir.join("minerIdRevocationData");
    let Some(text) = files.text(&path)? else { return Ok(None) };
    let json: RevocationJson = parse(&path, &text)?;
    let message = Revocation {
        compromised: json.revocation_message.compromised,
        revocation_key_signature: json.revocation_message_sig.sig1,
        miner_id_signature: json.revocation_message_sig.sig2,
    };
    // The older generator considers the node told even if that failed.
    Ok(Some(RevocationRecord {
        message,
        is_complete: json.is_complete,
        is_told: false,
        miner_id,
        revocation_key,
    }))
}

fn read_data(files: &HomeFiles, dir: &Path) -> Result<(OperatorDataRefs, Vec<DataRef>), Error> {
    let path = dir.join("dataRefsTxData");
    let data = match files.text(&path)? {
        Some(text) => OperatorDataRefs::from_json(&text).map_err(|error| fault(&path, error))?,
        None => OperatorDataRefs::default(),
    };
    let path = dir.join("dataRefs");
    let Some(text) = files.text(&path)? else { return Ok((data, Vec::new())) };
    let json: DataRefsJson<'_> = parse(&path, &text)?;
    let refs = DataRef::all_from_json(json.data_refs.get()).map_err(|error| fault(&path, error))?;
    Ok((data, refs))
}
