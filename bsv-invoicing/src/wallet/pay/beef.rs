//! Payments by the wallet as BEEF, for payees whose wallets accept that.

use std::collections::BTreeSet;
use std::time::Duration;

use bsv_network::{MinedIn, NetworkSource};
use bsv_tx::{Ancestry, Beef, BeefError, BeefVersion, Bump, Transaction, Txid};
use tokio::time::timeout;

use crate::dpp::Terms;
use crate::error::Error;
use crate::ledger::queries::{GetMaker, GetOutgoingTransaction, GetProofs};
use crate::model::transaction::TransactionRecord;
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::shown::check_proof;
use crate::wallet::sources::away;

/// How long the ancestors of a new payment may be looked for. Its coins are reserved meanwhile.
const PATIENCE: Duration = Duration::from_secs(10);

impl Wallet {
    /// The transaction of a payment by the wallet as Atomic BEEF. It holds the ancestors back to
    /// mined ones, and the Merkle paths of those, as they are known now.
    ///
    /// Fails with [`Error::NoBeef`] if an ancestor is not to be had, or if the ancestors are more
    /// than a BEEF may hold.
    pub async fn outgoing_beef(&self, number: u64) -> Result<Beef, Error> {
        let (_, subject) = self.store.get(GetOutgoingTransaction(number)).await?;
        let archive = Archive { wallet: Some(self), source: &self.sources()?.operating };
        let txid = subject.txid();
        let own = archive.own(&txid).await?;
        let ancestry = match archive.bump(&txid, own.as_ref()).await? {
            Some(bump) => Ancestry { bumps: vec![bump], ..Ancestry::default() },
            None => archive.ancestry(&subject).await?,
        };
        Ok(Beef::new(BeefVersion::V1, subject, ancestry)?.into_atomic()?)
    }
}

/// Where the ancestors of a transaction are looked for: among the transactions of the wallet, and
/// then in the network.
pub(super) struct Archive<'a> {
    pub(super) wallet: Option<&'a Wallet>,
    pub(super) source: &'a NetworkSource,
}

/// A transaction of the wallet: its number, its record, and the transaction unless its bytes are dropped.
type Own = (u64, TransactionRecord, Option<Transaction>);

impl Archive<'_> {
    /// A new payment with its ancestors, if the payee wants them.
    pub(super) async fn for_payee(
        &self,
        terms: &Terms,
        payment: &Transaction,
    ) -> Result<Option<Beef>, Error> {
        if !terms.wants_ancestry {
            return Ok(None);
        }
        let ancestry = timeout(PATIENCE, self.ancestry(payment)).await;
        let too_slow = |_| {
            let seconds = PATIENCE.as_secs();
            let reason = format!("the payment's ancestors were not found within {seconds} seconds");
            Error::NetworkAway(reason)
        };
        let ancestry = ancestry.map_err(too_slow)??;
        Ok(Some(Beef::new(BeefVersion::V1, payment.clone(), ancestry)?))
    }

    /// The ancestors of a transaction, back to mined ones.
    async fn ancestry(&self, subject: &Transaction) -> Result<Ancestry, Error> {
        let mut ancestry = Ancestry::default();
        let mut asked = BTreeSet::new();
        let mut len = subject.to_bytes().len();
        let mut to_visit: Vec<_> = parents(subject).collect();
        while let Some(txid) = to_visit.pop() {
            if !asked.insert(txid) {
                continue;
            }
            // The subject is one more.
            if asked.len() >= Beef::MAX_TRANSACTIONS {
                return Err(BeefError::TooMany(asked.len() as u64 + 1, "transactions").into());
            }
            let own = self.own(&txid).await?;
            let bump = self.bump(&txid, own.as_ref()).await?;
            let transaction = match own {
                Some((_, _, Some(transaction))) => transaction,
                _ => {
                    let missing = || Error::NoBeef(format!("{txid} was not found"));
                    self.source.transaction(&txid).await.map_err(away)?.ok_or_else(missing)?
                }
            };
            len += transaction.to_bytes().len();
            if len > Beef::MAX_LEN {
                return Err(BeefError::TooLong(len).into());
            }
            match bump {
                Some(bump) => ancestry.bumps.push(bump),
                None => to_visit.extend(parents(&transaction)),
            }
            ancestry.transactions.push(transaction);
        }
        Ok(ancestry)
    }

    async fn own(&self, txid: &Txid) -> Result<Option<Own>, Error> {
        match self.wallet {
            Some(wallet) => Ok(wallet.store.get(GetMaker(*txid)).await?),
            None => Ok(None),
        }
    }

    /// The Merkle path of a transaction, if it is in a block of the main chain.
    async fn bump(&self, txid: &Txid, own: Option<&Own>) -> Result<Option<Bump>, Error> {
        let mined = match self.own_proof(own).await? {
            Some(mined) => Some(mined),
            // Whoever follows the wallet's transactions asks services about them.
            None if own.is_some() && self.source.takes_extended() => None,
            None => self.source.mined_in(txid).await.map_err(away)?,
        };
        let Some(mined) = mined else { return Ok(None) };
        let proof = check_proof(self.source, txid, mined).await?;
        let bump = proof.map(|proof| Bump::of(proof.block.height, &[(*txid, proof.branch)]));
        bump.transpose().map_err(|error| Error::NoBeef(error.to_string()))
    }

    /// The proof of a transaction of the wallet that a block holds.
    async fn own_proof(&self, own: Option<&Own>) -> Result<Option<MinedIn>, Error> {
        let mined = own.and_then(|(number, record, _)| Some((*number, record.state.block()?)));
        let (Some(wallet), Some((number, block))) = (self.wallet, mined) else { return Ok(None) };
        let proofs = wallet.store.get(GetProofs(number)).await?;
        let proof = proofs.into_iter().rev().map(|it| it.proof).find(|it| it.block == block);
        Ok(proof.map(|it| MinedIn { block: it.block.hash, branch: it.branch }))
    }
}

fn parents(transaction: &Transaction) -> impl Iterator<Item = Txid> {
    transaction.inputs.iter().map(|input| input.previous_output.txid)
}
