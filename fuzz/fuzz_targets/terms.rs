//! Bytes as the answers of a payee: as terms, for which a payment is then written, and as an
//! acknowledgement.

#![no_main]

use bsv_invoicing::dpp::{
    Acknowledgement, Dialect, MAX_DESTINATIONS, Payment, ReceivedTerms, Terms,
};
use bsv_invoicing::invoices::MAX_SATOSHIS;
use bsv_tx::{Network, Transaction, Txid};
use libfuzzer_sys::fuzz_target;

const NETWORKS: [Network; 3] = [Network::Livenet, Network::Testnet, Network::Regtest];
const DIALECTS: [Dialect; 3] = [Dialect::GoDpp, Dialect::Brc, Dialect::Bip270];

fuzz_target!(|bytes: &[u8]| {
    for network in NETWORKS {
        match ReceivedTerms::from_json(bytes, network) {
            Ok(received) => {
                check_terms(&received);
                pay(&received);
            }
            Err(error) => check_words(&error.to_string()),
        }
    }
    for dialect in DIALECTS {
        check_answer(dialect, bytes);
    }
});

fn check_terms(received: &ReceivedTerms) {
    let (terms, dialect) = (&received.terms, received.dialect());
    assert!((1..=MAX_DESTINATIONS).contains(&terms.destinations.len()));
    assert!((1..=MAX_SATOSHIS).contains(&terms.satoshis()));
    assert!(terms.fees.is_none_or(|fees| fees.standard.bytes > 0 && fees.data.bytes > 0));
    // Most dialects write times in whole seconds, and the last possible time is not a whole second.
    let once = read_again(terms, dialect);
    assert_eq!(once.destinations, terms.destinations);
    assert_eq!(read_again(&once, dialect), once);
}

fn read_again(terms: &Terms, dialect: Dialect) -> Terms {
    ReceivedTerms::from_json(&terms.to_json(dialect), terms.network).unwrap().terms
}

fn pay(received: &ReceivedTerms) {
    let transaction = Transaction { version: 1, inputs: vec![], outputs: vec![], lock_time: 0 };
    let payment = Payment::from_json(&received.payment(&transaction, None, "\"memo\"")).unwrap();
    assert_eq!(payment.dialect, received.dialect());
    assert_eq!(payment.transaction, transaction.to_bytes());
    assert_eq!(payment.memo, "\"memo\"");
}

fn check_answer(dialect: Dialect, bytes: &[u8]) {
    let txid = Txid::from_bytes([7; 32]);
    let read = |bytes: &[u8]| Acknowledgement::from_answer(dialect, 201, bytes, &txid);
    match read(bytes) {
        Ok(acknowledgement) => {
            let again = acknowledgement.to_json(Dialect::GoDpp, bytes);
            let again = Acknowledgement::from_answer(Dialect::GoDpp, 201, &again, &txid);
            assert_eq!(again, Ok(acknowledgement));
        }
        Err(error) => check_words(&error.to_string()),
    }
    let refusal = Acknowledgement::from_answer(dialect, 422, bytes, &txid).unwrap_err();
    check_words(&refusal.to_string());
}

fn check_words(words: &str) {
    assert!(words.len() < 2000 && !words.contains(char::is_control), "{words}");
}
