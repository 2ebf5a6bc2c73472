use super::asked::Asked;
use super::draft::{amount_of_link, payment_url};
use crate::error::Error;
use crate::model::coin::Spending;
use crate::model::outgoing::{OutgoingPayment, OutgoingPurpose};
use crate::model::time::Timestamp;
use crate::wallet::Wallet;

/// What paying to a payment URL would do.
#[derive(Clone, Debug)]
pub enum PaymentPreview {
    /// It would continue this earlier payment.
    Made(Box<OutgoingPayment>),
    /// It would make a new payment.
    Asked {
        /// The name that the payee gives itself, or else its host.
        payee: String,
        /// What the payment is for, in the payee's words.
        memo: String,
        /// What the payee asks for, in satoshis.
        satoshis: u64,
        /// The fee, in satoshis.
        fee: u64,
        /// The fee rate, in satoshis per 1000 bytes.
        fee_rate: u64,
        /// What the link says that the payee asks for, in satoshis, if a link with an amount is
        /// paid.
        link_satoshis: Option<u64>,
        /// Until when the terms are valid.
        expires_at: Timestamp,
    },
}

impl Wallet {
    /// Finds out what [`pay`](Self::pay) would do. This asks the payee for its terms, but reserves
    /// no coins.
    pub async fn preview_payment(&self, pay_to_url: &str) -> Result<PaymentPreview, Error> {
        let url = payment_url(pay_to_url)?;
        self.check_caught_up().await?;
        let purpose = OutgoingPurpose::Url(url.to_string());
        if let Some(payment) = self.payment_before(purpose, None).await? {
            return Ok(PaymentPreview::Made(Box::new(payment)));
        }
        let Asked { plan, terms, expires_at, .. } = self.ask(&url, None).await?;
        let fee = self.estimate(&plan).await?;
        let host = url.host_str().unwrap_or_default();
        let payee = match terms.terms.merchant.name.as_str() {
            "" => host.to_owned(),
            name => format!("{name} ({host})"),
        };
        let Spending { satoshis, fee_rate, .. } = plan.spending;
        Ok(PaymentPreview::Asked {
            payee,
            memo: terms.terms.memo,
            satoshis,
            fee,
            fee_rate,
            link_satoshis: amount_of_link(pay_to_url),
            expires_at,
        })
    }
}
