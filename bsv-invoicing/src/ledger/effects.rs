//! The effects of a change of a transaction's state on receipts, coins, the balance and invoices.

use std::collections::{BTreeMap, BTreeSet};

use crate::ledger::coin_choice::place;
use crate::ledger::event_log::Tellings;
use crate::ledger::figures::Figures;
use crate::ledger::keys::invoice_of;
use crate::ledger::recount::Payment;
use crate::ledger::rows::{
    Claims, Damaged, Engine, FollowedTip, FollowedTransactions, Immature, InFlight, Incoming,
    Messages, MinedAt, Outgoing, Paid, PostingUrls, Receipts, Spendable, Spends, Transactions,
    WalletStoreError, try_all,
};
use crate::ledger::unfollow::AFTERCARE;
use crate::ledger::{Books, Refusal};
use crate::model::coin::KeyPath;
use crate::model::holdings::Holding;
use crate::model::outgoing::{OutgoingPurpose, OutgoingRecord};
use crate::model::process::Task;
use crate::model::receipt::{Receipt, ReceiptKey};
use crate::model::time::Timestamp;
use crate::model::transaction::{
    COINBASE_MATURITY, FollowedUntil, Purpose, TransactionRecord, TransactionState,
};

impl Books<'_> {
    /// The transaction with this number. Refused if there is none.
    pub(crate) fn known_transaction(
        &self,
        number: u64,
    ) -> Result<TransactionRecord, WalletStoreError> {
        let record = self.rows.get::<Transactions>(&number)?;
        Ok(record.ok_or(Refusal::UnknownTransaction(number))?)
    }

    /// The transaction with this number. The store is damaged if there is none.
    pub(crate) fn transaction(&self, number: u64) -> Result<TransactionRecord, WalletStoreError> {
        transaction(&self.rows, number)
    }

    pub(crate) fn receipt(&self, key: ReceiptKey) -> Result<Receipt, WalletStoreError> {
        receipt(&self.rows, key)
    }

    /// The receipts that a transaction spends or would have spent.
    pub(crate) fn spent_by(&self, number: u64) -> Result<Vec<ReceiptKey>, WalletStoreError> {
        spent_by(&self.rows, number)
    }

    /// The receipts that a transaction makes.
    pub(crate) fn made_by(
        &self,
        number: u64,
    ) -> Result<Vec<(ReceiptKey, Receipt)>, WalletStoreError> {
        self.rows.range::<Receipts>(ReceiptKey::all_of(number))
    }

    /// Changes the state of a transaction. The caller ensures that no other transaction holds the
    /// coins that this one then holds, and that nothing spends receipts that stop counting.
    pub(crate) fn change_state(
        &mut self,
        number: u64,
        new: TransactionState,
        at: Timestamp,
    ) -> Result<(), WalletStoreError> {
        let before = self.transaction(number)?;
        let spent = self.spent_by(number)?;
        self.change_state_of(number, before, &spent, new, at)
    }

    /// The same as [`change_state`](Self::change_state), for a caller that has already read the
    /// transaction and what it spends.
    pub(crate) fn change_state_of(
        &mut self,
        number: u64,
        before: TransactionRecord,
        spent: &[ReceiptKey],
        new: TransactionState,
        at: Timestamp,
    ) -> Result<(), WalletStoreError> {
        self.change_record(number, before, spent, before.in_state(new), at)
    }

    /// The same for a change that may also change what services say of the transaction. If a rival is
    /// found thereby, the transaction does not begin to count.
    pub(crate) fn change_record(
        &mut self,
        number: u64,
        before: TransactionRecord,
        spent: &[ReceiptKey],
        after: TransactionRecord,
        at: Timestamp,
    ) -> Result<(), WalletStoreError> {
        let after = match (before.lists_coins(), after.lists_coins()) {
            (false, true) if self.list_coins(number, &after.txid, at)? => after.with_rival(&before),
            (true, false) => {
                self.unlist_coins(number, &before.txid)?;
                after
            }
            _ => after,
        };
        let new = after.state;
        self.rows.put::<Transactions>(number, &after)?;
        self.list_block(number, &before, &after)?;
        self.follow_from(number, before.state, &after, at)?;
        if before.state.is_open() && !new.is_open() {
            self.rows.remove::<Claims>(Task::Offering(number))?;
        }
        let made = self.made_by(number)?;
        self.recount_exposure(number, (&before, &after), &made)?;
        try_all(&made, |(key, receipt)| self.recount_receipt(*key, receipt, &before, &after))?;
        if !before.was_seen() && after.was_seen() {
            try_all(&made, |(key, receipt)| {
                self.list_unassigned(*key, receipt, !spent.is_empty())
            })?;
        }
        try_all(spent, |key| self.recount_coin(number, *key, &before, &after))?;
        self.tell_outgoing((&before, &after), at)?;
        let told = Tellings::of(&before, new).incoming;
        let paid = paid_by(&self.rows, &self.figures, &made)?;
        try_all(paid, |(invoice, Paid { satoshis, .. })| {
            let was_in_flight = self.end_flight(number, invoice, before.state, new)?;
            let payment = Payment { transaction: number, invoice, satoshis, told };
            self.recount_invoice(&payment, (&before, &after), was_in_flight, at)
        })?;
        self.tell_unassigned((number, &after), &made, &told, at)?;
        if let Purpose::Outgoing(payment) = after.purpose {
            self.close_payment(payment, [before.state, new], at)?;
            if before.state.is_lost() != new.is_lost() {
                self.recount_refund(payment, !new.is_lost(), at)?;
            }
        }
        Ok(())
    }

    /// Records that a payment of an invoice is no longer being offered. Returns whether it was.
    fn end_flight(
        &mut self,
        number: u64,
        invoice: u64,
        old: TransactionState,
        new: TransactionState,
    ) -> Result<bool, WalletStoreError> {
        let is_over = old.is_open() && !new.is_open();
        if !is_over || self.rows.get::<InFlight>(&invoice)? != Some(number) {
            return Ok(false);
        }
        self.rows.remove::<InFlight>(invoice)
    }

    /// Counts a payment by the wallet anew if it is a refund. [`lose`](Self::lose) settles the invoice
    /// of a lost one, after all that is lost with it.
    fn recount_refund(
        &mut self,
        number: u64,
        lasts: bool,
        at: Timestamp,
    ) -> Result<(), WalletStoreError> {
        let payment = self.payment(number)?;
        let OutgoingPurpose::Refund { invoice, .. } = payment.purpose else { return Ok(()) };
        let before = self.count_refund(invoice, (number, &payment), lasts)?;
        if lasts { self.settle_anew(invoice, before, at) } else { Ok(()) }
    }

    /// Removes what is needed only while the outcome of a payment by the wallet is open.
    fn close_payment(
        &mut self,
        payment: u64,
        [old, new]: [TransactionState; 2],
        at: Timestamp,
    ) -> Result<(), WalletStoreError> {
        use TransactionState::{Cancelled, Contested, Offered, Unseen, Waiting};
        if new == Offered {
            return Ok(());
        }
        self.rows.remove::<Messages>(payment)?;
        self.rows.remove::<PostingUrls>(payment)?;
        match new {
            Unseen | Cancelled => Ok(()),
            // The owner has decided to cancel it although services have shown it.
            Waiting | Contested { .. } if !old.is_open() => Ok(()),
            _ => self.give_up_cancellation(payment, at),
        }
    }

    /// Gives up the cancellation of a payment, because another transaction has taken the coin.
    pub(crate) fn give_up_cancellation(
        &mut self,
        payment: u64,
        at: Timestamp,
    ) -> Result<(), WalletStoreError> {
        let cancellation = self.payment(payment)?.cancellation;
        if let Some(number) = cancellation
            && self.transaction(number)?.state == TransactionState::Offered
        {
            self.change_state(number, TransactionState::Refused, at)?;
        }
        Ok(())
    }

    /// The payment by the wallet with this number. The store is damaged if there is none.
    pub(crate) fn payment(&self, number: u64) -> Result<OutgoingRecord, WalletStoreError> {
        outgoing_record(&self.rows, number)
    }

    /// The payment by the wallet with this number. Refused if there is none.
    pub(crate) fn known_payment(&self, number: u64) -> Result<OutgoingRecord, WalletStoreError> {
        let record = self.rows.get::<Outgoing>(&number)?;
        Ok(record.ok_or(Refusal::UnknownPayment(number))?)
    }

    fn list_block(
        &mut self,
        number: u64,
        before: &TransactionRecord,
        after: &TransactionRecord,
    ) -> Result<(), WalletStoreError> {
        let [old, new] = [before, after].map(|record| record.state.block());
        if old == new {
            return Ok(());
        }
        if let Some(block) = old {
            self.rows.remove::<MinedAt>((block.height, number))?;
        }
        if let Some(block) = new {
            self.rows.put::<MinedAt>((block.height, number), &())?;
        }
        Ok(())
    }

    /// Sets how long a transaction is followed in its new state.
    fn follow_from(
        &mut self,
        number: u64,
        old: TransactionState,
        after: &TransactionRecord,
        at: Timestamp,
    ) -> Result<(), WalletStoreError> {
        let new = after.state;
        let is_followed_until_mined =
            |state: TransactionState| state.block().is_none() && !state.is_lost();
        if old == new {
            Ok(())
        } else if new.block().is_some() {
            // Services take a transaction again only with its ancestors.
            match after.word {
                Some(_) => self.rows.remove::<FollowedTransactions>(number).map(drop),
                None => self.unfollow(number),
            }
        } else if new.is_lost() {
            let until = FollowedUntil::Time(at.after(AFTERCARE));
            self.rows.put::<FollowedTransactions>(number, &until)
        } else if !is_followed_until_mined(old) {
            self.rows.put::<FollowedTransactions>(number, &FollowedUntil::Mined)
        } else {
            Ok(())
        }
    }

    /// Counts a receipt anew after the state of its maker has changed.
    fn recount_receipt(
        &mut self,
        key: ReceiptKey,
        receipt: &Receipt,
        before: &TransactionRecord,
        after: &TransactionRecord,
    ) -> Result<(), WalletStoreError> {
        let is_spent = self.is_spent(receipt)?;
        let old = self.holding(key, receipt, before, is_spent)?;
        self.list_spendable(key, receipt, (before, after))?;
        let new = self.holding(key, receipt, after, is_spent)?;
        self.move_holding(receipt.satoshis, old, new)
    }

    /// Counts a coin anew after the state of its spender has changed.
    fn recount_coin(
        &mut self,
        number: u64,
        key: ReceiptKey,
        before: &TransactionRecord,
        after: &TransactionRecord,
    ) -> Result<(), WalletStoreError> {
        let receipt = self.receipt(key)?;
        let (was_held, holds) = (receipt.spender == Some(number), after.holds_coins());
        if !was_held && receipt.spender.is_some() && (!holds || after.is_by_word()) {
            // Another transaction holds the coin, so this change does not matter.
            return Ok(());
        }
        let was_spent = match was_held {
            true => before.state.spends(),
            false => self.is_spent(&receipt)?,
        };
        let spender = match holds {
            true => Some((number, *after)),
            false if was_held => self.next_holder(number, key)?,
            false => None,
        };
        let is_spent = match spender {
            Some((_, record)) => record.state.spends(),
            None => after.state.spends(),
        };
        let spender = spender.map(|(number, _)| number);
        self.set_spender(key, receipt, spender, (was_spent, is_spent))
    }

    /// Sets the transaction that spends a receipt or has reserved it. `was_spent` and `is_spent`
    /// say whether it counted as spent before and counts as spent now.
    fn set_spender(
        &mut self,
        key: ReceiptKey,
        old: Receipt,
        spender: Option<u64>,
        (was_spent, is_spent): (bool, bool),
    ) -> Result<(), WalletStoreError> {
        let receipt = Receipt { spender, ..old };
        if receipt != old {
            self.rows.put::<Receipts>(key, &receipt)?;
        }
        let maker = self.transaction(key.maker)?;
        let before = self.holding(key, &old, &maker, was_spent)?;
        self.list_spendable(key, &receipt, (&maker, &maker))?;
        let after = self.holding(key, &receipt, &maker, is_spent)?;
        self.move_holding(receipt.satoshis, before, after)
    }

    /// How a receipt is held.
    fn holding(
        &self,
        key: ReceiptKey,
        receipt: &Receipt,
        maker: &TransactionRecord,
        is_spent: bool,
    ) -> Result<Option<Holding>, WalletStoreError> {
        let is_immature = is_listed_as_immature(&self.rows, key, maker)?;
        Ok(Holding::of(receipt, maker, (is_spent, is_immature)))
    }

    fn move_holding(
        &mut self,
        satoshis: u64,
        old: Option<Holding>,
        new: Option<Holding>,
    ) -> Result<(), WalletStoreError> {
        let wrong = || Damaged("the balance is not the sum of the coins".to_owned());
        self.figures.holdings =
            self.figures.holdings.moved(satoshis, old, new).ok_or_else(wrong)?;
        Ok(())
    }

    /// Adds a receipt to the list of spendable ones or removes it, after the state of its maker has
    /// changed.
    fn list_spendable(
        &mut self,
        key: ReceiptKey,
        receipt: &Receipt,
        (before, after): (&TransactionRecord, &TransactionRecord),
    ) -> Result<(), WalletStoreError> {
        let [old, new] = [before, after].map(|maker| place(key, receipt, maker));
        if old != new {
            self.rows.remove::<Spendable>(old)?;
        }
        let is_free = receipt.spender.is_none() && after.can_be_spent();
        if is_free && !self.is_immature(key, after)? {
            self.rows.put::<Spendable>(new, &())
        } else {
            self.rows.remove::<Spendable>(new).map(drop)
        }
    }

    /// Whether a receipt comes from a coinbase transaction that is too new to be spent. Such a
    /// receipt is listed, so that it is found once the chain is long enough.
    fn is_immature(
        &mut self,
        key: ReceiptKey,
        maker: &TransactionRecord,
    ) -> Result<bool, WalletStoreError> {
        let Some(mature_at) = mature_at(maker) else { return Ok(false) };
        let tip = self.rows.get::<FollowedTip>(&())?;
        if tip.is_some_and(|tip| tip.height >= mature_at) {
            return Ok(false);
        }
        self.rows.put::<Immature>((mature_at, key), &())?;
        Ok(true)
    }

    /// Reserves a coin for a transaction, or frees it.
    pub(crate) fn set_holder(
        &mut self,
        key: ReceiptKey,
        holder: Option<u64>,
    ) -> Result<(), WalletStoreError> {
        let receipt = self.receipt(key)?;
        self.set_spender(key, receipt, holder, (false, false))
    }

    /// A receipt of a coinbase transaction can be spent from now on.
    pub(crate) fn mature(&mut self, height: u32, key: ReceiptKey) -> Result<(), WalletStoreError> {
        let (receipt, maker) = (self.receipt(key)?, self.transaction(key.maker)?);
        let is_spent = self.is_spent(&receipt)?;
        let old = self.holding(key, &receipt, &maker, is_spent)?;
        self.rows.remove::<Immature>((height, key))?;
        self.list_spendable(key, &receipt, (&maker, &maker))?;
        let new = self.holding(key, &receipt, &maker, is_spent)?;
        self.move_holding(receipt.satoshis, old, new)
    }

    /// Whether the holder of a receipt has spent it. A reservation may not have a transaction yet.
    fn is_spent(&self, receipt: &Receipt) -> Result<bool, WalletStoreError> {
        let Some(holder) = receipt.spender else { return Ok(false) };
        let record = self.rows.get::<Transactions>(&holder)?;
        Ok(record.is_some_and(|record| record.state.spends()))
    }

    /// The invoices that the keys belong to.
    pub(crate) fn invoices_of(
        &self,
        keys: impl Iterator<Item = KeyPath>,
    ) -> Result<BTreeSet<u64>, WalletStoreError> {
        let mut invoices = BTreeSet::new();
        for key in keys {
            invoices.extend(self.invoice_of(key)?);
        }
        Ok(invoices)
    }

    /// Stores the receipts of a new transaction. They do not count yet.
    pub(crate) fn add_receipts(
        &mut self,
        maker: u64,
        receipts: &[(ReceiptKey, Receipt)],
    ) -> Result<(), WalletStoreError> {
        for (invoice, paid) in paid_by(&self.rows, &self.figures, receipts)? {
            self.rows.add::<Incoming>((invoice, maker), &paid)?;
        }
        receipts.iter().try_for_each(|(key, receipt)| self.rows.add::<Receipts>(*key, receipt))
    }

    /// Records that a transaction spends a coin or will spend it.
    pub(crate) fn add_spend(
        &mut self,
        number: u64,
        key: ReceiptKey,
    ) -> Result<(), WalletStoreError> {
        self.rows.put::<Spends>((number, key), &())
    }
}

/// The height of the tip from which on the outputs of a coinbase transaction can be spent in the
/// next block.
fn mature_at(maker: &TransactionRecord) -> Option<u32> {
    let block = maker.state.block().filter(|_| maker.purpose == Purpose::Coinbase)?;
    Some(block.height.saturating_add(COINBASE_MATURITY - 1))
}

/// Whether a receipt is listed as one of a coinbase transaction that is too new.
pub(crate) fn is_listed_as_immature(
    rows: &dyn Engine,
    key: ReceiptKey,
    maker: &TransactionRecord,
) -> Result<bool, WalletStoreError> {
    match mature_at(maker) {
        Some(height) => Ok(rows.get::<Immature>(&(height, key))?.is_some()),
        None => Ok(false),
    }
}

/// The transaction with this number. The store is damaged if there is none.
pub(crate) fn transaction(
    rows: &dyn Engine,
    number: u64,
) -> Result<TransactionRecord, WalletStoreError> {
    let record = rows.get::<Transactions>(&number)?;
    Ok(record.ok_or_else(|| Damaged::missing("a transaction"))?)
}

pub(crate) fn outgoing_record(
    rows: &dyn Engine,
    number: u64,
) -> Result<OutgoingRecord, WalletStoreError> {
    let record = rows.get::<Outgoing>(&number)?;
    Ok(record.ok_or_else(|| Damaged::missing("a payment"))?)
}

pub(crate) fn receipt(rows: &dyn Engine, key: ReceiptKey) -> Result<Receipt, WalletStoreError> {
    let receipt = rows.get::<Receipts>(&key)?;
    Ok(receipt.ok_or_else(|| Damaged::missing("a receipt"))?)
}

/// What the receipts of a transaction pay to each invoice.
pub(crate) fn paid_by(
    rows: &dyn Engine,
    figures: &Figures,
    receipts: &[(ReceiptKey, Receipt)],
) -> Result<BTreeMap<u64, Paid>, WalletStoreError> {
    let invoices = try_all(receipts, |(_, receipt)| invoice_of(rows, figures, receipt.key))?;
    let mut all = BTreeMap::<u64, Paid>::new();
    for (invoice, (key, receipt)) in invoices.into_iter().zip(receipts) {
        if let Some(invoice) = invoice {
            let paid = all.entry(invoice).or_insert(Paid { first: key.vout, satoshis: 0 });
            paid.first = paid.first.min(key.vout);
            paid.satoshis = paid.satoshis.saturating_add(receipt.satoshis);
        }
    }
    Ok(all)
}

/// The receipts that a transaction spends or would have spent.
pub(crate) fn spent_by(
    rows: &dyn Engine,
    number: u64,
) -> Result<Vec<ReceiptKey>, WalletStoreError> {
    let first = ReceiptKey { maker: 0, vout: 0 };
    let last = ReceiptKey { maker: u64::MAX, vout: u32::MAX };
    let spends = rows.range::<Spends>((number, first)..=(number, last))?;
    Ok(spends.into_iter().map(|((_, key), ())| key).collect())
}
