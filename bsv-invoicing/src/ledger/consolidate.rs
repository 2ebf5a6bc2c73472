//! Consolidation: one transaction turns many small coins into one, so that a payment can spend
//! their worth.

use crate::ledger::coin_choice::{Choice, MAX_INPUTS};
use crate::ledger::rows::Order::Ascending;
use crate::ledger::rows::{Spendable, WalletStoreError};
use crate::ledger::{Books, Command, Refusal, Reserved};
use crate::model::coin::{Spending, Trust};
use crate::model::receipt::ReceiptKey;

/// How many coins are looked at to find old ones.
const MAX_LOOKED_AT: usize = 10 * MAX_INPUTS;

/// Chooses the smallest coins that are old enough, and reserves them for a consolidation.
#[derive(Clone, Copy, Debug)]
pub struct ReserveConsolidation {
    /// The fee, in satoshis per 1000 bytes.
    pub fee_rate: u64,
    /// The least number of coins that is worth a consolidation.
    pub least: usize,
    /// The height of the last block whose coins are old enough.
    pub up_to_height: u32,
    /// The number under which the coins are reserved: see [`LetGoAll`](super::LetGoAll).
    pub claim: u64,
}

impl Command for ReserveConsolidation {
    type Answer = Reserved;

    fn run(&self, books: &mut Books<'_>) -> Result<Reserved, WalletStoreError> {
        let Self { fee_rate, least, up_to_height, claim } = *self;
        let spending = Spending { satoshis: 0, output_bytes: 0, fee_rate };
        let key = |maker, vout| ReceiptKey { maker, vout };
        let from = (Trust::Sure, spending.needed(1) - spending.needed(0), key(0, 0));
        let to = (Trust::Sure, u64::MAX, key(u64::MAX, u32::MAX));
        let mut choice = Choice::default();
        for ((_, satoshis, key), ()) in
            books.rows.first::<Spendable>(from..=to, Ascending, MAX_LOOKED_AT)?
        {
            let block = books.transaction(key.maker)?.state.block();
            if block.is_some_and(|block| block.height <= up_to_height) {
                choice.add(key, satoshis);
            }
            if choice.keys.len() == MAX_INPUTS {
                break;
            }
        }
        let change = spending.change(choice.keys.len(), choice.total);
        if choice.keys.len() < least || change.is_none() {
            return Err(Refusal::NothingDue.into());
        }
        books.reserve(&choice, change, claim).map(Reserved::Now)
    }
}
