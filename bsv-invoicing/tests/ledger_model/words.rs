//! The rules for what services say. Nothing but a path decides between two transactions that spend one
//! coin, and what counts by a word alone is limited.

use std::collections::{BTreeMap, BTreeSet};

use bsv_invoicing::ledger::rows::AllFigures;
use bsv_invoicing::ledger::{Evidence, FreeInvoices, NoteRival, See, Sighting, TellByServices};
use bsv_invoicing::receiving::ReceiptKey;
use bsv_invoicing::transactions::{BlockPlace, Purpose, ShownAs, TransactionState, WaitReason};
use bsv_invoicing::{Timestamp, transactions::Word};

use bsv_tx::OutPoint;

use crate::rows::MemoryRows;
use crate::steps::Pick;
use crate::told::{Entry, Told, counts, is_lost, spends};
use crate::world::World;

impl Entry {
    /// Whether another transaction is known that spends one of its coins.
    pub(crate) fn has_rival(&self) -> bool {
        self.word.is_some_and(|word| word.has_rival)
    }

    /// Why it waits.
    pub(crate) fn wait_reason(&self) -> WaitReason {
        match self.word {
            Some(word) if word.has_rival => WaitReason::Rival,
            Some(word) => word.waits_for,
            None => WaitReason::LowFee,
        }
    }

    /// Whether the network has it by the word of services alone.
    fn is_by_word(&self) -> bool {
        self.word.is_some() && spends(self.state) && self.state.block().is_none()
    }

    /// Whether its outputs can be spent, as far as what is known of it goes. By a word alone, only those
    /// that the wallet made itself can.
    pub(crate) fn can_be_spent(&self) -> bool {
        match self.state {
            TransactionState::Mined(_) => true,
            TransactionState::Seen if self.is_by_word() => {
                !self.purpose.is_from_outside() && !self.has_rival()
            }
            TransactionState::Seen => true,
            _ => false,
        }
    }

    fn is_strangers(&self) -> bool {
        matches!(self.purpose, Purpose::Incoming(_) | Purpose::Found)
    }

    /// Whether what it spends must be known, because nothing but a path excludes that another transaction
    /// spends it too.
    fn may_have_rivals(&self) -> bool {
        let is_open = self.state.block().is_none() && !is_lost(self.state);
        let is_told = self
            .word
            .is_some_and(|word| spends(self.state) || word.waits_for != WaitReason::UnknownCoins);
        is_told && is_open && self.purpose != Purpose::Coinbase
    }
}

impl Told {
    /// A source shows a transaction in no block.
    pub(crate) fn see(&mut self, number: u64, sighting: Sighting, at: Timestamp) {
        let Entry { state: old, shown, word, .. } = self.entries[&number];
        let is_paid_for = sighting.is_fee_sufficient || shown >= ShownAs::Seen;
        let says_nothing = match (sighting.evidence, old) {
            (_, TransactionState::Mined(_)) => true,
            (Evidence::Judged, _) => false,
            _ if self.entries[&number].purpose == Purpose::Coinbase => true,
            // Only a path decides otherwise than a path.
            (_, TransactionState::Displaced | TransactionState::Cancelled) => true,
            (Evidence::Word, old) => old == TransactionState::Seen,
            (Evidence::Hearsay, old) => counts(old),
        };
        if says_nothing {
            return;
        }
        if sighting.evidence == Evidence::Judged {
            self.entries.get_mut(&number).unwrap().word = None;
            let new = if is_paid_for { TransactionState::Seen } else { TransactionState::Waiting };
            if old != new || word.is_some() {
                self.show(number, new, at);
            }
            return;
        }
        let word = word.unwrap_or_default();
        let may_count = is_paid_for && sighting.evidence == Evidence::Word;
        let begins = may_count && !word.has_rival && !counts(old);
        let is_too_much = begins && self.is_too_much(number);
        let waits_for = match sighting.evidence {
            _ if is_too_much => WaitReason::Exposure,
            Evidence::Hearsay => WaitReason::UnknownCoins,
            _ => WaitReason::LowFee,
        };
        self.entries.get_mut(&number).unwrap().word = Some(Word { waits_for, ..word });
        self.mark_holders(number, at);
        self.mark_rivals(number, at);
        let has_rival = self.entries[&number].has_rival();
        let new = match old {
            _ if may_count && !has_rival && !is_too_much => TransactionState::Seen,
            // It counts until a path of another one holds.
            TransactionState::Contested { .. } => old,
            _ => TransactionState::Waiting,
        };
        self.set(number, new, at);
    }

    /// Services tell of a transaction from now on.
    pub(crate) fn note_word(&mut self, number: u64, is_told_by_services: bool) {
        if is_told_by_services {
            self.entries.get_mut(&number).unwrap().word.get_or_insert_default();
        }
    }

    /// Services tell of a transaction. Those that hold a coin which it spends have a rival, and so has it.
    fn mark_holders(&mut self, number: u64, at: Timestamp) {
        let spent = self.entries[&number].spends.clone();
        let holders = self.holders();
        let holders = spent.iter().filter_map(|key| holders.get(key).copied());
        let holders = holders.filter(|it| *it != number && self.entries.contains_key(it));
        let holders: BTreeSet<_> = holders.collect();
        self.reservations.retain(|_, reserved| reserved.is_disjoint(&spent));
        if !holders.is_empty() {
            holders.into_iter().chain([number]).for_each(|it| self.mark(it, at));
        }
    }

    /// All that are known to spend a coin which this one spends have a rival, and so has this one.
    fn mark_rivals(&mut self, number: u64, at: Timestamp) {
        let it = &self.entries[&number];
        if it.known_coins.is_some() {
            return;
        }
        let rivals = self.others_for_its_coins(number);
        let mut same = self.entries.values().filter(|same| same.transaction == it.transaction);
        let is_marked = it.are_bytes_dropped || same.any(Entry::has_rival);
        if is_marked || !rivals.is_empty() {
            rivals.into_iter().for_each(|it| self.mark(it, at));
            self.mark_alone(number, at);
        }
    }

    /// What is known of what a transaction spends: all, or the coins of the wallet if its bytes are dropped.
    fn known_coins(&self, it: &Entry) -> BTreeSet<OutPoint> {
        let is_own = |coin: &&OutPoint| {
            it.spends
                .iter()
                .any(|key| key.vout == coin.vout && self.entries[&key.maker].txid == coin.txid)
        };
        it.coins.iter().filter(|coin| !it.are_bytes_dropped || is_own(coin)).copied().collect()
    }

    /// The others that spend one of its coins, as far as it matters what they spend.
    fn others_for_its_coins(&self, number: u64) -> Vec<u64> {
        let it = &self.entries[&number];
        let coins = self.known_coins(it);
        let others = self.entries.iter().filter(|(_, other)| {
            let known = other.known_coins.as_ref();
            other.transaction != it.transaction
                && known.is_some_and(|known| !known.is_disjoint(&coins))
        });
        others.map(|(number, _)| *number).collect()
    }

    /// A transaction has a rival. If it is being offered, its invoices can be paid otherwise.
    pub(crate) fn mark(&mut self, number: u64, at: Timestamp) {
        let entry = self.entries.get_mut(&number).unwrap();
        entry.is_offered &= entry.state != TransactionState::Offered;
        self.mark_alone(number, at);
    }

    /// A transaction has a rival. If it counts, it is contested.
    fn mark_alone(&mut self, number: u64, at: Timestamp) {
        let entry = self.entries.get_mut(&number).unwrap();
        if entry.has_rival() {
            return;
        }
        entry.word = Some(Word { has_rival: true, ..entry.word.unwrap_or_default() });
        match entry.state {
            TransactionState::Seen => {
                self.set(number, TransactionState::Contested { told: false }, at);
            }
            _ => self.settle_words(number, at),
        }
    }

    /// What follows from a change of a transaction for what is known of its coins and for the exposure.
    pub(crate) fn settle_words(&mut self, number: u64, at: Timestamp) {
        let it = &self.entries[&number];
        if it.may_have_rivals() && it.known_coins.is_none() {
            self.mark_rivals(number, at);
            let coins = self.known_coins(&self.entries[&number]);
            self.entries.get_mut(&number).unwrap().known_coins = Some(coins);
        } else if !it.may_have_rivals() {
            self.entries.get_mut(&number).unwrap().known_coins = None;
        }
        let it = &self.entries[&number];
        let exposed = match it.state {
            _ if !it.is_strangers() || it.word.is_none() || !counts(it.state) => 0,
            TransactionState::Mined(block) if self.is_exposure_over(block) => 0,
            TransactionState::Mined(_) => it.exposed,
            _ if it.exposed > 0 => it.exposed,
            _ => self.without_block(it),
        };
        self.entries.get_mut(&number).unwrap().exposed = exposed;
        self.end_exposure();
    }

    fn is_exposure_over(&self, block: BlockPlace) -> bool {
        let is_known = !self.is_reorganising && self.is_deep(block);
        self.rules.mined_blocks <= 1 || is_known
    }

    /// What is deep by now is not exposed.
    pub(crate) fn follow_exposure(&mut self) {
        let deep = self.entries.iter().filter(|(_, it)| it.exposed > 0);
        let deep = deep.filter(|(_, it)| it.state.block().is_some_and(|it| self.is_deep(it)));
        for number in deep.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.entries.get_mut(&number).unwrap().exposed = 0;
        }
        self.end_exposure();
    }

    /// What a transaction pays to keys of no invoice, and to invoices that need no block.
    fn without_block(&self, it: &Entry) -> u64 {
        let limit = self.rules.zero_conf_limit;
        let needs_block =
            |invoice: u64| limit.is_some_and(|limit| self.invoices[&invoice].satoshis > limit);
        let outputs = it.outputs.values();
        let exposed = outputs.filter(|it| it.invoice.is_none_or(|invoice| !needs_block(invoice)));
        exposed.map(|it| it.satoshis).sum()
    }

    /// The sum of what counts by a word alone.
    pub(crate) fn exposed(&self) -> u64 {
        self.entries.values().map(|it| it.exposed).sum()
    }

    /// Whether a transaction would lift the sum above its limit. An event tells of the first one.
    fn is_too_much(&mut self, number: u64) -> bool {
        let it = &self.entries[&number];
        let (satoshis, exposed) = (self.without_block(it), self.exposed());
        let Some(limit) = self.rules.exposure_limit.filter(|_| it.is_strangers()) else {
            return false;
        };
        let is_too_much = satoshis > 0 && exposed + satoshis > limit;
        if is_too_much && self.exposure_told_for.is_none() {
            self.exposure_told_for = Some(satoshis);
            self.exposure_events += 1;
        }
        is_too_much
    }

    /// Once there is room for the one that was told of, the next one is told of again.
    fn end_exposure(&mut self) {
        let (exposed, limit) = (self.exposed(), self.rules.exposure_limit);
        let has_room = |it: &u64| limit.is_none_or(|limit| exposed + it <= limit);
        self.exposure_told_for = self.exposure_told_for.filter(|it| !has_room(it));
    }

    /// A block holds a transaction. All others that spend one of its coins are lost.
    pub(crate) fn lose_rivals(&mut self, number: u64, at: Timestamp) {
        let cancelled = self.cancelled_by(number);
        for rival in self.others_for_its_coins(number) {
            self.mark(rival, at);
            let state = match cancelled == Some(rival) {
                true => TransactionState::Cancelled,
                false => TransactionState::Displaced,
            };
            self.lose(rival, state, at);
        }
    }

    /// The sum of the coins that transactions spend which do not hold them, once for each. The wallet
    /// holds what each of them makes.
    pub(crate) fn spent_by_others(&self, holders: &BTreeMap<ReceiptKey, u64>) -> u64 {
        let all = self.entries.iter().filter(|(_, it)| spends(it.state));
        let spent = all.flat_map(|(number, it)| it.spends.iter().map(move |key| (number, key)));
        let by_others = spent.filter(|(number, key)| holders.get(key) != Some(number));
        by_others.map(|(_, key)| self.entries[&key.maker].outputs[&key.vout].satoshis).sum()
    }

    /// Compares what is kept of the sum with the sum itself.
    pub(crate) fn check_exposure(&self, rows: &MemoryRows) {
        let figures = rows.get::<AllFigures>(&()).unwrap_or_default();
        assert_eq!(figures.exposed, self.exposed(), "what counts by a word");
        let told_for = self.exposure_told_for.unwrap_or_default();
        assert_eq!(figures.exposure_told_for, told_for, "what the event told of");
    }
}

impl World {
    /// Services say something of a transaction, whether it is true or not.
    pub(crate) fn say(&mut self, transaction: Pick, sighting: Sighting) {
        if !self.has_services {
            return;
        }
        if let Some(number) = self.any(transaction, |_| true) {
            self.see(number, sighting);
        }
    }

    /// Services say that they know another transaction for a coin.
    pub(crate) fn say_rival(&mut self, transaction: Pick) {
        let Some(transaction) = self.any(transaction, |_| true).filter(|_| self.has_services)
        else {
            return;
        };
        let at = self.at(&self.rows);
        self.execute(&NoteRival { transaction, now: self.now() }, |world, _| {
            let index = world.told.entries[&transaction].transaction;
            let same = world.told.entries.iter().filter(|(_, it)| it.transaction == index);
            let same: Vec<_> = same.map(|(number, _)| *number).collect();
            same.into_iter().for_each(|number| world.told.mark(number, at));
        })
        .unwrap();
    }

    /// Services tell of a transaction instead of a node.
    pub(crate) fn leave_node(&mut self, transaction: Pick) {
        let Some(transaction) = self.any(transaction, |_| true).filter(|_| self.has_services)
        else {
            return;
        };
        let at = self.at(&self.rows);
        self.execute(&TellByServices { transaction, now: self.now() }, |world, _| {
            let it = &world.told.entries[&transaction];
            let is_in_mempool = spends(it.state) && it.state.block().is_none();
            if is_in_mempool && it.word.is_none() {
                world.told.note_word(transaction, true);
                world.told.settle_words(transaction, at);
            }
        })
        .unwrap();
    }

    /// Nobody says for a while what became of a payment.
    pub(crate) fn free_invoices(&mut self, transaction: Pick) {
        let Some(transaction) = self.any(transaction, |_| true).filter(|_| self.has_services)
        else {
            return;
        };
        self.execute(&FreeInvoices { transaction }, |world, _| {
            let entry = world.told.entries.get_mut(&transaction).unwrap();
            entry.is_offered &= entry.state != TransactionState::Offered;
        })
        .unwrap();
    }

    pub(crate) fn see(&mut self, transaction: u64, sighting: Sighting) {
        let at = self.at(&self.rows);
        let see = See { transaction, sighting, now: self.now() };
        self.execute(&see, |world, _| world.told.see(transaction, sighting, at)).unwrap();
    }
}
