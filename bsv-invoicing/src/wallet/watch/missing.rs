//! What a reading of the chain finds and the books lack.

use std::collections::HashSet;

use bsv_tx::{OutPoint, Txid, public_key_hash};

use crate::ledger::Known;
use crate::model::transaction::EncodedTransaction;
use crate::wallet::look_ahead::LookAhead;

/// Takes what a reading of the chain finds and the books lack, instead of the books.
pub(crate) struct Missing<'c> {
    /// Gets a sentence about each transaction.
    tell: &'c mut (dyn FnMut(String) + Send),
    /// The transactions that the books lack.
    txids: HashSet<Txid>,
    /// Their outputs that pay the wallet.
    coins: HashSet<OutPoint>,
}

impl<'c> Missing<'c> {
    pub(crate) fn new(tell: &'c mut (dyn FnMut(String) + Send)) -> Self {
        Self { tell, txids: HashSet::new(), coins: HashSet::new() }
    }

    /// Takes note of a transaction if it concerns the wallet and the books lack it. Returns whether
    /// it was not noted before.
    pub(super) fn note(
        &mut self,
        transaction: &EncodedTransaction,
        known: &Known,
        keys: &LookAhead,
        place: &str,
    ) -> bool {
        let txid = transaction.txid;
        let (true, Ok(view)) = (known.records.is_empty(), transaction.view()) else { return false };
        let is_missing_coin = |spent: &OutPoint| self.coins.contains(spent);
        let spends = known.lacking.spends.len() + view.spent().filter(is_missing_coin).count();
        let is_own = |vout, script| {
            known.lacking.receipts.iter().any(|receipt| receipt.vout == vout)
                || public_key_hash(script).is_some_and(|hash| keys.contains(hash))
        };
        let outputs = (0_u32..).zip(view.outputs());
        let own: Vec<_> = outputs.filter(|(vout, (_, script))| is_own(*vout, script)).collect();
        if (own.is_empty() && spends == 0) || !self.txids.insert(txid) {
            return false;
        }
        self.coins.extend(own.iter().map(|(vout, _)| OutPoint { txid, vout: *vout }));
        let paid = own.iter().fold(0_u64, |sum, (_, (satoshis, _))| sum.saturating_add(*satoshis));
        (self.tell)(format!(
            "the books lack transaction {txid} in {place}, which pays {paid} satoshis to the \
             wallet and spends {spends} of its coins"
        ));
        true
    }
}
