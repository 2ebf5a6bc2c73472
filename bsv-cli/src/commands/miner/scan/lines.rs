use bsv_minerid::{Entry, Event, Ledger, Outcome, Report, Verdict};
use bsv_tx::PublicKey;
use serde_json::{Value, json};

use super::progress::Seen;
use crate::context::Context;
use crate::output::printable;

/// What a block has come to.
pub(super) fn block(seen: Seen, report: &Report, entry: &Entry, is_json: bool) -> String {
    let failing = failing(report);
    if is_json {
        return block_json(seen, report, entry, &failing);
    }
    let Seen { height, hash } = seen;
    let mut text = format!("{height:>8}  {hash}  {}", in_words(&entry.event));
    if let Some(claim) = report.claim() {
        text.push_str(&format!("  {}", claim.miner_id));
        if let Some(name) = &claim.name {
            text.push_str(&format!(" ({})", printable(name)));
        }
    }
    if let Some(miner) = entry.miner {
        text.push_str(&format!("  miner {}", miner + 1));
    }
    if let Some(roll) = entry.revocation_key_roll {
        text.push_str(&format!("  new revocation key {}", roll.current));
    }
    match &entry.event {
        Event::Refused(refusal) => text.push_str(&format!(": {refusal}")),
        Event::RevokedPartially { revoked, .. } | Event::RevokedCompletely { revoked } => {
            text.push_str(&format!("  revoked: {}", list(revoked)));
        }
        _ => {}
    }
    if report.verdict() == Verdict::Invalid {
        text.push_str(&format!("  NOT VALID: {}", failing.join(", ")));
    }
    text.push('\n');
    text
}

fn block_json(seen: Seen, report: &Report, entry: &Entry, failing: &[&str]) -> String {
    let claim = report.claim();
    let revoked = match &entry.event {
        Event::RevokedPartially { revoked, .. } | Event::RevokedCompletely { revoked } => {
            texts(revoked)
        }
        _ => Vec::new(),
    };
    let refusal = match &entry.event {
        Event::Refused(refusal) => Some(refusal.to_string()),
        _ => None,
    };
    let line = json!({
        "height": seen.height,
        "hash": seen.hash.to_string(),
        "verdict": report.verdict().name(),
        "failing": failing,
        "acceptedByNode": report.passes_node(),
        "event": entry.event.name(),
        "refusal": refusal,
        "miner": entry.miner.map(|miner| miner + 1),
        "minerId": claim.map(|claim| claim.miner_id.to_string()),
        "previousMinerId": claim.map(|claim| claim.previous_miner_id.to_string()),
        "name": claim.and_then(|claim| claim.name.as_deref()),
        "version": claim.map(|claim| claim.version.as_str()),
        "newRevocationKey": entry.revocation_key_roll.map(|roll| roll.current.to_string()),
        "revoked": revoked,
    });
    format!("{line}\n")
}

/// Blocks have left the chain, the newest first.
pub(super) fn reorganisation(orphans: &[Seen], is_json: bool) -> String {
    if is_json {
        let orphans: Vec<_> = orphans
            .iter()
            .map(|seen| json!({ "height": seen.height, "hash": seen.hash.to_string() }))
            .collect();
        return format!("{}\n", json!({ "disconnected": orphans }));
    }
    let first = orphans.last().map_or(0, |seen| seen.height);
    format!("The chain has changed: {} blocks from height {first} on have left it\n", orphans.len())
}

/// Who the miners are, and what has become of their miner ids.
pub(super) fn summary(ledger: &Ledger, context: &Context) -> String {
    if context.is_json {
        let miners: Vec<_> =
            (0..ledger.miners().len()).map(|miner| of_miner(ledger, miner)).collect();
        return format!("{}\n", json!({ "miners": miners }));
    }
    if ledger.miners().is_empty() {
        return "No miner has an identity\n".to_owned();
    }
    let mut table = context.table(&["miner", "name", "miner id", "state", "since height"]);
    for miner in 0..ledger.miners().len() {
        for (place, key) in ledger.keys_of(miner).into_iter().enumerate() {
            let number = if place == 0 { (miner + 1).to_string() } else { String::new() };
            table.add([
                number,
                printable(key.name.as_deref().unwrap_or_default()),
                key.miner_id.to_string(),
                key.state.name().to_owned(),
                key.creation_height.to_string(),
            ]);
        }
    }
    table.to_string()
}

fn of_miner(ledger: &Ledger, number: usize) -> Value {
    let miner = &ledger.miners()[number];
    let keys: Vec<_> = ledger
        .keys_of(number)
        .into_iter()
        .map(|key| {
            json!({
                "minerId": key.miner_id.to_string(),
                "name": key.name,
                "version": key.version,
                "state": key.state.name(),
                "previousMinerId": key.previous.to_string(),
                "nextMinerId": key.next.map(|next| next.to_string()),
                "revocationKey": key.revocation_key.map(|key| key.to_string()),
                "creationBlock": key.creation_block.to_string(),
                "creationHeight": key.creation_height,
            })
        })
        .collect();
    json!({
        "miner": number + 1,
        "firstBlock": miner.first_block.to_string(),
        "latestBlock": miner.last_block.to_string(),
        "minerIds": keys,
    })
}

fn in_words(event: &Event) -> &'static str {
    match event {
        Event::NoIdentity => "no identity",
        Event::First => "new miner",
        Event::Continued => "same id",
        Event::Rotated { .. } => "rotated",
        Event::RotationRepeated { .. } => "rotated, as announced before",
        Event::RevokedPartially { .. } => "partial revocation",
        Event::RevokedCompletely { .. } => "complete revocation",
        Event::Refused(_) => "refused",
    }
}

fn failing(report: &Report) -> Vec<&'static str> {
    let of_outputs = report.candidates.iter().flat_map(|candidate| &candidate.findings);
    report
        .findings
        .iter()
        .chain(of_outputs)
        .filter(|finding| matches!(finding.outcome, Outcome::Fails(_)))
        .map(|finding| finding.check.name())
        .collect()
}

fn texts(keys: &[PublicKey]) -> Vec<String> {
    keys.iter().map(ToString::to_string).collect()
}

fn list(keys: &[PublicKey]) -> String {
    if keys.is_empty() { "none that was not before".to_owned() } else { texts(keys).join(", ") }
}
