use bsv_invoicing::Timestamp;
use bsv_store::{AuditCheck, AuditEntry, AuditPage};
use hyper::StatusCode;

use super::managed::Services;
use crate::http::{Answer, Declared, Problem, Received, answer, number_parameter};
use crate::minerid::MinerIds;
use crate::wire;

/// | method and path | answer |
/// | --- | --- |
/// | `GET /control/audit/{log}?after=N` | up to 1000 entries of the log `wallet` or `minerid` |
/// | `GET /control/audit/{log}/check` | `{"entries", "head", "fault"}` |
pub(super) const ROUTES: &[Declared<Route>] = &[
    ("/control/audit/{log}", "GET", Route::Entries),
    ("/control/audit/{log}/check", "GET", Route::Check),
];

#[derive(Clone, Copy, Debug)]
pub(crate) enum Route {
    Entries,
    Check,
}

/// The most entries in one answer.
const PAGE: usize = 1000;

/// Shows what happened to keys and to access.
pub(super) async fn answer(
    managed: &Services,
    route: Route,
    log: &str,
    request: Received<'_>,
) -> Result<Answer, Problem> {
    match route {
        Route::Entries => {
            let after = number_parameter(request.uri(), "after")?.unwrap_or(0);
            let entries = entries(managed, log, AuditPage::After(after)).await?;
            let entries: Vec<_> = entries.into_iter().map(wire::AuditEntry::from).collect();
            Ok(answer::json(StatusCode::OK, &entries))
        }
        Route::Check => {
            let AuditCheck { entries, head, fault, .. } = check(managed, log).await?;
            let check = wire::AuditCheck { entries, fault, head: hex::encode(head) };
            Ok(answer::json(StatusCode::OK, &check))
        }
    }
}

/// Up to [`PAGE`] entries of the named log.
pub(super) async fn entries(
    managed: &Services,
    log: &str,
    page: AuditPage,
) -> Result<Vec<AuditEntry>, Problem> {
    match log {
        "wallet" => Ok(managed.wallet()?.audit_log(page, PAGE).await?),
        "minerid" => managed.on_identities(move |ids| ids.audit_log(page, PAGE)).await,
        _ => Err(unknown_log(log)),
    }
}

async fn check(managed: &Services, log: &str) -> Result<AuditCheck, Problem> {
    match log {
        "wallet" => Ok(managed.wallet()?.verify_audit_log().await?),
        "minerid" => managed.on_identities(MinerIds::verify_audit_log).await,
        _ => Err(unknown_log(log)),
    }
}

fn unknown_log(log: &str) -> Problem {
    Problem::of_status(StatusCode::NOT_FOUND, format!("there is no audit log {log:?}"))
}

impl From<AuditEntry> for wire::AuditEntry {
    fn from(entry: AuditEntry) -> Self {
        Self {
            at: Timestamp::from_micros(entry.at_micros).to_string(),
            event: entry.event,
            number: entry.number,
            previous: hex::encode(entry.previous),
            subject: entry.subject,
        }
    }
}
