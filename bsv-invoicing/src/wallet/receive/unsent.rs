//! A payment and its ancestors before the node has them.

use std::collections::{BTreeMap, HashMap};

use bsv_network::{MempoolEntry, NetworkSource, OutputState};
use bsv_tx::{OutPoint, Transaction, Txid};

use super::ancestors::{Demand, Payment};
use crate::error::Error;
use crate::wallet::mempool_entries::RecentEntries;
use crate::wallet::sources::away;

/// The most coins that a payment may spend, together with its ancestors that the node does not have.
/// Wallets spend a few hundred at most. A node needs about 20 milliseconds to look for so many.
const MAX_COINS: usize = 1000;

/// A payment and those of its ancestors that the node does not have.
pub(super) struct Unsent<'t> {
    payment: Txid,
    /// Parents before their children, the payment last.
    transactions: Vec<(Txid, &'t Transaction)>,
}

/// An output that the node has: its amount, and whether it is unconfirmed.
struct Coin {
    satoshis: u64,
    is_unconfirmed: bool,
}

impl<'t> Unsent<'t> {
    /// A payment whose ancestors the node has.
    pub(super) fn only(payment: &'t Transaction) -> Self {
        Self::after(Vec::new(), payment)
    }

    /// A payment and these ancestors, parents before their children.
    pub(super) fn after(
        mut ancestors: Vec<(Txid, &'t Transaction)>,
        payment: &'t Transaction,
    ) -> Self {
        let txid = payment.txid();
        ancestors.push((txid, payment));
        Self { payment: txid, transactions: ancestors }
    }

    /// Fails unless the outputs that they spend outside the group are unspent, and the payment's
    /// fee suffices for itself and for the ancestors that are not paid for.
    pub(super) async fn check(
        &self,
        source: &NetworkSource,
        recent: &RecentEntries,
        demand: Demand,
    ) -> Result<(), Error> {
        let made: HashMap<_, _> = self.transactions.iter().copied().collect();
        let coins = self.coins(source, &made).await?;
        let entries = self
            .transactions
            .iter()
            .map(|(txid, transaction)| Ok((*txid, self.entry(*txid, transaction, &made, &coins)?)));
        let mut unsent = entries.collect::<Result<BTreeMap<_, _>, Error>>()?;
        let payment = unsent.remove(&self.payment).expect("the payment is among them");
        let MempoolEntry { fee, size, parents } = payment;
        let mut entries = recent.of(source);
        let checked = Payment { fee, size, parents, unsent }.check(&mut entries, demand).await;
        entries.keep().await;
        checked
    }

    /// The outputs that they spend outside the group, as the node knows them.
    async fn coins(
        &self,
        source: &NetworkSource,
        made: &HashMap<Txid, &Transaction>,
    ) -> Result<HashMap<OutPoint, Coin>, Error> {
        let inputs = self.transactions.iter().flat_map(|(txid, transaction)| {
            let spent = transaction.inputs.iter().map(|input| input.previous_output);
            spent.enumerate().map(|(index, outpoint)| (*txid, index, outpoint))
        });
        let inputs: Vec<_> =
            inputs.filter(|(.., outpoint)| !made.contains_key(&outpoint.txid)).collect();
        if inputs.len() > MAX_COINS {
            let reason =
                format!("it spends {} coins, and at most {MAX_COINS} are taken", inputs.len());
            return Err(Error::BadTransaction(reason));
        }
        let outpoints: Vec<_> = inputs.iter().map(|(.., outpoint)| *outpoint).collect();
        let states = source.coins(&outpoints).await.map_err(away)?;
        let coins =
            states.into_iter().zip(inputs).map(|(state, (txid, index, outpoint))| match state {
                OutputState::Unspent { satoshis, confirmations } => {
                    Ok((outpoint, Coin { satoshis, is_unconfirmed: confirmations == 0 }))
                }
                OutputState::Spent { .. } | OutputState::Missing => {
                    Err(match txid == self.payment {
                        true => Error::UnknownInput { index, outpoint },
                        false => Error::UnknownAncestorInput { txid, outpoint },
                    })
                }
            });
        coins.collect()
    }

    /// The entry that the node's mempool would have for one of them.
    fn entry(
        &self,
        txid: Txid,
        transaction: &Transaction,
        made: &HashMap<Txid, &Transaction>,
        coins: &HashMap<OutPoint, Coin>,
    ) -> Result<MempoolEntry, Error> {
        let mut parents = Vec::new();
        let mut inputs = 0_u64;
        for outpoint in transaction.inputs.iter().map(|input| input.previous_output) {
            let (satoshis, is_unconfirmed) = match made.get(&outpoint.txid) {
                Some(parent) => (output(parent, outpoint)?.satoshis, true),
                None => {
                    let coin = &coins[&outpoint];
                    (coin.satoshis, coin.is_unconfirmed)
                }
            };
            inputs = inputs.saturating_add(satoshis);
            if is_unconfirmed {
                parents.push(outpoint.txid);
            }
        }
        let amounts = transaction.outputs.iter().map(|output| output.satoshis);
        let outputs = amounts.fold(0, u64::saturating_add);
        let fee = inputs.checked_sub(outputs).ok_or_else(|| {
            Error::BadTransaction(match txid == self.payment {
                true => "its outputs are worth more than its inputs".to_owned(),
                false => {
                    format!("the outputs of its ancestor {txid} are worth more than its inputs")
                }
            })
        })?;
        Ok(MempoolEntry { fee, size: transaction.to_bytes().len() as u64, parents })
    }
}

fn output(parent: &Transaction, outpoint: OutPoint) -> Result<&bsv_tx::TxOut, Error> {
    let output = usize::try_from(outpoint.vout).ok().and_then(|vout| parent.outputs.get(vout));
    output
        .ok_or_else(|| Error::BadTransaction(format!("it spends {outpoint}, which does not exist")))
}
