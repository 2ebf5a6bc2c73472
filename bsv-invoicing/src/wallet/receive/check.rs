//! The checks of a payment before it is offered to the network.

use std::sync::atomic::Ordering;

use bsv_network::{NetworkSource, Place};
use bsv_tx::{FormedTransaction, Transaction, TransactionForm, Txid};

use super::ancestors::Demand;
use super::unsent::Unsent;
use crate::dpp::FeeRate;
use crate::error::Error;
use crate::ledger::Offer;
use crate::ledger::queries::PaymentStanding;
use crate::model::invoice::{Invoice, MAX_SATOSHIS};
use crate::model::receipt::NewReceipt;
use crate::model::settlement::Received;
use crate::wallet::Wallet;
use crate::wallet::sources::away;

/// A payment that was checked.
#[derive(Default)]
pub(super) struct Checked {
    /// What is offered before it: its encoded ancestors, parents before their children. With services, what
    /// its payer has sent, if that was more than the transaction.
    pub(super) ancestors: Vec<u8>,
    /// Whether it is certain that all coins that it spends exist, and that its signatures are theirs.
    pub(super) are_coins_known: bool,
}

impl Wallet {
    /// The command for a payment with this transaction, if it can be offered to the network. A
    /// payment that the network already has is recorded, whatever it pays and whenever it comes.
    ///
    /// `in_flight` is the payment of the invoice that is being offered to the network.
    pub(super) async fn offer_of(
        &self,
        standing: &PaymentStanding,
        posted: &FormedTransaction,
        refund_to: Option<&str>,
        in_flight: Option<Txid>,
    ) -> Result<Offer, Error> {
        let transaction = posted.transaction();
        let receipts = self.receipts(&standing.invoice, transaction)?;
        let checked = match self.check(standing, posted, &receipts, in_flight).await {
            Ok(checked) => checked,
            Err(error @ (Error::NetworkAway(_) | Error::Store(_))) => return Err(error),
            Err(refusal) if receipts.is_empty() => return Err(refusal),
            Err(_) if self.payers_proof(posted).await?.is_some() => None,
            Err(refusal) => {
                match self.sources()?.receiving.place(&transaction.txid()).await {
                    Ok(Place::Unmined | Place::Mined(_)) => None,
                    Ok(Place::Nowhere | Place::Disputed) => {
                        return Err(refusal);
                    }
                    // The payer asks again after this refusal.
                    Err(_) if matches!(refusal, Error::InFlight(_)) => return Err(refusal),
                    Err(error) => return Err(away(error)),
                }
            }
        };
        let source = &self.sources()?.receiving;
        let is_known = checked.is_none();
        let Checked { ancestors, are_coins_known } = checked.unwrap_or_else(|| Checked {
            ancestors: match posted {
                FormedTransaction::Beef(_) if source.takes_extended() => posted.to_bytes(),
                _ => Vec::new(),
            },
            are_coins_known: false,
        });
        // Anybody can send what the network has, and have refunds sent elsewhere. A node would have said so.
        let is_first = is_known
            || refund_to.is_none()
            || !source.takes_extended()
            || matches!(source.place(&transaction.txid()).await, Ok(Place::Nowhere));
        Ok(Offer {
            invoice: standing.invoice.number,
            transaction: transaction.into(),
            is_known,
            may_have_rivals: !source.excludes_rivals(),
            are_coins_known,
            ancestors,
            receipts,
            refund_to: refund_to.filter(|_| is_first).map(str::to_owned),
            claim: self.next_claim(),
            now: self.now(),
            doubted_since: self.doubted_since(),
        })
    }

    /// Checks a payment as far as that is possible before it is offered to the network. `None` if the
    /// network already has it.
    async fn check(
        &self,
        PaymentStanding { invoice, received, .. }: &PaymentStanding,
        posted: &FormedTransaction,
        receipts: &[NewReceipt],
        in_flight: Option<Txid>,
    ) -> Result<Option<Checked>, Error> {
        let transaction = posted.transaction();
        match in_flight {
            None => self.check_payable(invoice)?,
            // It may already have been sent, and no check can take that back.
            Some(same) if same == transaction.txid() => {}
            Some(_) => return Err(Error::InFlight(invoice.id.to_string())),
        }
        self.check_outputs(invoice, *received, receipts)?;
        if in_flight.is_some() {
            return Ok(Some(Checked::default()));
        }
        let source = &self.sources()?.receiving;
        check_final(source, transaction).await?;
        match posted {
            _ if source.takes_extended() => self.check_here(source, posted).await,
            FormedTransaction::Beef(beef) => {
                let ancestors = self.check_beef(source, beef).await?;
                Ok(ancestors.map(|ancestors| Checked { ancestors, are_coins_known: true }))
            }
            FormedTransaction::Raw(_) | FormedTransaction::Extended(_) => {
                let unsent = Unsent::only(transaction);
                unsent.check(source, &self.mempool_entries, self.demand()).await?;
                Ok(Some(Checked { ancestors: Vec::new(), are_coins_known: true }))
            }
        }
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
    fn check_outputs(
        &self,
        invoice: &Invoice,
        received: Received,
        receipts: &[NewReceipt],
    ) -> Result<(), Error> {
        let due = self.asked_for(invoice, received)?;
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

    /// The fee that payments must pay to the miners.
    pub(crate) fn demand(&self) -> Demand {
        let rate = FeeRate { satoshis: self.quoted_fee_rate(), bytes: 1000 };
        Demand { rate, floor: self.fee_floor.load(Ordering::Relaxed) }
    }
}

/// Fails unless the next block may hold the transaction. A time-locked transaction can be replaced
/// until its time, and nodes do not even show it.
async fn check_final(source: &NetworkSource, transaction: &Transaction) -> Result<(), Error> {
    // Most transactions need no look at the tip.
    if transaction.is_final_at(0, 0) {
        return Ok(());
    }
    let tip = source.tip().await.map_err(away)?;
    match transaction.is_final_at(tip.height.saturating_add(1), tip.median_time) {
        true => Ok(()),
        false => Err(Error::NotFinal { lock_time: transaction.lock_time }),
    }
}

/// Reads a transaction in any form, and checks that it can pay something.
pub(super) fn read_transaction(bytes: &[u8]) -> Result<FormedTransaction, Error> {
    let bad = |reason: &str| Error::BadTransaction(reason.to_owned());
    let posted = FormedTransaction::from_bytes(bytes).map_err(|error| {
        let form = TransactionForm::of(bytes).name();
        Error::BadTransaction(format!("it begins like {form}, but {error}"))
    })?;
    let transaction = posted.transaction();
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
        return Err(bad("its outputs are worth more than all satoshis that can exist"));
    }
    Ok(posted)
}
