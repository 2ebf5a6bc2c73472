//! Invoices, and payments that are offered for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;
use std::time::Duration;

use bsv_invoicing::InvoiceDraft;
use bsv_invoicing::coins::{Chain, KeyPath};
use bsv_invoicing::events::EventKind;
use bsv_invoicing::invoices::{IdCipher, NewId};
use bsv_invoicing::ledger::rows::{AllFigures, Events, Expiries};
use bsv_invoicing::ledger::{CreateInvoice, DeleteInvoice, Offer, Offered, Refusal, Sweep};
use bsv_invoicing::receiving::NewReceipt;
use bsv_invoicing::transactions::{Purpose, TransactionState, WaitReason};
use bsv_tx::OutPoint;

use crate::network::{Pays, Place};
use crate::steps::{Input, Pick, Showing};
use crate::told::{Output, ToldInvoice, is_lost, spends};
use crate::world::{World, pick};

/// Making one takes longer than everything else in a sequence.
static CIPHER: LazyLock<IdCipher> = LazyLock::new(|| IdCipher::new(&[1; 32]));

impl World {
    pub(crate) fn create(&mut self, satoshis: u64, is_short: bool) -> u64 {
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
            let new = ToldInvoice {
                satoshis,
                key,
                expires_at,
                is_deleted,
                is_paid: false,
                last_payment_before: 0,
                is_expired: false,
            };
            assert!(world.told.invoices.insert(invoice.number, new).is_none());
        });
        answer.unwrap().number
    }

    pub(crate) fn delete(&mut self, choice: Pick) {
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

    pub(crate) fn sweep(&mut self, hours: u64) {
        self.clock += hours * 60 * 60 * 1_000_000;
        let sweep = Sweep { now: self.now(), doubted_since: None, limit: 1000 };
        let last_event = self.last_event();
        let _ = self.execute(&sweep, |world, _| {
            let is_held =
                |number| world.told.in_flight(number).is_some() || world.told.awaits_block(number);
            let due = world.told.invoices.iter().filter(|(number, it)| {
                let is_waiting = !it.is_deleted && !it.is_expired && !it.is_paid;
                is_waiting && it.expires_at <= world.now() && !is_held(**number)
            });
            let new = world.rows.all::<Events>().split_off(&(last_event + 1));
            let expired = new.into_values().filter(|it| it.kind == EventKind::InvoiceExpired);
            let expired: Vec<_> = expired.map(|it| it.subject).collect();
            for number in &expired {
                assert!(!is_held(*number), "invoice {number} has not expired");
            }
            for (number, it) in due {
                let is_expected = world.rows.get::<Expiries>(&(it.expires_at, *number)).is_some();
                assert!(!is_expected, "invoice {number} is due, and was not swept");
            }
            for number in expired {
                let it = world.told.invoices.get_mut(&number).unwrap();
                assert!(!it.is_expired, "invoice {number} expires twice");
                it.is_expired = true;
            }
        });
    }

    fn last_event(&self) -> u64 {
        self.rows.get::<AllFigures>(&()).map_or(0, |it| it.last_event)
    }

    pub(crate) fn fund(&mut self, satoshis: u64, showing: Showing) {
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

    pub(crate) fn offer_new(
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
        // The stranger's change.
        amounts.push(500);
        let Some(index) = self.network.add(&[coin], &amounts, pays, true) else { return };
        let is_known =
            is_known && self.network.rival_block(index).is_none() && !self.network.is_orphan(index);
        if is_known {
            self.network.show(index, Place::Mempool);
        }
        self.offer(index, invoice, is_known);
    }

    pub(crate) fn offer_again(&mut self, payment: Pick, invoice: Pick, is_known: bool) {
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
                (vout, Output { satoshis, key, invoice: Some(invoice), user: None })
            })
            .collect();
        let receipts = outputs.iter().map(|(vout, it)| {
            let Output { satoshis, key, .. } = *it;
            NewReceipt { vout: *vout, satoshis, key }
        });
        let wish = Some(format!("place {}", self.clock / 1_000_000 % 2));
        let are_coins_known = !(self.clock / 1_000_000).is_multiple_of(3);
        let offer = Offer {
            invoice,
            transaction: (&there.transaction).into(),
            ancestors: Vec::new(),
            receipts: receipts.collect(),
            refund_to: wish.clone(),
            is_known,
            may_have_rivals: self.has_services,
            are_coins_known,
            claim: 0,
            now: self.now(),
            doubted_since: None,
        };
        let before = self.told.entries.iter();
        let mut before = before.filter(|(_, it)| it.transaction == index && it.pays(invoice));
        let before = before.next().map(|(number, it)| (*number, it.state));
        let _ = self.execute(&offer, |world, answer| match answer {
            Ok(Offered::Elsewhere(payment)) => panic!("there is only one process: {payment:?}"),
            Ok(Offered::Before(payment)) => {
                assert!(before.is_some_and(|(it, state)| it == payment.number && spends(state)));
            }
            Ok(Offered::Now(payment, _)) => match before {
                Some((number, state)) => {
                    assert_eq!(number, payment.number);
                    if state != TransactionState::Offered {
                        assert!(is_lost(state), "{state:?}");
                        world.check_offer(index, invoice, is_known);
                        let at = world.at(&world.rows);
                        let entry = world.told.entries.get_mut(&number).unwrap();
                        entry.is_offered = !is_known;
                        entry.are_bytes_dropped = false;
                        world.note_offered(number, are_coins_known);
                        world.told.set(number, TransactionState::Offered, at);
                    }
                }
                None => {
                    world.check_offer(index, invoice, is_known);
                    let at = world.at(&world.rows);
                    let new = (index, Purpose::Incoming(invoice), at);
                    world.told.add(&world.network, payment.number, new, outputs, BTreeSet::new());
                    let entry = world.told.entries.get_mut(&payment.number).unwrap();
                    entry.is_offered = !is_known;
                    entry.wish = wish.filter(|_| !is_known);
                    world.note_offered(payment.number, are_coins_known);
                    world.told.settle_words(payment.number, at);
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

    fn note_offered(&mut self, number: u64, are_coins_known: bool) {
        self.told.note_word(number, self.has_services);
        let entry = self.told.entries.get_mut(&number).unwrap();
        if let Some(word) = entry.word.as_mut().filter(|_| self.has_services) {
            word.waits_for = match are_coins_known {
                true => WaitReason::LowFee,
                false => WaitReason::UnknownCoins,
            };
        }
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
}
