//! Payments for a source that takes what they spend: services give only their word, so everything
//! that can be judged here is judged here.

use bsv_network::NetworkSource;
use bsv_tx::{ExtendedTransaction, FormedTransaction, SighashCache, unlocks_p2pkh};

use crate::error::Error;
use crate::wallet::Wallet;
use crate::wallet::package::MAX_UNPROVEN;

impl Wallet {
    /// Checks a payment: where its coins come from, its amounts, fees and signatures, and those of its
    /// unproven ancestors. Returns what is stored with it to offer it again.
    pub(super) async fn check_here(
        &self,
        source: &NetworkSource,
        posted: &FormedTransaction,
    ) -> Result<Vec<u8>, Error> {
        if let FormedTransaction::Beef(beef) = posted {
            if beef.unmined_ancestors().nth(MAX_UNPROVEN).is_some() {
                return Err(Error::TooManyAncestors { limit: MAX_UNPROVEN });
            }
            self.check_proofs(source, beef).await?;
        }
        let package = self.extended_package(source, posted.transaction(), Some(posted)).await?;
        for ancestor in &package.ancestors {
            let txid = ancestor.transaction().txid();
            self.check_alone(ancestor).map_err(|error| match error {
                Error::FeeTooLow { paid, needed } => {
                    Error::AncestorFeeTooLow { txid, paid, needed }
                }
                error => Error::BadTransaction(format!("its ancestor {txid}: {error}")),
            })?;
        }
        self.check_alone(&package.transaction)?;
        Ok(match posted {
            FormedTransaction::Raw(_) => Vec::new(),
            FormedTransaction::Extended(_) | FormedTransaction::Beef(_) => posted.to_bytes(),
        })
    }

    /// Checks the amounts, the fee and the signatures of one transaction. Broadcasters judge other
    /// scripts than P2PKH.
    fn check_alone(&self, extended: &ExtendedTransaction) -> Result<(), Error> {
        let (transaction, spent) = (extended.transaction(), extended.previous_outputs());
        let sum = |amounts: &mut dyn Iterator<Item = u64>| amounts.fold(0, u64::saturating_add);
        let inputs = sum(&mut spent.iter().map(|output| output.satoshis));
        let outputs = sum(&mut transaction.outputs.iter().map(|output| output.satoshis));
        let paid = inputs.checked_sub(outputs).ok_or_else(|| {
            Error::BadTransaction("its outputs are worth more than its inputs".to_owned())
        })?;
        let needed = self.demand().least(transaction.to_bytes().len() as u64);
        if paid < needed {
            return Err(Error::FeeTooLow { paid, needed });
        }
        let cache = SighashCache::new(transaction);
        for (index, spent) in spent.iter().enumerate() {
            if unlocks_p2pkh(&cache, transaction, index, spent) == Some(false) {
                let reason = format!("the signature or the key of input {index} is wrong");
                return Err(Error::BadTransaction(reason));
            }
        }
        Ok(())
    }
}
