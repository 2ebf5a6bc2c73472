//! Peer channels, from which payers read their proofs.

use bsv_tx::Txid;

use crate::dpp::{Acknowledgement, ChannelMessage, MerkleProof, PeerChannel};
use crate::error::Error;
use crate::ledger::MarkRead;
use crate::ledger::queries::{GetPaymentBy, GetProofs};
use crate::model::transaction::FoundProof;
use crate::store::WalletStore;
use crate::wallet::Wallet;

impl Wallet {
    /// The acknowledgement of a payment. It names the payer's channel.
    pub(crate) fn acknowledgement(&self, id: &str, txid: Txid) -> Acknowledgement {
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

    /// The messages in a payer's channel: a proof for each block in which its transaction was
    /// found.
    pub async fn channel(
        &self,
        channel_id: &str,
        token: &str,
        only_unread: bool,
    ) -> Result<Vec<ChannelMessage>, Error> {
        let (number, txid) = self.channel_transaction(channel_id, token).await?;
        let proofs = self.store.get(GetProofs(number)).await?;
        let asked_for = proofs.iter().filter(|found| !(only_unread && found.is_read));
        Ok(asked_for.map(|found| message(txid, found)).collect())
    }

    /// Records whether the payer has read a message of its channel, and with `older` also all
    /// earlier messages. Returns whether there is such a message.
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
        let proofs = self.store.get(GetProofs(number)).await?;
        if !proofs.iter().any(|found| found.sequence == sequence) {
            return Ok(false);
        }
        let marked = |found: &&FoundProof| {
            (found.sequence == sequence || (older && found.sequence < sequence))
                && found.is_read != is_read
        };
        for found in proofs.iter().filter(marked) {
            let sequence = found.sequence;
            self.store.execute(MarkRead { transaction: number, sequence, is_read }).await?;
        }
        Ok(true)
    }

    /// The number and id of the transaction of a channel.
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
        let invoice = self.invoice(id).await.map_err(|error| match error {
            Error::UnknownInvoice(_) => Error::UnknownChannel,
            error => error,
        })?;
        let payment = self.store.get(GetPaymentBy(invoice.number, txid)).await?;
        let (number, _) = payment.ok_or(Error::UnknownChannel)?;
        Ok((number, txid))
    }
}

/// Splits a URL into host with port, and path.
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
