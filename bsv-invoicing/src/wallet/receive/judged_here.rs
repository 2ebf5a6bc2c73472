//! Payments for a source that takes what they spend: services give only their word, so everything
//! that can be judged here is judged here.

use bsv_network::{ExtendedPackage, NetworkSource};
use bsv_store::StoreError;
use bsv_tx::{ExtendedTransaction, FormedTransaction, OutPoint, SighashCache, Txid, unlocks_p2pkh};
use tokio::task::spawn_blocking;

use super::check::Checked;
use crate::error::Error;
use crate::wallet::Wallet;
use crate::wallet::package::{Claimed, MAX_UNPROVEN};

impl Wallet {
    /// Checks a payment: where its coins come from, its amounts, fees and signatures, and those of its
    /// unproven ancestors. `None` if its payer proves that it is in a block.
    pub(super) async fn check_here(
        &self,
        source: &NetworkSource,
        posted: &FormedTransaction,
    ) -> Result<Option<Checked>, Error> {
        if let FormedTransaction::Beef(beef) = posted {
            if beef.unmined_ancestors().nth(MAX_UNPROVEN).is_some() {
                return Err(Error::TooManyAncestors { limit: MAX_UNPROVEN });
            }
            self.check_proofs(source, beef).await?;
            if beef.is_mined(&beef.subject_txid()) {
                return Ok(None);
            }
        }
        let (package, claimed) =
            self.extended_package(source, posted.transaction(), Some(posted)).await?;
        for ancestor in &package.ancestors {
            let txid = ancestor.transaction().txid();
            self.check_amounts(ancestor).map_err(|error| match error {
                Error::FeeTooLow { paid, needed } => {
                    Error::AncestorFeeTooLow { txid, paid, needed }
                }
                error => of_ancestor(txid, error),
            })?;
        }
        self.check_amounts(&package.transaction)?;
        // Signatures come last, since they take the most time. Strangers choose how many there are.
        let is_proven = package.is_proven;
        let checked = spawn_blocking(move || check_signatures(&package, &claimed)).await;
        let are_all_signed = checked.map_err(|_| StoreError::Panicked)??;
        let ancestors = match posted {
            FormedTransaction::Raw(_) => Vec::new(),
            FormedTransaction::Extended(_) | FormedTransaction::Beef(_) => posted.to_bytes(),
        };
        Ok(Some(Checked { ancestors, are_coins_known: is_proven && are_all_signed }))
    }

    /// Checks the amounts and the fee of one transaction.
    fn check_amounts(&self, extended: &ExtendedTransaction) -> Result<(), Error> {
        let (transaction, spent) = (extended.transaction(), extended.previous_outputs());
        let sum = |amounts: &mut dyn Iterator<Item = u64>| amounts.fold(0, u64::saturating_add);
        let inputs = sum(&mut spent.iter().map(|output| output.satoshis));
        let outputs = sum(&mut transaction.outputs.iter().map(|output| output.satoshis));
        let paid = inputs.checked_sub(outputs).ok_or_else(|| {
            Error::BadTransaction("its outputs are worth more than its inputs".to_owned())
        })?;
        let needed = self.demand().least(transaction.to_bytes().len() as u64);
        match paid >= needed {
            true => Ok(()),
            false => Err(Error::FeeTooLow { paid, needed }),
        }
    }
}

/// Checks the signatures of a transaction and of its ancestors. Returns whether all those of the
/// transaction itself could be checked.
fn check_signatures(package: &ExtendedPackage, claimed: &Claimed) -> Result<bool, Error> {
    for ancestor in &package.ancestors {
        let txid = ancestor.transaction().txid();
        let unknown = |_, outpoint| Error::UnknownAncestorInput { txid, outpoint };
        check_signatures_of(ancestor, txid, claimed, unknown).map_err(|error| match error {
            Error::BadTransaction(_) => of_ancestor(txid, error),
            error => error,
        })?;
    }
    let unknown = |index, outpoint| Error::UnknownInput { index, outpoint };
    let transaction = &package.transaction;
    check_signatures_of(transaction, transaction.transaction().txid(), claimed, unknown)
}

/// Checks the signatures of one transaction. Broadcasters judge other scripts than P2PKH, unless only
/// the signature shows that the payer says the truth. Returns whether there are none.
fn check_signatures_of(
    extended: &ExtendedTransaction,
    txid: Txid,
    claimed: &Claimed,
    unknown: impl Fn(usize, OutPoint) -> Error,
) -> Result<bool, Error> {
    let transaction = extended.transaction();
    let cache = SighashCache::new(transaction);
    let mut are_all_checked = true;
    let spent = extended.previous_outputs().iter().zip(&transaction.inputs);
    for (index, (output, input)) in spent.enumerate() {
        let unlocks = unlocks_p2pkh(&cache, transaction, index, output);
        are_all_checked &= unlocks.is_some();
        if unlocks != Some(true) && claimed.contains(&(txid, index)) {
            return Err(unknown(index, input.previous_output));
        }
        if unlocks == Some(false) {
            let reason = format!("the signature or the key of input {index} is wrong");
            return Err(Error::BadTransaction(reason));
        }
    }
    Ok(are_all_checked)
}

fn of_ancestor(txid: Txid, error: Error) -> Error {
    Error::BadTransaction(format!("its ancestor {txid}: {error}"))
}
