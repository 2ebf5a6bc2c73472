//! The wallet and the model side by side. Each step is applied to both, and the results are
//! compared.

use std::collections::BTreeSet;

use bsv_invoicing::Timestamp;
use bsv_invoicing::coins::{KeyPath, Selection};
use bsv_invoicing::invoices::PaymentRules;
use bsv_invoicing::ledger::rows::{
    AllFigures, Proofs, Reorganisations, Reservations, Transactions,
};
use bsv_invoicing::ledger::{
    BeginAccount, CheckedProof, Contest, Displace, MarkRead, Mine, Refusal, Reservation, See,
    SetRules, Sighting, TellContested,
};
use bsv_invoicing::receiving::ReceiptKey;
use bsv_invoicing::sending::OutgoingPurpose;
use bsv_invoicing::transactions::{BlockPlace, Proof, TransactionState};
use bsv_tx::{MerkleBranch, OutPoint};

use crate::checks::{self, Replay, Visible};
use crate::network::Network;
use crate::rows::MemoryRows;
use crate::steps::{Pick, Step};
use crate::told::{Told, spends};

#[derive(Default)]
pub(crate) struct World {
    pub(crate) rows: MemoryRows,
    pub(crate) told: Told,
    pub(crate) network: Network,
    /// Whether services tell of transactions. A node then tells of some, as if the source had changed.
    pub(crate) has_services: bool,
    replay: Replay,
    /// The time in microseconds.
    pub(crate) clock: u64,
    pub(crate) account: u32,
    pub(crate) invoices_before: u64,
    pub(crate) users_before: u64,
    /// The users, with their keys.
    pub(crate) users: Vec<(u64, KeyPath)>,
    /// Blocks that the chain has lost, if the wallet was not told so.
    pub(crate) untold_blocks: Vec<BlockPlace>,
    /// Transactions, and proofs that were checked and not recorded yet.
    pub(crate) checked: Vec<(u64, CheckedProof)>,
    /// The reservations, with their purposes and amounts.
    pub(crate) reserved: Vec<(Reservation, OutgoingPurpose, u64)>,
    pub(crate) prepared: Vec<(u64, Selection)>,
    /// All keys for change that were given out.
    pub(crate) change_keys: BTreeSet<(u32, u32)>,
}

pub(crate) fn pick<T: Copy>(from: &[T], pick: Pick) -> Option<T> {
    let index = usize::from(pick).checked_rem(from.len())?;
    Some(from[index])
}

impl World {
    /// A wallet with these rules, which a node or services tell of transactions.
    pub(crate) fn new(rules: PaymentRules, has_services: bool) -> Self {
        let mut world = Self { has_services, ..Self::default() };
        world.told.rules = rules;
        world.rows.apply(&SetRules { rules: world.told.rules });
        world
    }

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
            Step::Grow { blocks, with_payments } => self.grow(blocks, with_payments),
            Step::NoticeAgain(transaction) => self.notice_again(transaction),
            Step::TellBlocks => {
                let lost = std::mem::take(&mut self.untold_blocks);
                self.follow_reorganisation(lost);
            }
            Step::CheckProof(transaction) => self.check_proof(transaction),
            Step::MineLate(proof) => self.mine_late(proof),
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
            Step::Refund { invoice, satoshis, fee_rate } => {
                if self.reserve_refund(invoice, satoshis, fee_rate) {
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
            Step::Say { transaction, sighting } => self.say(transaction, sighting),
            Step::LeaveNode(transaction) => self.leave_node(transaction),
            Step::SayRival(transaction) => self.say_rival(transaction),
            Step::FreeInvoices(transaction) => self.free_invoices(transaction),
            Step::Unfollow(transaction) => self.unfollow(transaction),
            Step::Recover { spends, to_invoice, satoshis, is_mined } => {
                self.recover(spends, to_invoice, satoshis, is_mined);
            }
            Step::Find { outputs, showing } => self.find(&outputs, showing),
            Step::FindReward(outputs) => self.find_reward(&outputs),
            Step::ReturnBlock(transaction) => self.return_block(transaction),
            Step::BeginAccount(account) => self.begin_account(account),
            Step::Sweep { hours } => self.sweep(hours),
            Step::MarkRead { transaction, is_read } => self.mark_read(transaction, is_read),
        }
        checks::check_blocks(&self.rows, &self.network, &self.untold_blocks);
        self.check_undone_and_redone();
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.clock)
    }

    /// Runs a command, lets `then` apply the expected result to the model, and compares.
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
        self.told.held = self.told.holders();
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

    /// The time of an event that happens now.
    pub(crate) fn at(&self, rows: &MemoryRows) -> Timestamp {
        let last = rows.get::<AllFigures>(&()).map_or(0, |it| it.last_event_at);
        self.now().max(Timestamp::from_micros(last))
    }

    fn begin_account(&mut self, account: u32) {
        self.execute(&BeginAccount { account, is_behind: false }, |world, answer| {
            world.account = *answer.as_ref().unwrap();
            world.invoices_before = world.told.invoices.keys().last().copied().unwrap_or(0);
            world.users_before = world.users.last().map_or(0, |(id, _)| *id);
        })
        .unwrap();
    }

    fn mark_read(&mut self, choice: Pick, is_read: bool) {
        let Some(transaction) = self.any(choice, |_| true) else { return };
        let mark = MarkRead { transaction, sequence: 1, is_read };
        let is_there = self.execute(&mark, |_, _| ()).unwrap();
        assert_eq!(is_there, self.told.entries[&transaction].proofs > 0);
        let found = self.rows.get::<Proofs>(&(transaction, 1));
        assert!(found.is_none_or(|found| found.is_read == is_read));
    }

    /// Checks that a transaction which is displaced, and then shown again with all that was
    /// displaced with it, is as before.
    fn check_undone_and_redone(&self) {
        if self.has_services || self.told.rules.zero_conf_limit.is_some() {
            // A payment that is shown again counts above the limit once a block holds it again. Of
            // services, a rival is remembered.
            return;
        }
        let choice = Pick::try_from(self.clock / 1_000_000 % 65_000).unwrap();
        let Some(transaction) = self.any(choice, spends) else { return };
        let (mut rows, now) = (self.rows.clone(), self.at(&self.rows));
        rows.apply(&Displace { transaction, now });
        let changed = self.rows.all::<Transactions>().into_iter();
        let after = rows.all::<Transactions>();
        let changed = changed.filter(|(it, record)| after[it].state != record.state);
        let changed: Vec<_> = changed.map(|(number, record)| (number, record.state)).collect();
        // What was refunded does not count any more after its invoice was not paid for a while.
        let refunded = self.told.invoices.keys().filter(|it| self.told.was_refunded(**it));
        let refunded: Vec<_> = refunded.collect();
        let pays_refunded = |number: &u64| {
            let it = &self.told.entries[number];
            let refunds = self.told.refunded_by(*number).is_some();
            refunds || refunded.iter().any(|invoice| it.pays(**invoice))
        };
        if changed.iter().any(|(number, _)| pays_refunded(number)) {
            return;
        }
        // A transaction that was only reserved or sent to a payee cannot be shown again.
        let is_all_shown = changed.iter().all(|(_, state)| spends(*state));
        if !is_all_shown || rows.all::<Reservations>() != self.rows.all::<Reservations>() {
            return;
        }
        for (transaction, state) in changed {
            let is_fee_sufficient = state != TransactionState::Waiting;
            rows.apply(&See { transaction, sighting: Sighting::judged(is_fee_sufficient), now });
            match state {
                TransactionState::Mined(block) => {
                    rows.apply(&Mine { transaction, checked: checked(&rows, block), now });
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

/// A proof that is checked now.
pub(crate) fn checked(rows: &MemoryRows, block: BlockPlace) -> CheckedProof {
    CheckedProof { proof: proof(block), reorganisations: followed(rows) }
}

/// How many reorganisations the wallet has followed.
pub(crate) fn followed(rows: &MemoryRows) -> u64 {
    rows.get::<Reorganisations>(&()).unwrap_or_default().count
}

pub(crate) fn proof(block: BlockPlace) -> Proof {
    Proof { block, branch: MerkleBranch { position: 0, siblings: Vec::new() } }
}
