//! Everything that the books hold about money, item by item.

use bsv_tx::{OutPoint, Transaction, Txid};

use crate::ledger::Query;
use crate::ledger::attention::needs_attention;
use crate::ledger::coin_choice::place;
use crate::ledger::effects::{is_listed_as_immature, paid_by, spent_by};
use crate::ledger::exposure;
use crate::ledger::figures::Figures;
use crate::ledger::recount::{Standing, listed_as_shallow};
use crate::ledger::refunds::lasting_refunds;
use crate::ledger::rivals::listed_coins;
use crate::ledger::rows::Order::{Ascending, Descending};
use crate::ledger::rows::{
    AllFigures, Attention, Contested, Counted, Engine, Exposed, FollowedTransactions, Incoming,
    Invoices, Kind, Marked, MinedAt, Outgoing, Proofs, RawTransactions, Receipts, ReceivedFor,
    Refunds, RowsOf, Shallow, Spendable, Spends, Transactions, WalletStoreError, Wishes, try_all,
};
use crate::model::coin::{KeyPath, Trust};
use crate::model::holdings::{Holding, Holdings};
use crate::model::invoice::Invoice;
use crate::model::receipt::{Receipt, ReceiptKey};
use crate::model::settlement::Received;
use crate::model::transaction::{
    BlockPlace, FoundProof, Proof, Purpose, RawBytes, TransactionRecord, TransactionState,
};

/// One item of the books about money.
#[derive(Debug)]
pub enum LedgerItem {
    /// A transaction, in the order of the numbers.
    Transaction(Box<LedgerTransaction>),
    /// An invoice, in the order of the numbers.
    Invoice(LedgerInvoice),
    /// The totals of all items. They come last.
    Totals(LedgerTotals),
}

/// A transaction, and everything that is stored with it.
#[derive(Debug)]
pub struct LedgerTransaction {
    /// Its number.
    pub number: u64,
    /// The stored txid.
    pub txid: Txid,
    /// The transaction, if its bytes are stored and can be read.
    pub transaction: Option<Transaction>,
    /// Whether its bytes are dropped.
    pub are_bytes_dropped: bool,
    /// What it is for.
    pub purpose: Purpose,
    /// Its state.
    pub state: TransactionState,
    /// The stored amount that it pays.
    pub satoshis: u64,
    /// The stored fee, if it is a payment by the wallet.
    pub fee: Option<u64>,
    /// The proof of its block, if it is mined.
    pub proof: Option<Proof>,
    /// Whether the list of mined transactions has it in that block.
    pub is_listed_as_mined: bool,
    /// Whether it is followed.
    pub is_followed: bool,
    /// Whether its receipts can be spent.
    pub can_be_spent: bool,
    /// Whether only a block decides between it and another transaction.
    pub has_rival: bool,
    /// How many of the coins that it spends are to be listed because only services tell of it, and are
    /// listed.
    pub unproven_coins: u64,
    /// What it adds to the sum that counts by the word of services alone.
    pub exposed: u64,
    /// The coins that it makes.
    pub coins: Vec<LedgerCoin>,
    /// The coins that it spends.
    pub spends: Vec<LedgerSpend>,
    /// How many lists of the payments of an invoice have it.
    pub payments: u64,
    /// Whether these are the lists of the invoices that it pays, and have what it pays.
    pub are_payments_right: bool,
}

/// A coin, with the transaction that makes it.
#[derive(Debug)]
pub struct LedgerCoin {
    /// The index of the output.
    pub vout: u32,
    /// The amount.
    pub satoshis: u64,
    /// The key.
    pub key: KeyPath,
    /// The transaction that spends it or has reserved it.
    pub spender: Option<LedgerSpender>,
    /// Whether the list of spendable coins has it.
    pub is_spendable: bool,
    /// Whether the list of immature coins has it.
    pub is_immature: bool,
    /// How it is held, if it counts and nothing has spent it.
    pub holding: Option<Holding>,
}

/// The transaction that spends a coin.
#[derive(Debug)]
pub struct LedgerSpender {
    /// The number of the transaction.
    pub number: u64,
    /// Its state, if the transaction is stored.
    pub state: Option<TransactionState>,
    /// Whether the list of the coins that it spends has the coin.
    pub is_listed: bool,
}

/// A coin, with a transaction that spends it.
#[derive(Debug)]
pub struct LedgerSpend {
    /// Where the coin is, if the transaction that makes it is stored.
    pub outpoint: Option<OutPoint>,
    /// The amount, or 0 if the coin is not stored.
    pub satoshis: u64,
    /// The number of the transaction that spends the coin according to the coin's row.
    pub spender: Option<u64>,
}

/// An invoice, with what is kept about its payments that count.
#[derive(Clone, Copy, Debug)]
pub struct LedgerInvoice {
    /// Its number.
    pub number: u64,
    /// Whether it is paid.
    pub is_paid: bool,
    /// Whether its owner has marked it as paid.
    pub is_marked: bool,
    /// The stored sums of the payments that count.
    pub received: Received,
    /// The same sums, from the payments themselves.
    pub recounted: Received,
    /// How many of these payments the list of those in blocks that are not deep enough has.
    pub shallow: u64,
    /// Whether these payments and the wishes of their payers are listed, those that the network no
    /// longer shows, and the invoice itself if it may need a decision.
    pub is_listed: bool,
}

/// Totals over all transactions and invoices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LedgerTotals {
    /// What the wallet holds.
    pub holdings: Holdings,
    /// The last number that was given to a transaction.
    pub last_transaction: u64,
    /// The current account: new keys come from it.
    pub account: u32,
    /// How many of its keys for change were given out.
    pub last_change: u64,
    /// Whether an invoice has a number beyond the last one given out.
    pub is_invoice_beyond_last: bool,
    /// How many transactions there are.
    pub transactions: u64,
    /// How many of them have their bytes.
    pub raw: u64,
    /// How many coins there are.
    pub coins: u64,
    /// How many coins the list of spendable coins has.
    pub spendable: u64,
    /// How many entries there are of a transaction that spends a coin.
    pub spends: u64,
    /// How many transactions the list of mined transactions has.
    pub mined: u64,
    /// How many entries the lists of payments of invoices have.
    pub payments: u64,
    /// How many entries the lists of payments that count have.
    pub counted: u64,
    /// How many entries the list of payments in blocks that are not deep enough has.
    pub shallow: u64,
    /// How many coins are listed that transactions spend of which only services tell.
    pub unproven_coins: u64,
    /// The sum of what counts by the word of services alone.
    pub exposed: u64,
    /// How many entries the lists of wishes for refunds have.
    pub wishes: u64,
}

/// Hands all items to `step`: transactions in the order of their numbers, then invoices, then the
/// totals. The answer is the value that `step` has made of them.
#[derive(Clone, Debug)]
pub struct FoldLedger<A, F> {
    /// The value that `step` begins with.
    pub start: A,
    /// Called with each item.
    pub step: F,
}

impl<A, F> Query for FoldLedger<A, F>
where
    A: Send + 'static,
    F: FnMut(&mut A, LedgerItem) + Send + 'static,
{
    type Answer = A;

    fn run(self, rows: &dyn Engine) -> Result<A, WalletStoreError> {
        let Self { start: mut result, mut step } = self;
        let mut counts = LedgerTotals::default();
        let figures = rows.get::<AllFigures>(&())?.unwrap_or_default();
        each::<Transactions>(
            rows,
            PAGE,
            0,
            |number| number + 1,
            |number, record| {
                counts.transactions += 1;
                let transaction = ledger_transaction(rows, &figures, number, &record)?;
                step(&mut result, LedgerItem::Transaction(Box::new(transaction)));
                Ok(())
            },
        )?;
        let mut last_invoice = 0;
        each::<Invoices>(
            rows,
            PAGE,
            0,
            |number| number + 1,
            |number, invoice| {
                last_invoice = number;
                step(&mut result, LedgerItem::Invoice(ledger_invoice(rows, &invoice)?));
                Ok(())
            },
        )?;
        let first = ReceiptKey { maker: 0, vout: 0 };
        // Strangers choose how long they are.
        counts.raw = count::<RawTransactions>(rows, 1, 0, |number| number + 1)?;
        counts.coins = count::<Receipts>(rows, PAGE, first, |key| key.next())?;
        let next_place =
            |(trust, satoshis, key): &(Trust, u64, ReceiptKey)| (*trust, *satoshis, key.next());
        counts.spendable = count::<Spendable>(rows, PAGE, (Trust::Sure, 0, first), next_place)?;
        let next_spend = |(number, key): &(u64, ReceiptKey)| (*number, key.next());
        counts.spends = count::<Spends>(rows, PAGE, (0, first), next_spend)?;
        counts.mined =
            count::<MinedAt>(rows, PAGE, (0, 0), |(height, number)| (*height, number + 1))?;
        let next_of = |(invoice, number): &(u64, u64)| (*invoice, number + 1);
        counts.payments = count::<Incoming>(rows, PAGE, (0, 0), next_of)?;
        counts.wishes = count::<Wishes>(rows, PAGE, (0, 0), next_of)?;
        let next_counted =
            |(invoice, height, number): &(u64, u32, u64)| (*invoice, *height, number + 1);
        counts.counted = count::<Counted>(rows, PAGE, (0, 0, 0), next_counted)?;
        let next_shallow =
            |(height, invoice, number): &(u32, u64, u64)| (*height, *invoice, number + 1);
        counts.shallow = count::<Shallow>(rows, PAGE, (0, 0, 0), next_shallow)?;
        step(
            &mut result,
            LedgerItem::Totals(LedgerTotals {
                holdings: figures.holdings,
                unproven_coins: figures.unproven_coins,
                exposed: figures.exposed,
                last_transaction: figures.last_transaction,
                last_change: figures.last_change,
                account: u32::try_from(figures.account).unwrap_or(u32::MAX),
                is_invoice_beyond_last: last_invoice > figures.last_invoice,
                ..counts
            }),
        );
        Ok(result)
    }
}

/// How many rows are read at once.
const PAGE: usize = 1000;

/// Hands all rows of a kind to `step`, `at_once` at a time. `next` is the lowest key that may follow
/// one.
fn each<K: Kind>(
    rows: &dyn Engine,
    at_once: usize,
    mut from: K::Key,
    next: impl Fn(&K::Key) -> K::Key,
    mut step: impl FnMut(K::Key, K::Row) -> Result<(), WalletStoreError>,
) -> Result<(), WalletStoreError> {
    loop {
        let page: RowsOf<K> = rows.first::<K>(from.clone().., Ascending, at_once)?;
        let is_end = page.len() < at_once;
        if let Some((last, _)) = page.last() {
            from = next(last);
        }
        for (key, row) in page {
            step(key, row)?;
        }
        if is_end {
            return Ok(());
        }
    }
}

fn count<K: Kind>(
    rows: &dyn Engine,
    at_once: usize,
    from: K::Key,
    next: impl Fn(&K::Key) -> K::Key,
) -> Result<u64, WalletStoreError> {
    let mut count = 0;
    each::<K>(rows, at_once, from, next, |_, _| {
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

fn ledger_transaction(
    rows: &dyn Engine,
    figures: &Figures,
    number: u64,
    record: &TransactionRecord,
) -> Result<LedgerTransaction, WalletStoreError> {
    let raw = rows.get::<RawTransactions>(&number)?;
    let block = record.state.block();
    let fee = match record.purpose {
        Purpose::Outgoing(payment) => rows.get::<Outgoing>(&payment)?.map(|it| it.fee),
        _ => None,
    };
    let is_listed_as_mined = match block {
        Some(block) => rows.get::<MinedAt>(&(block.height, number))?.is_some(),
        None => false,
    };
    let receipts = rows.range::<Receipts>(ReceiptKey::all_of(number))?;
    let paid = paid_by(rows, figures, &receipts)?;
    let payments = try_all(&paid, |(invoice, paid)| {
        let listed = rows.get::<Incoming>(&(*invoice, number))?;
        // There is no invoice if its payment was recovered with the words alone.
        let is_right = match listed {
            Some(listed) => listed == *paid,
            None => rows.get::<Invoices>(invoice)?.is_none(),
        };
        Ok::<_, WalletStoreError>((listed.is_some(), is_right))
    })?;
    let receipts = receipts.into_iter();
    let receipts = receipts.map(|(key, receipt)| ledger_coin(rows, key, &receipt, record));
    let spends = spent_by(rows, number)?.into_iter().map(|key| ledger_spend(rows, key));
    Ok(LedgerTransaction {
        number,
        txid: record.txid,
        transaction: raw.and_then(|bytes| Transaction::from_bytes(&bytes).ok()),
        are_bytes_dropped: record.raw == RawBytes::Dropped,
        purpose: record.purpose,
        state: record.state,
        satoshis: record.satoshis,
        fee,
        proof: proof(rows, number, block)?,
        is_listed_as_mined,
        is_followed: rows.get::<FollowedTransactions>(&number)?.is_some(),
        can_be_spent: record.can_be_spent(),
        has_rival: record.has_rival(),
        unproven_coins: match record.lists_coins() {
            true => listed_coins(rows, number, &record.txid)?,
            false => 0,
        },
        exposed: match exposure::height(record) {
            Some(height) => rows.get::<Exposed>(&(height, number))?.unwrap_or_default(),
            None => 0,
        },
        coins: receipts.collect::<Result<_, _>>()?,
        spends: spends.collect::<Result<_, _>>()?,
        payments: payments.iter().filter(|(is_listed, _)| *is_listed).count() as u64,
        are_payments_right: payments.iter().all(|(_, is_right)| *is_right),
    })
}

/// The proof that the transaction is in this block.
fn proof(
    rows: &dyn Engine,
    number: u64,
    block: Option<BlockPlace>,
) -> Result<Option<Proof>, WalletStoreError> {
    let Some(block) = block else { return Ok(None) };
    let all = (number, 0)..=(number, u32::MAX);
    let proofs = rows.first::<Proofs>(all, Descending, usize::MAX)?;
    let mut proofs = proofs.into_iter().map(|(_, FoundProof { proof, .. })| proof);
    Ok(proofs.find(|proof| proof.block == block))
}

fn ledger_coin(
    rows: &dyn Engine,
    key: ReceiptKey,
    receipt: &Receipt,
    maker: &TransactionRecord,
) -> Result<LedgerCoin, WalletStoreError> {
    let spender = match receipt.spender {
        None => None,
        Some(number) => Some(LedgerSpender {
            number,
            state: rows.get::<Transactions>(&number)?.map(|record| record.state),
            is_listed: rows.get::<Spends>(&(number, key))?.is_some(),
        }),
    };
    let is_spendable = rows.get::<Spendable>(&place(key, receipt, maker))?.is_some();
    let is_immature = is_listed_as_immature(rows, key, maker)?;
    let is_spent = spender.as_ref().and_then(|it| it.state).is_some_and(TransactionState::spends);
    Ok(LedgerCoin {
        vout: key.vout,
        satoshis: receipt.satoshis,
        key: receipt.key,
        spender,
        is_spendable,
        is_immature,
        holding: Holding::of(receipt, maker, (is_spent, is_immature)),
    })
}

fn ledger_spend(rows: &dyn Engine, key: ReceiptKey) -> Result<LedgerSpend, WalletStoreError> {
    let receipt = rows.get::<Receipts>(&key)?;
    let maker = rows.get::<Transactions>(&key.maker)?;
    Ok(LedgerSpend {
        outpoint: maker.map(|maker| OutPoint { txid: maker.txid, vout: key.vout }),
        satoshis: receipt.map_or(0, |receipt| receipt.satoshis),
        spender: receipt.and_then(|receipt| receipt.spender),
    })
}

fn ledger_invoice(rows: &dyn Engine, invoice: &Invoice) -> Result<LedgerInvoice, WalletStoreError> {
    let number = invoice.number;
    let mut item = LedgerInvoice {
        number,
        is_paid: invoice.is_paid(),
        is_marked: rows.get::<Marked>(&number)?.is_some(),
        received: rows.get::<ReceivedFor>(&number)?.unwrap_or_default(),
        recounted: Received::default(),
        shallow: 0,
        is_listed: true,
    };
    let (mut from, mut last_wish) = (0, None);
    loop {
        let page = rows.first::<Incoming>((number, from)..=(number, u64::MAX), Ascending, PAGE)?;
        let is_end = page.len() < PAGE;
        for ((_, maker), paid) in page {
            from = maker.saturating_add(1);
            let record = rows.get::<Transactions>(&maker)?;
            let Some(record) = record else { continue };
            let shallow = listed_as_shallow(rows, (number, maker), &record)?;
            item.shallow += u64::from(shallow.is_some());
            let standing = Standing::of(&record, shallow.map(|(_, it)| it));
            let Some(standing) = standing else { continue };
            item.recounted.add(standing, paid.satoshis, record.at >= invoice.expires_at);
            item.is_listed &= rows.get::<Counted>(&(number, standing.height, maker))?.is_some();
            let contested = rows.get::<Contested>(&(number, maker))?;
            item.is_listed &= contested.is_some() == standing.is_contested;
            if let Some(wish) = rows.get::<Refunds>(&maker)? {
                item.is_listed &= rows.get::<Wishes>(&(number, maker))?.is_some();
                item.recounted.wishes += 1;
                let is_another = last_wish.as_ref().is_some_and(|last| *last != wish);
                item.recounted.changes += u64::from(is_another);
                last_wish = Some(wish);
            }
        }
        if is_end {
            item.recounted.last_payment_before = item.received.last_payment_before;
            item.recounted.accepted = item.received.accepted;
            for (payment, refund) in lasting_refunds(rows, number)? {
                let is_before = !item.is_paid || payment <= item.received.last_payment_before;
                item.recounted.change_refunds(&refund, true, is_before);
            }
            let is_listed = rows.get::<Attention>(&number)?.is_some();
            item.is_listed &= is_listed == needs_attention(invoice, item.received);
            return Ok(item);
        }
    }
}
