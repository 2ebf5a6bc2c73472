//! The effects of a change on keys and on access, for the audit log.

use bsv_store::KeyEvent;
use bsv_tx::Transaction;

use crate::alias::Alias;
use crate::state::{IdentityRecord, Vctx};

/// The events of the keys of an identity that changed from `before` to `after`. For a new identity,
/// `origin` tells whether its keys were made or imported.
pub(super) fn key_events(
    alias: &Alias,
    before: Option<&IdentityRecord>,
    after: &IdentityRecord,
    origin: KeyEvent,
) -> Vec<(KeyEvent, String)> {
    let mut events = Vec::new();
    let known = before.map(IdentityRecord::keys).unwrap_or_default();
    let is_known = |number| known.iter().any(|key| key.number == number);
    for key in after.keys().iter().filter(|key| !is_known(key.number)) {
        events.push((origin, IdentityRecord::key_name(alias, key.number)));
    }
    if let Some(before) = before {
        let old = before.current_key().number;
        if old != after.current_key().number {
            events.push((KeyEvent::Rotated, IdentityRecord::key_name(alias, old)));
        }
    }
    if before.is_some_and(|before| before.is_deleted != after.is_deleted) {
        events.push((KeyEvent::Deleted, alias.to_string()));
    }
    if let Some(before) = before.filter(|before| before.blind_signing != after.blind_signing) {
        let event = match before.blind_signing {
            true => KeyEvent::BlindSigningOff,
            false => KeyEvent::BlindSigningOn,
        };
        events.push((event, alias.to_string()));
    }
    let vctx = |record: &IdentityRecord| record.vctx().cloned().unwrap_or(Vctx::None);
    let vctx_key = IdentityRecord::vctx_key_name(alias);
    match (before.map_or(Vctx::None, vctx), vctx(after)) {
        (Vctx::None, Vctx::AwaitingFunds) => events.push((KeyEvent::Made, vctx_key)),
        (Vctx::None, Vctx::Recorded(..)) => events.push((KeyEvent::Imported, vctx_key)),
        (Vctx::Recorded(..), Vctx::Revoking(..)) => {
            events.push((KeyEvent::Revoked, alias.to_string()));
        }
        _ => {}
    }
    if after.miner_info().is_some() {
        events.extend(miner_info_events(alias, before, after, origin));
    }
    events
}

fn revocation_key_name(alias: &Alias, number: u32) -> String {
    format!("revocation {}", IdentityRecord::key_name(alias, number))
}

fn miner_info_events(
    alias: &Alias,
    before: Option<&IdentityRecord>,
    after: &IdentityRecord,
    origin: KeyEvent,
) -> Vec<(KeyEvent, String)> {
    let revocation_key = |number| revocation_key_name(alias, number);
    let mut events = Vec::new();
    let old = before.and_then(IdentityRecord::revocation_key_number);
    let new = after.revocation_key_number();
    if old != new {
        events.extend(new.map(|new| (origin, revocation_key(new))));
        events.extend(old.map(|old| (KeyEvent::Rotated, revocation_key(old))));
    }
    if before.and_then(IdentityRecord::revocation).is_none()
        && let Some(revocation) = after.revocation()
    {
        let subject = match revocation.is_complete {
            true => alias.to_string(),
            false => format!("{alias} from {} on", revocation.message.compromised),
        };
        events.push((KeyEvent::Revoked, subject));
    }
    let new_sweep = sweep(after).filter(|new| before.and_then(sweep) != Some(*new));
    events.extend(
        new_sweep.map(|sweep| (KeyEvent::VctxSwept, format!("{alias} by {}", sweep.txid()))),
    );
    events
}

fn sweep(record: &IdentityRecord) -> Option<&Transaction> {
    record.miner_info()?.left_vctx.sweep.as_ref()
}
