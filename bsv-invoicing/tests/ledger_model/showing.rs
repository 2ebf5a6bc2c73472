//! Steps in which the network shows transactions, and blocks come and go.

use std::collections::BTreeMap;

use bsv_invoicing::coins::{Chain, KeyPath};
use bsv_invoicing::ledger::rows::FollowedBlock;
use bsv_invoicing::ledger::{
    CheckedProof, DropBytes, Evidence, FollowReorganisation, FollowTip, ForgetBlock, GetLong, Mine,
    Query, Refusal, Sighting, Watch,
};
use bsv_invoicing::transactions::{BlockPlace, Purpose, TransactionState};

use bsv_tx::{Script, TxOut};

use crate::finding::hash_of;
use crate::network::Place;
use crate::steps::{Parents, Pick, Showing};
use crate::told::{Output, counts};
use crate::world::{World, checked, followed, pick};

impl World {
    /// The network shows a transaction, and the wallet is told.
    pub(crate) fn show(&mut self, index: usize, showing: Showing) {
        if self.network.is_orphan(index) {
            return;
        }
        while self.network.rival_block(index).is_some() {
            if !showing.may_lose_blocks {
                return;
            }
            self.lose_block(true, showing.are_blocks_told);
        }
        if self.network.is_orphan(index) {
            return;
        }
        let sighting = self.sighting(showing);
        let place = match showing.is_mined {
            true => Place::Block(self.network.new_block()),
            false => Place::Mempool,
        };
        if !showing.is_mined && matches!(self.network.place(index), Place::Block(_)) {
            return self.tell(index, sighting);
        }
        let mut parents = self.network.show(index, place);
        parents.retain(|it| *it != index);
        let (first, last) = match showing.parents {
            Parents::First => (parents, Vec::new()),
            Parents::Last => (Vec::new(), parents),
            Parents::Untold => (Vec::new(), Vec::new()),
        };
        for told in first.into_iter().chain([index]).chain(last) {
            self.tell(told, sighting);
        }
    }

    /// What the source says of a transaction.
    pub(crate) fn sighting(&self, showing: Showing) -> Sighting {
        let Showing { is_fee_sufficient, evidence, .. } = showing;
        let evidence = if self.has_services { evidence } else { Evidence::Judged };
        Sighting { is_fee_sufficient, evidence }
    }

    /// The wallet is told where the network has a transaction.
    fn tell(&mut self, index: usize, sighting: Sighting) {
        let entries = self.told.entries.iter().filter(|(_, it)| it.transaction == index);
        let numbers: Vec<_> = entries.map(|(number, _)| *number).collect();
        for number in numbers {
            match self.network.place(index) {
                Place::Nowhere => {}
                Place::Mempool => self.see(number, sighting),
                Place::Block(block) => self.mine(number, block),
            }
        }
    }

    fn mine(&mut self, transaction: u64, block: BlockPlace) {
        self.mine_checked(transaction, checked(&self.rows, block));
    }

    /// The wallet checks that a transaction is in a block, and records it in a later step.
    pub(crate) fn check_proof(&mut self, transaction: Pick) {
        let Some(number) = self.any(transaction, |_| true) else { return };
        if let Place::Block(block) = self.network.place(self.told.entries[&number].transaction) {
            self.checked.push((number, checked(&self.rows, block)));
        }
    }

    pub(crate) fn mine_late(&mut self, proof: Pick) {
        let choice = pick(&(0..self.checked.len()).collect::<Vec<_>>(), proof);
        let Some((number, checked)) = choice.map(|it| self.checked.swap_remove(it)) else { return };
        let is_followed = checked.reorganisations != followed(&self.rows);
        let is_in_chain = self.network.chain.contains(&checked.proof.block);
        if self.told.entries.contains_key(&number) && (is_followed || is_in_chain) {
            self.mine_checked(number, checked);
        }
    }

    fn mine_checked(&mut self, transaction: u64, checked: CheckedProof) {
        let is_late = checked.reorganisations != followed(&self.rows);
        let block = checked.proof.block;
        let mine = Mine { transaction, checked, now: self.now() };
        let at = self.at(&self.rows);
        let mined = self.execute(&mine, |world, _| {
            if is_late {
                return;
            }
            let new = TransactionState::Mined(block);
            if world.told.state(transaction) != new {
                world.told.lose_rivals(transaction, at);
                world.told.entries.get_mut(&transaction).unwrap().proofs += 1;
                world.told.show(transaction, new, at);
            }
        });
        assert_eq!(matches!(mined, Err(Refusal::Reorganised)), is_late, "{mined:?}");
        self.drop_bytes_found_late();
    }

    pub(crate) fn show_rival(&mut self, transaction: Pick, rival: Pick, showing: Showing) {
        let Some(number) = self.any(transaction, |_| true) else { return };
        let index = self.told.entries[&number].transaction;
        let rivals: Vec<_> = self.network.rivals(index).iter().copied().collect();
        if let Some(rival) = pick(&rivals, rival) {
            self.show(rival, showing);
        }
    }

    pub(crate) fn show_strangers(&mut self, transaction: Pick, showing: Showing) {
        let entries = self.told.entries.values().map(|it| it.transaction);
        let strangers = entries.filter(|it| self.network.transactions[*it].is_of_stranger);
        let Some(index) = pick(&strangers.collect::<Vec<_>>(), transaction) else { return };
        let inputs = &self.network.transactions[index].transaction.inputs;
        let coin = inputs[0].previous_output;
        let Some(rival) = self.network.add(&[coin], &[1000], Vec::new(), true) else { return };
        self.show(rival, showing);
    }

    pub(crate) fn lose_block(&mut self, to_mempool: bool, is_told: bool) {
        let Some(block) = self.network.lose_block(to_mempool) else { return };
        match is_told {
            true => self.follow_reorganisation(vec![block]),
            false => self.untold_blocks.push(block),
        }
    }

    pub(crate) fn follow_reorganisation(&mut self, lost: Vec<BlockPlace>) {
        self.execute(&FollowReorganisation, |world, _| world.told.is_reorganising = true).unwrap();
        lost.into_iter().for_each(|block| self.forget(block));
    }

    fn forget(&mut self, block: BlockPlace) {
        let at = self.at(&self.rows);
        let (after, limit, now) = (0, usize::MAX, self.now());
        let may_have_rivals = self.has_services;
        let forget = ForgetBlock { block, is_replaced: true, may_have_rivals, after, limit, now };
        self.execute(&forget, |world, _| {
            let there = world.told.entries.iter();
            let there = there.filter(|(_, it)| it.state == TransactionState::Mined(block));
            for number in there.map(|(number, _)| *number).collect::<Vec<_>>() {
                let entry = &world.told.entries[&number];
                match entry.purpose {
                    // It has spent an output of a coinbase transaction that is lost.
                    _ if entry.state != TransactionState::Mined(block) => {}
                    Purpose::Coinbase => world.told.lose(number, TransactionState::Invalid, at),
                    _ => {
                        world.told.note_word(number, may_have_rivals);
                        let new = world.told.state_without_block(number);
                        world.told.set(number, new, at);
                    }
                }
            }
        })
        .unwrap();
    }

    pub(crate) fn return_block(&mut self, coinbase: Pick) {
        let lost = self.told.entries.values().map(|it| it.transaction);
        let lost = lost.filter(|it| self.network.is_orphan(*it));
        let lost = lost.filter(|it| match self.network.transactions[*it].coinbase_of {
            Some(block) => !self.untold_blocks.contains(&block),
            None => false,
        });
        let Some(index) = pick(&lost.collect::<Vec<_>>(), coinbase) else { return };
        if self.network.return_block(index).is_some() {
            self.tell(index, Sighting::judged(true));
        }
    }

    /// Another copy of the wallet has made a transaction.
    pub(crate) fn recover(
        &mut self,
        from: Option<Pick>,
        to_invoice: Option<Pick>,
        satoshis: u64,
        is_mined: bool,
    ) {
        let counting = self.told.receipts().filter(|(_, _, maker)| counts(maker.state));
        let counting: Vec<_> = counting.map(|(key, ..)| key).collect();
        let spent = from.and_then(|from| pick(&counting, from));
        let input = match spent {
            Some(key) => self.outpoint(key),
            None => self.network.strangers_coin(),
        };
        let to_invoice = to_invoice.and_then(|it| self.any_invoice(it));
        let key = match to_invoice {
            Some(invoice) => self.told.invoices[&invoice].key,
            None => {
                let index = 1_000_000 + u32::try_from(self.network.transactions.len()).unwrap();
                KeyPath { account: self.account, chain: Chain::Change, index }
            }
        };
        let locking_script = Script::p2pkh(&hash_of(key));
        self.execute(&Watch { keys: vec![(hash_of(key), key)] }, |_, _| ()).unwrap();
        let outputs = vec![TxOut { satoshis, locking_script }];
        let index = self.network.add_outputs(&[input], outputs, Vec::new(), false);
        let Some(index) = index else { return };
        if self.network.rival_block(index).is_some() || self.network.is_orphan(index) {
            return;
        }
        let place = match is_mined {
            true => Place::Block(self.network.new_block()),
            false => Place::Mempool,
        };
        self.network.show(index, place);
        let output = Output { satoshis, key, invoice: to_invoice, user: None };
        let sighting = Sighting::judged(true);
        self.notice(index, BTreeMap::from([(0, output)]), spent.into_iter().collect(), sighting);
    }

    /// The wallet drops the bytes of long transactions that nobody needs any more.
    fn drop_bytes_after(&mut self, place: (u32, u64), tip: u32) {
        let mut next = Some(place);
        let mut rows = self.rows.clone();
        while let Some(after) = next {
            let long = GetLong { after, tip, limit: 2 }.run(&rows).unwrap();
            for transaction in long.numbers {
                rows.execute(&DropBytes { transaction, tip }).unwrap();
            }
            next = long.next;
        }
        self.rows = rows;
    }

    /// The same for transactions that were deep when the wallet found them.
    pub(crate) fn drop_bytes_found_late(&mut self) {
        if let Some(tip) = self.told.followed {
            self.drop_bytes_after((0, 0), tip);
            self.told.drop_bytes(&self.network);
        }
    }

    /// The chain grows, and the wallet follows it. The first blocks hold the mempool, and the
    /// wallet's payments if these are to be mined.
    pub(crate) fn grow(&mut self, blocks: u32, with_payments: bool) {
        let showing = Showing {
            is_fee_sufficient: true,
            is_mined: true,
            may_lose_blocks: false,
            are_blocks_told: true,
            parents: Parents::First,
            evidence: Evidence::Word,
        };
        for index in 0..self.network.transactions.len() {
            let is_open_payment = self.told.entries.values().any(|it| {
                let is_payment = matches!(it.purpose, Purpose::Outgoing(_));
                it.transaction == index && is_payment && it.state == TransactionState::Offered
            });
            let is_in_mempool = self.network.place(index) == Place::Mempool;
            if is_in_mempool || (with_payments && is_open_payment) {
                self.show(index, showing);
            }
        }
        // A chain takes the place of another one only if it is longer.
        let last = self.network.chain.last().map_or(0, |last| last.height);
        let missing = self.told.followed.map_or(0, |followed| followed.saturating_sub(last));
        let BlockPlace { hash, height } = self.network.new_block_after(blocks.max(missing));
        self.drop_bytes_after(GetLong::begin(self.told.followed), height);
        let tip = FollowedBlock { height, hash };
        self.execute(&FollowTip { tip, now: self.now() }, |world, _| {
            world.told.follow(height);
            world.told.drop_bytes(&world.network);
        })
        .unwrap();
    }
}
