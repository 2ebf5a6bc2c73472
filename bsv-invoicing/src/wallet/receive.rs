//! Being paid: terms, payments, and the channels through which payers get their proofs.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bsv_network::{Mempool, NodeError, NodeRpc, OutputState, TransactionPlace};
use bsv_tx::{Transaction, Txid};
use tokio::sync::watch;

use crate::dpp::{
    Acknowledgement, ChannelMessage, Destination, FeeRate, Fees, MerkleProof, Payment, PeerChannel,
    Terms,
};
use crate::error::Error;
use crate::model::invoice::{Invoice, InvoiceState};
use crate::model::payment::{Begun, FoundProof, IncomingPayment, IncomingState, NewIncoming};
use crate::store::{WalletStore, WalletStoreError};
use crate::wallet::Wallet;

/// A payment that is being broadcast: its transaction, and what becomes of it.
#[derive(Clone, Debug)]
pub(crate) struct Broadcast {
    txid: Txid,
    outcome: watch::Receiver<Option<Outcome>>,
}

type Outcome = Result<(), Arc<Error>>;

impl<S: WalletStore> Wallet<S> {
    /// What is asked for an invoice that can be paid.
    pub async fn terms(&self, id: &str) -> Result<Terms, Error> {
        let invoice = self.invoice(id).await?;
        check_payable(&invoice, self)?;
        let description = format!("invoice {id}");
        let rate = FeeRate { satoshis: self.quoted_fee_rate(), bytes: 1000 };
        Ok(Terms {
            network: self.settings.network,
            destinations: vec![Destination {
                satoshis: invoice.satoshis,
                script: self.keys.destination(invoice.number)?,
                description: description.clone(),
            }],
            created_at: invoice.created_at,
            expires_at: Some(invoice.expires_at),
            payment_url: self.payment_url(id),
            memo: invoice.description.unwrap_or(description),
            merchant: self.settings.merchant.clone(),
            reference: id.to_owned(),
            fees: Some(Fees { standard: rate, data: rate }),
        })
    }

    /// Where an invoice can be paid.
    pub fn payment_url(&self, id: &str) -> String {
        [&self.settings.public_url, "/dpp/api/v1/payment/", id].concat()
    }

    /// The fee rate that payers are asked for, in satoshis per 1000 bytes.
    fn quoted_fee_rate(&self) -> u64 {
        self.settings.fee_rate.max(self.fee_floor.load(Ordering::Relaxed))
    }

    /// Takes a payment of an invoice: checks it, broadcasts it, and answers once the network has taken
    /// it and that is on the disk. The same payment is answered the same as often as it comes.
    ///
    /// What is begun goes on if the caller stops waiting.
    pub async fn receive(
        self: &Arc<Self>,
        id: &str,
        payment: &Payment,
    ) -> Result<Acknowledgement, Arc<Error>> {
        let invoice = self.invoice(id).await?;
        let transaction = read_transaction(&payment.transaction)?;
        let txid = transaction.txid();
        let acknowledgement = self.acknowledgement(id, txid);
        if self.is_accepted(&invoice, &txid).await? {
            return Ok(acknowledgement);
        }
        let outcome = match self.broadcasts.get(&invoice.number) {
            Some(Broadcast { txid: same, outcome }) if same == txid => outcome,
            Some(_) => return Err(Error::InFlight(id.to_owned()).into()),
            None => {
                let vout = self.check(&invoice, &transaction).await?;
                let refund_to = payment.refund_to.clone();
                let now = self.expiry_time();
                let number = invoice.number;
                let new = NewIncoming { invoice: number, transaction, vout, refund_to, now };
                self.broadcast(id, new, txid)?
            }
        };
        outcome_of(outcome).await?;
        Ok(acknowledgement)
    }

    async fn is_accepted(&self, invoice: &Invoice, txid: &Txid) -> Result<bool, Error> {
        let payments = self.store.incoming(invoice.number).await?;
        Ok(payments.iter().any(|payment| payment.txid == *txid && is_taken(payment.state)))
    }

    /// Checks all that can be checked of a payment before it is broadcast. Answers which output pays
    /// the invoice.
    async fn check(&self, invoice: &Invoice, transaction: &Transaction) -> Result<u32, Error> {
        let payments = self.store.incoming(invoice.number).await?;
        if let Some(payment) = payments.iter().find(|it| it.state == IncomingState::InFlight) {
            if payment.txid != transaction.txid() {
                return Err(Error::InFlight(invoice.id.to_string()));
            }
            // It may have been sent already: nothing that is found now could take that back.
            return self.paying_output(invoice, transaction);
        }
        check_payable(invoice, self)?;
        let vout = self.paying_output(invoice, transaction)?;
        let node = self.node()?;
        let Some(paid) = fee(node, transaction).await? else { return Ok(vout) };
        let rate = FeeRate { satoshis: self.quoted_fee_rate(), bytes: 1000 };
        let bytes = transaction.to_bytes().len() as u64;
        // Payers round down twice: for data, and for the rest.
        let needed = rate.fee(bytes).saturating_sub(1);
        if paid < needed {
            return Err(Error::FeeTooLow { paid, needed });
        }
        Ok(vout)
    }

    fn paying_output(&self, invoice: &Invoice, transaction: &Transaction) -> Result<u32, Error> {
        let script = self.keys.destination(invoice.number)?;
        let mut paying = (0_u32..)
            .zip(&transaction.outputs)
            .filter(|(_, output)| output.locking_script == script);
        let asked = invoice.satoshis;
        match (paying.next(), paying.next()) {
            (Some((vout, output)), None) if output.satoshis == asked => Ok(vout),
            (Some((vout, output)), None) => Err(Error::WrongOutputs(format!(
                "output {vout} pays {} satoshis to the invoice, which asks for {asked}",
                output.satoshis
            ))),
            (Some(_), Some((vout, _))) => Err(Error::WrongOutputs(format!(
                "output {vout} pays the invoice once more: one output of {asked} satoshis is asked for"
            ))),
            (None, _) => Err(Error::WrongOutputs(format!(
                "no output pays {asked} satoshis to the script {}",
                script.to_hex()
            ))),
        }
    }

    /// Begins to broadcast a payment, unless one of the same invoice is being broadcast.
    fn broadcast(
        self: &Arc<Self>,
        id: &str,
        new: NewIncoming,
        txid: Txid,
    ) -> Result<watch::Receiver<Option<Outcome>>, Error> {
        let (sender, outcome) = watch::channel(None);
        let broadcast = Broadcast { txid, outcome: outcome.clone() };
        let place = match self.broadcasts.begin(new.invoice, broadcast) {
            Ok(place) => place,
            Err(other) if other.txid == txid => return Ok(other.outcome),
            Err(_) => return Err(Error::InFlight(id.to_owned())),
        };
        let wallet = Arc::clone(self);
        let id = id.to_owned();
        tokio::spawn(async move {
            let outcome = wallet.begin_and_send(&id, new).await.map_err(Arc::new);
            drop(place);
            sender.send_replace(Some(outcome));
        });
        Ok(outcome)
    }

    async fn begin_and_send(&self, id: &str, new: NewIncoming) -> Result<(), Error> {
        let transaction = new.transaction.clone();
        let begun = self.store.begin_payment(new).await.map_err(|error| match error {
            WalletStoreError::UnknownInvoice(_) => Error::UnknownInvoice(id.to_owned()),
            WalletStoreError::Paid(_) => Error::Paid(id.to_owned()),
            WalletStoreError::Expired(_) => Error::Expired(id.to_owned()),
            WalletStoreError::InFlight(_) => Error::InFlight(id.to_owned()),
            error => error.into(),
        })?;
        match begun {
            Begun::Before(_) => Ok(()),
            Begun::InFlight(IncomingPayment { number, .. }) => {
                self.send_incoming(number, &transaction).await
            }
        }
    }

    /// Broadcasts once more the transaction of a payment that was left in flight, unless that is being
    /// done.
    pub(crate) async fn resume_incoming(&self, number: u64, invoice: u64, txid: Txid) {
        let (sender, outcome) = watch::channel(None);
        let Ok(place) = self.broadcasts.begin(invoice, Broadcast { txid, outcome }) else { return };
        let outcome = match self.store.transaction(number).await {
            Ok(Some(transaction)) => self.send_incoming(number, &transaction).await,
            Ok(None) => Err(Error::RefusedByNetwork("it was refused before".to_owned())),
            Err(error) => Err(error.into()),
        };
        if let Err(error) = &outcome {
            tracing::debug!("transaction {txid}: {error}");
        }
        drop(place);
        sender.send_replace(Some(outcome.map_err(Arc::new)));
    }

    /// Broadcasts the transaction of a payment that is in flight, and notes the outcome.
    async fn send_incoming(&self, number: u64, transaction: &Transaction) -> Result<(), Error> {
        let node = self.node()?;
        match node.send_transaction(transaction).await {
            Ok(_) => {}
            Err(NodeError::Rejected { message, .. }) => {
                // It may have been sent before, and be mined and spent meanwhile.
                let place = node.transaction_place(&transaction.txid()).await;
                if place.map_err(unknown)? == TransactionPlace::Nowhere {
                    self.store.refuse_payment(number).await?;
                    return Err(Error::RefusedByNetwork(message));
                }
            }
            Err(error) => return Err(unknown(error)),
        }
        self.store.settle(number, self.now()).await?;
        Ok(())
    }

    fn acknowledgement(&self, id: &str, txid: Txid) -> Acknowledgement {
        let channel_id = format!("{id}{txid}");
        let (host, path) = split_url(&self.settings.public_url);
        let token = self.keys.token(&channel_id);
        let (host, path) = (host.to_owned(), path.to_owned());
        Acknowledgement {
            reference: id.to_owned(),
            txid,
            memo: String::new(),
            peer_channel: Some(PeerChannel { host, path, channel_id, token }),
        }
    }

    /// What was paid towards an invoice, in the order in which it came.
    pub async fn payments(&self, id: &str) -> Result<Vec<IncomingPayment>, Error> {
        let invoice = self.invoice(id).await?;
        Ok(self.store.incoming(invoice.number).await?)
    }

    /// The messages in a payer's channel: a proof for each block that its transaction was found in.
    pub async fn channel(
        &self,
        channel_id: &str,
        token: &str,
        only_unread: bool,
    ) -> Result<Vec<ChannelMessage>, Error> {
        let (number, txid) = self.channel_transaction(channel_id, token).await?;
        let proofs = self.store.proofs(number).await?;
        let asked_for = proofs.iter().filter(|found| !(only_unread && found.is_read));
        Ok(asked_for.map(|found| message(txid, found)).collect())
    }

    /// Notes that the payer has read a message of its channel, or has not; with `older`, also all
    /// before it. Answers whether there is such a message.
    pub async fn mark_read(
        &self,
        channel_id: &str,
        token: &str,
        sequence: u64,
        older: bool,
        is_read: bool,
    ) -> Result<bool, Error> {
        let (number, _) = self.channel_transaction(channel_id, token).await?;
        let Ok(sequence) = u32::try_from(sequence) else { return Ok(false) };
        let proofs = self.store.proofs(number).await?;
        if !proofs.iter().any(|found| found.sequence == sequence) {
            return Ok(false);
        }
        let marked = |found: &&FoundProof| {
            (found.sequence == sequence || (older && found.sequence < sequence))
                && found.is_read != is_read
        };
        for found in proofs.iter().filter(marked) {
            self.store.mark_read(number, found.sequence, is_read).await?;
        }
        Ok(true)
    }

    /// The transaction that a channel is about: its number and id.
    async fn channel_transaction(
        &self,
        channel_id: &str,
        token: &str,
    ) -> Result<(u64, Txid), Error> {
        const INVOICE_ID_LEN: usize = 12;
        if !self.keys.is_token(channel_id, token) {
            return Err(Error::UnknownChannel);
        }
        let (id, txid) =
            channel_id.split_at_checked(INVOICE_ID_LEN).ok_or(Error::UnknownChannel)?;
        let txid: Txid = txid.parse().map_err(|_| Error::UnknownChannel)?;
        let payments = self.payments(id).await.map_err(|error| match error {
            Error::UnknownInvoice(_) => Error::UnknownChannel,
            error => error,
        })?;
        // After it was displaced, the same transaction may have come once more.
        let payment = payments.iter().rev().find(|payment| payment.txid == txid);
        Ok((payment.ok_or(Error::UnknownChannel)?.number, txid))
    }

    /// The node, if there is one.
    pub(crate) fn node(&self) -> Result<&NodeRpc, Error> {
        let none = || Error::NetworkAway("no node is configured".to_owned());
        self.node.as_ref().ok_or_else(none)
    }
}

/// That nothing was changed because the node cannot be used.
pub(crate) fn away(error: NodeError) -> Error {
    Error::NetworkAway(error.to_string())
}

/// That it is not known what became of a payment, because the node cannot be used.
pub(crate) fn unknown(error: NodeError) -> Error {
    Error::OutcomeUnknown(error.to_string())
}

fn is_taken(state: IncomingState) -> bool {
    matches!(state, IncomingState::Accepted | IncomingState::Mined)
}

/// What a transaction leaves to the miner, or nothing if a miner was content with it.
async fn fee(node: &NodeRpc, transaction: &Transaction) -> Result<Option<u64>, Error> {
    let txid = transaction.txid();
    let outpoints: Vec<_> = transaction.inputs.iter().map(|input| input.previous_output).collect();
    let states = node.outputs(&outpoints, Mempool::Include).await.map_err(away)?;
    let mut inputs = 0_u64;
    for (index, (state, outpoint)) in states.into_iter().zip(outpoints).enumerate() {
        match state {
            OutputState::Unspent { satoshis, .. } => inputs = inputs.saturating_add(satoshis),
            OutputState::Spent { by } if by != txid => {
                return Err(Error::UnknownInput { index, outpoint });
            }
            OutputState::Spent { .. } | OutputState::Missing => {
                // It may be on its way already, by whoever.
                return match node.transaction_place(&txid).await.map_err(away)? {
                    TransactionPlace::Nowhere => Err(Error::UnknownInput { index, outpoint }),
                    TransactionPlace::Mempool => node.mempool_fee(&txid).await.map_err(away),
                    TransactionPlace::Block(_) => Ok(None),
                };
            }
        }
    }
    let outputs: u64 = transaction.outputs.iter().map(|output| output.satoshis).sum();
    let fee = inputs.checked_sub(outputs).ok_or_else(|| {
        Error::BadTransaction("its outputs are worth more than its inputs".to_owned())
    })?;
    Ok(Some(fee))
}

fn check_payable<S: WalletStore>(invoice: &Invoice, wallet: &Wallet<S>) -> Result<(), Error> {
    match invoice.state(wallet.expiry_time()) {
        InvoiceState::Pending => Ok(()),
        InvoiceState::Paid => Err(Error::Paid(invoice.id.to_string())),
        InvoiceState::Expired => Err(Error::Expired(invoice.id.to_string())),
    }
}

async fn outcome_of(mut outcome: watch::Receiver<Option<Outcome>>) -> Outcome {
    let decided = outcome.wait_for(Option::is_some).await;
    let broken_off = || Error::OutcomeUnknown("the server is stopping".to_owned());
    decided.map_err(|_| broken_off())?.clone().unwrap_or_else(|| Err(broken_off().into()))
}

/// Reads a transaction that could pay something.
fn read_transaction(bytes: &[u8]) -> Result<Transaction, Error> {
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
    if total > crate::model::invoice::MAX_SATOSHIS {
        return Err(bad("its outputs are worth more than there is"));
    }
    Ok(transaction)
}

/// Host and port of a URL, and its path.
fn split_url(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or((rest, ""), |slash| rest.split_at(slash))
}

fn message(txid: Txid, found: &FoundProof) -> ChannelMessage {
    let FoundProof { sequence, proof, found_at, .. } = found;
    let proof = MerkleProof {
        txid,
        block_hash: proof.block.hash,
        block_height: proof.block.height,
        header: None,
        branch: proof.branch.clone(),
    };
    ChannelMessage {
        sequence: u64::from(*sequence),
        received: *found_at,
        content_type: "application/json".to_owned(),
        payload: proof.to_envelope(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_split_into_host_and_path() {
        for (url, parts) in [
            ("http://127.0.0.1:8445", ("127.0.0.1:8445", "")),
            ("https://shop.example/pay", ("shop.example", "/pay")),
            ("https://shop.example/a/b", ("shop.example", "/a/b")),
        ] {
            assert_eq!(split_url(url), parts);
        }
    }
}
