//! What is offered to the network: a transaction, with what the source needs to take it.
//!
//! A node knows what a transaction spends. Services do not, so they get it in extended format, after
//! its ancestors that are not proven to be in blocks. What it spends comes from the ancestors that the
//! payer has sent, from our own transactions, or from the payer's word if his signature commits to it.

use std::collections::{HashMap, HashSet};

use bsv_network::{ExtendedPackage, NetworkSource, Package};
use bsv_tx::{
    Beef, ExtendedTransaction, FormedTransaction, OutPoint, Script, Transaction, TxOut, Txid,
};
use futures_util::future::BoxFuture;

use crate::error::Error;
use crate::ledger::queries::{GetAncestry, GetMaker, GetReceipt, HasRival};
use crate::ledger::rows::Damaged;
use crate::model::receipt::ReceiptKey;
use crate::store::{WalletStore, WalletStoreError};
use crate::wallet::Wallet;
use crate::wallet::sources::away;

/// The most unproven ancestors of a transaction that are offered to services.
pub(crate) const MAX_UNPROVEN: usize = 100;

impl Wallet {
    /// A stored transaction, as the source takes it.
    pub(crate) async fn package<'t>(
        &self,
        source: &NetworkSource,
        number: u64,
        transaction: &'t Transaction,
    ) -> Result<Package<'t>, Error> {
        let posted = match source.takes_extended() {
            true => self.posted_form(number).await?,
            false => None,
        };
        self.package_of(source, transaction, posted.as_ref()).await
    }

    /// A transaction, as the source takes it. `posted` is what its payer has sent.
    pub(crate) async fn package_of<'t>(
        &self,
        source: &NetworkSource,
        transaction: &'t Transaction,
        posted: Option<&FormedTransaction>,
    ) -> Result<Package<'t>, Error> {
        if !source.takes_extended() {
            return Ok(Package::Plain(transaction));
        }
        let (package, _) = self.extended_package(source, transaction, posted).await?;
        Ok(Package::Extended(Box::new(package)))
    }

    /// A transaction with what it spends, and with its unproven ancestors. `posted` is what its payer has
    /// sent.
    ///
    /// Fails with [`Error::UnknownInput`] or [`Error::UnknownAncestorInput`] if it is not known what a
    /// transaction spends. The answer names the inputs of which only a payer says what they spend. The
    /// caller must look at their signatures, unless that was done before.
    pub(crate) async fn extended_package(
        &self,
        source: &NetworkSource,
        transaction: &Transaction,
        posted: Option<&FormedTransaction>,
    ) -> Result<(ExtendedPackage, Claimed), Error> {
        let mut lineage = Lineage::default();
        let subject = lineage.extend(self, source, transaction, posted).await?;
        let Lineage { ancestors, is_vague, newest_block, claimed, .. } = lineage;
        let is_proven = !is_vague;
        let package = ExtendedPackage { ancestors, transaction: subject, is_proven, newest_block };
        Ok((package, claimed))
    }

    /// What the payer of a stored transaction has sent, if that was more than the transaction.
    pub(crate) async fn posted_form(
        &self,
        number: u64,
    ) -> Result<Option<FormedTransaction>, Error> {
        let bytes = self.store.get(GetAncestry(number)).await?;
        if bytes.is_empty() {
            return Ok(None);
        }
        let damaged = |error| Damaged(format!("the ancestors of a transaction: {error}"));
        let form = FormedTransaction::from_bytes(&bytes).map_err(damaged);
        Ok(Some(form.map_err(WalletStoreError::from)?))
    }
}

/// Inputs, by their transactions, of which only a payer says what they spend.
pub(crate) type Claimed = HashSet<(Txid, usize)>;

/// The unproven ancestors of a transaction, as they are found.
#[derive(Default)]
struct Lineage {
    /// Parents before their children.
    ancestors: Vec<ExtendedTransaction>,
    visited: HashSet<Txid>,
    /// Whether it is not proven where some coin comes from.
    is_vague: bool,
    /// The height of the newest block that makes a coin.
    newest_block: Option<u32>,
    claimed: Claimed,
}

/// What a payer has sent, by txid.
#[derive(Default)]
struct Posted<'p> {
    proven: HashMap<Txid, &'p Transaction>,
    unproven: HashMap<Txid, &'p Transaction>,
    claimed: Option<&'p ExtendedTransaction>,
    /// Whether its Merkle paths lead to our best chain.
    holds: bool,
    /// The height of the newest block to which they lead.
    newest_block: Option<u32>,
}

impl<'p> Posted<'p> {
    async fn of(
        source: &NetworkSource,
        form: Option<&'p FormedTransaction>,
    ) -> Result<Self, Error> {
        match form {
            Some(FormedTransaction::Beef(beef)) => {
                let holds = has_all_roots(source, beef).await?;
                let newest = beef.claimed_roots().last().map(|(height, _)| *height);
                Ok(Self {
                    unproven: beef.unmined().collect(),
                    proven: beef.transactions().collect(),
                    claimed: None,
                    holds,
                    newest_block: newest.filter(|_| holds),
                })
            }
            Some(FormedTransaction::Extended(extended)) => {
                Ok(Self { claimed: Some(extended), holds: true, ..Self::default() })
            }
            Some(FormedTransaction::Raw(_)) | None => Ok(Self { holds: true, ..Self::default() }),
        }
    }
}

async fn has_all_roots(source: &NetworkSource, beef: &Beef) -> Result<bool, Error> {
    for (height, root) in beef.claimed_roots() {
        let block = source.header_at(height).await.map_err(away)?;
        if block.is_none_or(|block| block.header.merkle_root != root) {
            return Ok(false);
        }
    }
    Ok(true)
}

impl Lineage {
    /// A transaction with what it spends. Its unproven ancestors come before it.
    async fn extend(
        &mut self,
        wallet: &Wallet,
        source: &NetworkSource,
        transaction: &Transaction,
        form: Option<&FormedTransaction>,
    ) -> Result<ExtendedTransaction, Error> {
        let posted = Posted::of(source, form).await?;
        self.is_vague |= !posted.holds;
        self.newest_block = self.newest_block.max(posted.newest_block);
        self.extend_by(wallet, source, transaction, &posted, true).await
    }

    fn extend_by<'a>(
        &'a mut self,
        wallet: &'a Wallet,
        source: &'a NetworkSource,
        transaction: &'a Transaction,
        posted: &'a Posted<'a>,
        is_subject: bool,
    ) -> BoxFuture<'a, Result<ExtendedTransaction, Error>> {
        Box::pin(async move {
            let txid = transaction.txid();
            let mut outputs = Vec::with_capacity(transaction.inputs.len());
            for (index, input) in transaction.inputs.iter().enumerate() {
                let outpoint = input.previous_output;
                let unknown = || match is_subject {
                    true => Error::UnknownInput { index, outpoint },
                    false => Error::UnknownAncestorInput { txid, outpoint },
                };
                let output = if let Some(parent) = posted.unproven.get(&outpoint.txid) {
                    if self.begins(outpoint.txid)? {
                        self.is_vague |= wallet.store.get(HasRival(outpoint.txid)).await?;
                        let parent = self.extend_by(wallet, source, parent, posted, false).await?;
                        self.ancestors.push(parent);
                    }
                    output_of(parent, outpoint)
                } else if let Some(parent) = posted.proven.get(&outpoint.txid) {
                    output_of(parent, outpoint)
                } else if let Some(output) = self.own_output(wallet, source, outpoint).await? {
                    Some(output)
                } else {
                    self.is_vague = true;
                    let claimed = posted.claimed.filter(|it| it.transaction() == transaction);
                    self.claimed.extend(claimed.map(|_| (txid, index)));
                    claimed.map(|it| it.previous_outputs()[index].clone())
                };
                outputs.push(output.ok_or_else(unknown)?);
            }
            Ok(ExtendedTransaction::new(transaction.clone(), outputs)
                .expect("there is an output for each input"))
        })
    }

    /// An output of a transaction that the wallet has. If the transaction is in no block, it becomes an
    /// ancestor, with its own ones.
    async fn own_output(
        &mut self,
        wallet: &Wallet,
        source: &NetworkSource,
        outpoint: OutPoint,
    ) -> Result<Option<TxOut>, Error> {
        let maker = wallet.store.get(GetMaker(outpoint.txid)).await?;
        let Some((number, record, transaction)) = maker else { return Ok(None) };
        let Some(transaction) = transaction else {
            // Its bytes are dropped, so it is deep in the chain.
            let key = ReceiptKey { maker: number, vout: outpoint.vout };
            let Some(receipt) = wallet.store.get(GetReceipt(key)).await? else { return Ok(None) };
            let locking_script = Script::p2pkh(&wallet.keys.coin_hash(receipt.key)?);
            return Ok(Some(TxOut { satoshis: receipt.satoshis, locking_script }));
        };
        self.newest_block = self.newest_block.max(record.state.block().map(|block| block.height));
        if record.state.block().is_none() && self.begins(outpoint.txid)? {
            // Only a block decides about it, and so about what spends it.
            self.is_vague |= record.has_rival();
            let form = wallet.posted_form(number).await?;
            let extended = Box::pin(self.extend(wallet, source, &transaction, form.as_ref()));
            let extended = extended.await?;
            self.ancestors.push(extended);
        }
        Ok(output_of(&transaction, outpoint))
    }

    /// Whether an ancestor is visited for the first time. Fails if there are too many.
    fn begins(&mut self, txid: Txid) -> Result<bool, Error> {
        let is_new = self.visited.insert(txid);
        match self.visited.len() > MAX_UNPROVEN {
            true => Err(Error::TooManyAncestors { limit: MAX_UNPROVEN }),
            false => Ok(is_new),
        }
    }
}

fn output_of(transaction: &Transaction, outpoint: OutPoint) -> Option<TxOut> {
    transaction.outputs.get(usize::try_from(outpoint.vout).ok()?).cloned()
}
