use std::path::PathBuf;

use serde_json::{Value, json};

use super::error::ConfigError;
use super::settings::Settings;
use super::sources::ConfigSources;
use super::{Config, network_dir, with_defaults};

/// The effective settings without secrets, to be shown.
#[derive(Clone, Debug)]
pub struct ShownSettings {
    settings: Settings,
    network_dir: PathBuf,
    has_passphrase: bool,
}

impl ShownSettings {
    /// Reads the settings and checks them.
    pub fn load(sources: &ConfigSources) -> Result<Self, ConfigError> {
        let (settings, _) = sources.read_settings()?;
        let passphrase = sources.read_passphrase(settings.keystore_passphrase_file.as_deref())?;
        let has_passphrase = passphrase.is_some();
        let data_dir = sources.data_dir()?;
        Config::new(settings.clone(), &data_dir, passphrase)?;
        let network_dir = network_dir(&data_dir, settings.network)?;
        Ok(Self { settings: with_defaults(settings, &network_dir)?, network_dir, has_passphrase })
    }

    /// A TOML file of the settings. The file can be read again once the secrets replace their
    /// placeholders.
    pub fn to_toml(&self) -> String {
        let Self { settings, network_dir, has_passphrase } = self;
        let passphrase = if *has_passphrase { "set" } else { "not set" };
        let dir = network_dir.display().to_string().replace(['\n', '\r'], " ");
        let settings = toml::to_string(settings).expect("settings are texts, numbers and tables");
        format!("# The data is in {dir}.\n# The keystore's passphrase is {passphrase}.\n{settings}")
    }

    /// The settings as JSON.
    pub fn to_json(&self) -> Value {
        let mut shown = json!(self.settings);
        shown["dataDir"] = json!(self.network_dir);
        shown["keystorePassphrase"] = json!(if self.has_passphrase { "set" } else { "none" });
        shown
    }
}
