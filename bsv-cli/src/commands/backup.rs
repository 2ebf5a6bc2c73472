//! Sealed backups of all data.

mod kept;

use std::io::{self, BufWriter, IsTerminal, Seek, Write};
use std::path::{Path, PathBuf};

use bsv_store::{ArchiveReader, NewFile};
use clap::Args;
use hyper::Method;
use secrecy::{ExposeSecret, SecretString};
use serde_json::{Value, json};

use self::kept::Others;
use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::files::STANDARD;
use crate::output::{counted, elements, printable};
use crate::secret::BackupPassphrase;
use crate::service::Request;

#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    /// A new file, or - for standard output; with --keep, a directory
    file: PathBuf,
    /// Name the backup after the network and the time, and keep only the newest N such backups in
    /// the directory
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    keep: Option<u16>,
    #[command(flatten)]
    passphrase: BackupPassphrase,
}

impl BackupArguments {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match (self.keep, self.file == Path::new(STANDARD)) {
            (Some(_), true) => {
                let reason = "with --keep, give a directory for the backup";
                Err(CliError::Unfitting(reason.to_owned()))
            }
            (Some(keep), false) => self.write_into(context, keep).await,
            (None, true) => self.write_to_standard_output(context).await,
            (None, false) => {
                let written = self.write_to_file(context, &self.file).await?;
                written.show(context, &Others::default())
            }
        }
    }

    /// Older backups are deleted once the new one exists.
    async fn write_into(self, context: &Context, keep: u16) -> Result<(), CliError> {
        let network = context.config()?.network.name();
        let name = kept::new_name(network);
        let written = self.write_to_file(context, &self.file.join(&name)).await?;
        let others = kept::delete_oldest(&self.file, network, &name, usize::from(keep))?;
        written.show(context, &others)
    }

    /// The file is read again before it gets its name.
    async fn write_to_file(&self, context: &Context, path: &Path) -> Result<Written, CliError> {
        let mut file = NewFile::create(path)?;
        let passphrase = self.passphrase.read(true)?;
        let waiting = context.wait("sealing the backup");
        let mut out = BufWriter::new(file.file());
        let lacking = write_sealed(context, &passphrase, &mut out).await?;
        drop(out);
        file.file().rewind()?;
        let mut archive = ArchiveReader::open(file.file(), &passphrase)?;
        let len = io::copy(&mut archive, &mut io::sink())?;
        file.finish()?;
        drop(waiting);
        Ok(Written { file: path.to_owned(), len, lacking })
    }

    async fn write_to_standard_output(self, context: &Context) -> Result<(), CliError> {
        if io::stdout().is_terminal() {
            let reason = "a terminal cannot take a backup: send it to a file or a program";
            return Err(CliError::Unfitting(reason.to_owned()));
        }
        let passphrase = self.passphrase.read(true)?;
        let _waiting = context.wait("sealing the backup");
        let mut out = BufWriter::new(io::stdout().lock());
        // A missing reader is an error here.
        let written = write_sealed(context, &passphrase, &mut out).await;
        let lacking = written.map_err(|error| match error {
            CliError::Output(error) => CliError::BackupCutShort(error),
            error => error,
        })?;
        if !context.is_json {
            eprint!("{}", describe(&lacking));
        }
        Ok(())
    }
}

/// A backup that has been written.
struct Written {
    file: PathBuf,
    /// The length of the contents, in bytes.
    len: u64,
    /// The aliases whose revocation keys the backup lacks.
    lacking: Value,
}

impl Written {
    fn show(&self, context: &Context, others: &Others) -> Result<(), CliError> {
        let Self { file, len, lacking } = self;
        let Others { kept, deleted, future } = others;
        let told = json!({
            "file": file,
            "bytes": len,
            "lacksRevocationKeysOf": lacking,
            "kept": kept,
            "deleted": deleted,
            "fromTheFuture": future,
        });
        context.print(told, || {
            let path = file.display();
            let deleted = deleted.iter().map(|it| format!("Deleted {}\n", it.display()));
            let kept = kept.first().map(|oldest| {
                let backups = counted(kept.len() as u64, "backup", "backups");
                format!("Kept {backups}, the oldest is {}\n", oldest.display())
            });
            let future = future.iter().map(|it| {
                format!(
                    "The name of {} lies in the future: it stays. Check the clock\n",
                    it.display()
                )
            });
            format!("{len} bytes of keys, identities and the wallet are sealed in {path}\n")
                + &describe(lacking)
                + &deleted.chain(kept).chain(future).collect::<String>()
        })
    }
}

/// A line for each identity whose revocation key the backup lacks.
fn describe(lacking: &Value) -> String {
    let aliases = elements(lacking).iter().filter_map(Value::as_str).map(printable);
    let line = |alias| {
        format!(
            "The revocation key of alias \"{alias}\" is not in it: copy the keystore that holds it\n"
        )
    };
    aliases.map(line).collect()
}

/// Writes a backup. Answers the identities whose revocation keys the backup lacks.
async fn write_sealed(
    context: &Context,
    passphrase: &SecretString,
    out: &mut impl Write,
) -> Result<Value, CliError> {
    let body = json!({ "passphrase": passphrase.expose_secret() }).to_string();
    let path = "/control/backup".to_owned();
    let mut service = context.service(Stores::All).await?;
    let lacking = service.get(path.clone()).await?.value()?["lacksRevocationKeysOf"].take();
    let request = Request { method: Method::POST, path, body: Some(body) };
    service.stream(&request, |bytes| out.write_all(bytes)).await?;
    out.flush()?;
    Ok(lacking)
}
