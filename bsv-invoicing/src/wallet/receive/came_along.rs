//! Ancestors that came with a payment. Some pay the wallet, too, and nobody else may tell of them.

use std::collections::HashSet;
use std::sync::Arc;

use bsv_network::{Evidence, NetworkSource};
use bsv_tx::{Beef, Transaction, Txid};
use futures_util::{StreamExt, TryStreamExt, stream};

use crate::error::Error;
use crate::ledger::{Notice, Noticed, Refusal, ShownPlace, Sighting};
use crate::model::time::Timestamp;
use crate::model::transaction::EncodedTransaction;
use crate::store::{WalletStore, WalletStoreError};
use crate::wallet::Wallet;
use crate::wallet::watch::is_news;

/// How many of them the books are asked about at once.
const AT_ONCE: usize = 4;
/// How many proven ones are looked at. Strangers choose how many there are, and how long their paths are.
const MOST_PROVEN: usize = 20;
/// The longest BEEF that is stored with each of them, in bytes. The payment keeps its own.
const MAX_KEPT_LEN: usize = 64 << 10;

impl Wallet {
    /// Records the ancestors of a payment that concern the wallet, after services have taken the payment.
    /// One without a Merkle path waits until services tell of it.
    pub(super) async fn notice_came_along(
        &self,
        source: &NetworkSource,
        beef: &Beef,
        came_at: Timestamp,
    ) -> Result<(), Error> {
        let spending = beef.unmined_ancestors().map(|(_, transaction)| transaction);
        let inputs = spending.chain([beef.subject()]).flat_map(|it| &it.inputs);
        let spent: HashSet<_> = inputs.map(|input| input.previous_output.txid).collect();
        let is_parent = |txid: &Txid| beef.is_mined(txid) && spent.contains(txid);
        let proven = beef.transactions().filter(|(txid, _)| is_parent(txid)).take(MOST_PROVEN);
        let proven = self.newly_found(proven).await?;
        let unproven = self.newly_found(beef.unmined_ancestors()).await?;
        if proven.is_empty() && unproven.is_empty() {
            return Ok(());
        }
        let place =
            ShownPlace::Mempool(Sighting { is_fee_sufficient: true, evidence: Evidence::Hearsay });
        let bytes = beef.to_bytes();
        let ancestry = if bytes.len() > MAX_KEPT_LEN { Vec::new() } else { bytes };
        let waiting = unproven.into_iter().map(|transaction| {
            let (place, ancestry) = (place.clone(), ancestry.clone());
            Noticed { transaction, place, came_at, ancestry }
        });
        let waiting: Vec<_> = waiting.collect();
        loop {
            let mut shown = self.in_blocks(source, beef, &proven, came_at).await?;
            shown.extend(waiting.iter().cloned());
            match self.store.execute(Notice { shown, now: self.now() }).await {
                Err(WalletStoreError::Refused(Refusal::Reorganised)) => {}
                noticed => {
                    noticed?;
                    return self.watch_backlog().await.map(drop);
                }
            }
        }
    }

    /// Those of these transactions that concern the wallet, as far as the books lack something of them.
    async fn newly_found(
        &self,
        transactions: impl Iterator<Item = (Txid, &Transaction)>,
    ) -> Result<Vec<EncodedTransaction>, Error> {
        let asked = transactions.map(|(_, transaction)| async move {
            let encoded = Arc::new(EncodedTransaction::from(transaction));
            let known = self.known(&encoded).await?;
            Ok::<_, Error>(known.filter(is_news).map(|_| Arc::unwrap_or_clone(encoded)))
        });
        let asked: Vec<_> = asked.collect();
        let found: Vec<_> = stream::iter(asked).buffered(AT_ONCE).try_collect().await?;
        Ok(found.into_iter().flatten().collect())
    }

    /// Those of these transactions whose paths lead to the main chain, parents before their children, as
    /// in their blocks.
    async fn in_blocks(
        &self,
        source: &NetworkSource,
        beef: &Beef,
        proven: &[EncodedTransaction],
        came_at: Timestamp,
    ) -> Result<Vec<Noticed>, Error> {
        let mut found = Vec::new();
        for transaction in proven {
            let Some(checked) = self.proof_in(source, beef, &transaction.txid).await? else {
                continue;
            };
            let order = (checked.proof.block.height, checked.proof.branch.position);
            let (transaction, place) = (transaction.clone(), ShownPlace::Block(checked));
            found.push((order, Noticed { transaction, place, came_at, ancestry: Vec::new() }));
        }
        found.sort_by_key(|(order, _)| *order);
        Ok(found.into_iter().map(|(_, noticed)| noticed).collect())
    }
}
