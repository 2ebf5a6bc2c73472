//! Queries of payments by the wallet.

use crate::error::Error;
use crate::ledger::Refusal;
use crate::ledger::queries::{CountOpenPayments, GetOutgoing, GetOutgoingBefore};
use crate::model::outgoing::{OutgoingPayment, Posting};
use crate::store::WalletStore;
use crate::wallet::Wallet;

impl Wallet {
    /// A payment by the wallet.
    pub async fn outgoing_payment(&self, number: u64) -> Result<OutgoingPayment, Error> {
        Ok(self.outgoing_with_posting(number).await?.0)
    }

    /// Up to `limit` payments by the wallet before the one of this number, the newest first.
    pub async fn outgoing_payments(
        &self,
        before: u64,
        limit: usize,
    ) -> Result<Vec<OutgoingPayment>, Error> {
        Ok(self.store.get(GetOutgoingBefore(before, limit)).await?)
    }

    pub(super) async fn outgoing_with_posting(
        &self,
        number: u64,
    ) -> Result<(OutgoingPayment, Posting), Error> {
        let payment = self.store.get(GetOutgoing(number)).await?;
        Ok(payment.ok_or(Refusal::UnknownPayment(number))?)
    }

    /// How many payments by the wallet wait for their payee, or for the network to show them.
    pub async fn count_open_payments(&self) -> Result<u64, Error> {
        Ok(self.store.list(CountOpenPayments).await?)
    }
}
