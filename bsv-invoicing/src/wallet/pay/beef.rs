//! Payments by the wallet as BEEF, for payees whose wallets accept that.

use std::collections::BTreeSet;

use bsv_network::NetworkSource;
use bsv_tx::{Ancestry, Beef, BeefError, BeefVersion, Bump, Transaction, Txid};

use crate::error::Error;
use crate::ledger::queries::GetOutgoingTransaction;
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::shown::check_proof;
use crate::wallet::sources::away;

impl Wallet {
    /// The transaction of a payment by the wallet as Atomic BEEF. It holds the ancestors back to
    /// mined ones, and the Merkle paths of those, as the node knows them now.
    ///
    /// Fails with [`Error::NoBeef`] if the node lacks an ancestor, or if the ancestors are more
    /// than a BEEF may hold.
    pub async fn outgoing_beef(&self, number: u64) -> Result<Beef, Error> {
        let (_, subject) = self.store.get(GetOutgoingTransaction(number)).await?;
        let ancestry = ancestry(&self.sources()?.operating, &subject).await?;
        Ok(Beef::new(BeefVersion::V1, subject, ancestry)?.into_atomic()?)
    }
}

/// The ancestors of a transaction, back to mined ones.
async fn ancestry(source: &NetworkSource, subject: &Transaction) -> Result<Ancestry, Error> {
    let mut ancestry = Ancestry::default();
    let mut to_visit = vec![subject.clone()];
    let mut asked = BTreeSet::from([subject.txid()]);
    let mut len = 0;
    while let Some(transaction) = to_visit.pop() {
        if let Some(bump) = bump(source, &transaction.txid()).await? {
            ancestry.bumps.push(bump);
        } else {
            for parent in transaction.inputs.iter().map(|input| input.previous_output.txid) {
                if !asked.insert(parent) {
                    continue;
                }
                if asked.len() > Beef::MAX_TRANSACTIONS {
                    return Err(BeefError::TooMany(asked.len() as u64, "transactions").into());
                }
                let missing = || Error::NoBeef(format!("the node does not have {parent}"));
                let found = source.transaction(&parent).await.map_err(away)?;
                to_visit.push(found.ok_or_else(missing)?);
            }
        }
        len += transaction.to_bytes().len();
        if len > Beef::MAX_LEN {
            return Err(BeefError::TooLong(len).into());
        }
        ancestry.transactions.push(transaction);
    }
    Ok(ancestry)
}

/// The Merkle path of a transaction, if it is in a block of the main chain.
async fn bump(source: &NetworkSource, txid: &Txid) -> Result<Option<Bump>, Error> {
    let Some(mined) = source.mined_in(txid).await.map_err(away)? else { return Ok(None) };
    let proof = check_proof(source, txid, mined).await?;
    let bump = proof.map(|proof| Bump::of(proof.block.height, &[(*txid, proof.branch)]));
    bump.transpose().map_err(|error| Error::NoBeef(error.to_string()))
}
