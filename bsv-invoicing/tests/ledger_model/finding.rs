//! Steps in which the network shows payments that nobody has announced.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bsv_invoicing::UserDraft;
use bsv_invoicing::coins::{Chain, KeyPath};
use bsv_invoicing::ledger::rows::AllFigures;
use bsv_invoicing::ledger::{
    CreateUser, Evidence, GetKnown, Notice, Noticed, Query, ShownPlace, Sighting, Watch,
};
use bsv_invoicing::receiving::ReceiptKey;
use bsv_invoicing::transactions::{EncodedTransaction, Purpose, TransactionState};
use bsv_tx::{Script, TxOut};

use crate::network::Place;
use crate::steps::{Payee, Pick, Showing};
use crate::told::Output;
use crate::world::{World, checked, pick};

/// The number of users in an account.
const USERS: usize = 2;

/// Stands for the hash of the public key.
pub(crate) fn hash_of(key: KeyPath) -> [u8; 20] {
    let mut hash = [key.chain as u8; 20];
    hash[..4].copy_from_slice(&key.account.to_be_bytes());
    hash[4..8].copy_from_slice(&key.index.to_be_bytes());
    hash
}

impl World {
    /// The network shows a stranger's payment of these amounts, and the wallet is told.
    pub(crate) fn find(&mut self, outputs: &[(Payee, u64)], showing: Showing) {
        let Some((outputs, paid)) = self.watched_outputs(outputs) else { return };
        let coin = self.network.strangers_coin();
        let index = self.network.add_outputs(&[coin], outputs, Vec::new(), true).unwrap();
        let place = match showing.is_mined {
            true => Place::Block(self.network.new_block()),
            false => Place::Mempool,
        };
        self.network.show(index, place);
        self.notice(index, paid, BTreeSet::new(), self.sighting(showing));
    }

    /// The network shows a block whose coinbase transaction pays these amounts, and the wallet is
    /// told.
    pub(crate) fn find_reward(&mut self, outputs: &[(Payee, u64)]) {
        let Some((outputs, paid)) = self.watched_outputs(outputs) else { return };
        let index = self.network.mine_coinbase(outputs);
        self.notice(index, paid, BTreeSet::new(), Sighting::judged(true));
    }

    /// Outputs of these amounts with a stranger's change, and those of them that the wallet
    /// watches. `None` if there are none.
    fn watched_outputs(
        &mut self,
        outputs: &[(Payee, u64)],
    ) -> Option<(Vec<TxOut>, BTreeMap<u32, Output>)> {
        if self.users.iter().filter(|(_, key)| key.account == self.account).count() < USERS {
            self.create_user();
        }
        let paid = outputs.iter().filter_map(|(payee, satoshis)| self.output(*payee, *satoshis));
        let paid: BTreeMap<u32, Output> = (0..).zip(paid).collect();
        if paid.is_empty() {
            return None;
        }
        let keys = paid.values().map(|it| (hash_of(it.key), it.key)).collect();
        self.execute(&Watch { keys }, |_, _| ()).unwrap();
        let mut outputs: Vec<_> = paid.values().map(pay).collect();
        // The stranger's change.
        outputs.push(TxOut { satoshis: 500, locking_script: Script::from_bytes([0x51]) });
        Some((outputs, paid))
    }

    /// The wallet is told of a transaction that it does not know, with what that pays to it and spends.
    pub(crate) fn notice(
        &mut self,
        index: usize,
        paid: BTreeMap<u32, Output>,
        spends: BTreeSet<ReceiptKey>,
        sighting: Sighting,
    ) {
        let place = match self.network.place(index) {
            Place::Block(block) => ShownPlace::Block(checked(&self.rows, block)),
            _ => ShownPlace::Mempool(sighting),
        };
        let block = self.network.place(index);
        let (came_at, at) = (self.now(), self.at(&self.rows));
        let transaction = (&self.network.transactions[index].transaction).into();
        let shown = vec![Noticed { transaction, place, came_at, ancestry: Vec::new() }];
        let number = self.rows.get::<AllFigures>(&()).map_or(0, |it| it.last_transaction) + 1;
        self.execute(&Notice { shown, now: came_at }, |world, _| {
            let purpose = match world.network.transactions[index].coinbase_of {
                Some(_) => Purpose::Coinbase,
                None => Purpose::Found,
            };
            world.told.add(&world.network, number, (index, purpose, came_at), paid, spends);
            match block {
                Place::Block(block) => {
                    world.told.entries.get_mut(&number).unwrap().proofs = 1;
                    world.told.lose_rivals(number, at);
                    world.told.show(number, TransactionState::Mined(block), at);
                }
                _ => world.told.see(number, sighting, at),
            }
        })
        .unwrap();
        self.drop_bytes_found_late();
    }

    /// The wallet looks again at a transaction that it knows, and gets its bytes again.
    pub(crate) fn notice_again(&mut self, choice: Pick) {
        let Some(number) = self.any(choice, |_| true) else { return };
        let index = self.told.entries[&number].transaction;
        let evidence = if self.has_services { Evidence::Word } else { Evidence::Judged };
        let sighting = Sighting { is_fee_sufficient: true, evidence };
        let block = self.network.place(index);
        let place = match block {
            Place::Nowhere => return,
            Place::Mempool => ShownPlace::Mempool(sighting),
            Place::Block(block) => ShownPlace::Block(checked(&self.rows, block)),
        };
        let (came_at, at) = (self.now(), self.at(&self.rows));
        let transaction: EncodedTransaction =
            (&self.network.transactions[index].transaction).into();
        let known = GetKnown(Arc::new(transaction.clone())).run(&self.rows).unwrap();
        if !known.lacking.is_empty() {
            return;
        }
        let shown = vec![Noticed { transaction, place, came_at, ancestry: Vec::new() }];
        self.execute(&Notice { shown, now: came_at }, |world, _| {
            for (number, _) in known.records {
                let entry = world.told.entries.get_mut(&number).unwrap();
                let is_mined = matches!(entry.state, TransactionState::Mined(_));
                entry.are_bytes_dropped &= is_mined;
                match block {
                    Place::Block(block) if entry.state != TransactionState::Mined(block) => {
                        entry.proofs += 1;
                        world.told.lose_rivals(number, at);
                        world.told.show(number, TransactionState::Mined(block), at);
                    }
                    Place::Mempool => world.told.see(number, sighting, at),
                    _ => {}
                }
            }
        })
        .unwrap();
        self.drop_bytes_found_late();
    }

    fn output(&self, payee: Payee, satoshis: u64) -> Option<Output> {
        let output = |key, invoice, user| Output { satoshis, key, invoice, user };
        match payee {
            Payee::Invoice(choice) => {
                let invoice = self.any_invoice(choice)?;
                Some(output(self.told.invoices[&invoice].key, Some(invoice), None))
            }
            Payee::User(choice) => {
                let (user, key) = pick(&self.users, choice)?;
                Some(output(key, None, Some(user)))
            }
            Payee::Other => {
                let (account, index) = (self.account, 2_000_000);
                Some(output(KeyPath { account, chain: Chain::Change, index }, None, None))
            }
        }
    }

    fn create_user(&mut self) {
        let create =
            CreateUser { details: UserDraft::default(), now: self.now(), idempotency: None };
        let (id, _) = self.execute(&create, |_, _| ()).unwrap();
        let index = u32::try_from(id - self.users_before).unwrap();
        self.users.push((id, KeyPath { account: self.account, chain: Chain::User, index }));
    }
}

fn pay(output: &Output) -> TxOut {
    let locking_script = Script::p2pkh(&hash_of(output.key));
    TxOut { satoshis: output.satoshis, locking_script }
}
