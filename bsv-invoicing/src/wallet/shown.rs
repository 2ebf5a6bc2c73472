//! What the network shows of a transaction. Only this makes a transaction count as money.

use std::collections::BTreeMap;
use std::time::Duration;

use bsv_network::{MempoolEntry, MinedIn, NodeRpc, Submitted, TransactionPlace};
use bsv_tx::{BlockHash, MerkleBranch, Transaction, Txid};

use crate::error::Error;
use crate::ledger::queries::GetStored;
use crate::ledger::{
    CheckedProof, GetReorganisations, Mine, Notice, Noticed, Refusal, See, ShownPlace,
};
use crate::model::transaction::{BlockPlace, EncodedTransaction, Proof, TransactionRecord};
use crate::store::{WalletStore, WalletStoreError};
use crate::wallet::Wallet;
use crate::wallet::follow::is_for_itself;
use crate::wallet::mempool_entries::Entries;
use crate::wallet::node::{away, unknown};
use crate::wallet::receive::ancestors::Payment;

/// The first wait for a node that has heard of a transaction and does not show it, for example
/// while it validates one from another node. The wait doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(20);
const WAITS: u32 = 8;

/// The result of offering a transaction to the network.
#[derive(Debug)]
pub(crate) enum Shown {
    /// It is in the mempool.
    InMempool(MempoolEntry),
    /// It is in a block.
    InBlock,
    /// It is neither in the mempool nor in a block, and the node refuses it for this reason.
    Refused(String),
    /// The node has heard of it but does not show it. It may be time-locked, or not validated yet.
    Nowhere,
}

/// Offers a transaction to the network, and asks whether the network has it.
pub(crate) async fn show(node: &NodeRpc, transaction: &Transaction) -> Result<Shown, Error> {
    let mut wait = FIRST_WAIT;
    for _ in 0..WAITS {
        let refusal = match node.submit_transaction(transaction).await {
            Ok(Submitted::InMempool(entry)) => return Ok(Shown::InMempool(entry)),
            Ok(Submitted::NotShown) => None,
            Err(error) => match error.verdict() {
                Some(reason) => Some(reason.to_owned()),
                None => return Err(unknown(error)),
            },
        };
        // It may have been sent before, and may be mined and spent meanwhile.
        let place = node.transaction_place(&transaction.txid()).await.map_err(unknown)?;
        match (place, refusal) {
            (TransactionPlace::Block(_), _) => return Ok(Shown::InBlock),
            (TransactionPlace::Nowhere, Some(reason)) => return Ok(Shown::Refused(reason)),
            (TransactionPlace::Mempool | TransactionPlace::Nowhere, _) => {}
        }
        tokio::time::sleep(wait).await;
        wait *= 2;
    }
    Ok(Shown::Nowhere)
}

/// The error when the node has heard of a transaction but does not show it.
pub(crate) fn not_shown() -> Error {
    let reason = "the node has heard of the transaction but does not show it";
    Error::OutcomeUnknown(reason.to_owned())
}

impl Wallet {
    /// Finds out where the network has a transaction, and records it. Returns whether the network
    /// has it.
    pub(crate) async fn look(
        &self,
        node: &NodeRpc,
        number: u64,
        txid: &Txid,
    ) -> Result<bool, Error> {
        match node.transaction_place(txid).await.map_err(away)? {
            TransactionPlace::Nowhere => Ok(false),
            TransactionPlace::Block(_) => {
                self.find_proof(node, number, txid).await?;
                Ok(true)
            }
            TransactionPlace::Mempool => {
                let entry = node.mempool_entry(txid).await.map_err(away)?;
                let is_there = entry.is_some();
                if let Some(entry) = entry {
                    self.note_in_mempool(node, number, entry).await?;
                }
                Ok(is_there)
            }
        }
    }

    /// Offers a transaction of the wallet to the network, and records what the network shows.
    /// Returns the reason if the network refuses it.
    pub(crate) async fn show_and_note(
        &self,
        node: &NodeRpc,
        number: u64,
        transaction: &Transaction,
    ) -> Result<Option<String>, Error> {
        match show(node, transaction).await? {
            Shown::InMempool(entry) => self.note_in_mempool(node, number, entry).await?,
            Shown::InBlock => self.find_proof(node, number, &transaction.txid()).await?,
            Shown::Refused(reason) => return Ok(Some(reason)),
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
        node: &NodeRpc,
        ancestors: &[Transaction],
    ) -> Result<Option<String>, Error> {
        let mut refusal = None;
        for ancestor in ancestors {
            match show(node, ancestor).await? {
                Shown::InMempool(_) | Shown::InBlock => {}
                Shown::Refused(reason) => {
                    let told = format!("{reason} (its ancestor {})", ancestor.txid());
                    if is_for_itself(&reason) {
                        return Ok(Some(told));
                    }
                    refusal.get_or_insert(told);
                }
                Shown::Nowhere => return Err(not_shown()),
            }
        }
        Ok(refusal)
    }

    /// Records that a transaction is in the mempool, and whether its fee is sufficient.
    pub(crate) async fn note_in_mempool(
        &self,
        node: &NodeRpc,
        number: u64,
        entry: MempoolEntry,
    ) -> Result<(), Error> {
        let stored = self.store.get(GetStored(number)).await?;
        // The wallet made it with the fee that its payee and the node ask for.
        let is_own = stored.as_ref().is_some_and(|(record, _)| !record.purpose.is_from_outside());
        let is_fee_sufficient = is_own || self.is_entry_sufficient(node, entry).await?;
        Ok(self.note(number, stored, ShownPlace::Mempool { is_fee_sufficient }).await?)
    }

    /// Whether the fee of a transaction suffices for it and its ancestors, by its entry in the
    /// mempool.
    pub(crate) async fn is_entry_sufficient(
        &self,
        node: &NodeRpc,
        entry: MempoolEntry,
    ) -> Result<bool, Error> {
        let mut entries = self.mempool_entries.of(node);
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
                let shown = vec![Noticed { transaction, place, came_at: record.at }];
                self.store.execute(Notice { shown, now }).await
            }
            (_, ShownPlace::Mempool { is_fee_sufficient }) => {
                self.store.execute(See { transaction, is_fee_sufficient, now }).await
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
        node: &NodeRpc,
        number: u64,
        txid: &Txid,
    ) -> Result<(), Error> {
        while let Some(checked) = self.checked_proof(node, txid).await? {
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
        node: &NodeRpc,
        txid: &Txid,
    ) -> Result<Option<CheckedProof>, Error> {
        let reorganisations = self.store.get(GetReorganisations).await?;
        let Some(MinedIn { block, branch }) = branch_of(node, txid).await? else {
            return Ok(None);
        };
        let proof = check_proof(node, txid, block, branch).await?;
        if proof.is_none() {
            tracing::warn!("the node's proof that transaction {txid} is in block {block} is wrong");
        }
        Ok(proof.map(|proof| CheckedProof { proof, reorganisations }))
    }
}

/// The block that holds a transaction, with the branch.
async fn branch_of(node: &NodeRpc, txid: &Txid) -> Result<Option<MinedIn>, Error> {
    let proof = node.merkle_proof(txid).await.map_err(away)?;
    if proof.is_some() {
        return Ok(proof);
    }
    match node.transaction_place(txid).await.map_err(away)? {
        // Nodes give no proof of a transaction that is alone in its block.
        TransactionPlace::Block(block) => {
            let branch = MerkleBranch { position: 0, siblings: Vec::new() };
            Ok(Some(MinedIn { block, branch }))
        }
        TransactionPlace::Mempool | TransactionPlace::Nowhere => Ok(None),
    }
}

/// Checks a proof against the header of a block of the main chain.
pub(crate) async fn check_proof(
    node: &NodeRpc,
    txid: &Txid,
    hash: BlockHash,
    branch: MerkleBranch,
) -> Result<Option<Proof>, Error> {
    let block = node.block_header(&hash).await.map_err(away)?;
    let root = branch.root(txid);
    let block = block.filter(|block| block.in_main_chain && root == Some(block.header.merkle_root));
    Ok(block.map(|block| Proof { block: BlockPlace { hash, height: block.height }, branch }))
}
