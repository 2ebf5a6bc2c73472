//! Payments by the wallet, in the wallet and the network side by side.

use std::collections::{BTreeMap, BTreeSet};

use bsv_invoicing::coins::{Change, Coin, Spending, Trust};
use bsv_invoicing::ledger::{
    Accept, Leave, NewPayment, PrepareCancellation, PreparedCancellation, Record,
    RecordCancellation, Refusal, RefuseByPayee, Release, Reservation, Reserve, Reserved,
};
use bsv_invoicing::receiving::ReceiptKey;
use bsv_invoicing::sending::{OutgoingPurpose, OutgoingState, Posting};
use bsv_invoicing::transactions::{Purpose, TransactionState};
use bsv_tx::OutPoint;

use crate::checks;
use crate::network::Pays;
use crate::steps::Pick;
use crate::told::{Entry, Output, ToldPayment, is_lost};
use crate::world::{World, pick};

/// The number of payees. It is small, so that many payments go to the same one.
const URLS: Pick = 3;

fn to_payee(choice: Pick) -> OutgoingPurpose {
    OutgoingPurpose::Url(format!("https://payee.example/{}", choice % URLS))
}

fn refund_of(invoice: u64) -> OutgoingPurpose {
    OutgoingPurpose::Refund { invoice, to: "anywhere".to_owned() }
}

impl World {
    /// The receipt at an outpoint, whether it is spent or not.
    fn key_of(&self, outpoint: OutPoint) -> ReceiptKey {
        let mut keys = self.told.receipts().map(|(key, ..)| key);
        keys.find(|key| self.outpoint(*key) == outpoint).unwrap()
    }

    fn any_payment(&self, choice: Pick) -> Option<u64> {
        pick(&self.told.payments.keys().copied().collect::<Vec<_>>(), choice)
    }

    /// Reserves coins for a payment. Returns whether they are reserved.
    pub(crate) fn reserve(&mut self, choice: Pick, satoshis: u64, fee_rate: u64) -> bool {
        self.reserve_for(to_payee(choice), satoshis, fee_rate)
    }

    /// Reserves coins for a refund. Returns whether they are reserved.
    pub(crate) fn reserve_refund(&mut self, choice: Pick, satoshis: u64, fee_rate: u64) -> bool {
        let Some(invoice) = self.any_invoice(choice) else { return false };
        self.reserve_for(refund_of(invoice), satoshis, fee_rate)
    }

    fn reserve_for(&mut self, to: OutgoingPurpose, satoshis: u64, fee_rate: u64) -> bool {
        let spending = Spending { satoshis, output_bytes: 34, fee_rate };
        let (purpose, now) = (to.clone(), self.now());
        let reserve =
            Reserve { purpose, spending, prefers_short: false, idempotency: None, claim: 1, now };
        let answer = self.execute(&reserve, |world, answer| {
            let spendable = world.told.spendable(&world.told.holders());
            let attempts = world.told.payments.iter().filter(|(_, it)| it.purpose == to);
            let (failed, lasting): (Vec<u64>, Vec<u64>) = attempts
                .map(|(number, _)| *number)
                .partition(|it| is_lost(world.told.state(world.told.payments[it].transaction)));
            match answer {
                Ok(Reserved::Before(payment)) => assert!(lasting.contains(&payment.number)),
                Ok(Reserved::Now(reservation)) => {
                    assert!(to.url().is_none() || lasting.is_empty(), "{lasting:?} last");
                    world.reserved_now(reservation, &spending, &spendable);
                    world.check_refund(&to, reservation, satoshis);
                }
                Err(Refusal::InsufficientFunds { .. }) => {
                    world.check_too_little(&to, &spending, &spendable, failed.len());
                }
                Err(Refusal::EarlierAttempt(payment)) => {
                    assert_eq!(world.told.payments[payment].purpose, to);
                    let there = world.told.payments[payment].transaction;
                    let would_do = world.told.would_exclude(there);
                    let would_do = spendable.keys().find(|(.., key)| would_do(key));
                    assert_eq!(would_do, None, "a coin that would do");
                }
                Err(Refusal::RefundTooLarge { left, .. }) => {
                    assert_eq!(*left, world.told.refundable(refunded(&to)));
                    assert!(satoshis > *left);
                }
                Err(Refusal::RefundMustWait(_)) => {
                    let unconfirmed = world.told.unconfirmed(refunded(&to));
                    let free: BTreeSet<_> = spendable.keys().map(|(.., key)| *key).collect();
                    let left = world.told.refundable(refunded(&to));
                    let is_much =
                        satoshis > left.saturating_sub(world.told.left_out(refunded(&to)));
                    let can_be_spent = unconfirmed.is_subset(&free);
                    assert!(is_much || !can_be_spent, "{unconfirmed:?} can be spent");
                }
                Err(refusal) => panic!("{refusal}"),
            }
        });
        match answer {
            Ok(Reserved::Now(reservation)) => {
                let coins = reservation.selection.coins.iter().map(|it| it.outpoint);
                let is_possible = !self.network.contradict_each_other(&coins.collect::<Vec<_>>());
                self.reserved.push((reservation, to, satoshis));
                if !is_possible {
                    // The wallet is not told at once of a stranger's transaction that contradicts
                    // this one. Nobody can have this one mined.
                    self.release(Pick::try_from(self.reserved.len() - 1).unwrap());
                    self.reserved.pop();
                }
                is_possible
            }
            _ => false,
        }
    }

    fn reserved_now(
        &mut self,
        Reservation { number, selection, .. }: &Reservation,
        spending: &Spending,
        spendable: &BTreeMap<(Trust, u64, ReceiptKey), ()>,
    ) {
        let outpoints: Vec<_> = selection.coins.iter().map(|coin| coin.outpoint).collect();
        let keys: BTreeSet<_> = outpoints.iter().map(|it| self.key_of(*it)).collect();
        assert_eq!(keys.len(), selection.coins.len(), "a coin is chosen twice");
        let free: BTreeSet<_> = spendable.keys().map(|(.., key)| *key).collect();
        assert!(keys.is_subset(&free), "{keys:?} of {free:?}");
        let total: u64 = selection.coins.iter().map(|coin| coin.satoshis).sum();
        assert!(total >= spending.needed(keys.len()), "{total} are too little");
        if let Some(Change { satoshis, key }) = selection.change {
            assert!(satoshis < total && self.change_keys.insert((key.account, key.index)));
        }
        self.told.reservations.insert(*number, keys);
    }

    /// Checks that the spendable coins are too little. Those that are worth less than the fee for
    /// spending them do not help, but a refund must spend some. Each failed attempt may require one,
    /// too.
    fn check_too_little(
        &self,
        to: &OutgoingPurpose,
        spending: &Spending,
        spendable: &BTreeMap<(Trust, u64, ReceiptKey), ()>,
        failed: usize,
    ) {
        let costs = (spending.fee_rate * 150).div_ceil(1000);
        let must_be_spent = match to {
            OutgoingPurpose::Refund { invoice, .. } => self.told.unconfirmed(*invoice),
            _ => BTreeSet::new(),
        };
        let is_spent =
            |satoshis: u64, key: &ReceiptKey| satoshis > costs || must_be_spent.contains(key);
        let coins = spendable.keys().filter(|(_, satoshis, key)| is_spent(*satoshis, key));
        let coins: Vec<_> = coins.map(|(_, satoshis, _)| *satoshis).collect();
        let total: u64 = coins.iter().sum();
        assert!(total < spending.needed((coins.len() + failed).max(1)), "{total} would do");
    }

    /// Checks that a refund spends the unconfirmed receipts of its invoice, and is not higher than
    /// what the invoice has received.
    fn check_refund(&self, to: &OutgoingPurpose, it: &Reservation, satoshis: u64) {
        let OutgoingPurpose::Refund { invoice, .. } = to else { return };
        let left_out = self.told.left_out(*invoice);
        let most = self.told.refundable(*invoice).saturating_sub(left_out);
        assert!(satoshis <= most, "more than was paid goes back");
        let spent = &self.told.reservations[&it.number];
        let unconfirmed = self.told.unconfirmed(*invoice);
        assert!(unconfirmed.is_subset(spent), "{unconfirmed:?} may be lost, and the refund not");
    }

    pub(crate) fn record(&mut self, choice: Pick, to_invoice: Option<Pick>) {
        let indexes: Vec<_> = (0..self.reserved.len()).collect();
        let Some(index) = pick(&indexes, choice) else { return };
        let (reservation, to, satoshis) = self.reserved.remove(index);
        let inputs: Vec<_> = reservation.selection.coins.iter().map(|it| it.outpoint).collect();
        let change = reservation.selection.change;
        let to_invoice = to_invoice.and_then(|it| self.any_invoice(it));
        let pays = to_invoice.map(|invoice| {
            let key = self.told.invoices[&invoice].key;
            Pays { vout: 0, satoshis, invoice, key, is_joint: false }
        });
        let amounts: Vec<_> =
            [Some(satoshis), change.map(|it| it.satoshis)].into_iter().flatten().collect();
        let pays = pays.into_iter().collect();
        let there = self.network.add(&inputs, &amounts, pays, false).unwrap();
        let transaction = self.network.transactions[there].transaction.clone();
        let payment = NewPayment {
            reservation: reservation.clone(),
            transaction,
            purpose: to.clone(),
            satoshis,
            expires_at: Some(self.now()),
        };
        let url = Some("https://payee.example/take".to_owned());
        let posting = to.url().map(|_| Posting { url, body: b"{}".to_vec() });
        let record = Record { payment, posting, idempotency: None, now: self.now() };
        let number = reservation.number;
        let answer = self.execute(&record, |world, answer| {
            let is_reserved = world.told.reservations.contains_key(&number);
            match answer {
                Ok(payment) => {
                    assert!(is_reserved, "what was released is recorded");
                    assert_eq!(payment.state, OutgoingState::Open);
                    let spends = world.told.reservations.remove(&number).unwrap();
                    let outputs = change.map(|Change { satoshis, key }| {
                        (1, Output { satoshis, key, invoice: None, user: None })
                    });
                    let at = world.at(&world.rows);
                    let new = (there, Purpose::Outgoing(payment.number), at);
                    world.told.add(
                        &world.network,
                        number,
                        new,
                        outputs.into_iter().collect(),
                        spends,
                    );
                    let purpose = to.clone();
                    let surplus = match to {
                        OutgoingPurpose::Refund { invoice, .. } => {
                            world.told.surplus(invoice, satoshis)
                        }
                        _ => 0,
                    };
                    let new = ToldPayment {
                        purpose,
                        satoshis,
                        surplus,
                        transaction: number,
                        cancellation: None,
                    };
                    world.told.payments.insert(payment.number, new);
                    if let OutgoingPurpose::Refund { invoice, .. } = to {
                        world.told.settle(invoice);
                    }
                    checks::check_one_per_purpose(&world.told, &world.network, payment.number);
                }
                Err(Refusal::NotReserved(_)) => assert!(!is_reserved),
                Err(Refusal::EarlierAttempt(other)) => {
                    assert!(Some(*other) != reservation.previous);
                    assert_eq!(world.told.payments[other].purpose, to);
                }
                Err(refusal) => panic!("{refusal}"),
            }
        });
        if answer.is_err() {
            // The transaction was never signed, so it is nowhere.
            self.network.forget_last(there);
        }
    }

    pub(crate) fn release(&mut self, choice: Pick) {
        let numbers: Vec<_> = self.reserved.iter().map(|(it, ..)| it.number).collect();
        let Some(reservation) = pick(&numbers, choice) else { return };
        self.execute(&Release { reservation }, |world, _| {
            world.told.reservations.remove(&reservation);
        })
        .unwrap();
    }

    pub(crate) fn release_all(&mut self) {
        self.execute(&Leave { process: None, after: None }, |world, _| {
            world.told.reservations.clear();
        })
        .unwrap();
    }

    pub(crate) fn accept(&mut self, choice: Pick) {
        let Some(payment) = self.any_payment(choice) else { return };
        let now = self.now();
        let at = self.at(&self.rows);
        let accept = Accept { payment, memo: "thanks".to_owned(), channel: None, now };
        self.execute(&accept, |world, _| {
            let number = world.told.payments[&payment].transaction;
            if world.told.state(number) == TransactionState::Offered {
                world.told.set(number, TransactionState::Unseen, at);
            }
        })
        .unwrap();
    }

    pub(crate) fn refuse_by_payee(&mut self, choice: Pick) {
        let Some(payment) = self.any_payment(choice) else { return };
        let at = self.at(&self.rows);
        let refuse =
            RefuseByPayee { payment, reason: "no".to_owned(), is_absent: true, now: self.now() };
        self.execute(&refuse, |world, _| {
            let number = world.told.payments[&payment].transaction;
            let is_being_cancelled = world.told.standing_cancellation(payment).is_some();
            if world.told.state(number) == TransactionState::Offered && !is_being_cancelled {
                world.told.lose(number, TransactionState::Refused, at);
            }
        })
        .unwrap();
    }

    /// Prepares a cancellation. Returns whether there is one to record.
    pub(crate) fn prepare_cancellation(&mut self, choice: Pick) -> bool {
        let Some(payment) = self.any_payment(choice) else { return false };
        let spending = Spending { satoshis: 0, output_bytes: 0, fee_rate: 50 };
        let answer = self.execute(&PrepareCancellation { payment, spending }, |world, answer| {
            let number = world.told.payments[&payment].transaction;
            let pending = world.told.standing_cancellation(payment);
            match answer {
                Ok(PreparedCancellation::Before(it)) => assert_eq!(pending, Some(*it)),
                Ok(PreparedCancellation::New(selection)) => {
                    assert!(pending.is_none() && is_cancellable(&world.told.entries[&number]));
                    let [Coin { outpoint, satoshis, .. }] = selection.coins[..] else {
                        panic!("{selection:?}")
                    };
                    let key = world.key_of(outpoint);
                    assert!(world.told.entries[&number].spends.contains(&key));
                    let change = selection.change.unwrap();
                    assert!(change.satoshis <= satoshis && change.satoshis > 0);
                    let key = (change.key.account, change.key.index);
                    assert!(world.change_keys.insert(key), "a key for change is given out twice");
                }
                Err(Refusal::NotOpen(..)) => {
                    assert!(!is_cancellable(&world.told.entries[&number]));
                }
                Err(refusal) => panic!("{refusal}"),
            }
        });
        match answer {
            Ok(PreparedCancellation::New(selection)) => {
                self.prepared.push((payment, selection));
                true
            }
            _ => false,
        }
    }

    pub(crate) fn record_cancellation(&mut self, choice: Pick) {
        let indexes: Vec<_> = (0..self.prepared.len()).collect();
        let Some(index) = pick(&indexes, choice) else { return };
        let (payment, selection) = self.prepared.remove(index);
        let (outpoint, change) = (selection.coins[0].outpoint, selection.change.unwrap());
        let key = self.key_of(outpoint);
        let there = self.network.add(&[outpoint], &[change.satoshis], Vec::new(), false).unwrap();
        let transaction = self.network.transactions[there].transaction.clone();
        let record = RecordCancellation { payment, transaction, change, now: self.now() };
        let mut is_new = false;
        let _ = self.execute(&record, |world, answer| {
            let number = world.told.payments[&payment].transaction;
            match (answer, world.told.standing_cancellation(payment)) {
                (Ok(it), Some(pending)) => assert_eq!(*it, pending),
                (Ok(it), None) => {
                    assert!(is_cancellable(&world.told.entries[&number]));
                    let Change { satoshis, key: path } = change;
                    let output = Output { satoshis, key: path, invoice: None, user: None };
                    let at = world.at(&world.rows);
                    let new = (there, Purpose::Cancellation(payment), at);
                    world.told.add(&world.network, *it, new, [(0, output)].into(), [key].into());
                    world.told.payments.get_mut(&payment).unwrap().cancellation = Some(*it);
                    is_new = true;
                }
                (Err(Refusal::NotOpen(..)), _) => {
                    assert!(!is_cancellable(&world.told.entries[&number]));
                }
                (Err(refusal), _) => panic!("{refusal}"),
            }
        });
        if !is_new {
            self.network.forget_last(there);
        }
    }
}

fn refunded(to: &OutgoingPurpose) -> u64 {
    match to {
        OutgoingPurpose::Refund { invoice, .. } => *invoice,
        to => panic!("no refund is asked for: {to:?}"),
    }
}

/// Whether a payment can be cancelled: nobody has shown it, or only services have, and they do not count.
fn is_cancellable(it: &Entry) -> bool {
    use TransactionState::{Contested, Offered, Unseen, Waiting};
    match it.state {
        Offered | Unseen => true,
        Waiting | Contested { .. } => it.word.is_some(),
        _ => false,
    }
}
