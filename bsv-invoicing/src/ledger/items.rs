//! Everything that the books hold about money, item by item.

use bsv_tx::{OutPoint, Transaction, Txid};

use crate::ledger::Query;
use crate::ledger::coin_choice::place;
use crate::ledger::effects::{is_listed_as_immature, spent_by};
use crate::ledger::rows::Order::{Ascending, Descending};
use crate::ledger::rows::{
    AllFigures, FollowedTransactions, Incoming, Invoices, Kind, MinedAt, Outgoing, Proofs,
    RawTransactions, ReadRows, ReadTable, Receipts, RowsOf, Spendable, Spends, Transactions,
};
use crate::model::coin::{KeyPath, Trust};
use crate::model::holdings::{Holding, Holdings};
use crate::model::receipt::{Receipt, ReceiptKey};
use crate::model::transaction::{
    BlockPlace, FoundProof, Proof, Purpose, TransactionRecord, TransactionState,
};

/// One item of the books about money.
#[derive(Debug)]
pub enum LedgerItem {
    /// A transaction, in the order of the numbers.
    Transaction(Box<LedgerTransaction>),
    /// An invoice that is paid.
    PaidInvoice {
        /// Its number.
        number: u64,
        /// Whether a payment of it counts.
        has_payment: bool,
    },
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
    /// The coins that it makes.
    pub coins: Vec<LedgerCoin>,
    /// The coins that it spends.
    pub spends: Vec<LedgerSpend>,
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

/// Totals over all transactions.
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
}

/// Hands all items to `step`: transactions in the order of their numbers, then paid invoices, then
/// the totals. The answer is the value that `step` has made of them.
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

    fn run<R: ReadRows>(self, rows: &R) -> Result<A, R::Error> {
        let Self { start: mut result, mut step } = self;
        let mut counts = LedgerTotals::default();
        each::<Transactions, _>(
            rows,
            PAGE,
            0,
            |number| number + 1,
            |number, record| {
                counts.transactions += 1;
                let transaction = ledger_transaction(rows, number, &record)?;
                step(&mut result, LedgerItem::Transaction(Box::new(transaction)));
                Ok(())
            },
        )?;
        let mut last_invoice = 0;
        each::<Invoices, _>(
            rows,
            PAGE,
            0,
            |number| number + 1,
            |number, invoice| {
                last_invoice = number;
                if invoice.payment_received_at.is_some() {
                    let has_payment = has_payment(rows, number)?;
                    step(&mut result, LedgerItem::PaidInvoice { number, has_payment });
                }
                Ok(())
            },
        )?;
        let first = ReceiptKey { maker: 0, vout: 0 };
        let next = |key: &ReceiptKey| match key.vout.checked_add(1) {
            Some(vout) => ReceiptKey { vout, ..*key },
            None => ReceiptKey { maker: key.maker + 1, vout: 0 },
        };
        // Strangers choose how long they are.
        counts.raw = count::<RawTransactions, _>(rows, 1, 0, |number| number + 1)?;
        counts.coins = count::<Receipts, _>(rows, PAGE, first, next)?;
        let next_place =
            |(trust, satoshis, key): &(Trust, u64, ReceiptKey)| (*trust, *satoshis, next(key));
        counts.spendable = count::<Spendable, _>(rows, PAGE, (Trust::Sure, 0, first), next_place)?;
        let next_spend = |(number, key): &(u64, ReceiptKey)| (*number, next(key));
        counts.spends = count::<Spends, _>(rows, PAGE, (0, first), next_spend)?;
        counts.mined =
            count::<MinedAt, _>(rows, PAGE, (0, 0), |(height, number)| (*height, number + 1))?;
        let figures = rows.get::<AllFigures>(&())?.unwrap_or_default();
        step(
            &mut result,
            LedgerItem::Totals(LedgerTotals {
                holdings: figures.holdings,
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
fn each<K: Kind, R: ReadTable<K>>(
    rows: &R,
    at_once: usize,
    mut from: K::Key,
    next: impl Fn(&K::Key) -> K::Key,
    mut step: impl FnMut(K::Key, K::Row) -> Result<(), R::Error>,
) -> Result<(), R::Error> {
    loop {
        let range = (std::ops::Bound::Included(&from), std::ops::Bound::Unbounded);
        let page: RowsOf<K> = rows.scan(range, Ascending, at_once)?;
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

fn count<K: Kind, R: ReadTable<K>>(
    rows: &R,
    at_once: usize,
    from: K::Key,
    next: impl Fn(&K::Key) -> K::Key,
) -> Result<u64, R::Error> {
    let mut count = 0;
    each::<K, R>(rows, at_once, from, next, |_, _| {
        count += 1;
        Ok(())
    })?;
    Ok(count)
}

fn ledger_transaction<R: ReadRows>(
    rows: &R,
    number: u64,
    record: &TransactionRecord,
) -> Result<LedgerTransaction, R::Error> {
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
    let receipts = receipts.into_iter();
    let receipts = receipts.map(|(key, receipt)| ledger_coin(rows, key, &receipt, record));
    let spends = spent_by(rows, number)?.into_iter().map(|key| ledger_spend(rows, key));
    Ok(LedgerTransaction {
        number,
        txid: record.txid,
        transaction: raw.and_then(|bytes| Transaction::from_bytes(&bytes).ok()),
        are_bytes_dropped: record.are_bytes_dropped,
        purpose: record.purpose,
        state: record.state,
        satoshis: record.satoshis,
        fee,
        proof: proof(rows, number, block)?,
        is_listed_as_mined,
        is_followed: rows.get::<FollowedTransactions>(&number)?.is_some(),
        coins: receipts.collect::<Result<_, _>>()?,
        spends: spends.collect::<Result<_, _>>()?,
    })
}

/// The proof that the transaction is in this block.
fn proof<R: ReadRows>(
    rows: &R,
    number: u64,
    block: Option<BlockPlace>,
) -> Result<Option<Proof>, R::Error> {
    let Some(block) = block else { return Ok(None) };
    let all = (number, 0)..=(number, u32::MAX);
    let proofs = rows.first::<Proofs>(all, Descending, usize::MAX)?;
    let mut proofs = proofs.into_iter().map(|(_, FoundProof { proof, .. })| proof);
    Ok(proofs.find(|proof| proof.block == block))
}

fn ledger_coin<R: ReadRows>(
    rows: &R,
    key: ReceiptKey,
    receipt: &Receipt,
    maker: &TransactionRecord,
) -> Result<LedgerCoin, R::Error> {
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

fn ledger_spend<R: ReadRows>(rows: &R, key: ReceiptKey) -> Result<LedgerSpend, R::Error> {
    let receipt = rows.get::<Receipts>(&key)?;
    let maker = rows.get::<Transactions>(&key.maker)?;
    Ok(LedgerSpend {
        outpoint: maker.map(|maker| OutPoint { txid: maker.txid, vout: key.vout }),
        satoshis: receipt.map_or(0, |receipt| receipt.satoshis),
        spender: receipt.and_then(|receipt| receipt.spender),
    })
}

fn has_payment<R: ReadRows>(rows: &R, invoice: u64) -> Result<bool, R::Error> {
    for ((_, number), ()) in rows.range::<Incoming>((invoice, 0)..=(invoice, u64::MAX))? {
        if rows.get::<Transactions>(&number)?.is_some_and(|record| record.state.counts()) {
            return Ok(true);
        }
    }
    Ok(false)
}
