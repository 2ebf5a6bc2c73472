//! Payments by the wallet as BEEF, for payees whose wallets accept that.

use std::collections::BTreeSet;

use bsv_network::{MinedIn, NetworkSource};
use bsv_tx::{Ancestry, Beef, BeefError, BeefVersion, Bump, Transaction, Txid};

use crate::error::Error;
use crate::ledger::queries::{GetMaker, GetOutgoingTransaction, GetProofs};
use crate::store::WalletStore;
use crate::wallet::Wallet;
use crate::wallet::shown::check_proof;
use crate::wallet::sources::away;

impl Wallet {
    /// The transaction of a payment by the wallet as Atomic BEEF. It holds the ancestors back to
    /// mined ones, and the Merkle paths of those, as they are known now.
    ///
    /// Fails with [`Error::NoBeef`] if an ancestor is not to be had, or if the ancestors are more
    /// than a BEEF may hold.
    pub async fn outgoing_beef(&self, number: u64) -> Result<Beef, Error> {
        let (_, subject) = self.store.get(GetOutgoingTransaction(number)).await?;
        let archive = Archive { wallet: Some(self), source: &self.sources()?.operating };
        let ancestry = match archive.bump(&subject.txid()).await? {
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

impl Archive<'_> {
    /// A transaction that is not mined, with its ancestors.
    pub(super) async fn beef(&self, subject: &Transaction) -> Result<Beef, Error> {
        let ancestry = self.ancestry(subject).await?;
        Ok(Beef::new(BeefVersion::V1, subject.clone(), ancestry)?)
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
            let missing = || Error::NoBeef(format!("the network does not have {txid}"));
            let transaction = self.transaction(&txid).await?.ok_or_else(missing)?;
            len += transaction.to_bytes().len();
            if len > Beef::MAX_LEN {
                return Err(BeefError::TooLong(len).into());
            }
            match self.bump(&txid).await? {
                Some(bump) => ancestry.bumps.push(bump),
                None => to_visit.extend(parents(&transaction)),
            }
            ancestry.transactions.push(transaction);
        }
        Ok(ancestry)
    }

    async fn transaction(&self, txid: &Txid) -> Result<Option<Transaction>, Error> {
        if let Some(wallet) = self.wallet
            && let Some((_, _, Some(own))) = wallet.store.get(GetMaker(*txid)).await?
        {
            return Ok(Some(own));
        }
        self.source.transaction(txid).await.map_err(away)
    }

    /// The Merkle path of a transaction, if it is in a block of the main chain.
    async fn bump(&self, txid: &Txid) -> Result<Option<Bump>, Error> {
        let mined = match self.own_proof(txid).await? {
            Some(mined) => Some(mined),
            None => self.source.mined_in(txid).await.map_err(away)?,
        };
        let Some(mined) = mined else { return Ok(None) };
        let proof = check_proof(self.source, txid, mined).await?;
        let bump = proof.map(|proof| Bump::of(proof.block.height, &[(*txid, proof.branch)]));
        bump.transpose().map_err(|error| Error::NoBeef(error.to_string()))
    }

    /// The proof of a transaction of the wallet that a block holds.
    async fn own_proof(&self, txid: &Txid) -> Result<Option<MinedIn>, Error> {
        let Some(wallet) = self.wallet else { return Ok(None) };
        let maker = wallet.store.get(GetMaker(*txid)).await?;
        let mined = maker.and_then(|(number, record, _)| Some((number, record.state.block()?)));
        let Some((number, block)) = mined else { return Ok(None) };
        let proofs = wallet.store.get(GetProofs(number)).await?;
        let proof = proofs.into_iter().rev().map(|it| it.proof).find(|it| it.block == block);
        Ok(proof.map(|it| MinedIn { block: it.block.hash, branch: it.branch }))
    }
}

fn parents(transaction: &Transaction) -> impl Iterator<Item = Txid> {
    transaction.inputs.iter().map(|input| input.previous_output.txid)
}
