//! The wallet and the network side by side: what happens is done to both, and compared.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::Duration;

use bsv_invoicing::ledger::{
    BeginAccount, Contest, CreateInvoice, DeleteInvoice, Displace, ForgetBlock, Invalidate,
    MarkRead, Mine, NewReceipt, Offer, Offered, Recover, Recovered, Refusal, Refuse, Reservation,
    See, Sweep, TellContested, Unfollow,
};
use bsv_invoicing::{
    BlockPlace, Chain, IdCipher, InvoiceDraft, KeyPath, NewId, Proof, Purpose, ReceiptKey,
    Selection, Timestamp, TransactionState,
};
use bsv_tx::{MerkleBranch, OutPoint};

use crate::checks::{self, Replay, Visible};
use crate::network::{Network, Pays, Place};
use crate::rows::MemoryRows;
use crate::steps::{Input, Parents, Pick, Showing, Step};
use crate::told::{Output, Told, ToldInvoice, counts, is_lost, spends};

/// To make one takes longer than all else of a sequence.
static CIPHER: LazyLock<IdCipher> = LazyLock::new(|| IdCipher::new(&[1; 32]));

#[derive(Default)]
pub(crate) struct World {
    pub(crate) rows: MemoryRows,
    pub(crate) told: Told,
    pub(crate) network: Network,
    replay: Replay,
    /// In microseconds.
    clock: u64,
    account: u32,
    invoices_before: u64,
    /// Blocks that the chain has lost, and of which the wallet was not told.
    untold_blocks: Vec<BlockPlace>,
    /// What is reserved for which URL, and how much is to be paid.
    pub(crate) reserved: Vec<(Reservation, usize, u64)>,
    pub(crate) prepared: Vec<(u64, Selection)>,
    /// All keys for change that were given out.
    pub(crate) change_keys: BTreeSet<(u32, u32)>,
}

pub(crate) fn pick<T: Copy>(from: &[T], pick: Pick) -> Option<T> {
    let index = usize::from(pick).checked_rem(from.len())?;
    Some(from[index])
}

impl World {
    pub(crate) fn take(&mut self, step: Step) {
        self.clock += 1_000_000;
        match step {
            Step::CreateInvoice { satoshis, is_short } => drop(self.create(satoshis, is_short)),
            Step::DeleteInvoice(invoice) => self.delete(invoice),
            Step::Offer { invoice, input, more, also, is_joint, is_known } => {
                self.offer_new(invoice, input, more, also, is_joint, is_known);
            }
            Step::OfferAgain { payment, invoice, is_known } => {
                self.offer_again(payment, invoice, is_known);
            }
            Step::Fund { satoshis, showing } => self.fund(satoshis, showing),
            Step::Show { transaction, showing } => {
                if let Some(number) = self.any(transaction, |_| true) {
                    self.show(self.told.entries[&number].transaction, showing);
                }
            }
            Step::ShowRival { transaction, rival, showing } => {
                self.show_rival(transaction, rival, showing);
            }
            Step::ShowStrangers { transaction, showing } => {
                self.show_strangers(transaction, showing);
            }
            Step::Drop(transaction) => {
                if let Some(number) = self.any(transaction, spends) {
                    self.network.drop_from_mempool(self.told.entries[&number].transaction);
                }
            }
            Step::LoseBlocks { count, to_mempool, is_told } => {
                (0..count).for_each(|_| self.lose_block(to_mempool, is_told));
            }
            Step::TellBlocks => {
                for block in std::mem::take(&mut self.untold_blocks) {
                    self.forget(block);
                }
            }
            Step::Contest(transaction) => self.contest(transaction),
            Step::Tell(transaction) => self.tell_contested(transaction),
            Step::Displace(transaction) => self.displace(transaction),
            Step::Invalidate(transaction) => self.invalidate(transaction),
            Step::Refuse(transaction) => self.refuse(transaction),
            Step::Reserve { url, satoshis, fee_rate } => {
                self.reserve(url, satoshis, fee_rate);
            }
            Step::Record { reservation, to_invoice } => self.record(reservation, to_invoice),
            Step::Release(reservation) => self.release(reservation),
            Step::ReleaseAll => self.release_all(),
            Step::Pay { url, satoshis, fee_rate } => {
                if self.reserve(url, satoshis, fee_rate) {
                    self.record(Pick::try_from(self.reserved.len() - 1).unwrap(), None);
                }
            }
            Step::Accept(payment) => self.accept(payment),
            Step::RefuseByPayee(payment) => self.refuse_by_payee(payment),
            Step::PrepareCancellation(payment) => drop(self.prepare_cancellation(payment)),
            Step::RecordCancellation(prepared) => self.record_cancellation(prepared),
            Step::Cancel(payment) => {
                if self.prepare_cancellation(payment) {
                    self.record_cancellation(Pick::try_from(self.prepared.len() - 1).unwrap());
                }
            }
            Step::Unfollow(transaction) => self.unfollow(transaction),
            Step::Recover { spends, to_invoice, satoshis, is_mined } => {
                self.recover(spends, to_invoice, satoshis, is_mined);
            }
            Step::BeginAccount(account) => self.begin_account(account),
            Step::Sweep { hours } => self.sweep(hours),
            Step::MarkRead { transaction, is_read } => self.mark_read(transaction, is_read),
        }
        self.check_undone_and_redone();
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.clock)
    }

    /// Runs a command, has `then` tell the model what must have come of it, and compares.
    pub(crate) fn execute<C>(
        &mut self,
        command: &C,
        then: impl FnOnce(&mut Self, &Result<C::Answer, Refusal>),
    ) -> Result<C::Answer, Refusal>
    where
        C: bsv_invoicing::ledger::Command<Answer: PartialEq + std::fmt::Debug>,
    {
        let before = Visible::of(&self.rows);
        let answer = self.rows.execute(command);
        then(self, &answer);
        let told = self.replay.read(&self.rows);
        checks::check(&self.rows, &self.told, &self.network);
        self.replay.check(&self.rows, &self.told);
        before.check_told(&Visible::of(&self.rows), told);
        answer
    }

    /// The number of a transaction in one of these states.
    pub(crate) fn any(&self, choice: Pick, fits: fn(TransactionState) -> bool) -> Option<u64> {
        let entries = self.told.entries.iter().filter(|(_, it)| fits(it.state));
        pick(&entries.map(|(number, _)| *number).collect::<Vec<_>>(), choice)
    }

    pub(crate) fn any_invoice(&self, choice: Pick) -> Option<u64> {
        pick(&self.told.invoices.keys().copied().collect::<Vec<_>>(), choice)
    }

    pub(crate) fn outpoint(&self, key: ReceiptKey) -> OutPoint {
        let index = self.told.entries[&key.maker].transaction;
        OutPoint { txid: self.network.transactions[index].txid, vout: key.vout }
    }

    fn create(&mut self, satoshis: u64, is_short: bool) -> u64 {
        let hours = if is_short { 2 } else { 2000 };
        let now = self.now();
        let create = CreateInvoice {
            draft: InvoiceDraft { satoshis, ..InvoiceDraft::default() },
            expiry: Duration::from_secs(hours * 60 * 60),
            id: NewId { cipher: CIPHER.clone(), random: 5 },
            idempotency: None,
            now,
        };
        let answer = self.execute(&create, |world, answer| {
            let invoice = answer.as_ref().unwrap();
            let index = u32::try_from(invoice.number - world.invoices_before).unwrap();
            let key = KeyPath { account: world.account, chain: Chain::Receive, index };
            let (expires_at, is_deleted) = (invoice.expires_at, false);
            assert_eq!(expires_at, now.after(Duration::from_secs(hours * 60 * 60)));
            let new = ToldInvoice { satoshis, key, expires_at, is_deleted };
            assert!(world.told.invoices.insert(invoice.number, new).is_none());
        });
        answer.unwrap().number
    }

    fn delete(&mut self, choice: Pick) {
        let Some(number) = self.any_invoice(choice) else { return };
        let delete = DeleteInvoice { number, now: self.now() };
        let _ = self.execute(&delete, |world, answer| {
            let is_paid = world.told.is_paid(number);
            let is_offered = world.told.in_flight(number).is_some();
            let invoice = world.told.invoices.get_mut(&number).unwrap();
            match answer {
                Err(Refusal::UnknownInvoice(_)) => assert!(invoice.is_deleted),
                Err(Refusal::Paid(_)) => assert!(is_paid),
                Err(Refusal::InFlight(_)) => assert!(is_offered),
                Err(refusal) => panic!("{refusal}"),
                Ok(()) => {
                    assert!(!invoice.is_deleted && !is_paid && !is_offered);
                    invoice.is_deleted = true;
                }
            }
        });
    }

    fn fund(&mut self, satoshis: u64, showing: Showing) {
        let invoice = self.create(satoshis, false);
        let coin = self.network.strangers_coin();
        let pays = vec![self.paying(invoice, 0, satoshis)];
        let index = self.network.add(&[coin], &[satoshis, 500], pays, true).unwrap();
        self.offer(index, invoice, false);
        self.show(index, showing);
    }

    fn paying(&self, invoice: u64, vout: u32, satoshis: u64) -> Pays {
        Pays { vout, satoshis, invoice, key: self.told.invoices[&invoice].key, is_joint: false }
    }

    fn offer_new(
        &mut self,
        invoice: Pick,
        input: Input,
        more: i64,
        also: Option<Pick>,
        is_joint: bool,
        is_known: bool,
    ) {
        let Some(invoice) = self.any_invoice(invoice) else { return };
        let also = also.and_then(|also| self.any_invoice(also));
        let strangers: Vec<_> = (0..self.network.transactions.len())
            .filter(|index| self.network.transactions[*index].is_of_stranger)
            .collect();
        let coin = match input {
            Input::Fresh => None,
            Input::Shared(other) => pick(&strangers, other).map(|other| {
                self.network.transactions[other].transaction.inputs[0].previous_output
            }),
            Input::Chained(other) => pick(&strangers, other).map(|other| {
                let other = &self.network.transactions[other];
                let last = other.transaction.outputs.len() - 1;
                OutPoint { txid: other.txid, vout: u32::try_from(last).unwrap() }
            }),
        };
        let coin = coin.unwrap_or_else(|| self.network.strangers_coin());
        let asked = self.told.invoices[&invoice].satoshis;
        let amount = asked.saturating_add_signed(more).max(1);
        let (mut pays, mut amounts) = (vec![self.paying(invoice, 0, amount)], vec![amount]);
        if let Some(also) = also {
            let asked = self.told.invoices[&also].satoshis;
            pays.push(self.paying(also, 1, asked));
            amounts.push(asked);
        }
        pays.iter_mut().for_each(|it| it.is_joint = is_joint);
        // What comes back to the stranger.
        amounts.push(500);
        let Some(index) = self.network.add(&[coin], &amounts, pays, true) else { return };
        let is_known = is_known && self.network.rival_block(index).is_none();
        if is_known {
            self.network.show(index, Place::Mempool);
        }
        self.offer(index, invoice, is_known);
    }

    fn offer_again(&mut self, payment: Pick, invoice: Pick, is_known: bool) {
        let all = self.network.transactions.iter().enumerate();
        let paying = all.filter(|(_, it)| !it.pays.is_empty()).map(|(index, _)| index);
        let Some(index) = pick(&paying.collect::<Vec<_>>(), payment) else { return };
        let invoices = self.network.transactions[index].pays.iter().map(|it| it.invoice);
        let invoice = pick(&invoices.collect::<Vec<_>>(), invoice).unwrap();
        let is_there = self.network.place(index) != Place::Nowhere;
        self.offer(index, invoice, is_known && is_there);
    }

    fn offer(&mut self, index: usize, invoice: u64, is_known: bool) {
        let there = &self.network.transactions[index];
        let outputs: BTreeMap<_, _> = there
            .pays
            .iter()
            .filter(|it| it.is_joint || it.invoice == invoice)
            .map(|it| {
                let Pays { vout, satoshis, key, invoice, .. } = *it;
                (vout, Output { satoshis, key, invoice: Some(invoice) })
            })
            .collect();
        let receipts = outputs.iter().map(|(vout, it)| {
            let Output { satoshis, key, .. } = *it;
            NewReceipt { vout: *vout, satoshis, key }
        });
        let offer = Offer {
            invoice,
            transaction: (&there.transaction).into(),
            receipts: receipts.collect(),
            refund_to: None,
            is_known,
            now: self.now(),
            doubted_since: None,
        };
        let before = self.told.entries.iter();
        let mut before = before.filter(|(_, it)| it.transaction == index && it.pays(invoice));
        let before = before.next().map(|(number, it)| (*number, it.state));
        let _ = self.execute(&offer, |world, answer| match answer {
            Ok(Offered::Before(payment)) => {
                assert!(before.is_some_and(|(it, state)| it == payment.number && spends(state)));
            }
            Ok(Offered::Now(payment)) => match before {
                Some((number, state)) => {
                    assert_eq!(number, payment.number);
                    if state != TransactionState::Offered {
                        assert!(is_lost(state), "{state:?}");
                        world.check_offer(index, invoice, is_known);
                        let at = world.at(&world.rows);
                        world.told.set(number, TransactionState::Offered, at);
                        world.told.entries.get_mut(&number).unwrap().is_offered = !is_known;
                    }
                }
                None => {
                    world.check_offer(index, invoice, is_known);
                    let new = (index, Purpose::Incoming(invoice), world.at(&world.rows));
                    world.told.add(payment.number, new, outputs, BTreeSet::new());
                    let entry = world.told.entries.get_mut(&payment.number).unwrap();
                    entry.is_offered = !is_known;
                }
            },
            Err(refusal) => {
                let told = &world.told;
                let is_justified = match refusal {
                    Refusal::UnknownInvoice(_) => told.invoices[&invoice].is_deleted,
                    Refusal::InFlight(it) => !is_known && told.in_flight(*it).is_some(),
                    Refusal::Paid(_) => !is_known && told.is_paid(invoice),
                    Refusal::Expired(_) => !is_known && world.is_over(invoice),
                    _ => false,
                };
                assert!(is_justified, "{refusal}");
            }
        });
    }

    fn is_over(&self, invoice: u64) -> bool {
        self.told.invoices[&invoice].expires_at <= self.at(&self.rows)
    }

    fn check_offer(&self, index: usize, invoice: u64, is_known: bool) {
        let told = &self.told;
        assert!(!told.invoices[&invoice].is_deleted);
        assert!(is_known || told.in_flight(invoice).is_none());
        assert!(is_known || !(told.is_paid(invoice) || self.is_over(invoice)), "{index}");
    }

    /// The time of what happens now.
    pub(crate) fn at(&self, rows: &MemoryRows) -> Timestamp {
        let last = rows.figures.get(&()).map_or(0, |it| it.last_event_at);
        self.now().max(Timestamp::from_micros(last))
    }

    /// The network shows a transaction, and the wallet is told.
    fn show(&mut self, index: usize, showing: Showing) {
        while self.network.rival_block(index).is_some() {
            if !showing.may_lose_blocks {
                return;
            }
            self.lose_block(true, showing.are_blocks_told);
        }
        let place = match showing.is_mined {
            true => Place::Block(self.network.new_block()),
            false => Place::Mempool,
        };
        if !showing.is_mined && matches!(self.network.place(index), Place::Block(_)) {
            return self.tell(index, showing.is_fee_sufficient);
        }
        let mut parents = self.network.show(index, place);
        parents.retain(|it| *it != index);
        let (first, last) = match showing.parents {
            Parents::First => (parents, Vec::new()),
            Parents::Last => (Vec::new(), parents),
            Parents::Untold => (Vec::new(), Vec::new()),
        };
        for told in first.into_iter().chain([index]).chain(last) {
            self.tell(told, showing.is_fee_sufficient);
        }
    }

    /// The wallet is told where the network has a transaction.
    fn tell(&mut self, index: usize, is_fee_sufficient: bool) {
        let entries = self.told.entries.iter().filter(|(_, it)| it.transaction == index);
        let numbers: Vec<_> = entries.map(|(number, _)| *number).collect();
        for number in numbers {
            match self.network.place(index) {
                Place::Nowhere => {}
                Place::Mempool => self.see(number, is_fee_sufficient),
                Place::Block(block) => self.mine(number, block),
            }
        }
    }

    fn see(&mut self, transaction: u64, is_fee_sufficient: bool) {
        let see = See { transaction, is_fee_sufficient, now: self.now() };
        let at = self.at(&self.rows);
        self.execute(&see, |world, _| {
            let old = world.told.state(transaction);
            let new = match is_fee_sufficient || counts(old) {
                true => TransactionState::Seen,
                false => TransactionState::Waiting,
            };
            if old != new && !matches!(old, TransactionState::Mined(_)) {
                world.told.show(transaction, new, at);
            }
        })
        .unwrap();
    }

    fn mine(&mut self, transaction: u64, block: BlockPlace) {
        let mine = Mine { transaction, proof: proof(block), now: self.now() };
        let at = self.at(&self.rows);
        self.execute(&mine, |world, _| {
            let new = TransactionState::Mined(block);
            if world.told.state(transaction) != new {
                world.told.entries.get_mut(&transaction).unwrap().proofs += 1;
                world.told.show(transaction, new, at);
            }
        })
        .unwrap();
    }

    fn show_rival(&mut self, transaction: Pick, rival: Pick, showing: Showing) {
        let Some(number) = self.any(transaction, |_| true) else { return };
        let index = self.told.entries[&number].transaction;
        let rivals: Vec<_> = self.network.rivals(index).iter().copied().collect();
        if let Some(rival) = pick(&rivals, rival) {
            self.show(rival, showing);
        }
    }

    fn show_strangers(&mut self, transaction: Pick, showing: Showing) {
        let entries = self.told.entries.values().map(|it| it.transaction);
        let strangers = entries.filter(|it| self.network.transactions[*it].is_of_stranger);
        let Some(index) = pick(&strangers.collect::<Vec<_>>(), transaction) else { return };
        let inputs = &self.network.transactions[index].transaction.inputs;
        let coin = inputs[0].previous_output;
        let Some(rival) = self.network.add(&[coin], &[1000], Vec::new(), true) else { return };
        self.show(rival, showing);
    }

    fn lose_block(&mut self, to_mempool: bool, is_told: bool) {
        let Some(block) = self.network.lose_block(to_mempool) else { return };
        match is_told {
            true => self.forget(block),
            false => self.untold_blocks.push(block),
        }
    }

    fn forget(&mut self, block: BlockPlace) {
        let at = self.at(&self.rows);
        self.execute(&ForgetBlock { block, now: self.now() }, |world, _| {
            let there = world.told.entries.iter();
            let there = there.filter(|(_, it)| it.state == TransactionState::Mined(block));
            for number in there.map(|(number, _)| *number).collect::<Vec<_>>() {
                world.told.set(number, TransactionState::Contested { told: false }, at);
            }
        })
        .unwrap();
    }

    fn contest(&mut self, choice: Pick) {
        let Some(transaction) = self.any(choice, spends) else { return };
        if self.network.place(self.told.entries[&transaction].transaction) != Place::Nowhere {
            return;
        }
        let at = self.at(&self.rows);
        self.execute(&Contest { transaction, now: self.now() }, |world, _| {
            if world.told.state(transaction) == TransactionState::Seen {
                world.told.set(transaction, TransactionState::Contested { told: false }, at);
            }
        })
        .unwrap();
    }

    fn tell_contested(&mut self, choice: Pick) {
        let is_contested = |state| matches!(state, TransactionState::Contested { .. });
        let Some(transaction) = self.any(choice, is_contested) else { return };
        let at = self.at(&self.rows);
        self.execute(&TellContested { transaction, now: self.now() }, |world, _| {
            world.told.set(transaction, TransactionState::Contested { told: true }, at);
        })
        .unwrap();
    }

    /// Only what the chain contradicts is displaced.
    fn displace(&mut self, choice: Pick) {
        let contradicted = self.told.entries.iter().filter(|(_, it)| {
            !is_lost(it.state) && self.network.rival_block(it.transaction).is_some()
        });
        let contradicted: Vec<_> = contradicted.map(|(number, _)| *number).collect();
        let Some(transaction) = pick(&contradicted, choice) else { return };
        let at = self.at(&self.rows);
        self.execute(&Displace { transaction, now: self.now() }, |world, _| {
            world.told.lose(transaction, TransactionState::Displaced, at);
        })
        .unwrap();
    }

    fn invalidate(&mut self, choice: Pick) {
        let Some(transaction) = self.any(choice, |_| true) else { return };
        if self.network.place(self.told.entries[&transaction].transaction) != Place::Nowhere {
            return;
        }
        let at = self.at(&self.rows);
        self.execute(&Invalidate { transaction, now: self.now() }, |world, _| {
            world.told.lose(transaction, TransactionState::Invalid, at);
        })
        .unwrap();
    }

    fn refuse(&mut self, choice: Pick) {
        let is_offered = |state| state == TransactionState::Offered;
        let Some(transaction) = self.any(choice, is_offered) else { return };
        if self.network.place(self.told.entries[&transaction].transaction) != Place::Nowhere {
            return;
        }
        let at = self.at(&self.rows);
        let _ =
            self.execute(&Refuse { transaction, now: self.now() }, |world, answer| {
                match world.told.entries[&transaction].purpose {
                    Purpose::Incoming(invoice) => {
                        assert!(answer.is_ok());
                        world.told.refuse(transaction, invoice, at);
                    }
                    _ => assert!(matches!(answer, Err(Refusal::NotInFlight(_)))),
                }
            });
    }

    fn unfollow(&mut self, choice: Pick) {
        let Some(transaction) = self.any(choice, is_lost) else { return };
        self.execute(&Unfollow { transaction }, |world, _| {
            let is_void = world.told.is_void(transaction);
            let entry = world.told.entries.get_mut(&transaction).unwrap();
            let Some(bsv_invoicing::FollowedUntil::Time(until)) = entry.until else { return };
            let is_refused = entry.state == TransactionState::Refused;
            if is_refused && matches!(entry.purpose, Purpose::Incoming(_)) {
                world.told.entries.remove(&transaction);
            } else {
                let later = bsv_invoicing::FollowedUntil::Time(until.after(crate::told::DAY));
                entry.until = (!is_void).then_some(later);
            }
        })
        .unwrap();
    }

    /// Another copy of the wallet has made a transaction.
    fn recover(
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
        let Some(index) = self.network.add(&[input], &[satoshis], Vec::new(), false) else {
            return;
        };
        if self.network.rival_block(index).is_some() {
            return;
        }
        let place = match is_mined {
            true => Place::Block(self.network.new_block()),
            false => Place::Mempool,
        };
        self.network.show(index, place);
        let key = match to_invoice {
            Some(invoice) => self.told.invoices[&invoice].key,
            None => {
                let index = 1_000_000 + u32::try_from(index).unwrap();
                KeyPath { account: self.account, chain: Chain::Change, index }
            }
        };
        let block = match place {
            Place::Block(block) => Some(block),
            Place::Nowhere | Place::Mempool => None,
        };
        let last = self.rows.figures.get(&()).map_or(0, |it| it.last_transaction);
        let found = Recovered {
            number: last + 1,
            transaction: self.network.transactions[index].transaction.clone(),
            proof: block.map(proof),
            receipts: vec![(0, key)],
            spends: spent.into_iter().collect(),
            at: self.now(),
        };
        let (came_at, at) = (self.now(), self.at(&self.rows));
        self.execute(&Recover { found: vec![found] }, |world, _| {
            let outputs = BTreeMap::from([(0, Output { satoshis, key, invoice: to_invoice })]);
            let new = (index, Purpose::Recovered, came_at);
            world.told.add(last + 1, new, outputs, spent.into_iter().collect());
            world.told.entries.get_mut(&(last + 1)).unwrap().proofs = u32::from(is_mined);
            let state = block.map_or(TransactionState::Seen, TransactionState::Mined);
            world.told.show(last + 1, state, at);
        })
        .unwrap();
    }

    fn begin_account(&mut self, account: u32) {
        self.execute(&BeginAccount { account, is_behind: false }, |world, answer| {
            world.account = *answer.as_ref().unwrap();
            world.invoices_before = world.told.invoices.keys().last().copied().unwrap_or(0);
        })
        .unwrap();
    }

    fn sweep(&mut self, hours: u64) {
        self.clock += hours * 60 * 60 * 1_000_000;
        let sweep = Sweep { now: self.now(), doubted_since: None, limit: 1000 };
        let _ = self.execute(&sweep, |world, _| {
            let due = world.told.invoices.iter().filter(|(number, it)| {
                let is_waiting = !it.is_deleted && !world.told.is_paid(**number);
                is_waiting
                    && it.expires_at <= world.now()
                    && world.told.in_flight(**number).is_none()
            });
            for (number, it) in due {
                let is_expected = world.rows.expiries.contains_key(&(it.expires_at, *number));
                assert!(!is_expected, "invoice {number} is due, and was not swept");
            }
        });
    }

    fn mark_read(&mut self, choice: Pick, is_read: bool) {
        let Some(transaction) = self.any(choice, |_| true) else { return };
        let mark = MarkRead { transaction, sequence: 1, is_read };
        let is_there = self.execute(&mark, |_, _| ()).unwrap();
        assert_eq!(is_there, self.told.entries[&transaction].proofs > 0);
        let found = self.rows.proofs.get(&(transaction, 1));
        assert!(found.is_none_or(|found| found.is_read == is_read));
    }

    /// What is displaced, and then shown again with all that was displaced with it, is as it was.
    fn check_undone_and_redone(&self) {
        let choice = Pick::try_from(self.clock / 1_000_000 % 65_000).unwrap();
        let Some(transaction) = self.any(choice, spends) else { return };
        let (mut rows, now) = (self.rows.clone(), self.at(&self.rows));
        rows.apply(&Displace { transaction, now });
        let changed = self.rows.transactions.iter();
        let changed = changed.filter(|(it, record)| rows.transactions[*it].state != record.state);
        let changed: Vec<_> = changed.map(|(number, record)| (*number, record.state)).collect();
        // What was only reserved, or sent to a payee, cannot be shown again.
        let is_all_shown = changed.iter().all(|(_, state)| spends(*state));
        if !is_all_shown || rows.reservations != self.rows.reservations {
            return;
        }
        for (transaction, state) in changed {
            let is_fee_sufficient = state != TransactionState::Waiting;
            rows.apply(&See { transaction, is_fee_sufficient, now });
            match state {
                TransactionState::Mined(block) => {
                    rows.apply(&Mine { transaction, proof: proof(block), now });
                }
                TransactionState::Contested { told } => {
                    rows.apply(&Contest { transaction, now });
                    if told {
                        rows.apply(&TellContested { transaction, now });
                    }
                }
                _ => {}
            }
        }
        assert_eq!(checks::books(&rows), checks::books(&self.rows), "undone and redone");
    }
}

fn proof(block: BlockPlace) -> Proof {
    Proof { block, branch: MerkleBranch { position: 0, siblings: Vec::new() } }
}
