use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use bsv_invoicing::{PostgresWalletStore, Timestamp, Wallet};
use bsv_store::{FileError, JsonFormat, JsonFormatError, StoreError, write_atomically};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use thiserror::Error;
use tokio::sync::watch;
use tokio::time::{interval, sleep};
use zeroize::Zeroizing;

use super::scope::Grant;
use crate::wallet_store::database;

/// The tokens that were made and are not revoked. The file `tokens.json` in the network's directory,
/// or the database of the wallet, stores only their hashes.
#[derive(Debug)]
pub struct Tokens {
    dir: PathBuf,
    /// The wallet in whose database they lie.
    wallet: Option<Arc<Wallet>>,
    by_id: RwLock<Arc<BTreeMap<String, IssuedToken>>>,
    /// By the ids of tokens, what ends the answers to their bearers when it is dropped.
    ends: Mutex<HashMap<String, watch::Sender<()>>>,
    /// Held while they are changed where they lie.
    changing: Mutex<()>,
}

/// The stored information on a token.
#[derive(Clone, Debug)]
pub(crate) struct IssuedToken {
    /// The id: 8 hexadecimal digits, which are also part of the token.
    pub(crate) id: String,
    /// The name that the maker chose.
    pub(crate) label: String,
    pub(crate) grants: Arc<[Grant]>,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Option<Timestamp>,
    hash: [u8; 32],
}

/// The wanted properties of a new token.
#[derive(Clone, Debug)]
pub(crate) struct TokenDraft {
    pub(crate) label: String,
    pub(crate) grants: Vec<Grant>,
    pub(crate) expires_at: Option<Timestamp>,
}

/// Why `tokens.json` cannot be used. The file stays unchanged.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The file does not have this program's format.
    #[error(
        "{} is damaged: {reason}: restore it from a backup, or move it away and make new tokens",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with the file.
        reason: String,
    },
    /// A token in the database of the wallet does not have the form that this program writes.
    #[error("token {id} in the database is damaged: {reason}")]
    DamagedRow {
        /// The id of the token.
        id: String,
        /// What is wrong with the token.
        reason: String,
    },
    /// The database of the wallet cannot be read.
    #[error("the tokens cannot be read: {0}")]
    Database(#[from] StoreError),
    /// The file, whose tokens are in the database now, cannot be renamed.
    #[error("cannot rename {}: {source}", path.display())]
    Rename {
        /// The file.
        path: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// A build before the first release wrote it.
    #[error("{} was made by an unreleased build; make a new one", path.display())]
    Unreleased {
        /// The file.
        path: PathBuf,
    },
    /// A newer version of this program wrote it.
    #[error(
        "{} has version {found}, but this program knows only versions up to {}: use the program that \
         wrote it",
        path.display(), FORMAT.version()
    )]
    OtherVersion {
        /// The file.
        path: PathBuf,
        /// The version of the file.
        found: u64,
    },
}

/// Why the tokens could not be changed.
#[derive(Debug, Error)]
pub(crate) enum ChangeError {
    #[error("a token needs at least one scope")]
    NoScope,
    #[error("a label has at most {MAX_LABEL_LEN} characters, and no control characters")]
    BadLabel,
    #[error("expiresAt must be in the future")]
    ExpiryPassed,
    #[error("there are already {MAX_TOKENS} tokens: revoke some")]
    TooMany,
    #[error("another token has the same id by chance: try again")]
    IdTaken,
    #[error("there is no token {0}")]
    Unknown(String),
    #[error("the operating system provides no random numbers: {0}")]
    NoRandomness(getrandom::Error),
    #[error("{0}; the change may or may not have been made")]
    File(#[from] FileError),
    #[error("{0}; the change may or may not have been made")]
    Database(#[from] StoreError),
}

/// Why a token is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenError {
    Unknown,
    Expired,
}

pub(crate) const FILE_NAME: &str = "tokens.json";
/// The name of a file whose tokens were moved into a database.
const MOVED_FILE_NAME: &str = "tokens.json.moved";
const FORMAT: JsonFormat = JsonFormat { name: "bsv-tokens", migrations: &[] };
/// The beginning of all tokens, which makes leaked tokens easy to find.
const PREFIX: &str = "bsv_";
const ID_LEN: usize = 8;
const SECRET_LEN: usize = 64;
const MAX_TOKENS: usize = 1000;
const MAX_LABEL_LEN: usize = 100;
/// How long to wait until tokens that cannot be read are read again.
const PAUSE: Duration = Duration::from_secs(1);
/// How often to look whether tokens have expired. One look serves all answers, and obeys a clock
/// that is set.
const EXPIRY_PERIOD: Duration = Duration::from_millis(500);
/// The longest accepted file, in bytes: far longer than the file of the most tokens.
const MAX_FILE_LEN: u64 = 16 << 20;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FileJson {
    tokens: Vec<TokenJson>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct TokenJson {
    id: String,
    label: String,
    sha256: String,
    scopes: Vec<String>,
    created_at: String,
    expires_at: Option<String>,
}

impl Tokens {
    /// Reads the file in `dir`, if it exists. The caller holds the lock on the directory.
    ///
    /// # Errors
    ///
    /// [`TokenFileError`] if the file cannot be used. The file stays unchanged.
    pub fn open(dir: &Path) -> Result<Self, TokenFileError> {
        let tokens = read_all(&dir.join(FILE_NAME))?.unwrap_or_default();
        Ok(Self::of(dir, None, tokens))
    }

    /// Reads the tokens in the database of a wallet. Call it on a blocking thread. If the database has
    /// none, moves the tokens of the file in `dir` into it.
    pub(crate) fn open_in_database(
        wallet: Arc<Wallet>,
        dir: &Path,
    ) -> Result<Self, TokenFileError> {
        let Some(store) = database(&wallet) else { return Self::open(dir) };
        let mut tokens = read_rows(store)?;
        let path = dir.join(FILE_NAME);
        if let Some(of_file) = read_all(&path)? {
            if tokens.is_empty() && !of_file.is_empty() {
                let rows: Vec<_> = of_file.values().map(IssuedToken::to_row).collect();
                store.add_tokens(&rows)?;
                tokens = of_file;
            }
            let renamed = fs::rename(&path, dir.join(MOVED_FILE_NAME));
            renamed.map_err(|source| TokenFileError::Rename { path, source })?;
        }
        Ok(Self::of(dir, Some(wallet), tokens))
    }

    fn of(dir: &Path, wallet: Option<Arc<Wallet>>, tokens: BTreeMap<String, IssuedToken>) -> Self {
        let (dir, by_id) = (dir.to_owned(), RwLock::new(Arc::new(tokens)));
        Self { dir, wallet, by_id, ends: Mutex::default(), changing: Mutex::new(()) }
    }

    /// Takes note of tokens that expire, and of those that other servers make and revoke, until it is
    /// dropped.
    pub(crate) async fn follow(self: &Arc<Self>) {
        tokio::join!(self.follow_clock(), self.follow_database());
    }

    async fn follow_clock(&self) {
        let mut looks = interval(EXPIRY_PERIOD);
        loop {
            looks.tick().await;
            self.end_answers();
        }
    }

    /// Tokens of a file belong to one server.
    async fn follow_database(self: &Arc<Self>) {
        let Some(mut changes) = self.database().map(PostgresWalletStore::token_changes) else {
            return std::future::pending().await;
        };
        while changes.changed().await.is_ok() {
            let tokens = Arc::clone(self);
            let read = tokio::task::spawn_blocking(move || tokens.read_again()).await;
            if let Ok(Err(error)) = read {
                tracing::warn!("{error}");
                sleep(PAUSE).await;
                changes.mark_changed();
            }
        }
    }

    fn read_again(&self) -> Result<(), TokenFileError> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(store) = self.database() {
            self.set(read_rows(store)?);
        }
        Ok(())
    }

    /// Replaces the tokens in memory.
    fn set(&self, tokens: BTreeMap<String, IssuedToken>) {
        *self.by_id.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(tokens);
        self.end_answers();
    }

    /// Ends the answers to bearers of tokens that are revoked or have expired.
    fn end_answers(&self) {
        let tokens = self.all();
        let is_valid = |id: &String| tokens.get(id).is_some_and(|token| !token.is_expired());
        self.ends().retain(|id, _| is_valid(id));
    }

    fn ends(&self) -> MutexGuard<'_, HashMap<String, watch::Sender<()>>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Completes when a token that was accepted is revoked or expires.
    pub(super) fn end_of(&self, token: &str) -> impl Future<Output = ()> + Send + use<> {
        let id = id_of(token).unwrap_or_default().to_owned();
        let mut end = self.ends().entry(id).or_default().subscribe();
        async move {
            // Nothing is ever sent: an error means that the sender is dropped.
            let _ = end.changed().await;
        }
    }

    /// The database in which they lie, if they do.
    fn database(&self) -> Option<&PostgresWalletStore> {
        self.wallet.as_ref().and_then(|wallet| database(wallet))
    }

    /// The tokens in the form of the file.
    pub(crate) fn to_file(&self) -> Vec<u8> {
        encode(&self.all())
    }

    /// All tokens.
    pub(crate) fn all(&self) -> Arc<BTreeMap<String, IssuedToken>> {
        Arc::clone(&self.by_id.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Adds a token, which is valid as soon as this returns.
    pub(crate) fn issue(&self, token: IssuedToken) -> Result<(), ChangeError> {
        let row = token.to_row();
        let insert = |tokens: &mut BTreeMap<String, IssuedToken>| {
            if tokens.len() >= MAX_TOKENS {
                return Err(ChangeError::TooMany);
            }
            match tokens.entry(token.id.clone()) {
                Entry::Vacant(place) => drop(place.insert(token)),
                Entry::Occupied(_) => return Err(ChangeError::IdTaken),
            }
            Ok(())
        };
        self.change(insert, |store| match store.add_tokens(&[row])? {
            true => Ok(()),
            false => Err(ChangeError::IdTaken),
        })
    }

    /// The information on a token.
    pub(crate) fn get(&self, id: &str) -> Result<IssuedToken, ChangeError> {
        self.all().get(id).cloned().ok_or_else(|| ChangeError::Unknown(id.to_owned()))
    }

    /// Revokes a token, which is refused as soon as this returns.
    pub(crate) fn revoke(&self, id: &str) -> Result<IssuedToken, ChangeError> {
        let unknown = || ChangeError::Unknown(id.to_owned());
        self.change(
            |tokens| tokens.remove(id).ok_or_else(unknown),
            |store| {
                store.remove_token(id)?;
                Ok(())
            },
        )
    }

    /// The scopes of a token. The comparison takes constant time.
    pub(super) fn grants_of(&self, token: &str) -> Result<Arc<[Grant]>, TokenError> {
        let id = id_of(token).ok_or(TokenError::Unknown)?;
        let tokens = self.all();
        let issued = tokens.get(id).ok_or(TokenError::Unknown)?;
        if !bool::from(issued.hash.ct_eq(&hash(token))) {
            return Err(TokenError::Unknown);
        }
        match issued.expires_at {
            Some(at) if at <= Timestamp::of_system() => Err(TokenError::Expired),
            _ => Ok(Arc::clone(&issued.grants)),
        }
    }

    /// Changes the file or the database first, and then the tokens in memory.
    fn change<T>(
        &self,
        change: impl FnOnce(&mut BTreeMap<String, IssuedToken>) -> Result<T, ChangeError>,
        change_row: impl FnOnce(&PostgresWalletStore) -> Result<(), ChangeError>,
    ) -> Result<T, ChangeError> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut tokens = BTreeMap::clone(&self.all());
        let result = change(&mut tokens)?;
        match self.database() {
            Some(store) => change_row(store)?,
            None => write_atomically(&self.dir, FILE_NAME, &encode(&tokens))?,
        }
        self.set(tokens);
        Ok(result)
    }
}

impl TokenDraft {
    /// Makes a token, which is not valid yet, and answers its text, which is stored nowhere.
    pub(crate) fn make(self) -> Result<(Zeroizing<String>, IssuedToken), ChangeError> {
        let Self { label, mut grants, expires_at } = self;
        if grants.is_empty() {
            return Err(ChangeError::NoScope);
        }
        if label.chars().count() > MAX_LABEL_LEN || label.chars().any(char::is_control) {
            return Err(ChangeError::BadLabel);
        }
        let created_at = Timestamp::of_system();
        if expires_at.is_some_and(|at| at <= created_at) {
            return Err(ChangeError::ExpiryPassed);
        }
        grants.sort();
        grants.dedup();
        let (id, text) = new_token().map_err(ChangeError::NoRandomness)?;
        let (grants, hash) = (grants.into(), hash(&text));
        Ok((text, IssuedToken { id, label, grants, created_at, expires_at, hash }))
    }
}

impl IssuedToken {
    fn to_row(&self) -> (String, Vec<u8>) {
        let body = serde_json::to_vec(&TokenJson::of(self)).expect("texts always serialise");
        (self.id.clone(), body)
    }

    fn from_row(body: &[u8]) -> Result<Self, String> {
        let token: TokenJson = serde_json::from_slice(body).map_err(|error| error.to_string())?;
        token.into_token()
    }

    /// Whether the token has expired.
    pub(crate) fn is_expired(&self) -> bool {
        self.expires_at.is_some_and(|at| at <= Timestamp::of_system())
    }
}

/// Whether a text has the form of a token of [`Tokens`].
pub(super) fn is_own(token: &str) -> bool {
    token.starts_with(PREFIX)
}

/// Makes the id and the text of a new token: `bsv_`, the id, `_`, and 32 random bytes in
/// hexadecimal.
fn new_token() -> Result<(String, Zeroizing<String>), getrandom::Error> {
    let mut id = [0; ID_LEN / 2];
    getrandom::fill(&mut id)?;
    let mut secret = Zeroizing::new([0; SECRET_LEN / 2]);
    getrandom::fill(&mut *secret)?;
    let id = hex::encode(id);
    let secret = Zeroizing::new(hex::encode(*secret));
    let mut text = Zeroizing::new(String::with_capacity(PREFIX.len() + ID_LEN + 1 + SECRET_LEN));
    for part in [PREFIX, &id, "_", &secret] {
        text.push_str(part);
    }
    Ok((id, text))
}

fn id_of(token: &str) -> Option<&str> {
    let (id, secret) = token.strip_prefix(PREFIX)?.split_once('_')?;
    (secret.len() == SECRET_LEN).then_some(id)
}

/// A plain hash is enough: a token has 256 random bits, which nobody can guess.
fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// The tokens of a file, if there is one.
fn read_all(path: &Path) -> Result<Option<BTreeMap<String, IssuedToken>>, TokenFileError> {
    match read(path) {
        Ok(text) => parse(&text, path).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(TokenFileError::Read { path: path.to_owned(), source }),
    }
}

/// The file of tokens that lie in a database.
pub(crate) fn file_of_rows(rows: &[(String, Vec<u8>)]) -> Result<Vec<u8>, String> {
    let mut tokens = BTreeMap::new();
    for (id, body) in rows {
        tokens.insert(id.clone(), IssuedToken::from_row(body)?);
    }
    Ok(encode(&tokens))
}

/// The tokens of a database.
fn read_rows(store: &PostgresWalletStore) -> Result<BTreeMap<String, IssuedToken>, TokenFileError> {
    let mut tokens = BTreeMap::new();
    for (id, body) in store.tokens()? {
        let damaged = |reason| TokenFileError::DamagedRow { id: id.clone(), reason };
        let token = IssuedToken::from_row(&body).map_err(damaged)?;
        tokens.insert(id, token);
    }
    Ok(tokens)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(MAX_FILE_LEN).read_to_end(&mut text)?;
    Ok(text)
}

fn parse(text: &[u8], path: &Path) -> Result<BTreeMap<String, IssuedToken>, TokenFileError> {
    let damaged = |reason: String| TokenFileError::Damaged { path: path.to_owned(), reason };
    let file: FileJson = FORMAT.read(text).map_err(|error| match error {
        JsonFormatError::Unreleased => TokenFileError::Unreleased { path: path.to_owned() },
        JsonFormatError::Newer { found, .. } => {
            TokenFileError::OtherVersion { path: path.to_owned(), found }
        }
        error => damaged(error.to_string()),
    })?;
    let mut tokens = BTreeMap::new();
    for token in file.tokens {
        let id = token.id.clone();
        let token =
            token.into_token().map_err(|reason| damaged(format!("token {id}: {reason}")))?;
        if tokens.insert(id.clone(), token).is_some() {
            return Err(damaged(format!("token {id} is there twice")));
        }
    }
    Ok(tokens)
}

fn encode(tokens: &BTreeMap<String, IssuedToken>) -> Vec<u8> {
    let tokens = tokens.values().map(TokenJson::of).collect();
    let mut text = FORMAT.write(&FileJson { tokens });
    text.push(b'\n');
    text
}

impl TokenJson {
    fn of(token: &IssuedToken) -> Self {
        Self {
            id: token.id.clone(),
            label: token.label.clone(),
            sha256: hex::encode(token.hash),
            scopes: token.grants.iter().map(ToString::to_string).collect(),
            created_at: token.created_at.to_string(),
            expires_at: token.expires_at.map(|at| at.to_string()),
        }
    }

    fn into_token(self) -> Result<IssuedToken, String> {
        let time = |text: &str| text.parse::<Timestamp>().map_err(|error| error.to_string());
        let mut hash = [0; 32];
        hex::decode_to_slice(&self.sha256, &mut hash)
            .map_err(|error| format!("sha256: {error}"))?;
        let grants = Grant::parse_all(&self.scopes).map_err(|error| error.to_string())?;
        Ok(IssuedToken {
            grants: grants.into(),
            created_at: time(&self.created_at)?,
            expires_at: self.expires_at.as_deref().map(time).transpose()?,
            id: self.id,
            label: self.label,
            hash,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_of_an_older_version_is_brought_to_the_newest() {
        /// As if the scopes of version 1 had been one text.
        const NEXT: JsonFormat = JsonFormat {
            name: FORMAT.name,
            migrations: &[|file| {
                let token = &mut file["tokens"][0];
                let scopes = token["scopes"].as_str().unwrap_or_default();
                token["scopes"] = scopes.split(' ').collect();
            }],
        };
        let token = json!({
            "id": "0011aabb", "label": "", "sha256": "11".repeat(32), "scopes": "wallet:read wallet:pay",
            "createdAt": "2026-01-01T00:00:00Z", "expiresAt": null,
        });
        let file = json!({"format": "bsv-tokens", "version": 1, "tokens": [token]}).to_string();
        let read: FileJson = NEXT.read(file.as_bytes()).unwrap();
        assert_eq!(read.tokens[0].scopes, ["wallet:read", "wallet:pay"]);
        let again: FileJson = NEXT.read(&NEXT.write(&read)).unwrap();
        assert_eq!(again.tokens[0].scopes, read.tokens[0].scopes);
        let older = parse(&NEXT.write(&read), Path::new(FILE_NAME)).unwrap_err();
        assert!(matches!(older, TokenFileError::OtherVersion { found: 2, .. }), "{older}");
    }
}
