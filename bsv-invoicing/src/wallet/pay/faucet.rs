use bsv_network::{Mempool, NetworkSource, NodeError, NodeRpc, OutputState, TransactionPlace};
use bsv_tx::{Network, Transaction, Txid};

use super::asked::terms_outputs;
use super::beef::Archive;
use super::draft::payment_url;
use super::payee::Payee;
use crate::dpp::{Acknowledgement, AnswerError};
use crate::error::Error;
use crate::wallet::outbound::OwnListeners;
use crate::wallet::sources::away;

/// The most that a faucet pays at once (wallet specification, Limits), in satoshis.
const FAUCET_LIMIT: u64 = 100_000;

/// How often the payment is tried with other coins. A node locks coins only after it has chosen
/// them, so two callers at the same time may get the same coins.
const ATTEMPTS: u32 = 5;

/// Pays up to 100,000 satoshis to a payment URL from the wallet of a regtest node, like the faucet
/// of the test network. Returns the transaction. Of this process's `own` listeners, the payee may
/// be only the one for payers.
pub async fn faucet(node: &NodeRpc, url: &str, own: OwnListeners) -> Result<Txid, Error> {
    let url = payment_url(url)?;
    let payee = Payee::new(own);
    let (terms, posting_url) = payee.terms(&url, Network::Regtest).await?;
    let asked = terms.terms.satoshis();
    if asked > FAUCET_LIMIT {
        return Err(Error::OverLimit { asked, limit: FAUCET_LIMIT });
    }
    let outputs = terms_outputs(&terms);
    let archive = Archive { wallet: None, source: &NetworkSource::node(node.clone()) };
    let mut attempt = 1;
    loop {
        let transaction = node.wallet_transaction(&outputs).await.map_err(empty_or_away)?;
        let ancestry = archive.for_payee(&terms.terms, &transaction).await?;
        let message = terms.payment(&transaction, ancestry.as_ref(), "from the faucet");
        let (status, body) = payee.post(&url, &posting_url, terms.dialect(), message).await?;
        let txid = transaction.txid();
        match Acknowledgement::from_answer(terms.dialect(), status, &body, &txid) {
            Ok(_) => return Ok(txid),
            Err(AnswerError::Refused(reason)) => {
                node.unlock_coins(&transaction).await.map_err(away)?;
                let others_were_first = has_lost_a_coin(node, &transaction).await.map_err(away)?;
                if !others_were_first || attempt == ATTEMPTS {
                    let reason = format!("the payee refuses the payment: {reason}");
                    return Err(Error::PayeeRefuses(reason));
                }
                attempt += 1;
            }
            Err(error) => return Err(Error::OutcomeUnknown(error.to_string())),
        }
    }
}

/// The error of a node whose wallet makes no transaction.
fn empty_or_away(error: NodeError) -> Error {
    match error {
        NodeError::Rejected { message, .. } if message.contains("Insufficient funds") => {
            Error::EmptyFaucet(message)
        }
        error => away(error),
    }
}

/// Whether another transaction has spent a coin of this one.
async fn has_lost_a_coin(node: &NodeRpc, transaction: &Transaction) -> Result<bool, NodeError> {
    let coins: Vec<_> = transaction.inputs.iter().map(|input| input.previous_output).collect();
    let states = node.outputs(&coins, Mempool::Include).await?;
    let is_lost = |state: &OutputState| !matches!(state, OutputState::Unspent { .. });
    // A payee may refuse a transaction that it has broadcast.
    Ok(states.iter().any(is_lost)
        && node.transaction_place(&transaction.txid()).await? == TransactionPlace::Nowhere)
}
