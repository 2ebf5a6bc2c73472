//! Receipts that pay no invoice.

use crate::ledger::keys::user_of;
use crate::ledger::rows::Order::Descending;
use crate::ledger::rows::{AllFigures, Invoices, ReadRows, Rows, Unassigned};
use crate::ledger::{Books, Query};
use crate::model::coin::Chain;
use crate::model::payment::{IncomingPayment, UnassignedReceipt};
use crate::model::receipt::{Receipt, ReceiptKey};

impl<R: Rows> Books<R> {
    /// Lists a receipt of a found transaction as unassigned, unless it pays an invoice, or is
    /// change of a transaction that spends coins of the wallet.
    pub(crate) fn list_unassigned(
        &mut self,
        key: ReceiptKey,
        receipt: &Receipt,
        spends_coins: bool,
    ) -> Result<(), R::Error> {
        let is_change = receipt.key.chain == Chain::Change && spends_coins;
        let pays_invoice = match self.invoice_of(receipt.key)? {
            // There is no invoice if its payment was recovered with the words alone.
            Some(number) => self.rows.get::<Invoices>(&number)?.is_some(),
            None => false,
        };
        if is_change || pays_invoice {
            return Ok(());
        }
        self.rows.put::<Unassigned>(key, &())
    }
}

/// Up to `limit` receipts that pay no invoice, before this one, the newest first.
#[derive(Clone, Copy, Debug)]
pub struct GetUnassigned {
    /// Only receipts before this one.
    pub before: ReceiptKey,
    /// How many at most.
    pub limit: usize,
}

impl Query for GetUnassigned {
    type Answer = Vec<UnassignedReceipt>;

    fn run<R: ReadRows>(self, rows: &R) -> Result<Self::Answer, R::Error> {
        let figures = rows.get::<AllFigures>(&())?.unwrap_or_default();
        let listed = rows.first::<Unassigned>(..self.before, Descending, self.limit)?;
        let mut receipts = Vec::with_capacity(listed.len());
        for (key, ()) in listed {
            let receipt = super::effects::receipt(rows, key)?;
            let record = super::effects::transaction(rows, key.maker)?;
            receipts.push(UnassignedReceipt {
                payment: IncomingPayment::of(key, &record, receipt.satoshis),
                user: user_of(rows, &figures, receipt.key)?,
            });
        }
        Ok(receipts)
    }
}
