//! What payments do to coins and to the balance, whatever comes in which order: compared with a
//! model that knows all coins and adds them up.

use bsv_invoicing::{
    Begun, NewIncoming, NewOutgoing, Selection, Spending, WalletStore, WalletStoreError,
};
use bsv_tx::{OutPoint, Script, Transaction, TxIn, TxOut, Txid};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;

/// Something that happens. The numbers choose among what is there to choose from.
#[derive(Clone, Copy, Debug)]
enum Step {
    Receive { satoshis: u64 },
    Pay { satoshis: u64, fee_rate: u64 },
    Cancel(usize),
    Settle(usize),
    GiveUp(usize),
    Displace(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (1_u64..100_000).prop_map(|satoshis| Step::Receive { satoshis }),
        4 => (1_u64..60_000, 0_u64..200)
            .prop_map(|(satoshis, fee_rate)| Step::Pay { satoshis, fee_rate }),
        1 => any::<usize>().prop_map(Step::Cancel),
        6 => any::<usize>().prop_map(Step::Settle),
        2 => any::<usize>().prop_map(Step::GiveUp),
        2 => any::<usize>().prop_map(Step::Displace),
    ]
}

/// Runs random steps against stores in fresh places.
pub(crate) fn run_random_steps<P: Place>() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let config = Config { cases: 100, failure_persistence: None, ..Config::default() };
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

#[derive(Clone, Copy, Debug, PartialEq)]
enum State {
    InFlight,
    Settled,
    Gone,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Incoming,
    Outgoing {
        payment: u64,
    },
    Cancellation {
        of: usize,
    },
    /// It was refused, and nobody knows of it any more.
    Forgotten,
}

#[derive(Debug)]
struct ModelTransaction {
    number: u64,
    txid: Txid,
    kind: Kind,
    state: State,
    inputs: Vec<usize>,
}

#[derive(Debug)]
struct ModelCoin {
    maker: usize,
    outpoint: OutPoint,
    satoshis: u64,
    spender: Option<usize>,
}

#[derive(Debug, Default)]
struct Model {
    transactions: Vec<ModelTransaction>,
    coins: Vec<ModelCoin>,
}

impl Model {
    async fn take(&mut self, store: &impl WalletStore, step: Step, index: u64) {
        let now = at(index);
        match step {
            Step::Receive { satoshis } => self.receive(store, satoshis, now).await,
            Step::Pay { satoshis, fee_rate } => self.pay(store, satoshis, fee_rate, now).await,
            Step::Cancel(choice) => self.cancel(store, choice, now).await,
            Step::Settle(choice) => {
                let Some(chosen) =
                    self.choose(choice, |transaction| transaction.kind != Kind::Forgotten)
                else {
                    return;
                };
                store.settle(self.transactions[chosen].number, now).await.unwrap();
                self.settle(chosen);
            }
            Step::GiveUp(choice) => self.give_up(store, choice, now).await,
            Step::Displace(choice) => {
                let settled = |transaction: &ModelTransaction| transaction.state == State::Settled;
                let Some(chosen) = self.choose(choice, settled) else { return };
                store.displace(self.transactions[chosen].number, now).await.unwrap();
                self.give_way(chosen);
            }
        }
    }

    fn choose(&self, choice: usize, fits: impl Fn(&ModelTransaction) -> bool) -> Option<usize> {
        let there: Vec<_> =
            (0..self.transactions.len()).filter(|index| fits(&self.transactions[*index])).collect();
        (!there.is_empty()).then(|| there[choice % there.len()])
    }

    fn add(&mut self, transaction: ModelTransaction, coin: Option<(u32, u64)>) {
        let maker = self.transactions.len();
        if let Some((vout, satoshis)) = coin {
            let outpoint = OutPoint { txid: transaction.txid, vout };
            self.coins.push(ModelCoin { maker, outpoint, satoshis, spender: None });
        }
        for input in &transaction.inputs {
            let coin = &mut self.coins[*input];
            coin.spender = coin.spender.or(Some(maker));
        }
        self.transactions.push(transaction);
    }

    async fn receive(&mut self, store: &impl WalletStore, satoshis: u64, now: Timestamp) {
        let draft = InvoiceDraft { satoshis, ..InvoiceDraft::default() };
        let new = NewInvoice { draft, ..new_invoice(now, YEAR) };
        let invoice = store.create_invoice(new, id).await.unwrap().number;
        let transaction = paying(&[satoshis], self.transactions.len());
        let txid = transaction.txid();
        let new = NewIncoming { invoice, transaction, vout: 0, refund_to: None, now };
        let Begun::InFlight(payment) = store.begin_payment(new).await.unwrap() else {
            panic!("it was not there before")
        };
        let (kind, state) = (Kind::Incoming, State::InFlight);
        let new = ModelTransaction { number: payment.number, txid, kind, state, inputs: vec![] };
        self.add(new, Some((0, satoshis)));
    }

    async fn pay(
        &mut self,
        store: &impl WalletStore,
        satoshis: u64,
        fee_rate: u64,
        now: Timestamp,
    ) {
        let spendable = self.spendable();
        let new = NewOutgoing {
            url: format!("http://payee.example/{}", self.transactions.len()),
            outputs: paying(&[satoshis], 0).outputs,
            fee_rate,
            expires_at: now.after(HOUR),
            now,
            idempotency: None,
        };
        let chosen = std::sync::Arc::new(std::sync::Mutex::new(None));
        let told = std::sync::Arc::clone(&chosen);
        let build = move |selection: &Selection| {
            *told.lock().unwrap() = Some(selection.clone());
            let change = selection.change.map(|(satoshis, _)| satoshis);
            Ok((spending(selection, [Some(satoshis), change]), b"{}".to_vec()))
        };
        match store.reserve_coins(new, build).await {
            Ok(payment) => {
                let selection = chosen.lock().unwrap().take().unwrap();
                let inputs: Vec<_> =
                    selection.coins.iter().map(|coin| self.coin(&coin.outpoint)).collect();
                assert!(
                    inputs.iter().all(|input| spendable.contains(input)),
                    "{inputs:?} {self:#?}"
                );
                let total: u64 = inputs.iter().map(|input| self.coins[*input].satoshis).sum();
                let change = selection.change.map(|(satoshis, _)| satoshis);
                assert_eq!(total, satoshis + payment.fee + change.unwrap_or(0));
                let (kind, state) = (Kind::Outgoing { payment: payment.number }, State::InFlight);
                let number = newest(store).await;
                let txid = payment.txid;
                let new = ModelTransaction { number, txid, kind, state, inputs };
                self.add(new, change.map(|satoshis| (1, satoshis)));
            }
            Err(WalletStoreError::InsufficientFunds { needed, spendable: told }) => {
                let worth = spendable.iter().map(|index| self.coins[*index].satoshis).sum::<u64>();
                assert_eq!(told, worth);
                let inputs = spendable.len().max(1);
                let spending = Spending { satoshis, output_bytes: 34, fee_rate };
                assert!(needed > satoshis || fee_rate == 0);
                assert!(worth < spending.needed(inputs), "{worth} would do");
            }
            Err(error) => panic!("{error}"),
        }
    }

    async fn cancel(&mut self, store: &impl WalletStore, choice: usize, now: Timestamp) {
        let is_cancelled =
            |of| self.transactions.iter().any(|other| other.kind == Kind::Cancellation { of });
        let open = self.choose(choice, |transaction| {
            matches!(transaction.kind, Kind::Outgoing { .. })
                && transaction.state == State::InFlight
        });
        let Some(of) = open.filter(|of| !is_cancelled(*of)) else { return };
        let Kind::Outgoing { payment } = self.transactions[of].kind else { return };
        let spent = std::sync::Arc::new(std::sync::Mutex::new(None));
        let told = std::sync::Arc::clone(&spent);
        let build = move |selection: &Selection| {
            *told.lock().unwrap() = Some(selection.clone());
            Ok(spending(selection, [selection.change.map(|(satoshis, _)| satoshis), None]))
        };
        let whole = Spending { satoshis: 0, output_bytes: 0, fee_rate: 1 };
        let number = store.begin_cancellation(payment, whole, now, build).await.unwrap();
        let selection = spent.lock().unwrap().take().unwrap();
        let change = selection.change.unwrap().0;
        let txid = spending(&selection, [Some(change), None]).txid();
        let inputs = vec![self.coin(&selection.coins[0].outpoint)];
        let (kind, state) = (Kind::Cancellation { of }, State::InFlight);
        self.add(ModelTransaction { number, txid, kind, state, inputs }, Some((0, change)));
    }

    /// The network, or the payee, refuses what is in flight.
    async fn give_up(&mut self, store: &impl WalletStore, choice: usize, now: Timestamp) {
        let Some(chosen) = self.choose(choice, |transaction| transaction.state == State::InFlight)
        else {
            return;
        };
        let ModelTransaction { number, kind, .. } = self.transactions[chosen];
        match kind {
            Kind::Incoming => {
                store.refuse_payment(number).await.unwrap();
                self.transactions[chosen].state = State::Gone;
                self.transactions[chosen].kind = Kind::Forgotten;
                let error = store.settle(number, now).await.unwrap_err();
                assert!(matches!(error, WalletStoreError::UnknownTransaction(_)), "{error}");
            }
            Kind::Outgoing { payment } => {
                let is_open = !self.transactions.iter().any(|other| {
                    other.kind == Kind::Cancellation { of: chosen }
                        && other.state == State::InFlight
                });
                store.refuse_outgoing(payment, "no".to_owned(), now).await.unwrap();
                if is_open {
                    self.transactions[chosen].state = State::Gone;
                    self.release(chosen);
                }
            }
            Kind::Cancellation { .. } | Kind::Forgotten => {}
        }
    }

    fn settle(&mut self, chosen: usize) {
        if self.transactions[chosen].state == State::Settled {
            return;
        }
        for input in self.transactions[chosen].inputs.clone() {
            if let Some(other) = self.coins[input].spender.filter(|other| *other != chosen) {
                self.give_way(other);
            }
            self.coins[input].spender = Some(chosen);
        }
        self.transactions[chosen].state = State::Settled;
        for other in 0..self.transactions.len() {
            let ModelTransaction { kind, state, .. } = self.transactions[other];
            if kind == (Kind::Cancellation { of: chosen }) && state == State::InFlight {
                self.transactions[other].state = State::Gone;
                self.release(other);
            }
        }
    }

    fn give_way(&mut self, gone: usize) {
        for index in 0..self.coins.len() {
            if self.coins[index].maker == gone
                && let Some(spender) = self.coins[index].spender
            {
                self.give_way(spender);
            }
        }
        if self.transactions[gone].state != State::Gone {
            self.transactions[gone].state = State::Gone;
            self.release(gone);
        }
    }

    fn release(&mut self, gone: usize) {
        self.coins.iter_mut().filter(|coin| coin.spender == Some(gone)).for_each(|coin| {
            coin.spender = None;
        });
    }

    fn coin(&self, outpoint: &OutPoint) -> usize {
        self.coins.iter().position(|coin| coin.outpoint == *outpoint).unwrap()
    }

    fn has_settled(&self, transaction: usize) -> bool {
        self.transactions.get(transaction).is_some_and(|there| there.state == State::Settled)
    }

    fn spendable(&self) -> Vec<usize> {
        let is_spendable = |index: &usize| {
            let coin = &self.coins[*index];
            coin.spender.is_none() && self.has_settled(coin.maker)
        };
        (0..self.coins.len()).filter(is_spendable).collect()
    }

    async fn compare(&self, store: &impl WalletStore) {
        let counts = |coin: &&ModelCoin| {
            let is_spent = coin.spender.is_some_and(|spender| self.has_settled(spender));
            self.has_settled(coin.maker) && !is_spent
        };
        let balance: u64 = self.coins.iter().filter(counts).map(|coin| coin.satoshis).sum();
        assert_eq!(store.balance().await.unwrap(), balance, "{self:#?}");
    }
}

/// The number of the newest transaction.
async fn newest(store: &impl WalletStore) -> u64 {
    store.followed(0, 10_000).await.unwrap().last().unwrap().number
}

/// A transaction that makes these outputs of a coin of somebody else's, each time another one.
pub(super) fn paying(amounts: &[u64], salt: usize) -> Transaction {
    let script = Script::from_bytes(vec![0x51; 25]);
    let output = |satoshis: &u64| TxOut { satoshis: *satoshis, locking_script: script.clone() };
    let previous_output = OutPoint { txid: Txid::from_bytes([7; 32]), vout: salt as u32 };
    Transaction {
        version: 1,
        inputs: vec![input(previous_output)],
        outputs: amounts.iter().map(output).collect(),
        lock_time: 0,
    }
}

/// The transaction that spends chosen coins.
pub(super) fn spending(selection: &Selection, outputs: [Option<u64>; 2]) -> Transaction {
    let amounts: Vec<_> = outputs.into_iter().flatten().collect();
    let inputs = selection.coins.iter().map(|coin| input(coin.outpoint)).collect();
    // As the keys for change do, this tells transactions of the same coins apart.
    let lock_time = selection.change.map_or(0, |(_, index)| index);
    Transaction { inputs, lock_time, ..paying(&amounts, 0) }
}

fn input(previous_output: OutPoint) -> TxIn {
    TxIn { previous_output, unlocking_script: Script::from_bytes([]), sequence: u32::MAX }
}
