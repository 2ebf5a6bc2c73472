//! What a reading of the chain searches for, and what becomes of what it finds.

use bsv_tx::{Transaction, TransactionView, Txid, public_key_hash};

use super::filter::{Concern, Filter};
use super::missing::Missing;
use crate::error::Error;
use crate::wallet::look_ahead::LookAhead;

/// What a reading of the chain searches for besides the watched scripts and the outputs of the books'
/// transactions. The books take what it finds, unless they must not change.
#[derive(Default)]
pub(crate) struct Search<'c> {
    /// Further keys.
    pub(crate) keys: LookAhead,
    /// Takes what the books lack, if they must not change.
    pub(crate) missing: Option<Missing<'c>>,
}

impl Search<'_> {
    /// The id of a transaction, and how it may concern the wallet, if it may.
    pub(super) fn pick(
        &mut self,
        filter: &Filter,
        transaction: TransactionView<'_>,
    ) -> Result<Option<(Txid, Concern)>, Error> {
        let paid = transaction.outputs().filter_map(|(_, script)| public_key_hash(script));
        let pays = self.keys.note_paid(paid)?.map(Concern::paying);
        let concern = pays.or_else(|| filter.concern(transaction));
        Ok(concern.map(|concern| noted(filter, transaction.txid(), concern)))
    }

    /// The same of a transaction that was read.
    pub(super) fn pick_read(
        &mut self,
        filter: &Filter,
        transaction: &Transaction,
    ) -> Result<Option<(Txid, Concern)>, Error> {
        let paid = transaction.outputs.iter().filter_map(|it| it.locking_script.public_key_hash());
        let pays = self.keys.note_paid(paid)?.map(Concern::paying);
        let concern = pays.or_else(|| filter.concern_of(transaction));
        Ok(concern.map(|concern| noted(filter, transaction.txid(), concern)))
    }
}

/// Takes note of a transaction that may concern the wallet.
fn noted(filter: &Filter, txid: Txid, concern: Concern) -> (Txid, Concern) {
    if let Concern::Pays(_) = concern {
        // A later transaction may spend what this one pays to the wallet.
        filter.add(std::iter::once(txid.as_bytes().as_slice()));
    }
    (txid, concern)
}
