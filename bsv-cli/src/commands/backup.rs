//! Sealed copies of everything.

use std::io::{self, BufWriter, IsTerminal, Seek, Write};
use std::path::{Path, PathBuf};

use bsv_store::{ArchiveReader, NewFile};
use clap::Args;
use hyper::Method;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::files::STANDARD;
use crate::secret::BackupPassphrase;
use crate::service::Request;

#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    /// The file, which must not exist, or - for standard output
    file: PathBuf,
    #[command(flatten)]
    passphrase: BackupPassphrase,
}

impl BackupArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match self.file == Path::new(STANDARD) {
            true => self.write_to_standard_output(context).await,
            false => self.write_to_file(context).await,
        }
    }

    /// The file is read again before it gets its name.
    async fn write_to_file(self, context: &Context) -> Result<(), CliError> {
        let mut file = NewFile::create(&self.file)?;
        let passphrase = self.passphrase.read(true)?;
        let waiting = context.wait("sealing the backup");
        let mut out = BufWriter::new(file.file());
        write_sealed(context, &passphrase, &mut out).await?;
        drop(out);
        file.file().rewind()?;
        let mut archive = ArchiveReader::open(file.file(), &passphrase)?;
        let len = io::copy(&mut archive, &mut io::sink())?;
        file.finish()?;
        drop(waiting);
        let path = self.file.display();
        context.print(json!({ "file": self.file, "bytes": len }), || {
            format!("{len} bytes of keys, identities and the wallet are sealed in {path}\n")
        })
    }

    async fn write_to_standard_output(self, context: &Context) -> Result<(), CliError> {
        if io::stdout().is_terminal() {
            let reason = "a backup is not for a terminal: send it to a file or a program";
            return Err(CliError::Unfitting(reason.to_owned()));
        }
        let passphrase = self.passphrase.read(true)?;
        let _waiting = context.wait("sealing the backup");
        let mut out = BufWriter::new(io::stdout().lock());
        // That its reader has gone is an error here.
        write_sealed(context, &passphrase, &mut out).await.map_err(|error| match error {
            CliError::Output(error) => CliError::BackupCutShort(error),
            error => error,
        })
    }
}

async fn write_sealed(
    context: &Context,
    passphrase: &SecretString,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let body = json!({ "passphrase": passphrase.expose_secret() }).to_string();
    let path = "/control/backup".to_owned();
    let request = Request { method: Method::POST, path, body: Some(body) };
    let mut service = context.service(Stores::All).await?;
    service.stream(&request, |bytes| out.write_all(bytes)).await?;
    Ok(out.flush()?)
}
