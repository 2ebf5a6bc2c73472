use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use zeroize::Zeroizing;

use crate::files::{self, FileError};
use crate::lock::{DirLock, LockError};

/// A directory of sealed secrets, one file each, held by one process at a time.
///
/// `keystore.json` holds a random data key, wrapped by a passphrase (Argon2id, then
/// XChaCha20-Poly1305) or, without one, in clear. Each secret lies in `<name>.key`, sealed with
/// XChaCha20-Poly1305 under the data key, its name as associated data. Files are readable by their
/// owner only, and are written whole, synced and renamed, before this type says that they are there.
pub struct Keystore {
    dir: PathBuf,
    data_key: Zeroizing<[u8; 32]>,
    is_plain: bool,
    /// Held while a file is made, so that two secrets of one name cannot both find it free.
    inserting: Mutex<()>,
    _lock: DirLock,
}

/// Whether a keystore may keep its data key in clear when there is no passphrase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlainKeys {
    /// It may: the keys are as safe as the disk.
    Allowed,
    /// It may not: a passphrase is demanded.
    Refused,
}

/// Why a keystore, or a secret in it, could not be read or written. Never tells a secret.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeystoreError {
    /// Another process holds the directory, or it cannot be locked.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// A file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// There is no passphrase, and there should be one.
    #[error("keystore {} has no passphrase, which is refused here: set one", .0.display())]
    PlainRefused(PathBuf),
    /// The keystore is sealed, and no passphrase is configured.
    #[error("keystore {} is sealed, and no passphrase is configured", .0.display())]
    PassphraseMissing(PathBuf),
    /// A passphrase is configured for a keystore that was made without one.
    #[error("keystore {} was made without a passphrase, but one is configured", .0.display())]
    NotSealed(PathBuf),
    /// The passphrase is not the right one, or `keystore.json` is damaged.
    #[error("the passphrase does not open {}, or the file is damaged", .0.display())]
    WrongPassphrase(PathBuf),
    /// `keystore.json` is missing beside keys that need it.
    #[error("{} is missing, but there are keys that need it: restore it from a backup", .0.display())]
    DataKeyMissing(PathBuf),
    /// A file does not have the form that this version writes.
    #[error("{} is damaged, or written by a newer version of this software: {reason}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no secret of that name.
    #[error("{} is missing", .0.display())]
    Missing(PathBuf),
    /// There is a secret of that name already; secrets are never overwritten.
    #[error("{} exists already", .0.display())]
    Exists(PathBuf),
    /// A name that could not be a file name.
    #[error("a key's name consists of the characters A-Z a-z 0-9 . _ -, not \"{0}\"")]
    BadName(String),
    /// The operating system gives no random numbers.
    #[error("the operating system gives no random numbers: {0}")]
    NoRandomness(getrandom::Error),
}

const DATA_KEY_FILE: &str = "keystore.json";
const FORMAT_VERSION: u32 = 1;
/// Starts every key file, and names the version of its form.
const KEY_FILE_MAGIC: &[u8; 8] = b"bsvkey\x00\x01";
const NONCE_LEN: usize = 24;

/// The contents of `keystore.json`.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DataKeyFile {
    version: u32,
    data_key: DataKey,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", deny_unknown_fields)]
enum DataKey {
    Plain(String),
    Wrapped { memory_kib: u32, iterations: u32, parallelism: u32, salt: String, sealed: String },
}

impl Keystore {
    /// Whether there is a keystore in `dir`.
    pub fn is_in(dir: &Path) -> bool {
        dir.join(DATA_KEY_FILE).is_file()
    }

    /// Opens the keystore in `dir`, which is made if it does not exist: sealed if there is a
    /// passphrase, in clear otherwise. `program` is what others are told who find it locked.
    pub fn open(
        dir: &Path,
        passphrase: Option<&SecretString>,
        plain_keys: PlainKeys,
        program: &str,
    ) -> Result<Self, KeystoreError> {
        let lock = DirLock::acquire(dir, program)?;
        fs::set_permissions(dir, fs::Permissions::from_mode(0o700))
            .map_err(FileError::new("restrict", dir))?;
        if passphrase.is_none() && plain_keys == PlainKeys::Refused {
            return Err(KeystoreError::PlainRefused(dir.to_owned()));
        }
        let data_key = match read_data_key_file(dir)? {
            Some(file) => unwrap_data_key(dir, &file.data_key, passphrase)?,
            None => make_data_key(dir, passphrase)?,
        };
        let is_plain = passphrase.is_none();
        let inserting = Mutex::default();
        Ok(Self { dir: dir.to_owned(), data_key, is_plain, inserting, _lock: lock })
    }

    /// Whether the data key lies on the disk in clear.
    pub fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// The directory.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// Stores a secret under a name that is not taken. Once this returns, it is on the disk.
    pub fn insert(&self, name: &str, secret: &[u8]) -> Result<(), KeystoreError> {
        let path = self.path_of(name)?;
        let _inserting = self.inserting.lock().unwrap_or_else(PoisonError::into_inner);
        if path.try_exists().map_err(FileError::new("look for", &path))? {
            // An insertion cut short may have left a name that is not durable, and callers go on
            // with the secret that is there.
            files::sync_dir(&self.dir)?;
            return Err(KeystoreError::Exists(path));
        }
        let mut contents = KEY_FILE_MAGIC.to_vec();
        contents.extend(seal(&self.data_key, name.as_bytes(), secret)?);
        Ok(files::write_atomically(&self.dir, &file_name(name), &contents)?)
    }

    /// Reads the secret of that name.
    pub fn get(&self, name: &str) -> Result<Zeroizing<Vec<u8>>, KeystoreError> {
        let path = self.path_of(name)?;
        let contents = match fs::read(&path) {
            Ok(contents) => contents,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(KeystoreError::Missing(path));
            }
            Err(error) => return Err(FileError::new("read", &path)(error).into()),
        };
        let damaged =
            |reason: &str| KeystoreError::Damaged { path: path.clone(), reason: reason.to_owned() };
        let sealed = contents
            .strip_prefix(KEY_FILE_MAGIC)
            .ok_or_else(|| damaged("it does not begin as a key file does"))?;
        open_sealed(&self.data_key, name.as_bytes(), sealed)
            .ok_or_else(|| damaged("it does not open with this keystore's data key"))
    }

    fn path_of(&self, name: &str) -> Result<PathBuf, KeystoreError> {
        let is_allowed = |c: u8| c.is_ascii_alphanumeric() || b"._-".contains(&c);
        if name.is_empty() || name.starts_with('.') || !name.bytes().all(is_allowed) {
            return Err(KeystoreError::BadName(name.to_owned()));
        }
        Ok(self.dir.join(file_name(name)))
    }
}

impl fmt::Debug for Keystore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keystore").field("dir", &self.dir).finish_non_exhaustive()
    }
}

fn file_name(name: &str) -> String {
    format!("{name}.key")
}

fn read_data_key_file(dir: &Path) -> Result<Option<DataKeyFile>, KeystoreError> {
    let path = dir.join(DATA_KEY_FILE);
    let text = match fs::read(&path) {
        Ok(text) => Zeroizing::new(text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(FileError::new("read", &path)(error).into()),
    };
    let damaged = |reason: String| KeystoreError::Damaged { path: path.clone(), reason };
    let file: DataKeyFile = serde_json::from_slice(&text).map_err(|e| damaged(e.to_string()))?;
    if file.version != FORMAT_VERSION {
        return Err(damaged(format!("it has version {}", file.version)));
    }
    Ok(Some(file))
}

fn make_data_key(
    dir: &Path,
    passphrase: Option<&SecretString>,
) -> Result<Zeroizing<[u8; 32]>, KeystoreError> {
    if holds_keys(dir)? {
        return Err(KeystoreError::DataKeyMissing(dir.join(DATA_KEY_FILE)));
    }
    let data_key = Zeroizing::new(random::<32>()?);
    let stored = match passphrase {
        None => DataKey::Plain(hex::encode(*data_key)),
        Some(passphrase) => {
            let salt = random::<16>()?;
            let params = Params::DEFAULT;
            let wrapping_key = stretch(passphrase, &salt, &params);
            DataKey::Wrapped {
                memory_kib: params.m_cost(),
                iterations: params.t_cost(),
                parallelism: params.p_cost(),
                salt: hex::encode(salt),
                sealed: hex::encode(seal(
                    &wrapping_key,
                    DATA_KEY_FILE.as_bytes(),
                    data_key.as_ref(),
                )?),
            }
        }
    };
    let file = DataKeyFile { version: FORMAT_VERSION, data_key: stored };
    let text = Zeroizing::new(
        serde_json::to_vec_pretty(&file).expect("numbers and strings always serialise"),
    );
    files::write_atomically(dir, DATA_KEY_FILE, &text)?;
    Ok(data_key)
}

fn unwrap_data_key(
    dir: &Path,
    stored: &DataKey,
    passphrase: Option<&SecretString>,
) -> Result<Zeroizing<[u8; 32]>, KeystoreError> {
    let path = dir.join(DATA_KEY_FILE);
    let damaged =
        |reason: &str| KeystoreError::Damaged { path: path.clone(), reason: reason.to_owned() };
    let bytes = match (stored, passphrase) {
        (DataKey::Plain(_), Some(_)) => return Err(KeystoreError::NotSealed(dir.to_owned())),
        (DataKey::Wrapped { .. }, None) => {
            return Err(KeystoreError::PassphraseMissing(dir.to_owned()));
        }
        (DataKey::Plain(key), None) => Zeroizing::new(
            hex::decode(key).map_err(|_| damaged("its data key is not hexadecimal"))?,
        ),
        (DataKey::Wrapped { memory_kib, iterations, parallelism, salt, sealed }, Some(given)) => {
            let params = Some((*memory_kib, *iterations, *parallelism))
                .filter(|(memory, iterations, parallelism)| {
                    *memory <= 1 << 20 && *iterations <= 100 && *parallelism <= 16
                })
                .and_then(|(memory, iterations, parallelism)| {
                    Params::new(memory, iterations, parallelism, Some(32)).ok()
                })
                .ok_or_else(|| damaged("its Argon2id parameters are out of bounds"))?;
            let decode = |text: &str| {
                hex::decode(text).map_err(|_| damaged("its salt or data key is not hexadecimal"))
            };
            let salt = decode(salt)?;
            if !(8..=64).contains(&salt.len()) {
                return Err(damaged("its salt has a wrong length"));
            }
            let wrapping_key = stretch(given, &salt, &params);
            open_sealed(&wrapping_key, DATA_KEY_FILE.as_bytes(), &decode(sealed)?)
                .ok_or_else(|| KeystoreError::WrongPassphrase(path.clone()))?
        }
    };
    let key: &[u8; 32] =
        bytes.as_slice().try_into().map_err(|_| damaged("its data key has a wrong length"))?;
    Ok(Zeroizing::new(*key))
}

fn holds_keys(dir: &Path) -> Result<bool, FileError> {
    let entries = fs::read_dir(dir).map_err(FileError::new("list", dir))?;
    for entry in entries {
        let name = entry.map_err(FileError::new("list", dir))?.file_name();
        if Path::new(&name).extension().is_some_and(|extension| extension == "key") {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The wrapping key that a passphrase and a salt of 8 to 64 bytes make.
fn stretch(passphrase: &SecretString, salt: &[u8], params: &Params) -> Zeroizing<[u8; 32]> {
    let mut key = Zeroizing::new([0; 32]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params.clone())
        .hash_password_into(passphrase.expose_secret().as_bytes(), salt, key.as_mut())
        .expect("the lengths of salt and key are within Argon2's bounds");
    key
}

/// A random nonce, followed by the ciphertext.
fn seal(key: &[u8; 32], associated: &[u8], secret: &[u8]) -> Result<Vec<u8>, KeystoreError> {
    let nonce = random::<NONCE_LEN>()?;
    let payload = Payload { msg: secret, aad: associated };
    let ciphertext = XChaCha20Poly1305::new(key.into())
        .encrypt(&XNonce::from(nonce), payload)
        .expect("a secret is far shorter than the cipher's limit");
    Ok([nonce.as_slice(), &ciphertext].concat())
}

fn open_sealed(key: &[u8; 32], associated: &[u8], sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (nonce, ciphertext) = sealed.split_first_chunk::<NONCE_LEN>()?;
    let payload = Payload { msg: ciphertext, aad: associated };
    let secret = XChaCha20Poly1305::new(key.into()).decrypt(&XNonce::from(*nonce), payload).ok()?;
    Some(Zeroizing::new(secret))
}

fn random<const N: usize>() -> Result<[u8; N], KeystoreError> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(KeystoreError::NoRandomness)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests;
