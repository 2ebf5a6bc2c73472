//! Sample events, with which owners try their endpoints out. A sample names nothing that exists, so
//! that no shop delivers anything for it.

use bsv_tx::{BlockHash, Txid};
use serde_json::{Value, json};

use crate::model::event::{
    EventData, EventInvoice, EventKind, EventOutgoing, EventPayment, MinedIn,
};
use crate::model::invoice_id::InvoiceId;
use crate::model::time::Timestamp;
use crate::model::webhook::WebhookId;

/// The invoice of samples. No invoice has an id like this.
const INVOICE: &str = "__test__";
const SATOSHIS: u64 = 1000;

/// The details of a sample event of a kind.
pub(super) fn sample_data(kind: EventKind, now: Timestamp) -> Value {
    let data = serde_json::to_value(data(kind, now));
    let mut data = data.expect("texts, numbers and times always serialise");
    if let Some(id) = data.get_mut("invoiceId").filter(|id| !id.is_null()) {
        *id = json!(INVOICE);
    }
    data["test"] = json!(true);
    data
}

fn data(kind: EventKind, now: Timestamp) -> EventData {
    use EventKind as Kind;
    let (satoshis, txid) = (SATOSHIS, Txid::from_bytes([0; 32]));
    let invoice_id = InvoiceId::from_bytes(b"000000000000").expect("these are digits");
    let invoice = EventInvoice { invoice_id, reference: None };
    let block_hash = BlockHash::from_bytes([0; 32]);
    let block = kind.is_mined().then_some(MinedIn { block_hash, block_height: 0 });
    let is_of = |beginning: &str| kind.name().starts_with(beginning);
    match kind {
        Kind::InvoiceCreated => EventData::Created { invoice, satoshis, expires_at: now },
        Kind::InvoiceDeleted => EventData::Deleted { invoice, satoshis },
        Kind::InvoiceExpired | Kind::InvoiceMarked => {
            EventData::Standing { invoice, satoshis, paid_satoshis: 0, received_satoshis: 0 }
        }
        Kind::InvoiceRefunded => {
            EventData::Refund { invoice, outgoing_id: 0, satoshis, fee: 1, txid }
        }
        Kind::UserCreated => EventData::User { user_id: 0 },
        Kind::WithdrawalSettled => {
            let (reference, txids) = (None, vec![txid]);
            EventData::Withdrawal { withdrawal_id: 0, reference, satoshis, fee: 1, txids }
        }
        Kind::WebhookDisabled => {
            let webhook_id = WebhookId::from_number(0);
            EventData::Webhook { webhook_id, state: "disabled", failing_since: now }
        }
        Kind::ExposureReached => EventData::Exposure {
            txid,
            satoshis,
            exposed_satoshis: SATOSHIS,
            limit_satoshis: SATOSHIS,
        },
        _ if is_of("invoice.") => {
            let payment = EventPayment {
                satoshis,
                txid: Some(txid),
                paid_satoshis: satoshis,
                due_satoshis: 0,
                received_satoshis: satoshis,
                counted_satoshis: satoshis,
                late: false,
            };
            EventData::Payment { invoice, payment, block }
        }
        _ if is_of("outgoing.") => {
            let outgoing = EventOutgoing {
                outgoing_id: 0,
                purpose: "withdrawal",
                url: None,
                withdrawal_id: Some(0),
                invoice_id: None,
                satoshis,
                fee: 1,
                txid,
            };
            EventData::Outgoing { outgoing: Box::new(outgoing), block }
        }
        _ if is_of("receipt.") => {
            let (vout, outputs, user_id) = (Some(0), 1, None);
            EventData::Receipt { txid, vout, outputs, satoshis, user_id, block }
        }
        _ => EventData::Transaction { txid, satoshis, block },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_any_kind_names_nothing_that_exists() {
        for kind in EventKind::ALL {
            let data = sample_data(*kind, Timestamp::from_micros(5));
            assert_eq!(data["test"], true, "{kind}");
            assert!(data["reference"].is_null(), "{kind}");
            for (member, nothing) in [
                ("invoiceId", json!(INVOICE)),
                ("txid", json!("0".repeat(64))),
                ("txids", json!(["0".repeat(64)])),
                ("userId", json!(0)),
                ("outgoingId", json!(0)),
                ("withdrawalId", json!(0)),
            ] {
                let value = &data[member];
                assert!(value.is_null() || *value == nothing, "{kind}: {member} is {value}");
            }
            assert_eq!(data["blockHash"].is_null(), !kind.is_mined(), "{kind}");
        }
        let paid = sample_data(EventKind::InvoicePaid, Timestamp::from_micros(5));
        assert_eq!((&paid["invoiceId"], &paid["paidSatoshis"]), (&json!(INVOICE), &json!(1000)));
    }
}
