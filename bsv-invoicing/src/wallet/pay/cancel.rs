//! Cancelling a payment that the network has not shown: another transaction, the cancellation,
//! sends one of its coins back to the wallet.

use std::sync::Arc;

use bsv_network::NetworkSource;

use crate::error::Error;
use crate::ledger::queries::GetOutgoingTransaction;
use crate::ledger::{PrepareCancellation, PreparedCancellation, RecordCancellation, Refusal};
use crate::model::coin::Spending;
use crate::model::outgoing::{OutgoingPayment, OutgoingState};
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::sources::away;

impl Wallet {
    /// Cancels a payment that the network has not shown, by spending one of its coins in another
    /// transaction. Returns the payment. It is cancelled, or settled if the network has it. One that only
    /// services have shown can be cancelled, too, once they no longer do: then a block decides.
    ///
    /// The cancellation goes on even if the caller stops waiting.
    pub async fn cancel_payment(self: &Arc<Self>, number: u64) -> Result<OutgoingPayment, Error> {
        let payment = self.outgoing_payment(number).await?;
        self.alone(&payment.place(), move |wallet| async move {
            let payment = wallet.outgoing_payment(number).await?;
            let is_final = wallet.sources()?.operating.excludes_rivals();
            match payment.state.can_be_cancelled(is_final) {
                true => wallet.cancel_alone(number).await,
                false => Err(Refusal::NotOpen(number, payment.state).into()),
            }
        })
        .await
    }

    /// Sends the cancellation of a payment again, unless the payment is over.
    pub(crate) async fn resume_cancellation(self: &Arc<Self>, number: u64) -> Result<(), Error> {
        let payment = self.outgoing_payment(number).await?;
        match payment.state {
            OutgoingState::Waiting | OutgoingState::Cancelling => {
                self.alone_if_free(&payment.place(), self.cancel_alone(number)).await.map(drop)
            }
            _ => Ok(()),
        }
    }

    pub(super) async fn cancel_alone(&self, number: u64) -> Result<OutgoingPayment, Error> {
        let source = &self.sources()?.operating;
        let payment = self.outgoing_payment(number).await?;
        let (transaction, _) = self.store.get(GetOutgoingTransaction(number)).await?;
        if self.look(source, transaction, &payment.txid).await? {
            return self.outgoing_payment(number).await;
        }
        let cancellation = self.cancellation(source, number).await?;
        let rival = self.transaction(cancellation).await?;
        if let Some(reason) = self.show_and_note(source, cancellation, &rival).await?
            && !self.look(source, transaction, &payment.txid).await?
        {
            return Err(Error::RefusedByNetwork(reason));
        }
        self.outgoing_payment(number).await
    }

    /// The number of the transaction that cancels a payment. Makes it if there is none.
    async fn cancellation(&self, source: &NetworkSource, payment: u64) -> Result<u64, Error> {
        let floor = source.policy().await.map_err(away)?.mining_fee_rate;
        let fee_rate = self.settings.fee_rate.max(floor);
        let spending = Spending { satoshis: 0, output_bytes: 0, fee_rate };
        let selection = match self.store.execute(PrepareCancellation { payment, spending }).await? {
            PreparedCancellation::Before(number) => return Ok(number),
            PreparedCancellation::New(selection) => selection,
        };
        let transaction = self.sign(&[], &selection)?;
        let change = selection.change.expect("what is taken back is the change");
        let record = RecordCancellation { payment, transaction, change, now: self.now() };
        Ok(self.store.execute(record).await?)
    }
}
