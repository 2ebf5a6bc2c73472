//! A model of what the wallet has been told, and of what follows from it. It computes everything
//! from scratch, without the figures and indexes of the ledger.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bsv_invoicing::Timestamp;
use bsv_invoicing::coins::{Chain, Holdings, KeyPath, Trust};
use bsv_invoicing::invoices::{PaymentRules, Received, Shallowness};
use bsv_invoicing::receiving::ReceiptKey;
use bsv_invoicing::sending::OutgoingPurpose;
use bsv_invoicing::transactions::{
    BlockPlace, COINBASE_MATURITY, FollowedUntil, Purpose, ShownAs, TransactionState, Word,
};
use bsv_tx::{OutPoint, Txid};

use crate::network::Network;

pub(crate) const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// How many blocks make a transaction deep.
const DEPTH: u32 = 100;
/// How many refused payments of an invoice are kept.
const MAX_REFUSED: usize = 4;
/// The least amount that is worth sending back.
const SMALLEST_CASE: u64 = 15;

/// An output that pays the wallet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) satoshis: u64,
    pub(crate) key: KeyPath,
    /// The invoice whose script it pays.
    pub(crate) invoice: Option<u64>,
    /// The user whose script it pays.
    pub(crate) user: Option<u64>,
}

/// The owner of keys: an invoice, a user, or neither for the other keys of the wallet.
pub(crate) type Owner = (Option<u64>, Option<u64>);

/// A transaction that the wallet knows.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// Its index in the network.
    pub(crate) transaction: usize,
    pub(crate) txid: Txid,
    pub(crate) purpose: Purpose,
    /// Whether the wallet offered it to the network before the network showed it.
    pub(crate) is_offered: bool,
    /// When it arrived.
    pub(crate) at: Timestamp,
    pub(crate) state: TransactionState,
    /// The most that the network has ever shown of it.
    pub(crate) shown: ShownAs,
    /// Where its payer wants refunds.
    pub(crate) wish: Option<String>,
    pub(crate) outputs: BTreeMap<u32, Output>,
    pub(crate) spends: BTreeSet<ReceiptKey>,
    pub(crate) until: Option<FollowedUntil>,
    /// The height up to which the chain was followed when the network stopped showing it.
    pub(crate) contested_since: Option<u32>,
    pub(crate) proofs: u32,
    /// Whether it is in a block that is not deep enough for invoices above the limit.
    pub(crate) is_shallow: bool,
    /// Whether it has not counted before that block, and only services tell of it.
    pub(crate) is_uncounted: bool,
    pub(crate) are_bytes_dropped: bool,
    /// What services say of it.
    pub(crate) word: Option<Word>,
    /// All coins that it spends, those of strangers too.
    pub(crate) coins: BTreeSet<OutPoint>,
    /// Those of its coins by which its rivals are found, while it may have any.
    pub(crate) known_coins: Option<BTreeSet<OutPoint>>,
    /// What it pays that counts by a word alone.
    pub(crate) exposed: u64,
}

impl Entry {
    /// Whether no other transaction may spend the coins that it spends.
    fn holds(&self) -> bool {
        spends(self.state) || (is_open(self.state) && matches!(self.purpose, Purpose::Outgoing(_)))
    }

    /// What it pays to each owner.
    pub(crate) fn paid(&self) -> BTreeMap<Owner, u64> {
        let mut paid = BTreeMap::new();
        for it in self.outputs.values() {
            *paid.entry((it.invoice, it.user)).or_default() += it.satoshis;
        }
        paid
    }

    /// What it pays to an invoice.
    fn paid_to(&self, invoice: u64) -> u64 {
        let outputs = self.outputs.values().filter(|output| output.invoice == Some(invoice));
        outputs.map(|output| output.satoshis).sum()
    }

    fn is_left_out(&self, invoice: u64) -> bool {
        let is_contested = matches!(self.state, TransactionState::Contested { .. });
        is_contested && self.paid_to(invoice) < SMALLEST_CASE
    }

    pub(crate) fn was_seen(&self) -> bool {
        self.shown != ShownAs::Nothing
    }

    pub(crate) fn pays(&self, invoice: u64) -> bool {
        self.outputs.values().any(|output| output.invoice == Some(invoice))
    }
}

pub(crate) fn counts(state: TransactionState) -> bool {
    use TransactionState::{Contested, Mined, Seen};
    matches!(state, Seen | Mined(_) | Contested { .. })
}

pub(crate) fn spends(state: TransactionState) -> bool {
    state == TransactionState::Waiting || counts(state)
}

fn is_open(state: TransactionState) -> bool {
    matches!(state, TransactionState::Offered | TransactionState::Unseen)
}

pub(crate) fn is_lost(state: TransactionState) -> bool {
    use TransactionState::{Cancelled, Displaced, Invalid, Refused};
    matches!(state, Displaced | Invalid | Refused | Cancelled)
}

fn is_refund_of(purpose: &OutgoingPurpose, of: u64) -> bool {
    matches!(purpose, OutgoingPurpose::Refund { invoice, .. } if *invoice == of)
}

#[derive(Clone, Debug)]
pub(crate) struct ToldInvoice {
    pub(crate) satoshis: u64,
    pub(crate) key: KeyPath,
    pub(crate) expires_at: Timestamp,
    pub(crate) is_deleted: bool,
    pub(crate) is_paid: bool,
    /// The last payment by the wallet when it was last paid.
    pub(crate) last_payment_before: u64,
    /// Whether an event told that it has expired, and none that it was paid since.
    pub(crate) is_expired: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ToldPayment {
    pub(crate) purpose: OutgoingPurpose,
    pub(crate) satoshis: u64,
    /// The part of a refund that was surplus of a paid invoice.
    pub(crate) surplus: u64,
    pub(crate) transaction: u64,
    pub(crate) cancellation: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pub(crate) rules: PaymentRules,
    pub(crate) entries: BTreeMap<u64, Entry>,
    pub(crate) invoices: BTreeMap<u64, ToldInvoice>,
    pub(crate) payments: BTreeMap<u64, ToldPayment>,
    pub(crate) reservations: BTreeMap<u64, BTreeSet<ReceiptKey>>,
    /// The height up to which the chain was followed.
    pub(crate) followed: Option<u32>,
    /// Whether a reorganisation was found, and the chain was not followed to its tip yet.
    pub(crate) is_reorganising: bool,
    /// The holders of coins before the last step. Of two transactions that spend one coin, the one that
    /// had it keeps it.
    pub(crate) held: BTreeMap<ReceiptKey, u64>,
    /// What the payment pays that had to wait when the sum of what counts by a word was last told.
    pub(crate) exposure_told_for: Option<u64>,
    /// How many events told of that sum.
    pub(crate) exposure_events: u64,
}

impl Told {
    pub(crate) fn state(&self, number: u64) -> TransactionState {
        self.entries[&number].state
    }

    /// Adds a transaction that the network has not shown.
    pub(crate) fn add(
        &mut self,
        network: &Network,
        number: u64,
        (transaction, purpose, at): (usize, Purpose, Timestamp),
        outputs: BTreeMap<u32, Output>,
        spends: BTreeSet<ReceiptKey>,
    ) {
        let state = TransactionState::Offered;
        let until = Some(FollowedUntil::Mined);
        let (is_offered, shown, wish, proofs) = (false, ShownAs::Nothing, None, 0);
        let new = Entry {
            transaction,
            txid: network.transactions[transaction].txid,
            purpose,
            is_offered,
            at,
            state,
            shown,
            wish,
            outputs,
            spends,
            until,
            contested_since: None,
            proofs,
            is_shallow: false,
            is_uncounted: false,
            are_bytes_dropped: false,
            word: None,
            coins: network.coins_of(transaction),
            known_coins: None,
            exposed: 0,
        };
        assert!(self.entries.insert(number, new).is_none(), "number {number} is given out twice");
    }

    /// The network has a transaction. Other transactions that hold the same coins are lost.
    pub(crate) fn show(&mut self, number: u64, new: TransactionState, at: Timestamp) {
        let spends = self.entries[&number].spends.clone();
        let cancelled = self.cancelled_by(number);
        let is_rival = |(other, entry): &(&u64, &Entry)| {
            **other != number && entry.holds() && !entry.spends.is_disjoint(&spends)
        };
        let rivals: Vec<_> = self.entries.iter().filter(is_rival).map(|(it, _)| *it).collect();
        for rival in rivals {
            let state = match cancelled == Some(rival) {
                true => TransactionState::Cancelled,
                false => TransactionState::Displaced,
            };
            self.lose(rival, state, at);
        }
        self.reservations.retain(|_, reserved| reserved.is_disjoint(&spends));
        self.set(number, new, at);
        if let Purpose::Cancellation(payment) = self.entries[&number].purpose
            && let Some(other) = self.pending_cancellation(payment)
        {
            self.set(other, TransactionState::Refused, at);
        }
    }

    /// The transaction that another one cancels.
    pub(crate) fn cancelled_by(&self, number: u64) -> Option<u64> {
        match self.entries[&number].purpose {
            Purpose::Cancellation(payment) => Some(self.payments[&payment].transaction),
            _ => None,
        }
    }

    /// A transaction is lost, and so are all transactions that spend its outputs, directly or
    /// indirectly.
    pub(crate) fn lose(&mut self, number: u64, state: TransactionState, at: Timestamp) {
        let mut lost = BTreeSet::from([number]);
        loop {
            let descends = |(other, entry): &(&u64, &Entry)| {
                !lost.contains(other)
                    && entry.holds()
                    && entry.spends.iter().any(|key| lost.contains(&key.maker))
            };
            match self.entries.iter().find(descends) {
                Some((other, _)) => lost.insert(*other),
                None => break,
            };
        }
        self.reservations.retain(|_, keys| !keys.iter().any(|key| lost.contains(&key.maker)));
        let refunded: BTreeSet<_> = lost.iter().filter_map(|it| self.refunded_by(*it)).collect();
        for other in lost.into_iter().rev() {
            if other != number {
                self.set(other, TransactionState::Displaced, at);
            } else if !is_lost(self.state(number)) {
                self.set(number, state, at);
            }
        }
        refunded.into_iter().for_each(|invoice| self.settle(invoice));
    }

    pub(crate) fn set(&mut self, number: u64, new: TransactionState, at: Timestamp) {
        let followed = self.followed.unwrap_or(0);
        let is_shallow = match new {
            TransactionState::Mined(block) => {
                self.rules.mined_blocks > 1 && (self.is_reorganising || !self.is_deep(block))
            }
            _ => false,
        };
        let entry = self.entries.get_mut(&number).unwrap();
        let (was_lost, was_open) = (is_lost(entry.state), is_open(entry.state));
        let has_counted = counts(entry.state) && !entry.is_uncounted;
        entry.is_uncounted = is_shallow && entry.word.is_some() && !has_counted;
        (entry.state, entry.is_shallow) = (new, is_shallow);
        entry.contested_since = match new {
            TransactionState::Contested { .. } => entry.contested_since.or(Some(followed)),
            _ => None,
        };
        entry.shown = entry.shown.max(match new {
            TransactionState::Mined(_) => ShownAs::Mined,
            _ if counts(new) => ShownAs::Seen,
            TransactionState::Waiting => ShownAs::Waiting,
            _ => ShownAs::Nothing,
        });
        entry.until = match new {
            TransactionState::Mined(_) => None,
            _ if is_lost(new) => Some(FollowedUntil::Time(at.after(DAY))),
            _ => Some(FollowedUntil::Mined),
        };
        let is_over = match new {
            TransactionState::Unseen | TransactionState::Cancelled => false,
            TransactionState::Waiting | TransactionState::Contested { .. } => was_open,
            _ => true,
        };
        if let (Purpose::Outgoing(payment), true) = (entry.purpose, is_over)
            && let Some(cancellation) = self.pending_cancellation(payment)
        {
            self.set(cancellation, TransactionState::Refused, at);
        }
        let paid = self.entries[&number].outputs.values().filter_map(|it| it.invoice);
        for invoice in paid.collect::<BTreeSet<_>>() {
            self.settle(invoice);
        }
        // After a loss, the invoice is settled together with what is lost too.
        if was_lost
            && !is_lost(new)
            && let Some(invoice) = self.refunded_by(number)
        {
            self.settle(invoice);
        }
        self.settle_words(number, at);
    }

    /// Whether a block is deep enough for invoices above the limit.
    pub(crate) fn is_deep(&self, block: BlockPlace) -> bool {
        self.followed.unwrap_or(0) + 1 >= block.height + self.rules.mined_blocks
    }

    /// The wallet has followed the chain to this height.
    pub(crate) fn follow(&mut self, height: u32) {
        (self.followed, self.is_reorganising) = (Some(height), false);
        self.follow_exposure();
        let shallow = self.entries.iter().filter(|(_, it)| it.is_shallow);
        let deep = shallow.filter(|(_, it)| it.state.block().is_some_and(|it| self.is_deep(it)));
        for number in deep.map(|(number, _)| *number).collect::<Vec<_>>() {
            let entry = self.entries.get_mut(&number).unwrap();
            (entry.is_shallow, entry.is_uncounted) = (false, false);
            let paid = entry.outputs.values().filter_map(|it| it.invoice);
            for invoice in paid.collect::<BTreeSet<_>>() {
                self.settle(invoice);
            }
        }
    }

    /// How a payment by this transaction counts if its block is not deep enough for it.
    pub(crate) fn shallowness(&self, invoice: u64, it: &Entry) -> Option<Shallowness> {
        let limit = self.rules.zero_conf_limit;
        let needs_block = limit.is_some_and(|limit| self.invoices[&invoice].satoshis > limit);
        match needs_block {
            true => it.is_shallow.then_some(Shallowness::Counted),
            false => it.is_uncounted.then_some(Shallowness::Uncounted),
        }
    }

    /// Whether a transaction counts for an invoice.
    fn counts_for(&self, invoice: u64, it: &Entry) -> bool {
        counts(it.state) && self.shallowness(invoice, it) != Some(Shallowness::Uncounted)
    }

    /// What a transaction is once its block has left the chain.
    pub(crate) fn state_without_block(&self, number: u64) -> TransactionState {
        let it = &self.entries[&number];
        let mut paid = it.outputs.values().filter_map(|output| output.invoice);
        match paid.all(|invoice| self.counts_for(invoice, it)) {
            true => TransactionState::Contested { told: false },
            false => TransactionState::Waiting,
        }
    }

    /// The invoice that a transaction refunds.
    pub(crate) fn refunded_by(&self, number: u64) -> Option<u64> {
        let Purpose::Outgoing(payment) = self.entries[&number].purpose else { return None };
        match self.payments[&payment].purpose {
            OutgoingPurpose::Refund { invoice, .. } => Some(invoice),
            _ => None,
        }
    }

    /// An invoice is paid, or no longer, after a change.
    pub(crate) fn settle(&mut self, invoice: u64) {
        let is_paid = self.is_paid_by_now(invoice);
        let last_payment = self.payments.last_key_value().map_or(0, |(number, _)| *number);
        let it = self.invoices.get_mut(&invoice).unwrap();
        if is_paid && !it.is_paid {
            it.last_payment_before = last_payment;
        }
        it.is_paid = is_paid;
        it.is_expired &= !is_paid;
    }

    /// The cancellation of a payment, if the network has not shown it.
    pub(crate) fn pending_cancellation(&self, payment: u64) -> Option<u64> {
        let number = self.payments[&payment].cancellation?;
        (self.state(number) == TransactionState::Offered).then_some(number)
    }

    /// The cancellation of a payment, unless it is lost. Services may have taken it.
    pub(crate) fn standing_cancellation(&self, payment: u64) -> Option<u64> {
        self.payments[&payment].cancellation.filter(|number| !is_lost(self.state(*number)))
    }

    /// The bytes of all long transactions are dropped that nobody needs any more.
    pub(crate) fn drop_bytes(&mut self, network: &Network) {
        let Some(deep) = self.followed.and_then(|height| height.checked_sub(DEPTH)) else { return };
        let is_deep =
            |it: &Entry| matches!(it.state, TransactionState::Mined(block) if block.height <= deep);
        let holders = self.holders();
        let is_done = |key: ReceiptKey| {
            let spender = holders.get(&key).and_then(|holder| self.entries.get(holder));
            spender.is_some_and(is_deep)
        };
        let unneeded = self.entries.iter().filter(|(maker, it)| {
            let tells_fee = it.purpose.is_from_outside() && !it.spends.is_empty();
            let mut keys = it.outputs.keys().map(|vout| ReceiptKey { maker: **maker, vout: *vout });
            is_deep(it)
                && !tells_fee
                && keys.all(is_done)
                && network.transactions[it.transaction].is_long
        });
        for number in unneeded.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.entries.get_mut(&number).unwrap().are_bytes_dropped = true;
        }
    }

    /// A payment to the wallet is refused. It is deleted if it is long or if there are too many
    /// refused ones.
    pub(crate) fn refuse(&mut self, number: u64, invoice: u64, is_long: bool, at: Timestamp) {
        if self.entries[&number].was_seen() {
            return self.set(number, TransactionState::Invalid, at);
        }
        self.set(number, TransactionState::Refused, at);
        let entries = self.entries.values();
        let refused =
            entries.filter(|it| it.state == TransactionState::Refused && it.pays(invoice)).count();
        if refused > MAX_REFUSED || is_long {
            self.entries.remove(&number);
        }
    }

    /// Whether a lost transaction is no longer followed.
    pub(crate) fn is_void(&self, number: u64) -> bool {
        let spends = &self.entries[&number].spends;
        let holders = self.holders();
        spends.is_empty()
            || spends.iter().any(|key| {
                let holder = holders.get(key).and_then(|holder| self.entries.get(holder));
                let is_mined = |it: &Entry| matches!(it.state, TransactionState::Mined(_));
                let maker = &self.entries[&key.maker];
                holder.is_some_and(is_mined) || (is_lost(maker.state) && maker.until.is_none())
            })
    }

    /// The receipts that a transaction must spend to keep this one from being mined: those that
    /// this one spends, or descendants of a transaction that has spent one of them.
    pub(crate) fn would_exclude(&self, number: u64) -> impl Fn(&ReceiptKey) -> bool + use<> {
        let spent = self.entries[&number].spends.clone();
        let holders = self.holders();
        let held = spent.iter().filter_map(|key| holders.get(key).copied());
        let mut rivals: BTreeSet<_> = held.collect();
        loop {
            let next = holders
                .iter()
                .find(|(key, holder)| rivals.contains(&key.maker) && !rivals.contains(holder));
            match next {
                Some((_, holder)) => rivals.insert(*holder),
                None => break,
            };
        }
        move |key| spent.contains(key) || rivals.contains(&key.maker)
    }

    /// The transaction that spends each receipt or has reserved it. Two for one receipt are a
    /// mistake unless nothing but a path can decide between them.
    pub(crate) fn holders(&self) -> BTreeMap<ReceiptKey, u64> {
        let mut holders = BTreeMap::<ReceiptKey, Vec<u64>>::new();
        let holding = self.entries.iter().filter(|(_, entry)| entry.holds());
        let spent = holding.map(|(number, entry)| (number, &entry.spends));
        for (number, keys) in spent.chain(&self.reservations) {
            for key in keys {
                holders.entry(*key).or_default().push(*number);
            }
        }
        let decided = holders.into_iter().map(|(key, all)| {
            let has_rival = |it: &u64| self.entries.get(it).is_some_and(Entry::has_rival);
            assert!(all.len() == 1 || all.iter().all(has_rival), "{key:?} is spent by {all:?}");
            let kept = self.held.get(&key).filter(|before| all.contains(before));
            (key, *kept.or(all.iter().max()).unwrap())
        });
        decided.collect()
    }

    /// All receipts with their transactions.
    pub(crate) fn receipts(&self) -> impl Iterator<Item = (ReceiptKey, &Output, &Entry)> {
        self.entries.iter().flat_map(|(maker, entry)| {
            let outputs = entry.outputs.iter();
            outputs.map(move |(vout, it)| (ReceiptKey { maker: *maker, vout: *vout }, it, entry))
        })
    }

    /// What the wallet holds.
    pub(crate) fn holdings(&self, holders: &BTreeMap<ReceiptKey, u64>) -> Holdings {
        use TransactionState::{Contested, Mined, Seen, Waiting};
        let mut sums = Holdings::default();
        for (key, output, maker) in self.receipts() {
            let holder = holders.get(&key);
            let spender = holder.and_then(|holder| self.entries.get(holder));
            if spender.is_some_and(|spender| spends(spender.state)) {
                continue;
            }
            let sum = match maker.state {
                Waiting => &mut sums.waiting,
                state if !counts(state) => continue,
                _ if holder.is_some() => &mut sums.reserved,
                _ if self.is_immature(maker) => &mut sums.immature,
                Contested { .. } => &mut sums.contested,
                Mined(_) => &mut sums.confirmed,
                Seen => &mut sums.unconfirmed,
                _ => unreachable!("this does not count"),
            };
            *sum += output.satoshis;
            sums.coins += u64::from(maker.state != Waiting);
        }
        sums
    }

    /// The sum of the receipts whose spending the network shows before it shows the receipts
    /// themselves.
    pub(crate) fn spent_before_shown(&self, holders: &BTreeMap<ReceiptKey, u64>) -> u64 {
        let is_spent = |key: &ReceiptKey| {
            let spender = holders.get(key).and_then(|holder| self.entries.get(holder));
            spender.is_some_and(|spender| spends(spender.state))
        };
        let receipts = self.receipts().filter(|(_, _, maker)| !spends(maker.state));
        receipts.filter(|(key, ..)| is_spent(key)).map(|(_, output, _)| output.satoshis).sum()
    }

    /// The spendable receipts, with their trust and amounts.
    pub(crate) fn spendable(
        &self,
        holders: &BTreeMap<ReceiptKey, u64>,
    ) -> BTreeMap<(Trust, u64, ReceiptKey), ()> {
        use TransactionState::Mined;
        let shown = self.receipts().filter(|(_, _, it)| it.can_be_spent());
        let free = shown.filter(|(key, _, it)| !holders.contains_key(key) && !self.is_immature(it));
        let placed = free.map(|(key, output, maker)| {
            let is_change = output.key.chain == Chain::Change;
            let is_own = is_change && !maker.purpose.is_from_outside();
            let is_sure = is_own || matches!(maker.state, Mined(_));
            let trust = if is_sure { Trust::Sure } else { Trust::Unsure };
            ((trust, output.satoshis, key), ())
        });
        placed.collect()
    }

    /// Whether the outputs of a transaction cannot be spent yet, because it is the coinbase
    /// transaction of a new block.
    fn is_immature(&self, it: &Entry) -> bool {
        match it.state {
            TransactionState::Mined(block) if it.purpose == Purpose::Coinbase => {
                self.followed.is_none_or(|followed| followed < block.height + COINBASE_MATURITY - 1)
            }
            _ => false,
        }
    }

    /// The sums of an invoice's payments that count.
    pub(crate) fn received(&self, invoice: u64) -> Received {
        let end = self.invoices[&invoice].expires_at;
        let mut received = Received::default();
        for (_, output, maker) in self.receipts() {
            if output.invoice != Some(invoice) || !self.counts_for(invoice, maker) {
                continue;
            }
            let it = if maker.at < end { &mut received.in_time } else { &mut received.late };
            match (maker.state, maker.shown) {
                (TransactionState::Mined(_), _) if self.shallowness(invoice, maker).is_none() => {
                    it.mined += output.satoshis;
                }
                (_, ShownAs::Mined) => it.unmined += output.satoshis,
                _ => it.unconfirmed += output.satoshis,
            }
        }
        let counting: Vec<_> = self.counting(invoice).collect();
        let is_contested = |it: &Entry| matches!(it.state, TransactionState::Contested { .. });
        let contested = counting.iter().filter(|(_, it)| is_contested(it)).count() as u64;
        let wishes: Vec<_> = counting.iter().filter_map(|(_, it)| it.wish.as_ref()).collect();
        let changes = wishes.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64;
        let (payments, wishes) = (counting.len() as u64, wishes.len() as u64);
        let ToldInvoice { is_paid, last_payment_before, .. } = self.invoices[&invoice];
        let refunded = self.refunds(invoice).map(|(_, it)| it.satoshis).sum();
        let is_before = |number: &u64| !is_paid || *number <= last_payment_before;
        let (before, after): (Vec<_>, Vec<_>) =
            self.refunds(invoice).partition(|(number, _)| is_before(number));
        Received {
            payments,
            contested,
            wishes,
            changes,
            refunded,
            refunded_before: before.iter().map(|(_, it)| it.satoshis).sum(),
            surplus_refunded: after.iter().map(|(_, it)| it.surplus).sum(),
            last_payment_before,
            ..received
        }
    }

    /// The refunds of an invoice that are not lost.
    fn refunds(&self, invoice: u64) -> impl Iterator<Item = (u64, &ToldPayment)> {
        let lasts = move |it: &ToldPayment| {
            is_refund_of(&it.purpose, invoice) && !is_lost(self.state(it.transaction))
        };
        self.payments.iter().map(|(number, it)| (*number, it)).filter(move |(_, it)| lasts(it))
    }

    /// Whether an invoice was ever refunded.
    pub(crate) fn was_refunded(&self, invoice: u64) -> bool {
        self.payments.values().any(|it| is_refund_of(&it.purpose, invoice))
    }

    /// The payments of invoices that the network no longer shows, with the heights since when.
    pub(crate) fn contested(&self) -> BTreeMap<(u64, u64), u32> {
        let contested = self.entries.iter().filter_map(|(number, it)| {
            let since = it.contested_since?;
            let invoices = self.invoices.keys().filter(|invoice| it.pays(**invoice));
            Some(invoices.map(move |invoice| ((*invoice, *number), since)))
        });
        contested.flatten().collect()
    }

    /// The transactions that count as payments of an invoice, in the order of their numbers.
    pub(crate) fn counting(&self, invoice: u64) -> impl Iterator<Item = (u64, &Entry)> {
        let paying = self.entries.iter().filter(move |(_, it)| it.pays(invoice));
        let counting = paying.filter(move |(_, it)| self.counts_for(invoice, it));
        counting.map(|(number, it)| (*number, it))
    }

    /// Where refunds of an invoice go, if all its payers say the same.
    pub(crate) fn agreed_wish(&self, invoice: u64) -> Option<String> {
        let wishes: BTreeSet<_> = self.counting(invoice).map(|(_, it)| it.wish.clone()).collect();
        if wishes.len() == 1 { wishes.into_iter().next().flatten() } else { None }
    }

    /// What can still be refunded of an invoice's payments.
    pub(crate) fn refundable(&self, invoice: u64) -> u64 {
        let paying = self.receipts().filter(|(_, it, maker)| {
            it.invoice == Some(invoice) && self.counts_for(invoice, maker)
        });
        let received: u64 = paying.map(|(_, output, _)| output.satoshis).sum();
        received.saturating_sub(self.refunds(invoice).map(|(_, it)| it.satoshis).sum())
    }

    /// What payments of an invoice pay that the network does not show and that are not worth sending
    /// back. A refund spends none of them, and leaves as much.
    pub(crate) fn left_out(&self, invoice: u64) -> u64 {
        let left_out = self.counting(invoice).filter(|(_, it)| it.is_left_out(invoice));
        left_out.map(|(_, it)| it.paid_to(invoice)).sum()
    }

    /// The unconfirmed receipts of an invoice that count, and that a refund spends.
    pub(crate) fn unconfirmed(&self, invoice: u64) -> BTreeSet<ReceiptKey> {
        let unconfirmed = self.receipts().filter(|(_, output, maker)| {
            let is_mined = matches!(maker.state, TransactionState::Mined(_));
            let is_spent = counts(maker.state) && !is_mined && !maker.is_left_out(invoice);
            is_spent && output.invoice == Some(invoice)
        });
        unconfirmed.map(|(key, ..)| key).collect()
    }

    pub(crate) fn is_paid(&self, invoice: u64) -> bool {
        self.invoices[&invoice].is_paid
    }

    /// Whether an invoice is paid after a change. Above the limit, blocks must have paid it, and
    /// what they held counts from then on until it is lost.
    fn is_paid_by_now(&self, invoice: u64) -> bool {
        let it = &self.invoices[&invoice];
        !it.is_deleted && self.counted(invoice) >= it.satoshis.max(1)
    }

    /// The part of what an invoice has received that counts towards it.
    pub(crate) fn counted(&self, invoice: u64) -> u64 {
        let it = &self.invoices[&invoice];
        let all = self.received(invoice);
        let received = all.in_time;
        let counted = match self.rules.zero_conf_limit {
            Some(limit) if it.satoshis > limit && it.is_paid => received.mined + received.unmined,
            Some(limit) if it.satoshis > limit => received.mined,
            _ => received.sum(),
        };
        counted.saturating_sub(all.refunded_before)
    }

    /// What a refund of this amount would send back of the surplus of a paid invoice.
    pub(crate) fn surplus(&self, invoice: u64, satoshis: u64) -> u64 {
        let it = &self.invoices[&invoice];
        let surplus = self.refundable(invoice).saturating_sub(it.satoshis);
        if it.is_paid { surplus.min(satoshis) } else { 0 }
    }

    /// The invoices that may need a decision: they hold more than they should, or the network does
    /// not show one of their payments, or refunds have sent back more than they should have.
    pub(crate) fn attention(&self) -> BTreeSet<u64> {
        let open = self.invoices.iter().filter_map(|(number, it)| {
            let received = self.received(*number);
            let is_contested = received.contested > 0;
            let asked = if it.is_paid { it.satoshis } else { 0 };
            let surplus = self.refundable(*number).saturating_sub(asked);
            let needed = match received.surplus_refunded {
                0 => received.refunded,
                surplus => received.refunded.max(surplus + it.satoshis),
            };
            let lost = needed.saturating_sub(received.sum());
            let is_open = is_contested || surplus.max(lost) >= SMALLEST_CASE;
            (is_open && !it.is_deleted).then_some(*number)
        });
        open.collect()
    }

    /// Whether what came in time would pay an invoice, and only blocks are missing. Such an invoice
    /// does not expire.
    pub(crate) fn awaits_block(&self, invoice: u64) -> bool {
        let it = &self.invoices[&invoice];
        let all = self.received(invoice);
        let in_time = all.in_time.sum().saturating_sub(all.refunded_before);
        let is_open = !it.is_deleted && !it.is_expired && !it.is_paid;
        is_open && in_time >= it.satoshis.max(1)
    }

    /// The transaction that is being offered for an invoice: at most one at a time.
    pub(crate) fn in_flight(&self, invoice: u64) -> Option<u64> {
        let is_offered =
            |it: &Entry| it.state == TransactionState::Offered && it.is_offered && it.pays(invoice);
        let mut offered = self.entries.iter().filter(|(_, it)| is_offered(it));
        let first = offered.next().map(|(number, _)| *number);
        let second = offered.next().map(|(number, _)| *number);
        assert_eq!(second, None, "{first:?} is being offered for invoice {invoice} too");
        first
    }
}
