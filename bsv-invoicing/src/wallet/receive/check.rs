//! What is checked of a payment before it is offered to the network.

use std::sync::atomic::Ordering;

use bsv_network::{Mempool, NodeRpc, OutputState, TransactionPlace};
use bsv_tx::Transaction;

use super::ancestors::{Demand, Payment};
use crate::dpp::FeeRate;
use crate::error::Error;
use crate::ledger::Offer;
use crate::model::invoice::{Invoice, MAX_SATOSHIS};
use crate::model::receipt::NewReceipt;
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::node::away;

impl<S: WalletStore> Wallet<S> {
    /// The payment that a transaction is, if it can be offered to the network. What the network has already
    /// is noted, whatever it pays and whenever it comes.
    pub(super) async fn offer_of(
        &self,
        invoice: &Invoice,
        transaction: &Transaction,
        refund_to: Option<String>,
        is_other_offered: bool,
    ) -> Result<Offer, Error> {
        let receipts = self.receipts(invoice, transaction)?;
        let checked = match is_other_offered {
            true => Err(Error::InFlight(invoice.id.to_string())),
            false => self.check(invoice, transaction, &receipts).await,
        };
        let is_known = match checked {
            Ok(()) => false,
            Err(error @ (Error::NetworkAway(_) | Error::Store(_))) => return Err(error),
            Err(refusal) if receipts.is_empty() => return Err(refusal),
            Err(refusal) => {
                match self.node()?.receiving.transaction_place(&transaction.txid()).await {
                    Ok(TransactionPlace::Mempool | TransactionPlace::Block(_)) => true,
                    Ok(TransactionPlace::Nowhere) => return Err(refusal),
                    // Who is told so asks again.
                    Err(_) if matches!(refusal, Error::InFlight(_)) => return Err(refusal),
                    Err(error) => return Err(away(error)),
                }
            }
        };
        let (now, doubted_since) = (self.now(), self.doubted_since());
        let (invoice, transaction) = (invoice.number, transaction.into());
        Ok(Offer { invoice, transaction, receipts, refund_to, is_known, now, doubted_since })
    }

    async fn check(
        &self,
        invoice: &Invoice,
        transaction: &Transaction,
        receipts: &[NewReceipt],
    ) -> Result<(), Error> {
        if invoice.in_flight {
            // It may have been sent already: nothing that is found now could take that back.
            return self.check_outputs(invoice, receipts).await;
        }
        self.check_payable(invoice)?;
        self.check_outputs(invoice, receipts).await?;
        let node = &self.node()?.receiving;
        check_final(node, transaction).await?;
        self.check_inputs(node, transaction).await
    }

    /// The outputs that pay the invoice's script.
    fn receipts(
        &self,
        invoice: &Invoice,
        transaction: &Transaction,
    ) -> Result<Vec<NewReceipt>, Error> {
        let (script, key) = self.keys.destination(invoice.number)?;
        let paying = (0_u32..)
            .zip(&transaction.outputs)
            .filter(|(_, output)| output.locking_script == script);
        Ok(paying
            .map(|(vout, output)| NewReceipt { vout, satoshis: output.satoshis, key })
            .collect())
    }

    /// Fails if the outputs pay less than what is due.
    async fn check_outputs(&self, invoice: &Invoice, receipts: &[NewReceipt]) -> Result<(), Error> {
        let due = self.asked_for(invoice).await?;
        let paid = receipts.iter().fold(0_u64, |sum, it| sum.saturating_add(it.satoshis));
        if paid >= due && !receipts.is_empty() {
            return Ok(());
        }
        Err(Error::WrongOutputs(match receipts {
            [] => {
                let (script, _) = self.keys.destination(invoice.number)?;
                format!("no output pays {due} satoshis to the script {}", script.to_hex())
            }
            [only] => format!(
                "output {} pays {paid} satoshis to the invoice, which asks for {due}",
                only.vout
            ),
            several => format!(
                "{} outputs pay {paid} satoshis together to the invoice, which asks for {due}",
                several.len()
            ),
        }))
    }

    /// Looks what a transaction spends, and whether its fee is sufficient.
    async fn check_inputs(&self, node: &NodeRpc, transaction: &Transaction) -> Result<(), Error> {
        let outpoints: Vec<_> = transaction.inputs.iter().map(|it| it.previous_output).collect();
        let states = node.outputs(&outpoints, Mempool::Include).await.map_err(away)?;
        let mut inputs = 0_u64;
        let mut unconfirmed = Vec::new();
        for (index, (state, outpoint)) in states.into_iter().zip(outpoints).enumerate() {
            match state {
                OutputState::Unspent { satoshis, confirmations } => {
                    inputs = inputs.saturating_add(satoshis);
                    if confirmations == 0 {
                        unconfirmed.push(outpoint.txid);
                    }
                }
                OutputState::Spent { .. } | OutputState::Missing => {
                    return Err(Error::UnknownInput { index, outpoint });
                }
            }
        }
        let outputs: u64 = transaction.outputs.iter().map(|output| output.satoshis).sum();
        let fee = inputs.checked_sub(outputs).ok_or_else(|| {
            Error::BadTransaction("its outputs are worth more than its inputs".to_owned())
        })?;
        let size = transaction.to_bytes().len() as u64;
        let payment = Payment { fee, size, parents: unconfirmed };
        payment.check(node, self.demand()).await
    }

    /// What payments have to pay the miners.
    pub(crate) fn demand(&self) -> Demand {
        let rate = FeeRate { satoshis: self.quoted_fee_rate(), bytes: 1000 };
        Demand { rate, floor: self.fee_floor.load(Ordering::Relaxed) }
    }
}

/// Fails unless the next block may hold a transaction: one that is time-locked can be replaced until then,
/// and nodes do not even show it.
async fn check_final(node: &NodeRpc, transaction: &Transaction) -> Result<(), Error> {
    // Most need no look at the tip.
    if transaction.is_final_at(0, 0) {
        return Ok(());
    }
    let tip = node.tip().await.map_err(away)?;
    match transaction.is_final_at(tip.height.saturating_add(1), tip.median_time) {
        true => Ok(()),
        false => Err(Error::NotFinal { lock_time: transaction.lock_time }),
    }
}

/// Reads a transaction that could pay something.
pub(super) fn read_transaction(bytes: &[u8]) -> Result<Transaction, Error> {
    let bad = |reason: &str| Error::BadTransaction(reason.to_owned());
    let transaction =
        Transaction::from_bytes(bytes).map_err(|error| Error::BadTransaction(error.to_string()))?;
    if transaction.inputs.is_empty() {
        return Err(bad("it has no inputs"));
    }
    if transaction.outputs.is_empty() {
        return Err(bad("it has no outputs"));
    }
    let mut spent: Vec<_> = transaction.inputs.iter().map(|input| input.previous_output).collect();
    spent.sort_unstable();
    if spent.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(bad("it spends an output twice"));
    }
    let amounts = transaction.outputs.iter().map(|output| output.satoshis);
    let total = amounts.fold(0_u64, u64::saturating_add);
    if total > MAX_SATOSHIS {
        return Err(bad("its outputs are worth more than there is"));
    }
    Ok(transaction)
}
