//! Proving that every key can be read, in all keystores.

use std::sync::Arc;

use bsv_minerid::{Alias, Error, Keystore};
use bsv_store::KeystoreError;

use crate::control::handed::HandedFiles;
use crate::control::managed::Services;
use crate::control::revocation_keys::RevocationKeys;
use crate::http::Problem;
use crate::minerid::MinerIds;
use crate::wire::KeysCheck;

/// Reads all keys: those of the keystore, and the revocation keys in the default directory and in
/// the keystore that is handed over.
pub(super) async fn answer(
    managed: &Services,
    handed: Option<&HandedFiles>,
) -> Result<KeysCheck, Problem> {
    let keystore = Arc::clone(managed.keystore()?);
    let revocation_keys = Arc::clone(&managed.revocation_keys);
    let ids = managed.ids().ok().cloned();
    let handed = handed.cloned();
    let seed = managed.wallet().ok().map(|_| "wallet.seed".to_owned());
    let checked = tokio::task::spawn_blocking(move || {
        let mut check = KeysCheck::default();
        check.read_keys(&keystore, seed, ids.as_deref())?;
        check.read_revocation_keys(&revocation_keys, handed.as_ref(), ids.as_deref())?;
        Ok::<_, Problem>(check)
    });
    let mut check = checked.await.expect("the task neither panics nor is cancelled")?;
    // It is unknown which keys these services need.
    check.faults.extend(managed.failures().map(str::to_owned));
    Ok(check)
}

impl KeysCheck {
    fn read_keys(
        &mut self,
        keystore: &Keystore,
        seed: Option<String>,
        ids: Option<&MinerIds>,
    ) -> Result<(), Problem> {
        let read = keystore.check()?;
        self.readable.extend(read.readable);
        self.faults.extend(read.faults.iter().map(ToString::to_string));
        // The unusable identities may lack a key.
        let broken = ids.into_iter().flat_map(MinerIds::broken);
        let broken = broken.filter(|(_, reason)| !self.faults.iter().any(|fault| fault == reason));
        let broken: Vec<_> =
            broken.map(|(alias, reason)| format!("alias \"{alias}\": {reason}")).collect();
        self.faults.extend(broken);
        let needed = ids.into_iter().flat_map(MinerIds::key_names).chain(seed);
        for name in needed.filter(|name| !self.readable.contains(name)) {
            let path = keystore.dir().join(format!("{name}.key")).display().to_string();
            if !self.faults.iter().any(|fault| fault.contains(&path)) {
                self.faults.push(format!("{path} is missing"));
            }
        }
        Ok(())
    }

    fn read_revocation_keys(
        &mut self,
        keys: &RevocationKeys,
        named: Option<&HandedFiles>,
        ids: Option<&MinerIds>,
    ) -> Result<(), Problem> {
        let sources = keys.sources(named)?;
        let names = ids.map(MinerIds::revocation_key_names).unwrap_or_default();
        let mut missing: Vec<_> = names.into_iter().map(|(alias, _)| alias).collect();
        for source in &sources {
            let opened =
                keys.open_in(source).and_then(|keystore| Ok((keystore.check()?, keystore)));
            let (read, keystore) = match opened {
                Ok(opened) => opened,
                Err(error) => {
                    self.faults.push(error.to_string());
                    continue;
                }
            };
            self.readable.extend(read.readable.iter().map(|name| format!("revocation/{name}")));
            self.faults.extend(read.faults.iter().map(ToString::to_string));
            if let Some(ids) = ids {
                missing.retain(|alias| !self.has_revocation_key(ids, alias, &keystore));
            }
        }
        if named.is_none() {
            self.unchecked = missing.iter().map(ToString::to_string).collect();
            return Ok(());
        }
        let looked_in: Vec<_> = sources.iter().map(|it| it.dir().display().to_string()).collect();
        let looked_in = looked_in.join(" and ");
        self.faults.extend(missing.iter().map(|alias| {
            format!("the revocation key of alias \"{alias}\" was not found in {looked_in}")
        }));
        Ok(())
    }

    /// Whether a keystore has the revocation key of an identity. A key that exists but cannot be
    /// used is a fault.
    fn has_revocation_key(&mut self, ids: &MinerIds, alias: &Alias, keystore: &Keystore) -> bool {
        match ids.check_revocation_keys(alias, keystore) {
            Ok(()) => true,
            Err(Error::Keystore(KeystoreError::Missing(_))) => false,
            Err(error) => {
                let dir = keystore.dir().display();
                self.faults
                    .push(format!("the revocation key of alias \"{alias}\" in {dir}: {error}"));
                true
            }
        }
    }
}
