//! The payee of a payment by the wallet agrees to it.

use crate::ledger::rows::{Outgoing, WalletStoreError};
use crate::ledger::{Books, Command};
use crate::model::outgoing::{OutgoingPayment, PeerChannel};
use crate::model::time::Timestamp;
use crate::model::transaction::TransactionState;

/// The payee has agreed to a payment by the wallet. Its coins stay reserved until the network shows
/// it.
#[derive(Clone, Debug)]
pub struct Accept {
    /// The number of the payment.
    pub payment: u64,
    /// What the payee says.
    pub memo: String,
    /// Where the payee offers the proof.
    pub channel: Option<PeerChannel>,
    /// The time.
    pub now: Timestamp,
}

impl Command for Accept {
    type Answer = OutgoingPayment;

    fn run(&self, books: &mut Books<'_>) -> Result<OutgoingPayment, WalletStoreError> {
        let mut payment = books.known_payment(self.payment)?;
        let number = payment.transaction;
        payment.memo.clone_from(&self.memo);
        payment.channel.clone_from(&self.channel);
        books.rows.put::<Outgoing>(self.payment, &payment)?;
        if books.transaction(number)?.state == TransactionState::Offered {
            let at = books.next_event_at(self.now);
            books.change_state(number, TransactionState::Unseen, at)?;
        }
        books.outgoing_payment(self.payment)
    }
}
