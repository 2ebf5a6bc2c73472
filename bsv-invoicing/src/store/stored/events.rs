//! The format of events in their table. Most events need only their subject, and take few bytes.

use bsv_tx::BlockHash;

use super::Stored;
use crate::ledger::events::{EventDetails, EventRow, PaymentDetails, ReceiptDetails, Sums};
use crate::ledger::rows::Damaged;
use crate::model::event::EventKind;
use crate::model::time::Timestamp;
use crate::model::transaction::BlockPlace;

/// The time, the kind, the number of the subject, the details, and the height and hash of the block
/// if the event names one.
pub(super) type EventRowStored = (u64, u8, u64, Vec<u64>, Vec<(u32, [u8; 32])>);

const SUM: u64 = 1;
const PAYMENT: u64 = 2;
const RECEIPT: u64 = 3;
const WEBHOOK: u64 = 4;
const RECEIPTS: u64 = 5;

pub(super) fn stored(row: &EventRow) -> Stored<'static, EventRowStored> {
    let details = match row.details {
        EventDetails::None => Vec::new(),
        EventDetails::Sum(paid) => vec![SUM, paid],
        EventDetails::Payment(PaymentDetails { transaction, satoshis, late, sums }) => {
            let mut details = vec![PAYMENT, transaction, satoshis, u64::from(late)];
            details.extend(sums.into_iter().flat_map(|sums| [sums.paid, sums.due]));
            details
        }
        EventDetails::Receipt(ReceiptDetails { vout, outputs, satoshis, user }) => {
            let mut details = match vout {
                Some(vout) => vec![RECEIPT, u64::from(vout), satoshis],
                None => vec![RECEIPTS, outputs, satoshis],
            };
            details.extend(user);
            details
        }
        EventDetails::Webhook { is_gone, failing_since } => {
            vec![WEBHOOK, u64::from(is_gone), failing_since.as_micros()]
        }
    };
    let block = row.block.map(|block| (block.height, *block.hash.as_bytes()));
    let block = block.into_iter().collect();
    (row.at.as_micros(), row.kind as u8, row.subject, details, block)
}

pub(super) fn read(row: Stored<'_, EventRowStored>) -> Result<EventRow, Damaged> {
    let (at, kind, subject, details, block) = row;
    let damaged = |what: &str| Damaged(format!("an event {what}"));
    let kind = EventKind::of_number(kind).ok_or_else(|| damaged("of an unknown kind"))?;
    let details =
        read_details(&details).ok_or_else(|| damaged("with details that cannot be read"))?;
    let block = match block[..] {
        [] => None,
        [(height, hash)] => Some(BlockPlace { hash: BlockHash::from_bytes(hash), height }),
        _ => return Err(damaged("in several blocks")),
    };
    Ok(EventRow { at: Timestamp::from_micros(at), kind, subject, details, block })
}

fn read_details(details: &[u64]) -> Option<EventDetails> {
    let flag = |flag| [false, true].into_iter().find(|it| u64::from(*it) == flag);
    let payment = |transaction, satoshis, is_late, sums| {
        let late = flag(is_late)?;
        Some(EventDetails::Payment(PaymentDetails { transaction, satoshis, late, sums }))
    };
    match *details {
        [] => Some(EventDetails::None),
        [SUM, paid] => Some(EventDetails::Sum(paid)),
        [PAYMENT, transaction, satoshis, late] => payment(transaction, satoshis, late, None),
        [PAYMENT, transaction, satoshis, late, paid, due] => {
            payment(transaction, satoshis, late, Some(Sums { paid, due }))
        }
        [RECEIPT, vout, satoshis, ref user @ ..] if user.len() < 2 => {
            let (vout, user) = (Some(u32::try_from(vout).ok()?), user.first().copied());
            Some(EventDetails::Receipt(ReceiptDetails { vout, outputs: 1, satoshis, user }))
        }
        [RECEIPTS, outputs, satoshis, ref user @ ..] if outputs > 1 && user.len() < 2 => {
            let (vout, user) = (None, user.first().copied());
            Some(EventDetails::Receipt(ReceiptDetails { vout, outputs, satoshis, user }))
        }
        [WEBHOOK, is_gone, failing_since] => Some(EventDetails::Webhook {
            is_gone: flag(is_gone)?,
            failing_since: Timestamp::from_micros(failing_since),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_events_are_read_back_and_other_rows_are_refused() {
        let sums = Some(Sums { paid: 9, due: 1 });
        let payment = PaymentDetails { transaction: 4, satoshis: 5, late: true, sums };
        let receipt = ReceiptDetails { vout: Some(u32::MAX), outputs: 1, satoshis: 1, user: None };
        let receipts = ReceiptDetails { vout: None, outputs: 2, ..receipt };
        for details in [
            EventDetails::None,
            EventDetails::Sum(u64::MAX),
            EventDetails::Payment(payment),
            EventDetails::Payment(PaymentDetails { sums: None, late: false, ..payment }),
            EventDetails::Receipt(receipt),
            EventDetails::Receipt(ReceiptDetails { vout: Some(0), user: Some(7), ..receipt }),
            EventDetails::Receipt(receipts),
            EventDetails::Receipt(ReceiptDetails { user: Some(7), ..receipts }),
            EventDetails::Webhook { is_gone: true, failing_since: Timestamp::from_micros(9) },
        ] {
            let hash = BlockHash::from_bytes([7; 32]);
            for block in [None, Some(BlockPlace { hash, height: 3 })] {
                let (at, kind) = (Timestamp::from_micros(5), EventKind::PaymentMined);
                let row = EventRow { at, kind, subject: 6, details, block };
                assert_eq!(read(stored(&row)), Ok(row));
            }
        }
        for details in [
            &[0][..],
            &[1],
            &[2, 1, 1, 2],
            &[2, 1, 1, 1, 1],
            &[3, 1 << 32, 1],
            &[3, 1],
            &[4, 2, 1],
            &[4, 1],
            &[5, 1, 1],
            &[5, 2, 1, 7, 7],
        ] {
            assert_eq!(read_details(details), None, "{details:?}");
        }
        for (kind, blocks) in [(0, 0), (200, 0), (1, 2)] {
            assert!(read((1, kind, 1, Vec::new(), vec![(1, [0; 32]); blocks])).is_err());
        }
    }
}
