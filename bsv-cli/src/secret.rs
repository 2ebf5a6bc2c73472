//! Secrets, which are never arguments.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Args;
use secrecy::{ExposeSecret, SecretString};
use tokio::signal::unix::{SignalKind, signal};
use zeroize::Zeroizing;

use crate::error::CliError;
use crate::files::{self, STANDARD};

/// The source of a secret.
pub(crate) struct SecretSource<'a> {
    pub(crate) name: &'static str,
    pub(crate) file: Option<&'a Path>,
    pub(crate) variable: &'static str,
    /// Whether the secret is new. A typing error in a new secret would not show, so it is typed
    /// twice.
    pub(crate) is_new: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BackupPassphrase {
    /// A file with the passphrase of the backup, or - for standard input. Without this option, the
    /// environment variable BSV_BACKUP_PASSPHRASE is used, or the passphrase is typed in
    #[arg(long, value_name = "FILE")]
    passphrase_file: Option<PathBuf>,
}

impl BackupPassphrase {
    /// Whether standard input holds the secret.
    pub(crate) fn is_from_standard_input(&self) -> bool {
        self.passphrase_file.as_deref() == Some(Path::new(STANDARD))
    }

    pub(crate) fn read(&self, is_new: bool) -> Result<SecretString, CliError> {
        let (name, variable) = ("passphrase of the backup", "BSV_BACKUP_PASSPHRASE");
        let file = self.passphrase_file.as_deref();
        SecretSource { name, file, variable, is_new }.read()
    }
}

/// The exit code of a program that Ctrl-C has ended, by the convention of shells.
const INTERRUPTED: i32 = 130;
/// Longer than any passphrase and than 24 words.
pub(crate) const MAX_LEN: u64 = 4096;

impl SecretSource<'_> {
    /// Reads the secret.
    pub(crate) fn read(&self) -> Result<SecretString, CliError> {
        let secret = if let Some(path) = self.file {
            let text = read_text(path).map_err(|error| {
                self.failed(format!("cannot be read from {}: {error}", path.display()))
            })?;
            SecretString::from(text.trim_end_matches(['\r', '\n']))
        } else if let Ok(text) = std::env::var(self.variable) {
            SecretString::from(text)
        } else {
            self.type_in()?
        };
        match secret.expose_secret().is_empty() {
            true => Err(self.failed("is empty")),
            false => Ok(secret),
        }
    }

    /// Asks for the secret, within a runtime.
    ///
    /// Meanwhile, Ctrl-C is an ordinary error. A signal that ended the program would leave the
    /// terminal without echo.
    fn type_in(&self) -> Result<SecretString, CliError> {
        let mut interrupts = signal(SignalKind::interrupt())?;
        let typed = self.prompt(&format!("The {}: ", self.name))?;
        if self.is_new {
            let again = self.prompt("Once more: ")?;
            if again.expose_secret() != typed.expose_secret() {
                return Err(self.failed("was not typed the same way twice"));
            }
        }
        tokio::spawn(async move {
            interrupts.recv().await;
            std::process::exit(INTERRUPTED);
        });
        Ok(typed)
    }

    fn prompt(&self, prompt: &str) -> Result<SecretString, CliError> {
        let typed = rpassword::prompt_password(prompt).map(SecretString::from);
        typed.map_err(|error| match error.kind() {
            // Ctrl-C or Ctrl-D.
            io::ErrorKind::Interrupted | io::ErrorKind::UnexpectedEof => {
                self.failed("was not typed in")
            }
            _ => self
                .failed(format!("cannot be typed in ({error}): give a file, or {}", self.variable)),
        })
    }

    fn failed(&self, reason: impl Into<String>) -> CliError {
        CliError::Secret(format!("the {} {}", self.name, reason.into()))
    }
}

/// Reads a text that is wiped from memory when dropped.
pub(crate) fn read_text(path: &Path) -> io::Result<Zeroizing<String>> {
    // The buffer never grows, because growing would leave copies behind.
    let mut text = Zeroizing::new(String::with_capacity(MAX_LEN as usize + 1));
    files::open(path)?.take(MAX_LEN + 1).read_to_string(&mut text)?;
    match text.len() as u64 > MAX_LEN {
        true => Err(io::Error::other(format!("it is longer than {MAX_LEN} bytes"))),
        false => Ok(text),
    }
}
