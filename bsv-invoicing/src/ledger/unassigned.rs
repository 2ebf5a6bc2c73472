//! Receipts that pay no invoice.

use crate::ledger::keys::user_of;
use crate::ledger::rows::Order::{Ascending, Descending};
use crate::ledger::rows::{
    AllFigures, Engine, Incoming, Invoices, Receipts, Unassigned, Unlisted, WalletStoreError,
};
use crate::ledger::{Books, Query};
use crate::model::coin::Chain;
use crate::model::payment::{IncomingPayment, UnassignedReceipt};
use crate::model::receipt::{Receipt, ReceiptKey};

impl Books<'_> {
    /// Lists a receipt of a transaction that the network shows as unassigned, unless it pays an
    /// invoice, or is change of a transaction that spends coins of the wallet.
    pub(crate) fn list_unassigned(
        &mut self,
        key: ReceiptKey,
        receipt: &Receipt,
        spends_coins: bool,
    ) -> Result<(), WalletStoreError> {
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

    /// Goes on with listing the receipts of deleted invoices as unassigned. Looks at up to `limit`
    /// receipts of one invoice. Returns their number, or 1 if the invoice has no more.
    pub(crate) fn list_receipts_of_deleted(
        &mut self,
        limit: usize,
    ) -> Result<usize, WalletStoreError> {
        let Some((invoice, mut next)) = self.rows.first::<Unlisted>(.., Ascending, 1)?.pop() else {
            return Ok(0);
        };
        let transactions = (invoice, next.maker)..=(invoice, u64::MAX);
        let transactions = self.rows.first::<Incoming>(transactions, Ascending, limit)?;
        let (mut left, mut is_over) = (limit, transactions.len() < limit);
        for ((_, maker), _) in transactions {
            let from = next.max(ReceiptKey { maker, vout: 0 });
            let rest = from..=ReceiptKey { maker, vout: u32::MAX };
            let receipts = self.rows.first::<Receipts>(rest, Ascending, left)?;
            left -= receipts.len();
            self.list_paying(invoice, maker, &receipts)?;
            if left == 0 {
                let last = receipts.last().map_or(from.vout, |(key, _)| key.vout);
                (next, is_over) = (ReceiptKey { maker, vout: last.saturating_add(1) }, false);
                break;
            }
            next = ReceiptKey { maker: maker.saturating_add(1), vout: 0 };
        }
        match is_over {
            true => self.rows.remove::<Unlisted>(invoice).map(drop)?,
            false => self.rows.put::<Unlisted>(invoice, &next)?,
        }
        Ok((limit - left).max(1))
    }

    /// Lists those of a transaction's receipts as unassigned that pay a deleted invoice. Receipts
    /// that the network has never shown are listed once it shows them.
    fn list_paying(
        &mut self,
        invoice: u64,
        maker: u64,
        receipts: &[(ReceiptKey, Receipt)],
    ) -> Result<(), WalletStoreError> {
        if !self.transaction(maker)?.was_seen() {
            return Ok(());
        }
        for (key, receipt) in receipts {
            if self.invoice_of(receipt.key)? == Some(invoice) {
                self.rows.put::<Unassigned>(*key, &())?;
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

    fn run(self, rows: &dyn Engine) -> Result<Self::Answer, WalletStoreError> {
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
