use bsv_minerid::ledger::{Entry, Event, Ledger, Refusal, Reputation};
use bsv_minerid::verify::{Outcome, Report, Verdict};
use bsv_tx::PublicKey;
use serde_json::{Value, json};

use super::progress::{Progress, Seen};
use crate::context::Context;
use crate::output::{Column, printable};

pub(in crate::commands) const COLUMNS: &[Column] = &[
    Column::number("miner"),
    Column::whole("recent blocks"),
    Column::words("name", 10),
    Column::key("miner id", 13),
    Column::whole("state"),
    Column::number("since height").unless_narrow(0),
];

/// The line for a block in a scan that began at the height `from`.
pub(super) fn block(
    seen: Seen,
    from: u32,
    report: &Report,
    entry: &Entry,
    context: &Context,
) -> String {
    let failing = failing(report);
    if context.is_json {
        return block_json(seen, from, report, entry, &failing);
    }
    let (height, hash) = (seen.height, context.key(seen.hash.to_string()));
    let mut text = format!("{height:>8}  {hash}  {}", in_words(&entry.event));
    if let Some(claim) = report.claim() {
        text.push_str(&format!("  {}", context.key(claim.miner_id.to_string())));
        if let Some(name) = &claim.name {
            text.push_str(&format!(" ({})", printable(name)));
        }
    }
    if let Some(miner) = entry.miner {
        text.push_str(&format!("  miner {}", miner + 1));
    }
    if let Some(roll) = entry.revocation_key_roll {
        let key = context.key(roll.current.to_string());
        text.push_str(&format!("  new revocation key {key}"));
    }
    match &entry.event {
        Event::Refused(refusal) => text.push_str(&format!(": {}", why_refused(refusal, from))),
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

fn block_json(seen: Seen, from: u32, report: &Report, entry: &Entry, failing: &[&str]) -> String {
    let claim = report.claim();
    let revoked = match &entry.event {
        Event::RevokedPartially { revoked, .. } | Event::RevokedCompletely { revoked } => {
            texts(revoked)
        }
        _ => Vec::new(),
    };
    let refusal = match &entry.event {
        Event::Refused(refusal) => Some(why_refused(refusal, from)),
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

/// The line for blocks that have left the chain, the newest first.
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

fn why_refused(refusal: &Refusal, from: u32) -> String {
    match refusal {
        Refusal::UnknownPrevious(miner_id) if from > 1 => {
            format!(
                "miner id {miner_id} was not seen since height {from}, the beginning of the scan"
            )
        }
        _ => refusal.to_string(),
    }
}

/// A table of the miners, their shares of the last blocks, and the states of their miner ids.
pub(super) fn summary(progress: &Progress, context: &Context) -> String {
    let Progress { ledger, from, .. } = progress;
    let miners = 0..ledger.miners().len();
    if context.is_json {
        let summary = json!({
            "from": from,
            "reputationBlocks": Reputation::BLOCKS,
            "miners": miners.map(|miner| of_miner(ledger, miner)).collect::<Vec<_>>(),
        });
        return format!("{summary}\n");
    }
    if ledger.miners().is_empty() {
        return "No miner has an identity\n".to_owned();
    }
    let mut table = context.table(COLUMNS);
    for miner in miners {
        for (place, key) in ledger.keys_of(miner).into_iter().enumerate() {
            let [number, recent] = match place {
                0 => [(miner + 1).to_string(), recent_blocks(ledger.reputation(miner))],
                _ => [String::new(), String::new()],
            };
            table.add([
                &number,
                &recent,
                &key.name.as_deref().unwrap_or_default(),
                &key.miner_id,
                &key.state.name(),
                &key.creation_height,
            ]);
        }
    }
    let mut text = table.end();
    if *from > 1 {
        text.push_str(&format!(
            "The scan began at height {from}: earlier miner ids and revocations are unknown\n"
        ));
    }
    text
}

fn recent_blocks(Reputation { blocks, is_complete }: Reputation) -> String {
    let at_least = if is_complete { "" } else { "at least " };
    format!("{at_least}{blocks}/{}", Reputation::BLOCKS)
}

fn of_miner(ledger: &Ledger, number: usize) -> Value {
    let miner = &ledger.miners()[number];
    let Reputation { blocks, is_complete } = ledger.reputation(number);
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
        "recentBlocks": blocks,
        "recentBlocksComplete": is_complete,
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
    if keys.is_empty() { "no further miner ids".to_owned() } else { texts(keys).join(", ") }
}
