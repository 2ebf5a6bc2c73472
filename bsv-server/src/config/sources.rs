//! The sources of settings: a TOML file, and a JSON object in the environment that overrides it.

use std::fs;
use std::path::{Path, PathBuf};

use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use super::error::ConfigError;
use super::settings::Settings;

/// The environment variable with settings as a JSON object, which override those of the file.
pub const CONFIG_VARIABLE: &str = "BSV_CONFIG";
/// The environment variable with the keystore's passphrase.
pub const PASSPHRASE_VARIABLE: &str = "BSV_KEYSTORE_PASSPHRASE";

/// The sources of the configuration, besides the defaults.
#[derive(Clone, Debug, Default)]
pub struct ConfigSources {
    /// The TOML file.
    pub file: Option<PathBuf>,
    /// The directory for all data. Each network has a directory in it.
    pub data_dir: Option<PathBuf>,
}

/// The settings that are paths. Paths in a file are relative to the file's directory.
const PATHS: [&str; 11] = [
    "/minerIdDataPath",
    "/keystore",
    "/keystorePassphraseFile",
    "/rpcCookieFile",
    "/tls/certificate",
    "/tls/key",
    "/wallet/tls/certificate",
    "/wallet/tls/key",
    "/wallet/store/passwordFile",
    "/payments/tls/certificate",
    "/payments/tls/key",
];

/// The settings that are secrets.
const SECRETS: [&str; 2] = ["/rpcPassword", "/auth/jwtKey"];

impl ConfigSources {
    /// The settings, and the files with secrets that they name. The file of the settings is one of these
    /// if it holds a secret itself.
    pub(super) fn read_settings(&self) -> Result<(Settings, Vec<PathBuf>), ConfigError> {
        let (mut merged, mut secret_files) = (json!({}), Vec::new());
        if let Some(path) = &self.file {
            let own = read_file(path)?;
            if SECRETS.iter().any(|secret| own.pointer(secret).is_some()) {
                secret_files.push(path.clone());
            }
            merge(&mut merged, own);
        }
        if let Some(text) = environment(CONFIG_VARIABLE)? {
            merge(&mut merged, read_variable(&text)?);
        }
        let settings = Settings::read("the settings of file and environment", merged)?;
        secret_files.extend(settings.secret_files().cloned());
        Ok((settings, secret_files))
    }

    pub(super) fn read_passphrase(
        &self,
        file: Option<&Path>,
    ) -> Result<Option<SecretString>, ConfigError> {
        one_passphrase(file, environment(PASSPHRASE_VARIABLE)?.map(SecretString::from))
    }

    pub(super) fn data_dir(&self) -> Result<PathBuf, ConfigError> {
        self.data_dir.clone().or_else(default_data_dir).ok_or(ConfigError::NoDataDir)
    }
}

pub(super) fn read_file(path: &Path) -> Result<Value, ConfigError> {
    let origin = path.display().to_string();
    let text = read(path)?;
    let mut settings: Value = toml::from_str(&text).map_err(|error| ConfigError::Malformed {
        origin: origin.clone(),
        reason: toml_error(&text, &error),
    })?;
    Settings::read(&origin, settings.clone())?;
    let dir = path.parent().unwrap_or(Path::new(""));
    let broadcasters = settings.pointer("/services/broadcasters").and_then(Value::as_array);
    let broadcasters = 0..broadcasters.map_or(0, Vec::len);
    let api_keys = broadcasters.map(|index| format!("/services/broadcasters/{index}/apiKeyFile"));
    for pointer in PATHS.into_iter().map(str::to_owned).chain(api_keys) {
        if let Some(Value::String(path)) = settings.pointer_mut(&pointer) {
            let joined = dir.join(&*path);
            *path = joined.into_os_string().into_string().map_err(|_| ConfigError::Malformed {
                origin: origin.clone(),
                reason: "its directory has a name that is not UTF-8".to_owned(),
            })?;
        }
    }
    Ok(settings)
}

/// Describes an error and its place. The line itself is left out, because it may hold a password.
fn toml_error(text: &str, error: &toml::de::Error) -> String {
    let before = error.span().and_then(|span| text.get(..span.start));
    let Some(before) = before else { return error.message().to_owned() };
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {line}, column {column}: {}", error.message())
}

fn read_variable(text: &str) -> Result<Value, ConfigError> {
    let settings: Value = serde_json::from_str(text).map_err(|error| ConfigError::Malformed {
        origin: CONFIG_VARIABLE.to_owned(),
        reason: error.to_string(),
    })?;
    Settings::read(CONFIG_VARIABLE, settings.clone())?;
    Ok(settings)
}

/// Overrides the leaves of `base` with those of `over`.
pub(super) fn merge(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

pub(super) fn one_passphrase(
    file: Option<&Path>,
    variable: Option<SecretString>,
) -> Result<Option<SecretString>, ConfigError> {
    let passphrase = match (file, variable) {
        (Some(_), Some(_)) => {
            return Err(ConfigError::Inconsistent(
                "keystorePassphraseFile and BSV_KEYSTORE_PASSPHRASE are both set: use one",
            ));
        }
        (Some(path), None) => {
            let text = SecretString::from(read(path)?);
            Some(SecretString::from(text.expose_secret().trim_end_matches(['\r', '\n'])))
        }
        (None, variable) => variable,
    };
    if passphrase.as_ref().is_some_and(|passphrase| passphrase.expose_secret().is_empty()) {
        return Err(ConfigError::Inconsistent("the keystore's passphrase is empty"));
    }
    Ok(passphrase)
}

pub(super) fn read(path: &Path) -> Result<String, ConfigError> {
    fs::read_to_string(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })
}

fn environment(name: &str) -> Result<Option<String>, ConfigError> {
    match std::env::var(name) {
        Ok(text) => Ok(Some(text)),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => Err(ConfigError::Malformed {
            origin: name.to_owned(),
            reason: "it is not UTF-8".to_owned(),
        }),
    }
}

fn default_data_dir() -> Option<PathBuf> {
    let absolute_variable =
        |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute_variable("XDG_DATA_HOME")
        .or_else(|| absolute_variable("HOME").map(|home| home.join(".local/share")))
        .map(|dir| dir.join("bsv-server"))
}

pub(super) fn absolute(path: &Path) -> Result<PathBuf, ConfigError> {
    std::path::absolute(path).map_err(|source| ConfigError::Read { path: path.to_owned(), source })
}
