//! Payments that their payers prove to be in blocks. Services may not know them.

use bsv_network::{MinedIn, NetworkSource};
use bsv_tx::{Beef, FormedTransaction, Txid};

use crate::error::Error;
use crate::ledger::queries::{GetPaymentBy, GetStanding, PaymentStanding};
use crate::ledger::{CheckedProof, GetReorganisations, Refusal};
use crate::model::transaction::TransactionRecord;
use crate::store::{WalletStore, WalletStoreError};
use crate::wallet::Wallet;
use crate::wallet::shown::check_proof;
use crate::wallet::sources::away;

impl Wallet {
    /// The proof that comes with a payment, if it leads to the main chain. A node knows by itself what is
    /// mined.
    pub(super) async fn payers_proof(
        &self,
        posted: &FormedTransaction,
    ) -> Result<Option<CheckedProof>, Error> {
        let source = &self.sources()?.receiving;
        match posted {
            FormedTransaction::Beef(beef) if source.takes_extended() => {
                self.proof_in(source, beef, &beef.subject_txid()).await
            }
            _ => Ok(None),
        }
    }

    /// The proof of a transaction in a BEEF, if it leads to the main chain.
    pub(super) async fn proof_in(
        &self,
        source: &NetworkSource,
        beef: &Beef,
        txid: &Txid,
    ) -> Result<Option<CheckedProof>, Error> {
        let Some((height, branch)) = beef.branch(txid) else { return Ok(None) };
        let reorganisations = self.store.get(GetReorganisations).await?;
        let Some(block) = source.header_at(height).await.map_err(away)? else { return Ok(None) };
        let mined = MinedIn { block: block.header.block_hash(), branch };
        let proof = check_proof(source, txid, mined).await?;
        Ok(proof.map(|proof| CheckedProof { proof, reorganisations }))
    }

    /// Records that a payment that the network has is in a block, if its payer proves that and it is not
    /// known. Returns where the payment and its invoice stand then.
    pub(super) async fn note_payers_proof(
        &self,
        invoice: u64,
        record: &TransactionRecord,
        posted: &FormedTransaction,
    ) -> Result<Option<PaymentStanding>, Error> {
        let FormedTransaction::Beef(beef) = posted else { return Ok(None) };
        if record.state.block().is_some() || !beef.is_mined(&record.txid) {
            return Ok(None);
        }
        let payment = self.store.get(GetPaymentBy(invoice, record.txid)).await?;
        let Some((number, _)) = payment else { return Ok(None) };
        match self.note_proof(number, posted).await? {
            true => Ok(Some(self.store.get(GetStanding(invoice, record.txid)).await?)),
            false => Ok(None),
        }
    }

    /// Records that a payment is in a block, if its payer proves that. Returns whether he does.
    pub(super) async fn note_proof(
        &self,
        number: u64,
        posted: &FormedTransaction,
    ) -> Result<bool, Error> {
        while let Some(checked) = self.payers_proof(posted).await? {
            match self.note_mined(number, checked).await {
                Err(WalletStoreError::Refused(Refusal::Reorganised)) => {}
                noted => return Ok(noted.map(|()| true)?),
            }
        }
        Ok(false)
    }
}
