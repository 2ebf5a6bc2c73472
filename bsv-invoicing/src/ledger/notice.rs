//! The network shows a transaction that pays watched scripts or spends coins of the wallet. Nobody
//! needs to have announced it.

use bsv_tx::{TransactionView, Txid, public_key_hash};

use crate::ledger::rows::{
    Ancestors, Claims, Damaged, Engine, Incoming, Receipts, Spends, TransactionNumbers,
    WalletStoreError, Watched, try_all,
};
use crate::ledger::{Books, CheckedProof, Command, Query};
use crate::model::process::Task;
use crate::model::receipt::{NewReceipt, ReceiptKey};
use crate::model::sighting::Sighting;
use crate::model::time::Timestamp;
use crate::model::transaction::{EncodedTransaction, Purpose, TransactionRecord};

/// Records transactions that the network shows, as far as they concern the wallet. A transaction
/// comes after those whose outputs it spends. Refused if a reorganisation was followed since the
/// proof of one of them was checked.
#[derive(Clone, Debug)]
pub struct Notice {
    /// The transactions.
    pub shown: Vec<Noticed>,
    /// The time.
    pub now: Timestamp,
}

/// A transaction that the network shows.
#[derive(Clone, Debug)]
pub struct Noticed {
    /// The transaction.
    pub transaction: EncodedTransaction,
    /// Where it is.
    pub place: ShownPlace,
    /// When it was first seen: it is late for invoices that expired before. Used if the books do not know it yet.
    pub came_at: Timestamp,
    /// What its payer has sent along, encoded, if services need it to take the transaction again. Used
    /// like the time.
    pub ancestry: Vec<u8>,
}

/// Where the network shows a transaction.
#[derive(Clone, Debug)]
pub enum ShownPlace {
    /// In the mempool.
    Mempool(Sighting),
    /// In a block of the main chain.
    Block(CheckedProof),
}

impl Command for Notice {
    type Answer = ();

    fn run(&self, books: &mut Books<'_>) -> Result<(), WalletStoreError> {
        try_all(&self.shown, |Noticed { place, .. }| match place {
            ShownPlace::Mempool(_) => Ok(()),
            ShownPlace::Block(checked) => books.expect_still_proven(checked),
        })?;
        let noticed = try_all(&self.shown, |Noticed { transaction, place, came_at, ancestry }| {
            let known = known(&books.rows, transaction)?;
            let is_own = known.is_own();
            let Known { mut records, lacking, .. } = known;
            if !lacking.is_empty() {
                let (number, record) = books.note_found(transaction, &lacking, *came_at)?;
                if !ancestry.is_empty() {
                    books.rows.put::<Ancestors>(number, ancestry)?;
                }
                records.push((number, record));
            }
            for (number, record) in records {
                let record = books.keep_bytes(number, record, transaction)?;
                match place {
                    ShownPlace::Mempool(sighting) => {
                        // Its payee and the network ask for the fee of a transaction that the wallet made.
                        let is_fee_sufficient = is_own || sighting.is_fee_sufficient;
                        let sighting = Sighting { is_fee_sufficient, ..*sighting };
                        books.see(number, record, sighting, self.now)?;
                    }
                    ShownPlace::Block(CheckedProof { proof, .. }) => {
                        books.mine(number, record, proof, self.now)?;
                    }
                }
            }
            Ok(())
        });
        noticed.map(drop)
    }

    fn weight(&self) -> usize {
        let lens = self.shown.iter().map(|it| it.transaction.bytes.len() + it.ancestry.len());
        lens.sum()
    }
}

/// What the books know about a transaction.
#[derive(Clone, Copy, Debug)]
pub struct GetKnown<T>(pub T);

impl<T: AsRef<EncodedTransaction> + Send + 'static> Query for GetKnown<T> {
    type Answer = Known;

    fn run(self, rows: &dyn Engine) -> Result<Known, WalletStoreError> {
        known(rows, self.0.as_ref())
    }
}

/// What the books know about a transaction, and what they lack.
#[derive(Clone, Debug, Default)]
pub struct Known {
    /// Its numbers, and the record under each.
    pub records: Vec<(u64, TransactionRecord)>,
    /// The parts of it that concern the wallet and are stored under none of the numbers.
    pub lacking: OwnParts,
    /// Whether a process is offering it to the network.
    pub is_offered: bool,
}

impl Known {
    /// Whether the wallet made the transaction.
    pub(crate) fn is_own(&self) -> bool {
        self.records.iter().any(|(_, record)| !record.purpose.is_from_outside())
    }
}

/// The parts of a transaction that concern the wallet.
#[derive(Clone, Debug, Default)]
pub struct OwnParts {
    /// The outputs that pay its scripts.
    pub receipts: Vec<NewReceipt>,
    /// The receipts of the wallet that it spends.
    pub spends: Vec<ReceiptKey>,
}

impl OwnParts {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.receipts.is_empty() && self.spends.is_empty()
    }
}

fn known(rows: &dyn Engine, transaction: &EncodedTransaction) -> Result<Known, WalletStoreError> {
    let records = records_of(rows, &transaction.txid)?;
    let view = view(transaction)?;
    let mut lacking = OwnParts::default();
    for (vout, (satoshis, script)) in (0_u32..).zip(view.outputs()) {
        let Some(hash) = public_key_hash(script) else { continue };
        let Some(key) = rows.get::<Watched>(hash)? else { continue };
        let mut is_stored = false;
        for (maker, _) in &records {
            let receipt = rows.get::<Receipts>(&ReceiptKey { maker: *maker, vout })?;
            is_stored |= receipt.is_some();
        }
        if !is_stored {
            lacking.receipts.push(NewReceipt { vout, satoshis, key });
        }
    }
    let makers = try_all(view.spent(), |spent| records_of(rows, &spent.txid))?;
    for (spent, makers) in view.spent().zip(makers) {
        for (maker, _) in makers {
            let key = ReceiptKey { maker, vout: spent.vout };
            if rows.get::<Receipts>(&key)?.is_none() {
                continue;
            }
            let mut is_stored = false;
            for (number, _) in &records {
                is_stored |= rows.get::<Spends>(&(*number, key))?.is_some();
            }
            if !is_stored {
                lacking.spends.push(key);
            }
        }
    }
    let mut is_offered = false;
    for (number, _) in &records {
        is_offered |= rows.get::<Claims>(&Task::Offering(*number))?.is_some();
    }
    Ok(Known { records, lacking, is_offered })
}

/// What a transaction spends and pays.
pub(super) fn view(transaction: &EncodedTransaction) -> Result<TransactionView<'_>, Damaged> {
    let wrong = |error| Damaged(format!("transaction {} is not one: {error}", transaction.txid));
    transaction.view().map_err(wrong)
}

/// The numbers of a transaction, and the record under each.
pub(crate) fn records_of(
    rows: &dyn Engine,
    txid: &Txid,
) -> Result<Vec<(u64, TransactionRecord)>, WalletStoreError> {
    let numbers = rows.range::<TransactionNumbers>((*txid, 0)..=(*txid, u64::MAX))?;
    try_all(numbers, |((_, number), ())| Ok((number, super::effects::transaction(rows, number)?)))
}

/// The numbers under which a transaction pays an invoice, and the record under each.
pub(crate) fn payments_by(
    rows: &dyn Engine,
    invoice: u64,
    txid: &Txid,
) -> Result<Vec<(u64, TransactionRecord)>, WalletStoreError> {
    let mut payments = Vec::new();
    for (number, record) in records_of(rows, txid)? {
        if rows.get::<Incoming>(&(invoice, number))?.is_some() {
            payments.push((number, record));
        }
    }
    Ok(payments)
}

impl Books<'_> {
    /// Stores a transaction that was found, with the parts that concern the wallet. Its state is
    /// still `Offered`.
    pub(crate) fn note_found(
        &mut self,
        transaction: &EncodedTransaction,
        own: &OwnParts,
        came_at: Timestamp,
    ) -> Result<(u64, TransactionRecord), WalletStoreError> {
        let purpose = match view(transaction)?.is_coinbase() {
            true => Purpose::Coinbase,
            false => Purpose::Found,
        };
        let satoshis = own.receipts.iter().map(|receipt| receipt.satoshis).sum();
        let (number, record) = self.add_transaction(transaction, purpose, satoshis, came_at)?;
        let receipts: Vec<_> = own.receipts.iter().map(|it| it.of(number)).collect();
        self.add_receipts(number, &receipts)?;
        for receipt in &own.receipts {
            self.note_used(receipt.key)?;
        }
        for key in &own.spends {
            self.add_spend(number, *key)?;
        }
        Ok((number, record))
    }
}
