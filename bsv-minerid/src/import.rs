use std::fs;
use std::path::{Path, PathBuf};

use bsv_tx::{ExtendedPrivateKey, Network, OutPoint, PrivateKey, Txid};
use serde::Deserialize;
use zeroize::Zeroizing;

use crate::alias::Alias;
use crate::error::Error;
use crate::json_object::MinerContact;
use crate::store::{IdentityRecord, KeyRecord, Vctx, VctxView};

/// The home directory of an older generator of protocol 0.2: `.minerid-client/<alias>/` with the
/// files `aliases`, `vctx` and `config`, and `.keystore/<alias>_<n>.key`.
pub(crate) struct OlderHome {
    pub(crate) identities: Vec<OlderIdentity>,
}

pub(crate) struct OlderIdentity {
    pub(crate) alias: Alias,
    /// The numbers and keys, the current one last. Never empty.
    pub(crate) keys: Vec<(u32, ExtendedPrivateKey)>,
    pub(crate) vctx: Option<(PrivateKey, Txid)>,
    pub(crate) contact: MinerContact,
}

impl OlderIdentity {
    /// What the keystore has to hold: names and secrets.
    pub(crate) fn secrets(&self, network: Network) -> Vec<(String, Zeroizing<Vec<u8>>)> {
        let mut secrets: Vec<_> = self
            .keys
            .iter()
            .map(|(number, key)| {
                let name = IdentityRecord::key_name(&self.alias, *number);
                (name, Zeroizing::new(key.as_text().as_bytes().to_vec()))
            })
            .collect();
        if let Some((key, _)) = &self.vctx {
            let wif = key.to_wif(network);
            let name = IdentityRecord::vctx_key_name(&self.alias);
            secrets.push((name, Zeroizing::new(wif.as_bytes().to_vec())));
        }
        secrets
    }

    /// The older generator never records which output its VCTx is, and takes it to be the first.
    pub(crate) fn to_record(&self) -> IdentityRecord {
        let keys = self.keys.iter().map(|(number, key)| KeyRecord {
            number: *number,
            public_key: key.private_key().public_key(),
        });
        IdentityRecord {
            keys: keys.collect(),
            handed_out: true,
            contact: self.contact.clone(),
            vctx: match &self.vctx {
                None => Vctx::None,
                Some((_, txid)) => {
                    Vctx::Recorded(OutPoint { txid: *txid, vout: 0 }, VctxView::default())
                }
            },
        }
    }
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
    if dir.join("minerIdAliases").exists() {
        return Err(fault(dir, "it is of protocol 1.0, only 0.2 can be imported"));
    }
    Ok(OlderIdentity {
        keys: read_keys(&alias, &dir.join("aliases"), keystore)?,
        vctx: read_vctx(&dir.join("vctx"))?,
        contact: read_contact(&dir.join("config"))?,
        alias,
    })
}

/// Leaves room for more rotations than there can be.
const MAX_KEY_NUMBER: u32 = 1 << 31;

fn read_keys(
    alias: &Alias,
    path: &Path,
    keystore: &Path,
) -> Result<Vec<(u32, ExtendedPrivateKey)>, Error> {
    let text = read(path)?.ok_or_else(|| fault(path, "it is missing"))?;
    let names: Vec<KeyNameJson> = parse(path, &text)?;
    if names.is_empty() {
        return Err(fault(path, "it names no key"));
    }
    let mut keys: Vec<(u32, ExtendedPrivateKey)> = Vec::new();
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

fn read_contact(path: &Path) -> Result<MinerContact, Error> {
    match read(path)? {
        None => Ok(MinerContact::default()),
        Some(text) => MinerContact::from_json(&text).map_err(|error| fault(path, error)),
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
