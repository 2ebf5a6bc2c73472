//! Import of home directories of the older generator.

mod files;
mod home_files;
mod identity;
mod newer_generator;
mod outcome;

use std::path::Path;

use bsv_tx::{Network, PrivateKey, Txid};
use serde::Deserialize;

use self::files::{parse, read_contact, read_keys};
pub use self::home_files::HomeFiles;
use self::home_files::{CLIENT, KEYSTORE, fault};
pub(crate) use self::identity::{OlderIdentity, OlderProtocol};
pub use self::outcome::{Import, VctxFinding};
use crate::alias::Alias;
use crate::error::Error;

/// The home directory of an older generator. The directory has `.minerid-client/<alias>/` with the
/// data of each alias, `.keystore/<alias>_<n>.key`, and for aliases of generation 1.0
/// `.revocationkeystore/<alias>_<n>.key`.
pub(crate) struct OlderHome {
    pub(crate) identities: Vec<OlderIdentity>,
}

#[derive(Deserialize)]
struct VctxJson<'a> {
    /// Borrowed, to avoid a copy of the key.
    prv: &'a str,
    txid: &'a str,
}

impl OlderHome {
    pub(crate) fn parse(files: &HomeFiles) -> Result<Self, Error> {
        let keystore = files.home().join(KEYSTORE);
        let identities = files.alias_dirs().map(|dir| read_identity(files, &dir, &keystore));
        let identities = identities.collect::<Result<Vec<_>, _>>()?;
        match identities.is_empty() {
            true => Err(fault(&files.home().join(CLIENT), "it holds no alias")),
            false => Ok(Self { identities }),
        }
    }
}

fn read_identity(files: &HomeFiles, dir: &Path, keystore: &Path) -> Result<OlderIdentity, Error> {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let alias: Alias = name.parse().map_err(|error| fault(dir, error))?;
    if files.has(&dir.join(newer_generator::KEY_NAMES)) {
        return newer_generator::read_identity(files, alias, dir, keystore);
    }
    let vctx = read_vctx(files, &dir.join("vctx"))?;
    let keys = read_keys(files, &alias, &dir.join("aliases"), keystore)?;
    Ok(OlderIdentity {
        // The home directory does not tell which keys blocks have shown.
        acknowledged: keys.last().map(|(number, _)| *number).unwrap_or_default(),
        keys,
        handed_out: true,
        operator: read_contact(files, &dir.join("config"))?,
        vctx: if vctx.is_some() { VctxFinding::NotAsked } else { VctxFinding::None },
        protocol: OlderProtocol::Vctx(vctx),
        alias,
    })
}

fn read_vctx(files: &HomeFiles, path: &Path) -> Result<Option<(PrivateKey, Txid)>, Error> {
    let Some(text) = files.text(path)? else { return Ok(None) };
    let json: VctxJson<'_> = parse(path, &text)?;
    // The home directory does not tell its network.
    let key = PrivateKey::from_wif(json.prv, Network::Livenet)
        .or_else(|_| PrivateKey::from_wif(json.prv, Network::Testnet))
        .map_err(|error| fault(path, error))?;
    let txid = json.txid.parse().map_err(|error| fault(path, format!("txid {error}")))?;
    Ok(Some((key, txid)))
}
