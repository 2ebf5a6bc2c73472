use bsv_minerid::formats::Succession;
use bsv_minerid::store::{
    Announcement, BlockRef, Exposure, IdentityRecord, LeftVctx, MinerInfoRecord, Protocol, Sighted,
    Sighting, Unseen, Vctx, VctxView,
};
use bsv_minerid::{Identity, MinerContact};
use serde_json::{Value, json};

use crate::minerid::MinerIds;

pub(in crate::control) fn contact_json(contact: &MinerContact) -> Value {
    serde_json::from_str(&contact.to_json()).unwrap_or_default()
}

pub(in crate::control) fn describe(identity: &Identity) -> Value {
    let record = identity.record();
    let keys: Vec<_> = record.keys().iter().map(|key| key.public_key.to_string()).collect();
    let mut description = json!({
        "alias": identity.alias().as_str(),
        "blindSigning": record.blind_signing,
        "protocol": record.protocol.version(),
        "minerId": record.current_key().public_key.to_string(),
        "minerIds": keys,
        "minerContact": contact_json(&record.contact()),
        "exposure": match record.exposure() {
            Exposure::Kept => "kept",
            Exposure::HandedOut => "handedOut",
            Exposure::Known => "known",
        },
        "stale": identity.is_stale(),
        "announced": record.announcements().into_iter().map(announcement).collect::<Vec<_>>(),
        "seenIn": record.sightings().iter().map(sighting_json).collect::<Vec<_>>(),
    });
    if let Some(Unseen { since, blocks, own_blocks }) = &record.unseen {
        let unseen = json!({ "sinceHeight": since, "blocks": blocks, "ownBlocks": own_blocks });
        description["unseen"] = unseen;
    }
    match &record.protocol {
        Protocol::Vctx(vctx) => description["vctx"] = vctx_json(vctx),
        Protocol::MinerInfo(miner_info) => {
            description["prevMinerId"] = json!(record.previous_key().public_key.to_string());
            description["state"] = json!(state(&record));
            describe_miner_info(&mut description, &record, miner_info);
        }
    }
    description
}

/// The identities that cannot be used.
pub(in crate::control) fn describe_broken(ids: &MinerIds) -> impl Iterator<Item = Value> {
    ids.broken().map(|(alias, reason)| json!({ "alias": alias.as_str(), "error": reason }))
}

fn describe_miner_info(description: &mut Value, record: &IdentityRecord, own: &MinerInfoRecord) {
    description["firstMinerId"] = json!(own.first_miner_id.to_string());
    if let Some(Succession { previous, current, .. }) = record.revocation_key() {
        description["revocationKey"] = json!(current.to_string());
        description["prevRevocationKey"] = json!(previous.to_string());
    }
    let LeftVctx { outpoint, sweep } = &own.left_vctx;
    if outpoint.is_some() || sweep.is_some() {
        description["leftVctx"] = json!({
            "outpoint": outpoint.map(|outpoint| outpoint.to_string()),
            "sweep": sweep.as_ref().map(|sweep| sweep.txid().to_string()),
        });
    }
    if let Some(revocation) = record.revocation() {
        description["compromisedMinerId"] = json!(revocation.message.compromised.to_string());
        description["revocationTold"] = json!(revocation.is_told);
    }
}

/// A block that has shown an announcement and may still leave the main chain.
fn sighting_json(sighting: &Sighting) -> Value {
    let shown = match sighting.sighted {
        Sighted::Identity => "identity",
        Sighted::Key => "rotation",
        Sighted::RevocationKey => "revocationKey",
        Sighted::Revocation => "revocation",
    };
    let BlockRef { height, hash } = sighting.block;
    json!({ "shown": shown, "height": height, "blockHash": hash.to_string() })
}

fn announcement(announcement: Announcement) -> &'static str {
    match announcement {
        Announcement::Rotation => "rotation",
        Announcement::RevocationKey => "revocationKey",
        Announcement::PartialRevocation => "partialRevocation",
        Announcement::CompleteRevocation => "completeRevocation",
    }
}

/// The states of an identity, of both generations.
pub(crate) const STATES: [&str; 10] = [
    "open",
    "closed",
    "none",
    "awaitingFunds",
    "broadcasting",
    "notSeen",
    "unspent",
    "beingSpent",
    "spent",
    "revoked",
];

/// The state of an identity. In generation 0.2, it is the state of its VCTx.
pub(crate) fn state(record: &IdentityRecord) -> &'static str {
    match &record.protocol {
        Protocol::Vctx(vctx) => vctx_state(vctx),
        Protocol::MinerInfo(_) if record.is_closed() => "closed",
        Protocol::MinerInfo(_) => "open",
    }
}

fn vctx_state(vctx: &Vctx) -> &'static str {
    match vctx {
        Vctx::None => "none",
        Vctx::AwaitingFunds => "awaitingFunds",
        Vctx::Broadcasting(_) => "broadcasting",
        Vctx::Recorded(_, VctxView { is_spent: true, .. }) => "spent",
        Vctx::Recorded(_, VctxView { gone_since: Some(_), .. }) => "beingSpent",
        Vctx::Recorded(_, VctxView { last_seen: Some(_), .. }) => "unspent",
        Vctx::Recorded(..) => "notSeen",
        Vctx::Revoking(..) => "revoked",
    }
}

/// Whether a block should have shown an announcement by now.
pub(crate) fn is_overdue(record: &IdentityRecord) -> bool {
    record.unseen.as_ref().is_some_and(Unseen::is_overdue)
}

fn vctx_json(vctx: &Vctx) -> Value {
    let state = vctx_state(vctx);
    match vctx {
        Vctx::None | Vctx::AwaitingFunds => json!({ "state": state }),
        Vctx::Broadcasting(transaction) => {
            json!({ "state": state, "txid": transaction.txid().to_string() })
        }
        Vctx::Recorded(outpoint, _) => {
            json!({ "state": state, "outpoint": outpoint.to_string() })
        }
        Vctx::Revoking(outpoint, spending) => json!({
            "state": state,
            "outpoint": outpoint.to_string(),
            "txid": spending.as_ref().map(|spending| spending.txid().to_string()),
        }),
    }
}

/// The problems that need the operator's attention.
pub(in crate::control) fn alarms(identity: &Identity) -> Vec<&'static str> {
    let stale = "it is an older copy, and the node knows a newer state: use the newest copy";
    let overdue = "no block was seen to show its announcement, and nodes may refuse it: run bsv-cli \
                   miner verify with its last block";
    let record = identity.record();
    let alarm = match &record.protocol {
        Protocol::Vctx(vctx) => vctx_alarm(vctx),
        Protocol::MinerInfo(_) => miner_info_alarm(&record),
    };
    let is_overdue = is_overdue(&record).then_some(overdue);
    let alarms = [identity.is_stale().then_some(stale), is_overdue, alarm];
    alarms.into_iter().flatten().collect()
}

fn miner_info_alarm(record: &IdentityRecord) -> Option<&'static str> {
    if record.is_revocation_passed_over() {
        return Some("its revocation counts no more, as blocks show another key: revoke again");
    }
    record.untold_revocation().map(
        |_| "its revocation has not reached the node: the server sends it when the node answers",
    )
}

fn vctx_alarm(vctx: &Vctx) -> Option<&'static str> {
    match vctx {
        Vctx::None => Some("it has no VCTx: run bsv-cli miner vctx"),
        Vctx::AwaitingFunds => Some("its VCTx waits for funds: run bsv-cli miner vctx"),
        Vctx::Broadcasting(_) => Some("its VCTx is not on the network: run bsv-cli miner vctx"),
        Vctx::Recorded(_, view) => match view {
            VctxView { is_spent: true, .. } => Some("its VCTx is spent, which revokes it"),
            VctxView { gone_since: Some(_), .. } => {
                Some("its VCTx has been spent in a block, which soon revokes it")
            }
            _ => None,
        },
        Vctx::Revoking(_, None) => {
            Some("its VCTx is not spent yet: the server spends it when the node answers")
        }
        Vctx::Revoking(_, Some(_)) => None,
    }
}
