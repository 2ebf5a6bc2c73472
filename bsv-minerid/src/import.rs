//! Home directories of the older generator.

mod miner_info;

use std::fs;
use std::path::{Path, PathBuf};

use bsv_tx::{ExtendedPrivateKey, Network, OutPoint, PrivateKey, Txid};
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::alias::Alias;
use crate::error::Error;
use crate::operator_members::{CONTACT, OperatorMembers};
use crate::store::{IdentityRecord, KeyRecord, MinerInfoRecord, Protocol, Vctx, VctxView};

/// The home directory of an older generator: `.minerid-client/<alias>/` with what is known of each
/// alias, `.keystore/<alias>_<n>.key`, and for aliases of generation 1.0
/// `.revocationkeystore/<alias>_<n>.key`.
pub(crate) struct OlderHome {
    pub(crate) identities: Vec<OlderIdentity>,
}

pub(crate) struct OlderIdentity {
    pub(crate) alias: Alias,
    /// The current one last. Never empty.
    keys: Vec<NumberedKey>,
    handed_out: bool,
    operator: OperatorMembers,
    protocol: OlderProtocol,
}

type NumberedKey = (u32, ExtendedPrivateKey);

enum OlderProtocol {
    Vctx(Option<(PrivateKey, Txid)>),
    MinerInfo { record: Box<MinerInfoRecord>, revocation_keys: Vec<NumberedKey> },
}

impl OlderIdentity {
    /// What the keystore has to hold: names and secrets.
    pub(crate) fn secrets(&self, network: Network) -> Vec<(String, Zeroizing<Vec<u8>>)> {
        let mut secrets = self.named(&self.keys);
        if let OlderProtocol::Vctx(Some((key, _))) = &self.protocol {
            let wif = key.to_wif(network);
            let name = IdentityRecord::vctx_key_name(&self.alias);
            secrets.push((name, Zeroizing::new(wif.as_bytes().to_vec())));
        }
        secrets
    }

    /// What the keystore of revocation keys has to hold.
    pub(crate) fn revocation_secrets(&self) -> Vec<(String, Zeroizing<Vec<u8>>)> {
        match &self.protocol {
            OlderProtocol::Vctx(_) => Vec::new(),
            OlderProtocol::MinerInfo { revocation_keys, .. } => self.named(revocation_keys),
        }
    }

    fn named(&self, keys: &[NumberedKey]) -> Vec<(String, Zeroizing<Vec<u8>>)> {
        let named = keys.iter().map(|(number, key)| {
            let name = IdentityRecord::key_name(&self.alias, *number);
            (name, Zeroizing::new(key.as_text().as_bytes().to_vec()))
        });
        named.collect()
    }

    /// The older generator never records which output its VCTx is, and takes it to be the first.
    pub(crate) fn to_record(&self) -> IdentityRecord {
        IdentityRecord {
            keys: self.keys.iter().map(key_record).collect(),
            handed_out: self.handed_out,
            blind_signing: true,
            operator: self.operator.clone(),
            protocol: match &self.protocol {
                OlderProtocol::Vctx(None) => Protocol::Vctx(Vctx::None),
                OlderProtocol::Vctx(Some((_, txid))) => {
                    let outpoint = OutPoint { txid: *txid, vout: 0 };
                    Protocol::Vctx(Vctx::Recorded(outpoint, VctxView::default()))
                }
                OlderProtocol::MinerInfo { record, .. } => Protocol::MinerInfo(record.clone()),
            },
        }
    }
}

fn key_record((number, key): &NumberedKey) -> KeyRecord {
    KeyRecord { number: *number, public_key: key.private_key().public_key() }
}

#[derive(Deserialize)]
struct KeyNameJson {
    name: String,
}

#[derive(Deserialize)]
struct VctxJson<'a> {
    /// Borrowed, so that the key is not copied.
    prv: &'a str,
    txid: &'a str,
}

impl OlderHome {
    pub(crate) fn read(home: &Path) -> Result<Self, Error> {
        let client = home.join(".minerid-client");
        let keystore = home.join(".keystore");
        let mut dirs = Vec::new();
        for entry in fs::read_dir(&client).map_err(|error| fault(&client, error))? {
            let path = entry.map_err(|error| fault(&client, error))?.path();
            if path.is_dir() {
                dirs.push(path);
            }
        }
        dirs.sort();
        if dirs.is_empty() {
            return Err(fault(&client, "it holds no alias"));
        }
        let identities =
            dirs.iter().map(|dir| read_identity(dir, &keystore)).collect::<Result<_, _>>()?;
        Ok(Self { identities })
    }
}

fn read_identity(dir: &Path, keystore: &Path) -> Result<OlderIdentity, Error> {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let alias: Alias = name.parse().map_err(|error| fault(dir, error))?;
    if dir.join(miner_info::KEY_NAMES).exists() {
        return miner_info::read_identity(alias, dir, keystore);
    }
    Ok(OlderIdentity {
        keys: read_keys(&alias, &dir.join("aliases"), keystore)?,
        handed_out: true,
        operator: read_contact(&dir.join("config"))?,
        protocol: OlderProtocol::Vctx(read_vctx(&dir.join("vctx"))?),
        alias,
    })
}

/// Leaves room for more rotations than there can be.
const MAX_KEY_NUMBER: u32 = 1 << 31;

fn read_keys(alias: &Alias, path: &Path, keystore: &Path) -> Result<Vec<NumberedKey>, Error> {
    let text = read(path)?.ok_or_else(|| fault(path, "it is missing"))?;
    let names: Vec<KeyNameJson> = parse(path, &text)?;
    if names.is_empty() {
        return Err(fault(path, "it names no key"));
    }
    let mut keys: Vec<NumberedKey> = Vec::new();
    for KeyNameJson { name } in names {
        let number = name
            .strip_prefix(alias.as_str())
            .and_then(|rest| rest.strip_prefix('_'))
            .and_then(|number| number.parse().ok())
            .filter(|number| name == IdentityRecord::key_name(alias, *number))
            .filter(|number| (1..=MAX_KEY_NUMBER).contains(number))
            .filter(|number| keys.iter().all(|(other, _)| other != number))
            .ok_or_else(|| fault(path, format!("\"{name}\" is not {alias}_<number>")))?;
        let key_path = keystore.join(format!("{name}.key"));
        let text = read(&key_path)?.ok_or_else(|| fault(&key_path, "it is missing"))?;
        keys.push((number, text.parse().map_err(|error| fault(&key_path, error))?));
    }
    Ok(keys)
}

fn read_vctx(path: &Path) -> Result<Option<(PrivateKey, Txid)>, Error> {
    let Some(text) = read(path)? else { return Ok(None) };
    let json: VctxJson<'_> = parse(path, &text)?;
    // The home directory does not say which network it is of.
    let key = PrivateKey::from_wif(json.prv, Network::Livenet)
        .or_else(|_| PrivateKey::from_wif(json.prv, Network::Testnet))
        .map_err(|error| fault(path, error))?;
    let txid = json.txid.parse().map_err(|error| fault(path, format!("txid {error}")))?;
    Ok(Some((key, txid)))
}

fn read_contact(path: &Path) -> Result<OperatorMembers, Error> {
    match read(path)?.as_deref().map(|text| text.trim()) {
        None | Some("{}") => Ok(OperatorMembers::default()),
        Some(text) => OperatorMembers::from_json(&format!(r#"{{"{CONTACT}":{text}}}"#))
            .map_err(|error| fault(path, error)),
    }
}

/// Far above the size of any file in a home directory.
const MAX_FILE_LEN: u64 = 1 << 20;

fn read(path: &Path) -> Result<Option<Zeroizing<String>>, Error> {
    match fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fault(path, error)),
        Ok(metadata) if metadata.len() > MAX_FILE_LEN => {
            return Err(fault(path, "it is larger than 1 MiB"));
        }
        Ok(_) => {}
    }
    let text = fs::read_to_string(path).map_err(|error| fault(path, error))?;
    Ok(Some(Zeroizing::new(text)))
}

fn parse<'a, T: Deserialize<'a>>(path: &Path, text: &'a str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| fault(path, error))
}

fn fault(path: &Path, reason: impl ToString) -> Error {
    Error::Import { path: PathBuf::from(path), reason: reason.to_string() }
}
