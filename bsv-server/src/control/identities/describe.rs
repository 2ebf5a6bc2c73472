use bsv_minerid::{
    Announcement, Identity, IdentityRecord, MinerContact, MinerInfoRecord, Protocol, Vctx, VctxView,
};
use serde_json::{Value, json};

pub(in crate::control) fn contact_json(contact: &MinerContact) -> Value {
    serde_json::from_str(&contact.to_json()).unwrap_or_default()
}

pub(in crate::control) fn describe(identity: &Identity) -> Value {
    let record = identity.record();
    let keys: Vec<_> = record.keys.iter().map(|key| key.public_key.to_string()).collect();
    let mut description = json!({
        "alias": identity.alias().as_str(),
        "blindSigning": record.blind_signing,
        "protocol": record.protocol.version(),
        "minerId": record.current_key().public_key.to_string(),
        "minerIds": keys,
        "minerContact": contact_json(&record.contact()),
    });
    match &record.protocol {
        Protocol::Vctx(vctx) => description["vctx"] = vctx_json(vctx),
        Protocol::MinerInfo(miner_info) => {
            let announced = record.announcements();
            description["prevMinerId"] = json!(record.previous_key().public_key.to_string());
            description["announced"] = announced.iter().map(|what| announcement(*what)).collect();
            describe_miner_info(&mut description, miner_info);
        }
    }
    description
}

fn describe_miner_info(description: &mut Value, record: &MinerInfoRecord) {
    description["firstMinerId"] = json!(record.first_miner_id.to_string());
    description["revocationKey"] = json!(record.revocation_key.current.to_string());
    description["prevRevocationKey"] = json!(record.revocation_key.previous.to_string());
    description["state"] = json!(if record.is_closed { "closed" } else { "open" });
    if let Some(revocation) = &record.revocation {
        description["compromisedMinerId"] = json!(revocation.message.compromised.to_string());
        description["revocationTold"] = json!(revocation.is_told);
    }
}

fn announcement(announcement: Announcement) -> &'static str {
    match announcement {
        Announcement::Rotation => "rotation",
        Announcement::RevocationKey => "revocationKey",
        Announcement::PartialRevocation => "partialRevocation",
        Announcement::CompleteRevocation => "completeRevocation",
    }
}

fn vctx_json(vctx: &Vctx) -> Value {
    match vctx {
        Vctx::None => json!({ "state": "none" }),
        Vctx::AwaitingFunds => json!({ "state": "awaitingFunds" }),
        Vctx::Broadcasting(transaction) => {
            json!({ "state": "broadcasting", "txid": transaction.txid().to_string() })
        }
        Vctx::Recorded(outpoint, view) => {
            let state = match view {
                VctxView { is_spent: true, .. } => "spent",
                VctxView { gone_since: Some(_), .. } => "beingSpent",
                VctxView { last_seen: Some(_), .. } => "unspent",
                _ => "notSeen",
            };
            json!({ "state": state, "outpoint": outpoint.to_string() })
        }
        Vctx::Revoking(outpoint, spending) => json!({
            "state": "revoked",
            "outpoint": outpoint.to_string(),
            "txid": spending.txid().to_string(),
        }),
    }
}

/// What the operator has to do something about.
pub(in crate::control) fn alarms(record: &IdentityRecord) -> Vec<&'static str> {
    match &record.protocol {
        Protocol::Vctx(vctx) => vctx_alarm(vctx).into_iter().collect(),
        Protocol::MinerInfo(miner_info) => {
            let untold = miner_info.revocation.as_ref().filter(|revocation| !revocation.is_told);
            let alarm = untold.map(|_| {
                "the node does not know of its revocation: run the command that revoked it again"
            });
            alarm.into_iter().collect()
        }
    }
}

fn vctx_alarm(vctx: &Vctx) -> Option<&'static str> {
    match vctx {
        Vctx::None => Some("it has no VCTx: run bsv-cli miner vctx"),
        Vctx::AwaitingFunds => Some("its VCTx waits for funds: run bsv-cli miner vctx"),
        Vctx::Broadcasting(_) => Some("its VCTx is not on the network: run bsv-cli miner vctx"),
        Vctx::Recorded(_, view) => match view {
            VctxView { is_spent: true, .. } => Some("its VCTx is spent, which revokes it"),
            VctxView { gone_since: Some(_), .. } => {
                Some("a transaction that is in no block spends its VCTx, which revokes it")
            }
            _ => None,
        },
        Vctx::Revoking(..) => None,
    }
}
