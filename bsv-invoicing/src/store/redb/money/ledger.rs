//! All that the tables tell about money, item by item.

use bsv_store::StoreError;
use bsv_tx::{OutPoint, Transaction};
use redb::{ReadOnlyTable, ReadTransaction, ReadableTable, ReadableTableMetadata};

use super::records::{TransactionRecord, chain_of, found_proof};
use super::{
    COINS, CoinRow, FOLLOWED, INCOMING, MINED, OUTGOING, OutgoingRow, PROOFS, ProofRow, RAW,
    SPENDABLE, SPENT, TRANSACTIONS, TransactionRow,
};
use crate::model::coin::{KeyPath, bucket};
use crate::model::payment::{Proof, Purpose, TransactionState};
use crate::store::redb::tables::{Figures, INVOICES, InvoiceRow};
use crate::wallet::books::{
    LedgerCoin, LedgerItem, LedgerSpend, LedgerSpender, LedgerTotals, LedgerTransaction,
};

/// Hands over transactions in the order of their numbers, then invoices that are paid, then the totals.
pub(in crate::store::redb) fn read_ledger(
    transaction: &ReadTransaction,
    step: &mut impl FnMut(LedgerItem),
) -> Result<(), StoreError> {
    let tables = LedgerTables::open(transaction)?;
    for row in tables.transactions.iter()? {
        let (number, row) = row?;
        let record = TransactionRecord::from_row(number.value(), row.value())?;
        step(LedgerItem::Transaction(Box::new(tables.transaction(&record)?)));
    }
    for row in tables.invoices.iter()? {
        let (number, row) = row?;
        if row.value().4.is_some() {
            let (number, has_payment) = (number.value(), tables.has_payment(number.value())?);
            step(LedgerItem::PaidInvoice { number, has_payment });
        }
    }
    step(LedgerItem::Totals(tables.totals(transaction)?));
    Ok(())
}

struct LedgerTables {
    transactions: ReadOnlyTable<u64, TransactionRow>,
    raw: ReadOnlyTable<u64, &'static [u8]>,
    coins: ReadOnlyTable<(u64, u32), CoinRow>,
    spendable: ReadOnlyTable<(u8, u64, u32), u64>,
    spent: ReadOnlyTable<(u64, u64, u32), ()>,
    incoming: ReadOnlyTable<(u64, u64), ()>,
    outgoing: ReadOnlyTable<u64, OutgoingRow<'static>>,
    followed: ReadOnlyTable<u64, u64>,
    proofs: ReadOnlyTable<(u64, u32), ProofRow<'static>>,
    mined: ReadOnlyTable<(u32, u64), ()>,
    invoices: ReadOnlyTable<u64, InvoiceRow<'static>>,
}

impl LedgerTables {
    fn open(transaction: &ReadTransaction) -> Result<Self, StoreError> {
        Ok(Self {
            transactions: transaction.open_table(TRANSACTIONS)?,
            raw: transaction.open_table(RAW)?,
            coins: transaction.open_table(COINS)?,
            spendable: transaction.open_table(SPENDABLE)?,
            spent: transaction.open_table(SPENT)?,
            incoming: transaction.open_table(INCOMING)?,
            outgoing: transaction.open_table(OUTGOING)?,
            followed: transaction.open_table(FOLLOWED)?,
            proofs: transaction.open_table(PROOFS)?,
            mined: transaction.open_table(MINED)?,
            invoices: transaction.open_table(INVOICES)?,
        })
    }

    fn transaction(&self, record: &TransactionRecord) -> Result<LedgerTransaction, StoreError> {
        let number = record.number;
        let raw = self.raw.get(number)?;
        let raw = raw.and_then(|bytes| Transaction::from_bytes(bytes.value()).ok());
        let fee = match record.purpose {
            Purpose::Outgoing(payment) => self.outgoing.get(payment)?.map(|row| row.value().4),
            _ => None,
        };
        let is_invoice_paid = match record.purpose {
            Purpose::Incoming(invoice) => self.is_paid_or_deleted(invoice)?,
            _ => true,
        };
        let is_listed_as_mined = match record.block {
            Some(block) => self.mined.get((block.height, number))?.is_some(),
            None => false,
        };
        Ok(LedgerTransaction {
            number,
            txid: record.txid,
            transaction: raw,
            purpose: record.purpose,
            state: record.state,
            satoshis: record.satoshis,
            fee,
            block: record.block,
            proof: self.proof(record)?,
            is_listed_as_mined,
            is_followed: self.followed.get(number)?.is_some(),
            is_invoice_paid,
            coins: self.coins_of(number)?,
            spends: self.spends_of(number)?,
        })
    }

    /// The proof that it is in the block that it is said to be in.
    fn proof(&self, record: &TransactionRecord) -> Result<Option<Proof>, StoreError> {
        let Some(block) = record.block else { return Ok(None) };
        let number = record.number;
        for row in self.proofs.range((number, 0)..=(number, u32::MAX))?.rev() {
            let (key, row) = row?;
            let proof = found_proof(key.value().1, row.value())?.proof;
            if proof.block == block {
                return Ok(Some(proof));
            }
        }
        Ok(None)
    }

    fn coins_of(&self, number: u64) -> Result<Vec<LedgerCoin>, StoreError> {
        let rows = self.coins.range((number, 0)..=(number, u32::MAX))?;
        rows.map(|row| {
            let (key, row) = row?;
            let (_, vout) = key.value();
            let (satoshis, chain, index, spender) = row.value();
            let spender = match spender {
                None => None,
                Some(spender) => Some(LedgerSpender {
                    number: spender,
                    state: self.state(spender)?,
                    is_listed: self.spent.get((spender, number, vout))?.is_some(),
                }),
            };
            let place = (bucket(satoshis), number, vout);
            let is_spendable =
                self.spendable.get(place)?.is_some_and(|row| row.value() == satoshis);
            let key = KeyPath { chain: chain_of(chain)?, index };
            Ok(LedgerCoin { vout, satoshis, key, spender, is_spendable })
        })
        .collect()
    }

    fn spends_of(&self, number: u64) -> Result<Vec<LedgerSpend>, StoreError> {
        let rows = self.spent.range((number, 0, 0)..=(number, u64::MAX, u32::MAX))?;
        rows.map(|row| {
            let (_, maker, vout) = row?.0.value();
            let coin = self.coins.get((maker, vout))?.map(|row| row.value());
            let record = self.transactions.get(maker)?;
            let outpoint =
                record.map(|row| OutPoint { txid: bsv_tx::Txid::from_bytes(row.value().0), vout });
            Ok(LedgerSpend {
                outpoint,
                satoshis: coin.map_or(0, |coin| coin.0),
                spender: coin.and_then(|coin| coin.3),
            })
        })
        .collect()
    }

    fn state(&self, number: u64) -> Result<Option<TransactionState>, StoreError> {
        let row = self.transactions.get(number)?;
        let record = row.map(|row| TransactionRecord::from_row(number, row.value())).transpose()?;
        Ok(record.map(|record| record.state))
    }

    fn is_paid_or_deleted(&self, invoice: u64) -> Result<bool, StoreError> {
        let row = self.invoices.get(invoice)?;
        Ok(row.is_some_and(|row| {
            let (_, _, _, _, paid_at, deleted_at, ..) = row.value();
            paid_at.is_some() || deleted_at.is_some()
        }))
    }

    fn has_payment(&self, invoice: u64) -> Result<bool, StoreError> {
        for row in self.incoming.range((invoice, 0)..=(invoice, u64::MAX))? {
            if self.state(row?.0.value().1)? == Some(TransactionState::Settled) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn totals(&self, transaction: &ReadTransaction) -> Result<LedgerTotals, StoreError> {
        let figures = Figures::of(transaction)?;
        let last_invoice = self.invoices.last()?.map_or(0, |(number, _)| number.value());
        Ok(LedgerTotals {
            balance: figures.balance,
            last_transaction: figures.last_transaction,
            last_change: figures.last_change,
            is_invoice_beyond_last: last_invoice > figures.last_invoice,
            transactions: self.transactions.len()?,
            raw: self.raw.len()?,
            coins: self.coins.len()?,
            spendable: self.spendable.len()?,
            spends: self.spent.len()?,
            mined: self.mined.len()?,
        })
    }
}
