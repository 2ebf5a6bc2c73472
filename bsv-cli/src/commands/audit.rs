//! The audit log: what happened to keys and to access.

use std::collections::BTreeMap;

use bsv_server::wire::{AuditCheck, AuditEntry};
use bsv_server::{are_identities_in, is_wallet_in};
use clap::Subcommand;

use crate::context::{Context, Stores};
use crate::error::CliError;
use crate::output::{self, Column, printable};

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// List what happened to keys and to access, the newest first
    ///
    /// With --json, the entries of each log are in their order, in which audit verify checks them.
    List,
    /// Check that each entry carries the hash of the entry before it
    Verify,
}

pub(super) const COLUMNS: &[Column] = &[
    Column::whole("log"),
    Column::number("number"),
    Column::whole("at"),
    Column::whole("event"),
    Column::key("subject", 13),
];

impl AuditCommand {
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        match self {
            Self::List => list(context).await,
            Self::Verify => verify(context).await,
        }
    }
}

/// The names of the existing logs.
fn logs(context: &Context) -> Result<Vec<&'static str>, CliError> {
    let config = context.config()?;
    let has_wallet = config.wallet.is_some() && is_wallet_in(&config);
    let logs = [("wallet", has_wallet), ("minerid", are_identities_in(&config))];
    Ok(logs.into_iter().filter(|(_, is_there)| *is_there).map(|(log, _)| log).collect())
}

async fn list(context: &Context) -> Result<(), CliError> {
    let logs = logs(context)?;
    let mut service = context.service(Stores::All).await?;
    let mut all = BTreeMap::new();
    for log in &logs {
        let (mut after, mut entries) = (0, Vec::new());
        loop {
            let page = service.get(format!("/control/audit/{log}?after={after}")).await?;
            let page: Vec<AuditEntry> = page.read()?;
            let Some(last) = page.last() else { break };
            after = last.number;
            entries.extend(page);
        }
        all.insert(log, entries);
    }
    context.print(output::json(&all), || {
        if all.values().all(Vec::is_empty) {
            return "There is no entry\n".to_owned();
        }
        let mut table = context.table(COLUMNS);
        let mut entries: Vec<_> =
            all.iter().flat_map(|(log, all)| all.iter().map(move |entry| (log, entry))).collect();
        entries.sort_by(|(_, one), (_, other)| other.at.cmp(&one.at));
        for (log, AuditEntry { number, at, event, subject, .. }) in entries {
            table.add([log, number, &context.time(at), event, subject]);
        }
        table.end()
    })
}

async fn verify(context: &Context) -> Result<(), CliError> {
    let logs = logs(context)?;
    let mut service = context.service(Stores::All).await?;
    let waiting = context.wait("reading the log");
    let (mut all, mut faults) = (BTreeMap::new(), Vec::new());
    for log in &logs {
        let check: AuditCheck = service.get(format!("/control/audit/{log}/check")).await?.read()?;
        faults.extend(check.fault.as_ref().map(|fault| format!("{log}: {}", printable(fault))));
        all.insert(log, check);
    }
    drop(waiting);
    context.print(output::json(&all), || {
        let line = |log: &&str| {
            let AuditCheck { entries, head, .. } = &all[log];
            let head = context.key(head.to_string());
            match entries {
                0 => format!("{log:<7} there is no entry\n"),
                1 => format!("{log:<7} 1 entry fits: {head}\n"),
                _ => format!("{log:<7} {entries} entries fit, the last one is {head}\n"),
            }
        };
        logs.iter().map(line).collect()
    })?;
    match faults.is_empty() {
        true => Ok(()),
        false => Err(CliError::CheckFailed(faults.join("; "))),
    }
}
