//! Receipts that pay no invoice.

use crate::ledger::keys::user_of;
use crate::ledger::rows::Order::Descending;
use crate::ledger::rows::{AllFigures, Incoming, Invoices, ReadRows, Rows, Unassigned};
use crate::ledger::{Books, Query};
use crate::model::coin::Chain;
use crate::model::payment::{IncomingPayment, UnassignedReceipt};
use crate::model::receipt::{Receipt, ReceiptKey};
use crate::model::transaction::TransactionState;

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
            Some(number) => {
                let invoice = self.rows.get::<Invoices>(&number)?;
                invoice.is_some_and(|invoice| invoice.deleted_at.is_none())
            }
            None => false,
        };
        if is_change || pays_invoice {
            return Ok(());
        }
        self.rows.put::<Unassigned>(key, &())
    }

    /// Lists what an invoice has received as unassigned, because the invoice is deleted.
    pub(crate) fn list_payments_of_deleted(&mut self, invoice: u64) -> Result<(), R::Error> {
        for ((_, number), ()) in self.rows.range::<Incoming>((invoice, 0)..=(invoice, u64::MAX))? {
            if self.transaction(number)?.state == TransactionState::Refused {
                continue;
            }
            for (key, receipt) in self.made_by(number)? {
                if self.invoice_of(receipt.key)? == Some(invoice) {
                    self.rows.put::<Unassigned>(key, &())?;
                }
            }
        }
        Ok(())
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
