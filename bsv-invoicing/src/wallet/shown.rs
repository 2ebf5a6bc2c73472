//! What the network shows of a transaction. Only this makes a transaction count as money.

use std::collections::BTreeMap;

use bsv_network::{MempoolEntry, MinedIn, NetworkSource, Package, Place, Shown, Sight, Verdict};
use bsv_tx::{Transaction, Txid};

use crate::error::Error;
use crate::ledger::queries::GetStored;
use crate::ledger::{
    CheckedProof, GetReorganisations, Mine, NoteRival, Notice, Noticed, Refusal, See, ShownPlace,
    Sighting,
};
use crate::model::transaction::{BlockPlace, EncodedTransaction, Proof, TransactionRecord};
use crate::store::{WalletStore, WalletStoreError};
use crate::wallet::Wallet;
use crate::wallet::mempool_entries::Entries;
use crate::wallet::receive::ancestors::Payment;
use crate::wallet::sources::{away, unknown};

/// The error when the network has heard of a transaction but does not show it.
pub(crate) fn not_shown() -> Error {
    let reason = "the network has heard of the transaction but does not show it";
    Error::OutcomeUnknown(reason.to_owned())
}

/// The error when only a block decides between a transaction and another one that spends the same coins.
pub(crate) fn disputed() -> Error {
    Error::OutcomeUnknown(DISPUTED.to_owned())
}

pub(crate) const DISPUTED: &str =
    "another transaction spends the same coins, and only a block decides between the two";

impl Wallet {
    /// Finds out where the network has a transaction, and records it. Returns whether the network
    /// has it.
    pub(crate) async fn look(
        &self,
        source: &NetworkSource,
        number: u64,
        txid: &Txid,
    ) -> Result<bool, Error> {
        match source.place(txid).await.map_err(away)? {
            Place::Nowhere => Ok(false),
            Place::Mined(_) => {
                self.find_proof(source, number, txid).await?;
                Ok(true)
            }
            Place::Unmined => {
                let sight = self.sight_of(source, number, txid).await?;
                let is_there = sight.is_some();
                if let Some(sight) = sight {
                    self.note_unmined(source, number, sight).await?;
                }
                Ok(is_there)
            }
            Place::Disputed => {
                self.note_rival(number).await?;
                Ok(false)
            }
        }
    }

    /// Offers a transaction of the wallet to the network, and records what the network shows.
    /// Returns the reason if the network refuses it.
    pub(crate) async fn show_and_note(
        &self,
        source: &NetworkSource,
        number: u64,
        transaction: &Transaction,
    ) -> Result<Option<String>, Error> {
        let package = self.package(source, number, transaction).await?;
        match source.show(&package).await.map_err(unknown)? {
            Shown::Unmined(sight) => self.note_unmined(source, number, sight).await?,
            Shown::Mined => self.find_proof(source, number, &transaction.txid()).await?,
            Shown::Refused(Verdict { reason, .. }) => return Ok(Some(reason)),
            Shown::Disputed { .. } => {
                self.note_rival(number).await?;
                return Err(disputed());
            }
            Shown::Nowhere => return Err(not_shown()),
        }
        Ok(None)
    }

    /// Offers the ancestors that came with a payment to the network. Returns the first reason why
    /// the network refuses one of them. The network may also seem to refuse ancestors that are
    /// mined and spent. After one that breaks a rule itself, the others are not offered: strangers
    /// choose how many there are.
    pub(crate) async fn show_ancestors(
        &self,
        source: &NetworkSource,
        ancestors: &[Transaction],
    ) -> Result<Option<String>, Error> {
        let mut refusal = None;
        for ancestor in ancestors {
            match source.show(&Package::Plain(ancestor)).await.map_err(unknown)? {
                Shown::Unmined(_) | Shown::Mined => {}
                Shown::Refused(Verdict { reason, is_for_itself, .. }) => {
                    let told = format!("{reason} (its ancestor {})", ancestor.txid());
                    if is_for_itself {
                        return Ok(Some(told));
                    }
                    refusal.get_or_insert(told);
                }
                Shown::Disputed { .. } => return Err(disputed()),
                Shown::Nowhere => return Err(not_shown()),
            }
        }
        Ok(refusal)
    }

    /// How the source sees an unmined transaction of the wallet.
    pub(crate) async fn sight_of(
        &self,
        source: &NetworkSource,
        number: u64,
        txid: &Txid,
    ) -> Result<Option<Sight>, Error> {
        if !source.takes_extended() {
            return source.sight(txid, None).await.map_err(away);
        }
        let transaction = self.transaction(number).await?;
        let package = self.package(source, number, &transaction).await?;
        source.sight(txid, Some(&package)).await.map_err(away)
    }

    /// Records that the network has a transaction that no block holds, and whether its fee is
    /// sufficient.
    pub(crate) async fn note_unmined(
        &self,
        source: &NetworkSource,
        number: u64,
        Sight { entry, evidence }: Sight,
    ) -> Result<(), Error> {
        let stored = self.store.get(GetStored(number)).await?;
        // The wallet made it with the fee that its payee and the node ask for.
        let is_own = stored.as_ref().is_some_and(|(record, _)| !record.purpose.is_from_outside());
        let is_fee_sufficient = is_own || self.is_entry_sufficient(source, entry).await?;
        let sighting = Sighting { is_fee_sufficient, evidence };
        Ok(self.note(number, stored, ShownPlace::Mempool(sighting)).await?)
    }

    /// Records that another transaction spends the same coins as this one.
    pub(crate) async fn note_rival(&self, transaction: u64) -> Result<(), Error> {
        Ok(self.store.execute(NoteRival { transaction, now: self.now() }).await?)
    }

    /// Whether the fee of a transaction suffices for it and its ancestors, by its entry in the
    /// mempool.
    pub(crate) async fn is_entry_sufficient(
        &self,
        source: &NetworkSource,
        entry: MempoolEntry,
    ) -> Result<bool, Error> {
        let mut entries = self.mempool_entries.of(source);
        let is_sufficient = self.is_fee_sufficient(&mut entries, entry).await?;
        entries.keep().await;
        Ok(is_sufficient)
    }

    /// Records that a transaction is in a block.
    pub(crate) async fn note_mined(
        &self,
        number: u64,
        checked: CheckedProof,
    ) -> Result<(), WalletStoreError> {
        let stored = self.store.get(GetStored(number)).await?;
        self.note(number, stored, ShownPlace::Block(checked)).await
    }

    /// Records where the network shows a transaction, with everything in it that concerns the
    /// wallet.
    async fn note(
        &self,
        transaction: u64,
        stored: Option<(TransactionRecord, Option<EncodedTransaction>)>,
        place: ShownPlace,
    ) -> Result<(), WalletStoreError> {
        let now = self.now();
        match (stored, place) {
            (Some((record, Some(transaction))), place) => {
                let shown =
                    vec![Noticed { transaction, place, came_at: record.at, ancestry: Vec::new() }];
                self.store.execute(Notice { shown, now }).await
            }
            (_, ShownPlace::Mempool(sighting)) => {
                self.store.execute(See { transaction, sighting, now }).await
            }
            (_, ShownPlace::Block(checked)) => {
                self.store.execute(Mine { transaction, checked, now }).await
            }
        }
    }

    /// Whether the fee of a transaction in the mempool suffices for it and its ancestors.
    pub(crate) async fn is_fee_sufficient(
        &self,
        entries: &mut Entries<'_>,
        entry: MempoolEntry,
    ) -> Result<bool, Error> {
        let MempoolEntry { fee, size, parents } = entry;
        let payment = Payment { fee, size, parents, unsent: BTreeMap::new() };
        match payment.check(entries, self.demand()).await {
            Ok(()) => Ok(true),
            Err(
                Error::FeeTooLow { .. }
                | Error::TooManyAncestors { .. }
                | Error::TooManyCheapAncestors { .. },
            ) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Finds the proof of a transaction that is in a block. Checks it once more if a reorganisation
    /// is followed meanwhile.
    pub(crate) async fn find_proof(
        &self,
        source: &NetworkSource,
        number: u64,
        txid: &Txid,
    ) -> Result<(), Error> {
        while let Some(checked) = self.checked_proof(source, txid).await? {
            match self.note_mined(number, checked).await {
                Err(WalletStoreError::Refused(Refusal::Reorganised)) => {}
                mined => return Ok(mined?),
            }
        }
        Ok(())
    }

    /// The checked proof of a transaction, unless it has left its block.
    pub(crate) async fn checked_proof(
        &self,
        source: &NetworkSource,
        txid: &Txid,
    ) -> Result<Option<CheckedProof>, Error> {
        let reorganisations = self.store.get(GetReorganisations).await?;
        let Some(mined) = source.mined_in(txid).await.map_err(away)? else { return Ok(None) };
        let block = mined.block;
        let proof = check_proof(source, txid, mined).await?;
        if proof.is_none() {
            tracing::warn!("the node's proof that transaction {txid} is in block {block} is wrong");
        }
        Ok(proof.map(|proof| CheckedProof { proof, reorganisations }))
    }
}

/// Checks a proof against the header of a block of the main chain.
pub(crate) async fn check_proof(
    source: &NetworkSource,
    txid: &Txid,
    MinedIn { block: hash, branch }: MinedIn,
) -> Result<Option<Proof>, Error> {
    let block = source.header(&hash).await.map_err(away)?;
    let root = branch.root(txid);
    let block = block.filter(|block| block.in_main_chain && root == Some(block.header.merkle_root));
    Ok(block.map(|block| Proof { block: BlockPlace { hash, height: block.height }, branch }))
}
