//! Earlier payments for the same purpose that failed. Their bytes have left the wallet, so that
//! they may still be mined. A new payment spends a coin that keeps it and the earlier ones from
//! being mined together.

use std::collections::{BTreeSet, VecDeque};

use crate::ledger::attempts::{MAX_ATTEMPTS, attempts};
use crate::ledger::coin_choice::place;
use crate::ledger::rows::{
    Damaged, RawTransactions, Spendable, Transactions, WalletStoreError, try_all,
};
use crate::ledger::{Books, Refusal};
use crate::model::outgoing::{OutgoingPurpose, OutgoingRecord};
use crate::model::receipt::ReceiptKey;
use crate::model::transaction::{RawBytes, TransactionState};

/// How many descendants of a coin's spender are searched for a free coin.
const MAX_DESCENDANTS: usize = 100;
/// How many lost ancestors of an attempt are searched as well.
const MAX_ANCESTORS: usize = 100;

impl Books<'_> {
    /// Coins that a new payment for this purpose must spend, so that none of the failed earlier
    /// ones can be mined as well. Refunds that did not fail do not matter: an invoice can be
    /// refunded in parts.
    pub(crate) fn coins_of_earlier_attempts(
        &self,
        purpose: &OutgoingPurpose,
    ) -> Result<BTreeSet<ReceiptKey>, WalletStoreError> {
        let mut coins = BTreeSet::new();
        for (count, (number, payment)) in (1..).zip(attempts(&self.rows, purpose)?) {
            if count == MAX_ATTEMPTS {
                return Err(Refusal::EarlierAttempt(number).into());
            }
            let state = self.transaction(payment.transaction)?.state;
            let rivals = match state.is_lost() {
                true => self.rivals_of(payment.transaction)?,
                false if payment.is_refused && state.is_open() => {
                    Rivals::Coins(self.outputs_of_cancellation(&payment)?)
                }
                false => continue,
            };
            match rivals {
                Rivals::Void => {}
                Rivals::Coins(free) if free.iter().any(|key| coins.contains(key)) => {}
                Rivals::Coins(free) => {
                    let first = free.first().ok_or(Refusal::EarlierAttempt(number))?;
                    coins.insert(*first);
                }
            }
        }
        Ok(coins)
    }

    /// The coins that keep a transaction from being mined if a new one spends them. A coin that
    /// keeps a lost ancestor from being mined serves as well, because the network may still show
    /// both.
    fn rivals_of(&self, number: u64) -> Result<Rivals, WalletStoreError> {
        let mut free = Vec::new();
        let mut queue = VecDeque::from([number]);
        let mut looked_at = BTreeSet::new();
        while let Some(number) = queue.pop_front().filter(|_| looked_at.len() < MAX_ANCESTORS) {
            if !looked_at.insert(number) {
                continue;
            }
            for key in self.in_order(number)? {
                match self.receipt(key)?.spender {
                    None if self.is_free(key)? => free.push(key),
                    None => {}
                    Some(holder) if holder == number => {}
                    Some(holder) if self.is_deeply_mined(holder)? => return Ok(Rivals::Void),
                    Some(holder) => free.extend(self.free_descendants(holder)?),
                }
                let maker = self.transaction(key.maker)?.state;
                if maker == TransactionState::Displaced && self.spent_by(key.maker)?.is_empty() {
                    // A stranger's transaction is displaced only by one in the chain.
                    return Ok(Rivals::Void);
                }
                if maker.is_lost() {
                    queue.push_back(key.maker);
                }
            }
        }
        Ok(Rivals::Coins(free))
    }

    /// What the cancellation of a payment brings back, if the network tells of the cancellation. What
    /// spends it can be mined only if the payment is not.
    fn outputs_of_cancellation(
        &self,
        payment: &OutgoingRecord,
    ) -> Result<Vec<ReceiptKey>, WalletStoreError> {
        let Some(cancellation) = payment.cancellation else { return Ok(Vec::new()) };
        if !self.transaction(cancellation)?.state.spends() {
            return Ok(Vec::new());
        }
        let made = self.made_by(cancellation)?.into_iter();
        Ok(made.filter(|(_, it)| it.spender.is_none()).map(|(key, _)| key).collect())
    }

    /// Whether a payment can spend a coin. A reward that is not mature cannot be spent.
    fn is_free(&self, key: ReceiptKey) -> Result<bool, WalletStoreError> {
        let place = place(key, &self.receipt(key)?, &self.transaction(key.maker)?);
        Ok(self.rows.get::<Spendable>(&place)?.is_some())
    }

    fn is_deeply_mined(&self, number: u64) -> Result<bool, WalletStoreError> {
        let record = self.rows.get::<Transactions>(&number)?;
        match record.and_then(|it| it.state.block()) {
            Some(block) => self.is_deep(block.height),
            None => Ok(false),
        }
    }

    /// Coins that can be spent only if the transaction is mined.
    fn free_descendants(&self, number: u64) -> Result<Vec<ReceiptKey>, WalletStoreError> {
        let mut free = Vec::new();
        let mut queue = VecDeque::from([number]);
        let mut looked_at = 0;
        while let Some(number) = queue.pop_front().filter(|_| looked_at < MAX_DESCENDANTS) {
            looked_at += 1;
            for (key, receipt) in self.made_by(number)? {
                match receipt.spender {
                    None if self.is_free(key)? => free.push(key),
                    None => {}
                    Some(holder) => queue.push_back(holder),
                }
            }
        }
        Ok(free)
    }

    /// The receipts that a transaction spends, in the order of its inputs if its bytes are kept.
    fn in_order(&self, number: u64) -> Result<Vec<ReceiptKey>, WalletStoreError> {
        if self.transaction(number)?.raw == RawBytes::Dropped {
            return self.spent_by(number);
        }
        let bytes = self.rows.get::<RawTransactions>(&number)?;
        let bytes = bytes.ok_or_else(|| Damaged::missing("a transaction"))?;
        let transaction = bsv_tx::Transaction::from_bytes(&bytes)
            .map_err(|error| Damaged(format!("a transaction: {error}")))?;
        let keys =
            try_all(self.spent_by(number)?, |key| self.coin(key).map(|coin| (coin.outpoint, key)))?;
        let inputs = transaction.inputs.iter().map(|input| input.previous_output);
        let key_of = |spent| keys.iter().find(|(outpoint, _)| *outpoint == spent);
        Ok(inputs.filter_map(|spent| key_of(spent).map(|(_, key)| *key)).collect())
    }
}

/// What keeps a transaction from being mined.
enum Rivals {
    /// A transaction that is already deep enough in the chain.
    Void,
    /// Any transaction that spends one of these coins.
    Coins(Vec<ReceiptKey>),
}
