//! What the wallet holds, and its movements of money.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::error::Error;
use crate::ledger::GetUnassigned;
use crate::ledger::movements::GetMovements;
use crate::ledger::queries::{GetBalance, GetHoldings};
use crate::model::holdings::Holdings;
use crate::model::movement::{MovementPage, MovementQuery};
use crate::model::payment::UnassignedReceipt;
use crate::model::receipt::ReceiptKey;
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::sources::away;
use crate::wallet::watch::block_time;

impl Wallet {
    /// The balance, in satoshis.
    pub async fn balance(&self) -> Result<u64, Error> {
        Ok(self.store.get(GetBalance).await?)
    }

    /// The balance in detail.
    pub async fn holdings(&self) -> Result<Holdings, Error> {
        Ok(self.store.get(GetHoldings).await?)
    }

    /// Up to `limit` receipts before this one that pay no invoice, the newest first.
    pub async fn unassigned_receipts(
        &self,
        before: ReceiptKey,
        limit: usize,
    ) -> Result<Vec<UnassignedReceipt>, Error> {
        Ok(self.store.list(GetUnassigned { before, limit }).await?)
    }

    /// A part of the movements of money, in the order in which the books recorded them. The node is
    /// asked for the times of the blocks.
    pub async fn movements(&self, query: MovementQuery) -> Result<MovementPage, Error> {
        let mut page = self.store.list(GetMovements(query)).await?;
        let mut times = HashMap::new();
        for movement in &mut page.movements {
            let Some(block) = movement.block else { continue };
            movement.block_time = match times.entry(block.hash) {
                Entry::Occupied(time) => *time.get(),
                Entry::Vacant(time) => {
                    let source = &self.sources()?.operating;
                    let block = source.header(&block.hash).await.map_err(away)?;
                    *time.insert(block.map(|block| block_time(block.header.time)))
                }
            };
        }
        Ok(page)
    }
}
