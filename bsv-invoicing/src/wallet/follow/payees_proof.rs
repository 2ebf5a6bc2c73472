//! Proofs from payees of payments by the wallet. They are needed if the node has no index of
//! transactions.

use bsv_network::{MinedIn, NetworkSource};
use bsv_tx::Txid;

use crate::dpp::{ChannelMessage, MerkleProof};
use crate::error::Error;
use crate::ledger::{CheckedProof, GetReorganisations};
use crate::model::transaction::Proof;
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::shown::check_proof;

impl Wallet {
    /// Asks the payee of a payment by the wallet for the proof.
    pub(super) async fn ask_payee(
        &self,
        number: u64,
        payment: u64,
        txid: &Txid,
    ) -> Result<(), Error> {
        let source = &self.sources()?.operating;
        let reorganisations = self.store.get(GetReorganisations).await?;
        let Some(proof) = self.proof_of_payee(source, payment, txid).await? else { return Ok(()) };
        let checked = CheckedProof { proof, reorganisations };
        Ok(self.note_mined(number, checked).await?)
    }

    /// The proof that the payee offers, if it is valid.
    async fn proof_of_payee(
        &self,
        source: &NetworkSource,
        payment: u64,
        txid: &Txid,
    ) -> Result<Option<Proof>, Error> {
        let payment = self.outgoing_payment(payment).await?;
        let Some(body) = self.payee.messages(&payment).await else { return Ok(None) };
        let messages = ChannelMessage::list_from_json(&body).unwrap_or_default();
        for message in messages.iter().rev() {
            let Ok(claim) = MerkleProof::from_envelope(&message.payload) else { continue };
            let claimed = MinedIn { block: claim.block_hash, branch: claim.branch };
            if claim.txid == *txid
                && let Some(proof) = check_proof(source, txid, claimed).await?
            {
                return Ok(Some(proof));
            }
        }
        Ok(None)
    }
}
