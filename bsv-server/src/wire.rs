//! The JSON between the server and the command line, which the server writes and the command line
//! reads. Members stand in the order in which callers get them.

#![expect(
    missing_docs,
    reason = "the members are documented where callers look: docs/api.md, OpenAPI"
)]

mod control;
mod wallet;

pub use control::*;
pub use wallet::*;

#[cfg(test)]
mod tests {
    use serde::Serialize;
    use zeroize::Zeroizing;

    use super::*;

    fn outgoing() -> Outgoing {
        Outgoing {
            block_hash: None,
            block_height: Some(1),
            created_at: "2026-01-01T00:00:00Z".to_owned(),
            expires_at: None,
            fee: 2,
            id: 3,
            invoice: None,
            memo: "memo".to_owned(),
            purpose: "payment".to_owned(),
            satoshis: 4,
            state: "settled".to_owned(),
            to: None,
            txid: "00".to_owned(),
            url: None,
            withdrawal: None,
        }
    }

    /// Callers of the control API and of outgoing payments get members in alphabetical order.
    #[test]
    fn members_stand_in_alphabetical_order() {
        let token = Token {
            created_at: String::new(),
            expires_at: None,
            id: String::new(),
            is_expired: false,
            label: String::new(),
            scopes: Vec::new(),
            token: Some(Zeroizing::default()),
        };
        let asked = PayPreview::Asked {
            expires_at: String::new(),
            fee: 1,
            fee_rate: 2,
            link_satoshis: None,
            memo: String::new(),
            payee: String::new(),
            satoshis: 3,
        };
        let [beef, txid, to, invoice] = [(); 4].map(|()| String::new());
        let (code, detail) = (String::new(), String::new());
        assert_is_ordered(&token);
        assert_is_ordered(&asked);
        assert_is_ordered(&PayPreview::Made { made: outgoing() });
        assert_is_ordered(&Consolidated { payment: Some(outgoing()) });
        assert_is_ordered(&Beef { beef, txid });
        assert_is_ordered(&RefundPreview { fee: 1, invoice, satoshis: 2, to });
        let [at, event, previous, subject, head] = [(); 5].map(|()| String::new());
        assert_is_ordered(&AuditEntry { at, event, number: 1, previous, subject });
        assert_is_ordered(&AuditCheck { entries: 1, fault: None, head });
        assert_is_ordered(&KeysCheck::default());
        assert_is_ordered(&FilesToWrite { code, detail, files: Default::default() });
    }

    /// A [`serde_json::Value`] orders its members.
    fn assert_is_ordered(value: &impl Serialize) {
        let ordered = serde_json::to_value(value).unwrap().to_string();
        assert_eq!(serde_json::to_string(value).unwrap(), ordered);
    }

    #[test]
    fn an_invoice_is_written_as_it_was_read() {
        let json = r#"{"id":"bwWEkOWIH8Ck","reference":null,"description":"\"a\"\n\u0001€😀/","satoshis":2100000000000000,"expiresAt":"2026-11-22T08:48:56.767571Z","paymentReceivedAt":"2026-11-21T09:00:00.000000Z","refundTo":null,"refundedAt":null,"state":"paid","createdAt":"2026-11-21T08:48:56.767571Z","updatedAt":"2026-11-21T09:00:00Z","deletedAt":null}"#;
        let read: Invoice = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), json);
    }

    #[test]
    fn a_balance_is_read_with_and_without_its_parts() {
        let short: Balance = serde_json::from_str(r#"{"satoshis":7}"#).unwrap();
        assert!(short.parts.is_none());
        assert_eq!(serde_json::to_string(&short).unwrap(), r#"{"satoshis":7}"#);
        let long = r#"{"satoshis":7,"confirmed":1,"unconfirmed":2,"reserved":3,"contested":4,"immature":5,"waiting":6,"coins":8}"#;
        let read: Balance = serde_json::from_str(long).unwrap();
        assert_eq!(read.parts.as_ref().map(|parts| parts.coins), Some(8));
        assert_eq!(serde_json::to_string(&read).unwrap(), long);
    }
}
