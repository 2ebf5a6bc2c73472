use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bsv_invoicing::coins::{Chain, KeyPath};
use bsv_invoicing::invoices::{IdCipher, NewId};
use bsv_invoicing::ledger::queries::GetInvoice;
use bsv_invoicing::ledger::{CreateInvoice, Offer, Offered, See, Sighting};
use bsv_invoicing::receiving::NewReceipt;
use bsv_invoicing::store::WalletStore;
use bsv_invoicing::{InvoiceDraft, PostgresWalletStore, Timestamp};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;

use crate::payments::paying;

const SATOSHIS: u64 = 1000;

/// What callers of a store do again and again.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) enum Work {
    /// Each creates an invoice.
    Create,
    /// Each pays another invoice, in two commits. They begin with the invoice of this number.
    Pay { from: u64 },
    /// Each looks another invoice up, of so many.
    Look { among: u64 },
}

/// So many callers work for some time.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) work: Work,
    pub(super) callers: u64,
    pub(super) duration: Duration,
}

/// What callers have done.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Done {
    pub(super) count: u64,
    /// The time that all of it took.
    pub(super) elapsed: Duration,
    /// The number of the last invoice that was created, if any was.
    pub(super) last_invoice: u64,
}

/// Has callers do what is ordered.
pub(super) async fn fulfil(store: &Arc<PostgresWalletStore>, order: Order) -> Done {
    let started = Instant::now();
    let caller = Caller {
        store: Arc::clone(store),
        work: order.work,
        ids: IdCipher::new(&[7; 32]),
        next: Arc::default(),
        last_invoice: Arc::default(),
    };
    let deadline = started + order.duration;
    let mut callers = JoinSet::new();
    for _ in 0..order.callers {
        callers.spawn(caller.clone().work_until(deadline));
    }
    let count = callers.join_all().await.iter().sum();
    let last_invoice = caller.last_invoice.load(Ordering::Relaxed);
    Done { count, elapsed: started.elapsed(), last_invoice }
}

#[derive(Clone)]
struct Caller {
    store: Arc<PostgresWalletStore>,
    work: Work,
    ids: IdCipher,
    /// How often all callers have begun.
    next: Arc<AtomicU64>,
    last_invoice: Arc<AtomicU64>,
}

impl Caller {
    /// Works, and answers how often it was done.
    async fn work_until(self, deadline: Instant) -> u64 {
        let mut count = 0;
        while Instant::now() < deadline {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            match self.work {
                Work::Create => self.create(index).await,
                Work::Pay { from } => self.pay(from + index).await,
                // Those that follow each other are far apart.
                Work::Look { among } => self.look(1 + index * 7919 % among).await,
            }
            count += 1;
        }
        count
    }

    async fn create(&self, index: u64) {
        let draft = InvoiceDraft {
            satoshis: SATOSHIS,
            description: Some("two cups of coffee and a cake".to_owned()),
            reference: Some(format!("order {index}")),
            expires_at: None,
        };
        let create = CreateInvoice {
            draft,
            expiry: Duration::from_secs(24 * 60 * 60),
            id: NewId { cipher: self.ids.clone(), random: index },
            idempotency: None,
            now: Timestamp::of_system(),
        };
        let invoice = self.store.execute(create).await.unwrap();
        self.last_invoice.fetch_max(invoice.number, Ordering::Relaxed);
    }

    async fn pay(&self, invoice: u64) {
        let transaction = paying(&[], usize::try_from(invoice).unwrap(), 0);
        let index = u32::try_from(invoice).unwrap();
        let key = KeyPath { account: 0, chain: Chain::Receive, index };
        let offer = Offer {
            invoice,
            transaction: (&transaction).into(),
            ancestors: Vec::new(),
            receipts: vec![NewReceipt { vout: 0, satoshis: SATOSHIS, key }],
            refund_to: None,
            is_known: false,
            may_have_rivals: false,
            are_coins_known: true,
            claim: 0,
            now: Timestamp::of_system(),
            doubted_since: None,
        };
        let Offered::Now(payment, _) = self.store.execute(offer).await.unwrap() else {
            panic!("it was not there before")
        };
        let (transaction, now) = (payment.number, Timestamp::of_system());
        let see = See { transaction, sighting: Sighting::judged(true), now };
        self.store.execute(see).await.unwrap();
    }

    async fn look(&self, invoice: u64) {
        assert!(self.store.get(GetInvoice(invoice)).await.unwrap().is_some());
    }
}
