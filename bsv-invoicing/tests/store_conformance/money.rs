//! The effects of payments on coins and the balance, for random steps in random order. A model that
//! knows all coins and adds them up is compared.

use bsv_invoicing::coins::Spending;
use bsv_invoicing::ledger::items::{FoldLedger, LedgerItem};
use bsv_invoicing::ledger::{Offered, Reservation, Reserve, Reserved};
use bsv_invoicing::store::WalletStore;
use bsv_invoicing::transactions::{FollowedUntil, ShownAs, TransactionState};
use bsv_tx::{OutPoint, Txid};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::making::*;
use super::*;

/// A step. The numbers choose among the possible choices.
#[derive(Clone, Copy, Debug)]
enum Step {
    Receive { satoshis: u64 },
    OfferAgain(usize),
    Reserve { satoshis: u64, fee_rate: u64 },
    Record(usize),
    Release(usize),
    ReleaseAll,
    Accept(usize),
    Cancel(usize),
    See(usize),
    SeeWaiting(usize),
    Mine(usize, u8),
    ForgetBlock(u8),
    Contest(usize),
    TellContested(usize),
    GiveUp(usize),
    Displace(usize),
    Invalidate(usize),
    Unfollow(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let any = any::<usize>;
    prop_oneof![
        6 => (1_u64..100_000).prop_map(|satoshis| Step::Receive { satoshis }),
        1 => any().prop_map(Step::OfferAgain),
        8 => (1_u64..60_000, 0_u64..200)
            .prop_map(|(satoshis, fee_rate)| Step::Reserve { satoshis, fee_rate }),
        8 => any().prop_map(Step::Record),
        1 => any().prop_map(Step::Release),
        1 => Just(Step::ReleaseAll),
        2 => any().prop_map(Step::Accept),
        3 => any().prop_map(Step::Cancel),
        12 => any().prop_map(Step::See),
        2 => any().prop_map(Step::SeeWaiting),
        4 => (any(), 1_u8..5).prop_map(|(choice, height)| Step::Mine(choice, height)),
        2 => (1_u8..5).prop_map(Step::ForgetBlock),
        2 => any().prop_map(Step::Contest),
        1 => any().prop_map(Step::TellContested),
        4 => any().prop_map(Step::GiveUp),
        3 => any().prop_map(Step::Displace),
        1 => any().prop_map(Step::Invalidate),
        1 => any().prop_map(Step::Unfollow),
    ]
}

/// Runs so many sequences of random steps against stores in fresh places.
pub(crate) fn run_random_steps<P: Place>(cases: u32) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new(config)
        .run(&prop::collection::vec(step(), 1..60), |steps| {
            let place = P::fresh();
            runtime.block_on(async {
                let store = place.open();
                let mut model = Model::default();
                for (index, step) in steps.into_iter().enumerate() {
                    model.take(&store, step, index as u64).await;
                    model.compare(&store).await;
                }
                let balance = store.balance().await.unwrap();
                drop(store);
                assert_eq!(place.open().balance().await.unwrap(), balance);
            });
            Ok(())
        })
        .unwrap();
}

/// The state of a transaction in the model, with states that the store does not have.
#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    /// Coins are reserved for it.
    Reserved,
    /// It is deleted, or was never made.
    Forgotten,
    Known(TransactionState),
}

const OFFERED: State = State::Known(TransactionState::Offered);

impl State {
    fn is(self, holds: impl Fn(TransactionState) -> bool) -> bool {
        matches!(self, Self::Known(state) if holds(state))
    }
}

#[derive(Clone, Debug)]
enum Kind {
    Incoming { invoice: u64, satoshis: u64 },
    Outgoing { payment: Option<u64>, made_of: Box<(Reserve, Reservation)> },
    Cancellation { of: usize },
}

#[derive(Debug)]
struct ModelTransaction {
    number: u64,
    txid: Option<Txid>,
    kind: Kind,
    state: State,
    shown: ShownAs,
    inputs: Vec<usize>,
}

impl ModelTransaction {
    fn is_outgoing(&self) -> bool {
        matches!(self.kind, Kind::Outgoing { .. })
    }

    fn cancels(&self, payment: usize) -> bool {
        matches!(self.kind, Kind::Cancellation { of } if of == payment)
    }

    /// Whether it keeps other transactions from spending its coins.
    fn holds_coins(&self) -> bool {
        let is_on_its_way = self.is_outgoing() && self.state.is(TransactionState::is_open);
        self.state == State::Reserved || is_on_its_way || self.state.is(TransactionState::spends)
    }
}

#[derive(Debug)]
struct ModelCoin {
    maker: usize,
    vout: u32,
    satoshis: u64,
    spender: Option<usize>,
}

#[derive(Debug, Default)]
struct Model {
    transactions: Vec<ModelTransaction>,
    coins: Vec<ModelCoin>,
    balance: u64,
    events: usize,
    /// The states of the cancellations before the last step. Their changes have no events.
    cancellations: Vec<State>,
}

impl Model {
    async fn take(&mut self, store: &impl WalletStore, step: Step, index: u64) {
        let now = at(index);
        match step {
            Step::Receive { satoshis } => self.receive(store, satoshis, now).await,
            Step::OfferAgain(choice) => self.offer_again(store, choice, now).await,
            Step::Reserve { satoshis, fee_rate } => {
                self.reserve(store, satoshis, fee_rate, now).await;
            }
            Step::Record(choice) => self.record(store, choice).await,
            Step::Release(choice) => {
                let Some(chosen) = self.choose(choice, |it| it.state == State::Reserved) else {
                    return;
                };
                store.release(self.transactions[chosen].number).await.unwrap();
                self.set_state(chosen, State::Forgotten);
            }
            Step::ReleaseAll => {
                for chosen in 0..self.transactions.len() {
                    if self.transactions[chosen].state == State::Reserved {
                        store.release(self.transactions[chosen].number).await.unwrap();
                        self.set_state(chosen, State::Forgotten);
                    }
                }
            }
            Step::Accept(choice) => self.accept(store, choice, now).await,
            Step::Cancel(choice) => self.cancel(store, choice, now).await,
            Step::See(choice) => {
                let Some((chosen, number)) = self.choose_known(choice) else { return };
                store.see(number, now).await.unwrap();
                self.see(chosen, TransactionState::Seen);
            }
            Step::SeeWaiting(choice) => {
                let Some((chosen, number)) = self.choose_known(choice) else { return };
                store.see_waiting(number, now).await.unwrap();
                let state = match self.transactions[chosen].shown >= ShownAs::Seen {
                    true => TransactionState::Seen,
                    false => TransactionState::Waiting,
                };
                self.see(chosen, state);
            }
            Step::Mine(choice, height) => {
                let Some((chosen, number)) = self.choose_known(choice) else { return };
                let proof = proof(height);
                store.mine(number, proof.clone(), now).await.unwrap();
                self.show(chosen, TransactionState::Mined(proof.block));
            }
            Step::ForgetBlock(height) => {
                let block = proof(height).block;
                store.forget_block(block, now).await.unwrap();
                for it in &mut self.transactions {
                    if it.state == State::Known(TransactionState::Mined(block)) {
                        it.state = State::Known(TransactionState::Contested { told: false });
                    }
                }
            }
            Step::Contest(choice) => {
                let Some((chosen, number)) = self.choose_known(choice) else { return };
                store.contest(number, now).await.unwrap();
                self.change_if(chosen, TransactionState::Seen, false);
            }
            Step::TellContested(choice) => {
                let Some((chosen, number)) = self.choose_known(choice) else { return };
                store.tell_contested(number, now).await.unwrap();
                self.change_if(chosen, TransactionState::Contested { told: false }, true);
            }
            Step::GiveUp(choice) => self.give_up(store, choice, now).await,
            Step::Displace(choice) => {
                let Some((chosen, number)) = self.choose_known(choice) else { return };
                store.displace(number, now).await.unwrap();
                self.lose(chosen, TransactionState::Displaced);
            }
            Step::Invalidate(choice) => {
                let Some((chosen, number)) = self.choose_known(choice) else { return };
                store.invalidate(number, now).await.unwrap();
                self.lose(chosen, TransactionState::Invalid);
            }
            Step::Unfollow(choice) => {
                let Some((chosen, number)) = self.choose_known(choice) else { return };
                store.unfollow(number).await.unwrap();
                let it = &self.transactions[chosen];
                let is_refused = it.state == State::Known(TransactionState::Refused);
                if is_refused && matches!(it.kind, Kind::Incoming { .. }) {
                    self.set_state(chosen, State::Forgotten);
                    assert_refused!(
                        store.see(number, now).await,
                        Refusal::UnknownTransaction(unknown) if unknown == number
                    );
                }
            }
        }
    }

    fn choose(&self, choice: usize, fits: impl Fn(&ModelTransaction) -> bool) -> Option<usize> {
        let there: Vec<_> =
            (0..self.transactions.len()).filter(|index| fits(&self.transactions[*index])).collect();
        (!there.is_empty()).then(|| there[choice % there.len()])
    }

    /// Any transaction that the store knows, and its number.
    fn choose_known(&self, choice: usize) -> Option<(usize, u64)> {
        let chosen = self.choose(choice, |it| matches!(it.state, State::Known(_)))?;
        Some((chosen, self.transactions[chosen].number))
    }

    fn add(&mut self, transaction: ModelTransaction) -> usize {
        let new = self.transactions.len();
        if transaction.holds_coins() {
            for input in &transaction.inputs {
                self.coins[*input].spender = Some(new);
            }
        }
        self.transactions.push(transaction);
        new
    }

    async fn receive(&mut self, store: &impl WalletStore, satoshis: u64, now: Timestamp) {
        let draft = InvoiceDraft { satoshis, ..InvoiceDraft::default() };
        let new = CreateInvoice { draft, ..new_invoice(now, YEAR) };
        let invoice = store.create_invoice(new).await.unwrap().number;
        let offer = offering(invoice, &[satoshis], self.transactions.len(), now);
        let txid = Some(offer.transaction.txid);
        let number = begin_with(store, offer).await.number;
        let kind = Kind::Incoming { invoice, satoshis };
        let (state, shown, inputs) = (OFFERED, ShownAs::Nothing, vec![]);
        let maker = self.add(ModelTransaction { number, txid, kind, state, shown, inputs });
        self.coins.push(ModelCoin { maker, vout: 0, satoshis, spender: None });
    }

    async fn offer_again(&mut self, store: &impl WalletStore, choice: usize, now: Timestamp) {
        let chosen = self.choose(choice, |it| {
            it.state != State::Forgotten && matches!(it.kind, Kind::Incoming { .. })
        });
        let Some(chosen) = chosen else { return };
        let Kind::Incoming { invoice, satoshis } = self.transactions[chosen].kind else { return };
        let offered = store.offer(offering(invoice, &[satoshis], chosen, now)).await.unwrap();
        let (Offered::Now(payment, _) | Offered::Elsewhere(payment) | Offered::Before(payment)) =
            &offered;
        assert_eq!(payment.number, self.transactions[chosen].number);
        let is_shown = self.transactions[chosen].state.is(TransactionState::spends);
        assert_eq!(matches!(offered, Offered::Before(_)), is_shown);
        if self.transactions[chosen].state.is(TransactionState::is_lost) {
            self.set_state(chosen, OFFERED);
        }
    }

    async fn reserve(
        &mut self,
        store: &impl WalletStore,
        satoshis: u64,
        fee_rate: u64,
        now: Timestamp,
    ) {
        // A coin that is worth less than the fee for its own input does not count.
        let own_fee = Spending { satoshis: 0, output_bytes: 0, fee_rate };
        let own_fee = own_fee.needed(1) - own_fee.needed(0);
        let spendable = self.spendable();
        let spending = Spending { satoshis, output_bytes: 34, fee_rate };
        let purpose = to_payee(self.transactions.len());
        let new = Reserve { purpose, spending, now, ..outgoing("", 1) };
        match store.reserve(new.clone()).await {
            Ok(Reserved::Now(reservation)) => {
                let coins = &reservation.selection.coins;
                let inputs: Vec<_> = coins.iter().map(|coin| self.coin(&coin.outpoint)).collect();
                assert!(
                    inputs.iter().all(|input| spendable.contains(input)),
                    "{inputs:?} {self:#?}"
                );
                let total: u64 = inputs.iter().map(|input| self.coins[*input].satoshis).sum();
                let change = reservation.selection.change.map_or(0, |change| change.satoshis);
                assert!(total >= spending.needed(inputs.len()), "the fee is paid");
                assert!(total - satoshis >= change);
                let number = reservation.number;
                let kind = Kind::Outgoing { payment: None, made_of: Box::new((new, reservation)) };
                let (txid, state, shown) = (None, State::Reserved, ShownAs::Nothing);
                self.add(ModelTransaction { number, txid, kind, state, shown, inputs });
            }
            Ok(Reserved::Before(payment)) => panic!("{payment:?}"),
            Err(WalletStoreError::Refused(Refusal::InsufficientFunds {
                needed,
                spendable: told,
            })) => {
                let worth: Vec<_> =
                    spendable.iter().map(|index| self.coins[*index].satoshis).collect();
                let counted = worth.iter().filter(|satoshis| **satoshis > own_fee + 1);
                let least: u64 = counted.clone().sum();
                assert!((least..=worth.iter().sum()).contains(&told), "{told} {worth:?}");
                assert!(needed > satoshis || fee_rate == 0);
                let inputs = counted.count().max(1);
                assert!(least < spending.needed(inputs), "{least} would do");
            }
            Err(error) => panic!("{error}"),
        }
    }

    async fn record(&mut self, store: &impl WalletStore, choice: usize) {
        let is_begun = |it: &ModelTransaction| {
            it.is_outgoing() && matches!(it.state, State::Reserved | State::Forgotten)
        };
        let Some(chosen) = self.choose(choice, is_begun) else { return };
        let is_reserved = self.transactions[chosen].state == State::Reserved;
        let it = &mut self.transactions[chosen];
        let Kind::Outgoing { payment, made_of } = &mut it.kind else { return };
        let (new, reservation) = &**made_of;
        let record = signed(new, reservation);
        let txid = record.payment.transaction.txid();
        match store.record_payment(record).await {
            Ok(recorded) => {
                assert!(is_reserved);
                let change = reservation.selection.change.map(|change| change.satoshis);
                let total: u64 = it.inputs.iter().map(|input| self.coins[*input].satoshis).sum();
                let paid = recorded.satoshis + recorded.fee + change.unwrap_or(0);
                assert_eq!(total, paid);
                *payment = Some(recorded.number);
                (it.txid, it.state) = (Some(txid), OFFERED);
                self.coins.extend(change.map(|satoshis| ModelCoin {
                    maker: chosen,
                    vout: 1,
                    satoshis,
                    spender: None,
                }));
            }
            Err(WalletStoreError::Refused(Refusal::NotReserved(number))) => {
                assert_eq!((number, is_reserved), (it.number, false));
            }
            Err(error) => panic!("{error}"),
        }
    }

    async fn accept(&mut self, store: &impl WalletStore, choice: usize, now: Timestamp) {
        let Some((chosen, payment)) = self.choose_payment(choice) else { return };
        store.accept(payment, "", now).await.unwrap();
        if self.transactions[chosen].state == OFFERED {
            self.set_state(chosen, State::Known(TransactionState::Unseen));
        }
    }

    fn choose_payment(&self, choice: usize) -> Option<(usize, u64)> {
        let payment = |it: &ModelTransaction| match it.kind {
            Kind::Outgoing { payment, .. } => payment,
            _ => None,
        };
        let chosen = self.choose(choice, |it| payment(it).is_some())?;
        Some((chosen, payment(&self.transactions[chosen])?))
    }

    fn cancellation_of(&self, payment: usize) -> Option<usize> {
        self.choose(0, |it| it.cancels(payment) && it.state == OFFERED)
    }

    async fn cancel(&mut self, store: &impl WalletStore, choice: usize, now: Timestamp) {
        let Some((of, payment)) = self.choose_payment(choice) else { return };
        let cancelled = take_back(store, payment, 1, now).await;
        if !self.transactions[of].state.is(TransactionState::is_open) {
            assert_refused!(cancelled, Refusal::NotOpen(number, _) if number == payment);
            return;
        }
        let number = cancelled.unwrap();
        if let Some(before) = self.cancellation_of(of) {
            assert_eq!(number, self.transactions[before].number);
            return;
        }
        let transaction = store.transaction(number).await.unwrap().unwrap();
        let input = self.coin(&transaction.inputs[0].previous_output);
        assert!(self.transactions[of].inputs.contains(&input));
        let satoshis = transaction.outputs[0].satoshis;
        let (kind, state, shown) = (Kind::Cancellation { of }, OFFERED, ShownAs::Nothing);
        let (txid, inputs) = (Some(transaction.txid()), vec![input]);
        let maker = self.add(ModelTransaction { number, txid, kind, state, shown, inputs });
        self.coins.push(ModelCoin { maker, vout: 0, satoshis, spender: None });
    }

    /// The network or the payee refuses an offered payment.
    async fn give_up(&mut self, store: &impl WalletStore, choice: usize, now: Timestamp) {
        let Some(chosen) = self.choose(choice, |it| it.state.is(TransactionState::is_open)) else {
            return;
        };
        let ModelTransaction { number, ref kind, shown, .. } = self.transactions[chosen];
        match *kind {
            Kind::Incoming { .. } => {
                store.refuse(number, now).await.unwrap();
                let state = match shown != ShownAs::Nothing {
                    true => TransactionState::Invalid,
                    false => TransactionState::Refused,
                };
                self.set_state(chosen, State::Known(state));
            }
            Kind::Outgoing { payment, .. } => {
                store.refuse_by_payee(payment.unwrap(), "no", now).await.unwrap();
                let is_offered = self.transactions[chosen].state == OFFERED;
                if is_offered && self.cancellation_of(chosen).is_none() {
                    self.lose(chosen, TransactionState::Refused);
                }
            }
            Kind::Cancellation { .. } => assert_refused!(
                store.refuse(number, now).await,
                Refusal::NotInFlight(open) if open == number
            ),
        }
    }

    fn change_if(&mut self, chosen: usize, old: TransactionState, told: bool) {
        if self.transactions[chosen].state == State::Known(old) {
            self.set_state(chosen, State::Known(TransactionState::Contested { told }));
        }
    }

    fn see(&mut self, chosen: usize, state: TransactionState) {
        if !self.transactions[chosen].state.is(|it| it.block().is_some()) {
            self.show(chosen, state);
        }
    }

    /// The network has it. Other transactions that hold its coins are lost.
    fn show(&mut self, chosen: usize, state: TransactionState) {
        if self.transactions[chosen].state == State::Known(state) {
            return;
        }
        for input in self.transactions[chosen].inputs.clone() {
            let Some(other) = self.coins[input].spender.filter(|other| *other != chosen) else {
                continue;
            };
            let is_cancelled = self.transactions[chosen].cancels(other);
            self.lose(
                other,
                match is_cancelled {
                    true => TransactionState::Cancelled,
                    false => TransactionState::Displaced,
                },
            );
        }
        self.set_state(chosen, State::Known(state));
        if let Kind::Cancellation { of } = self.transactions[chosen].kind
            && let Some(another) = self.cancellation_of(of)
        {
            self.set_state(another, State::Known(TransactionState::Refused));
        }
    }

    /// It is lost, after the transactions that spend its coins.
    fn lose(&mut self, lost: usize, state: TransactionState) {
        for index in 0..self.coins.len() {
            if self.coins[index].maker == lost
                && let Some(spender) = self.coins[index].spender
            {
                self.lose(spender, TransactionState::Displaced);
            }
        }
        if self.transactions[lost].state == State::Reserved {
            self.set_state(lost, State::Forgotten);
        } else if !self.transactions[lost].state.is(TransactionState::is_lost) {
            self.set_state(lost, State::Known(state));
        }
    }

    fn set_state(&mut self, chosen: usize, state: State) {
        let it = &mut self.transactions[chosen];
        it.state = state;
        it.shown = it.shown.max(match state {
            State::Known(TransactionState::Mined(_)) => ShownAs::Mined,
            state if state.is(TransactionState::counts) => ShownAs::Seen,
            state if state.is(TransactionState::spends) => ShownAs::Waiting,
            _ => ShownAs::Nothing,
        });
        let (holds_coins, is_outgoing) = (it.holds_coins(), it.is_outgoing());
        for input in it.inputs.clone() {
            let spender = &mut self.coins[input].spender;
            if holds_coins {
                *spender = Some(chosen);
            } else if *spender == Some(chosen) {
                *spender = None;
            }
        }
        let is_over = state.is(|it| !it.is_open() && it != TransactionState::Cancelled);
        if let Some(cancellation) = self.cancellation_of(chosen).filter(|_| is_outgoing && is_over)
        {
            self.set_state(cancellation, State::Known(TransactionState::Refused));
        }
    }

    fn coin(&self, outpoint: &OutPoint) -> usize {
        let is_there = |coin: &ModelCoin| {
            self.transactions[coin.maker].txid == Some(outpoint.txid) && coin.vout == outpoint.vout
        };
        self.coins.iter().position(is_there).unwrap()
    }

    fn is_spendable(&self, coin: &ModelCoin) -> bool {
        let maker = &self.transactions[coin.maker];
        coin.spender.is_none() && maker.state.is(TransactionState::can_be_spent)
    }

    fn spendable(&self) -> Vec<usize> {
        (0..self.coins.len()).filter(|index| self.is_spendable(&self.coins[*index])).collect()
    }

    async fn compare(&mut self, store: &impl WalletStore) {
        let is = |transaction: usize, holds: fn(TransactionState) -> bool| {
            self.transactions[transaction].state.is(holds)
        };
        let counts = |coin: &&ModelCoin| {
            let is_spent =
                coin.spender.is_some_and(|spender| is(spender, TransactionState::spends));
            is(coin.maker, TransactionState::counts) && !is_spent
        };
        let balance: u64 = self.coins.iter().filter(counts).map(|coin| coin.satoshis).sum();
        assert_eq!(store.balance().await.unwrap(), balance, "{self:#?}");
        let events = events(store).await.len();
        let of_cancellations =
            |it: &&ModelTransaction| matches!(it.kind, Kind::Cancellation { .. });
        let cancellations = self.transactions.iter().filter(of_cancellations);
        let cancellations: Vec<_> = cancellations.map(|it| it.state).collect();
        let is_told = events > self.events || cancellations != self.cancellations;
        assert!(balance == self.balance || is_told, "nothing tells of it: {self:#?}");
        (self.balance, self.events, self.cancellations) = (balance, events, cancellations);
        self.compare_transactions(store).await;
        self.compare_coins(store).await;
    }

    async fn compare_transactions(&self, store: &impl WalletStore) {
        let followed = store.followed(0, 10_000).await.unwrap();
        for it in &self.transactions {
            let record = store.record(it.number).await.unwrap();
            let State::Known(state) = it.state else {
                assert_eq!(record, None);
                continue;
            };
            let record = record.unwrap();
            assert_eq!((record.state, record.shown), (state, it.shown), "{it:?} {self:#?}");
            let until = followed.iter().find(|followed| followed.number == it.number);
            let until = until.map(|followed| followed.until);
            match state {
                TransactionState::Mined(_) => assert_eq!(until, None),
                // The time to follow it may be over.
                state if state.is_lost() => assert_ne!(until, Some(FollowedUntil::Mined)),
                _ => assert_eq!(until, Some(FollowedUntil::Mined), "{it:?}"),
            }
            if let Kind::Incoming { invoice, .. } = it.kind {
                let invoice = store.invoice(invoice).await.unwrap().unwrap();
                assert_eq!(invoice.payment_received_at.is_some(), state.counts());
                assert_eq!(invoice.in_flight, state == TransactionState::Offered);
            }
        }
    }

    /// Compares the spenders of coins, and the list of spendable coins.
    async fn compare_coins(&self, store: &impl WalletStore) {
        let number_of = |transaction: usize| self.transactions[transaction].number;
        let is_known = |coin: &&ModelCoin| self.transactions[coin.maker].state != State::Forgotten;
        let held = |coin: &ModelCoin| {
            let key = (number_of(coin.maker), coin.vout);
            (key, coin.satoshis, coin.spender.map(number_of), self.is_spendable(coin))
        };
        let mut expected: Vec<_> = self.coins.iter().filter(is_known).map(held).collect();
        expected.sort_unstable();
        let step = |found: &mut Vec<_>, item| match item {
            LedgerItem::Transaction(it) => {
                assert!(it.spends.iter().all(|spend| spend.outpoint.is_some()));
                found.extend(it.coins.iter().map(|coin| {
                    let spender = coin.spender.as_ref().map(|spender| spender.number);
                    ((it.number, coin.vout), coin.satoshis, spender, coin.is_spendable)
                }));
            }
            LedgerItem::Totals(totals) => {
                let listed = found.iter().filter(|(_, _, _, is_spendable)| *is_spendable).count();
                assert_eq!((totals.coins, totals.spendable), (found.len() as u64, listed as u64));
                assert_eq!(totals.raw, totals.transactions);
            }
            LedgerItem::Invoice(it) => {
                assert!(it.is_listed && it.received == it.recounted, "{it:?}");
            }
        };
        let found = store.list(FoldLedger { start: Vec::new(), step }).await.unwrap();
        assert_eq!(found, expected, "{self:#?}");
    }
}
