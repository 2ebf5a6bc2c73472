use std::sync::Arc;

use bsv_minerid::Alias;
use bsv_minerid::import::{HomeFiles, Import, VctxFinding};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json};

use super::describe;
use crate::control::handed::HandedFiles;
use crate::control::managed::{Services, parse};
use crate::http::Problem;

#[derive(Deserialize)]
struct ImportJson {
    home: HomeFiles,
}

/// Imports the identities of an older generator's home directory, whose files are handed over.
///
/// The answer is `{"aliases", "known", "identities"}`: the imported aliases; for aliases that
/// existed before `{"alias", "hasKeys"}` or `{"alias", "deleted"}`; and descriptions of the
/// imported identities, each with `"vctxFinding"`.
pub(super) async fn answer(
    managed: &Services,
    body: &Bytes,
    handed: Option<&HandedFiles>,
) -> Result<Value, Problem> {
    let ImportJson { home } = parse(body)?;
    let keys = match home.has_revocation_keys() {
        true => Some(Arc::new(managed.revocation_keys.open(handed).await?)),
        false => None,
    };
    let ids = managed.ids()?;
    let imported = ids.import(managed.any_node(), &home, keys).await?;
    let (mut aliases, mut known, mut identities) = (Vec::new(), Vec::new(), Vec::new());
    for (alias, outcome) in &imported {
        match outcome {
            Import::TakenOver(vctx) => {
                let mut identity = describe(&*ids.get(alias.as_str())?);
                identity["vctxFinding"] = json!(name(*vctx));
                identities.push(identity);
                aliases.push(Alias::as_str(alias));
            }
            Import::Known { has_keys } => {
                known.push(json!({ "alias": alias.as_str(), "hasKeys": has_keys }));
            }
            Import::Deleted => known.push(json!({ "alias": alias.as_str(), "deleted": true })),
        }
    }
    Ok(json!({ "aliases": aliases, "known": known, "identities": identities }))
}

fn name(finding: VctxFinding) -> &'static str {
    match finding {
        VctxFinding::None => "none",
        VctxFinding::NotAsked => "notAsked",
        VctxFinding::NotFound => "notFound",
        VctxFinding::Unspent(_) => "unspent",
        VctxFinding::Spent(_) => "spent",
        VctxFinding::Foreign => "foreign",
    }
}
