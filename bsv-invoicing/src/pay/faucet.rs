use bsv_network::NodeRpc;
use bsv_tx::{Network, Txid};

use super::{Payee, payment_url, terms_outputs};
use crate::dpp::{Acknowledgement, AnswerError};
use crate::error::Error;
use crate::receive::away;

/// The most that a faucet pays at once (wallet specification, Limits), in satoshis.
const FAUCET_LIMIT: u64 = 100_000;

/// Pays to a payment URL out of the wallet of a regtest node, at most 100,000 satoshis, as the faucet of
/// the test network does. Answers the transaction.
pub async fn faucet(node: &NodeRpc, url: &str) -> Result<Txid, Error> {
    let url = payment_url(url)?;
    let payee = Payee::new();
    let terms = payee.terms(&url, Network::Regtest).await?;
    let asked = terms.terms.satoshis();
    if asked > FAUCET_LIMIT {
        return Err(Error::OverLimit { asked, limit: FAUCET_LIMIT });
    }
    let transaction = node.wallet_transaction(&terms_outputs(&terms)).await.map_err(away)?;
    let message = terms.payment(&transaction, "from the faucet");
    let (status, body) = payee.post(&url, terms.dialect(), message).await?;
    let txid = transaction.txid();
    match Acknowledgement::from_answer(terms.dialect(), status, &body, &txid) {
        Ok(_) => Ok(txid),
        Err(AnswerError::Refused(reason)) => {
            node.unlock_coins(&transaction).await.map_err(away)?;
            Err(Error::PayeeRefuses(format!("the payee refuses the payment: {reason}")))
        }
        Err(error) => Err(Error::OutcomeUnknown(error.to_string())),
    }
}
