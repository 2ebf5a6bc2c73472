//! Invoices that somebody has paid with very many outputs.

use std::sync::Arc;

use bsv_invoicing::coins::{Chain, KeyPath};
use bsv_invoicing::ledger::{Offer, Offered, See, Sighting};
use bsv_invoicing::receiving::{IncomingState, NewReceipt, PaymentQuery};
use bsv_invoicing::store::WalletStore;
use bsv_invoicing::{Error, Timestamp, Wallet, WalletSettings};
use bsv_tx::{Network, OutPoint, Script, Transaction, TxIn, TxOut, Txid};

use crate::counted_rows::CountingStore;
use crate::support::{Place, draft};

const OUTPUTS: u32 = 1_000;

/// A transaction with these outputs that spends somebody else's coin.
fn transaction(outputs: u32) -> Transaction {
    let output = TxOut { satoshis: 1, locking_script: Script::from_bytes(vec![0x51]) };
    let input = TxIn {
        previous_output: OutPoint { txid: Txid::from_bytes([7; 32]), vout: outputs },
        unlocking_script: Script::from_bytes([]),
        sequence: u32::MAX,
    };
    Transaction {
        version: 1,
        inputs: vec![input],
        outputs: vec![output; outputs as usize],
        lock_time: 0,
    }
}

/// Records that the network shows a transaction all of whose outputs pay the first invoice.
async fn show(store: &impl WalletStore, transaction: &Transaction) {
    let now = Timestamp::of_system();
    let key = KeyPath { account: 0, chain: Chain::Receive, index: 1 };
    let offer = Offer {
        invoice: 1,
        transaction: transaction.into(),
        ancestors: Vec::new(),
        receipts: (0..OUTPUTS).map(|vout| NewReceipt { vout, satoshis: 1, key }).collect(),
        refund_to: None,
        is_known: true,
        may_have_rivals: false,
        are_coins_known: true,
        claim: 0,
        now,
        doubted_since: None,
    };
    let Offered::Now(payment, _) = store.execute(offer).await.unwrap() else { panic!("it is new") };
    let see = See { transaction: payment.number, sighting: Sighting::judged(true), now };
    store.execute(see).await.unwrap();
}

#[tokio::test]
async fn a_payment_is_checked_without_reading_the_other_receipts_of_its_invoice() {
    let place = Place::new();
    let store = Arc::new(CountingStore::new(place.store()));
    let settings = WalletSettings::new(Network::Regtest);
    let wallet = Arc::new(
        Wallet::open(Arc::<CountingStore>::clone(&store), place.keystore(), settings)
            .await
            .unwrap(),
    );
    let id = wallet.create_invoice(draft(5_000), None).await.unwrap().id;
    let dust = transaction(OUTPUTS);
    show(&*store, &dust).await;
    let query = PaymentQuery { after: None, limit: usize::MAX };
    let page = wallet.payments(id.as_str(), query).await.unwrap();
    assert_eq!(page.payments.len() as u32, OUTPUTS);

    let rows = store.rows();
    let error = wallet.receive(id.as_str(), &transaction(1).to_bytes(), None).await.unwrap_err();
    assert!(matches!(*error, Error::WrongOutputs(_)), "{error}");
    let queries = store.queries();
    let error = wallet.receive(id.as_str(), &dust.to_bytes(), None).await.unwrap_err();
    assert!(matches!(*error, Error::Underpaid { due: 4_000 }), "{error}");
    assert_eq!(store.queries() - queries, 1, "queries of a payment that the books have");
    let state = wallet.payment_state(id.as_str(), dust.txid()).await.unwrap();
    assert_eq!(state, Some(IncomingState::Accepted));
    assert_eq!(wallet.payment_state(id.as_str(), transaction(1).txid()).await.unwrap(), None);
    let rows = store.rows() - rows;
    assert!(rows < 40, "{rows} rows were read");
}
