//! The messages of the Direct Payment Protocol, as texts.

#![allow(clippy::unwrap_used, reason = "helpers of tests may panic as tests do")]

mod acknowledgement;
mod hostile;
mod payment;
mod proof;
mod properties;
mod terms;

use bsv_invoicing::Timestamp;
use bsv_invoicing::dpp::{Destination, FeeRate, Fees, Merchant, Terms};
use bsv_tx::{Network, OutPoint, Script, Transaction, TxIn, TxOut, Txid};

const SCRIPT: &str = "76a914111111111111111111111111111111111111111188ac";

fn text(json: &[u8]) -> &str {
    std::str::from_utf8(json).unwrap()
}

/// Terms with a value in every member.
fn terms() -> Terms {
    Terms {
        network: Network::Regtest,
        destinations: vec![Destination {
            satoshis: 20_000,
            script: Script::from_hex(SCRIPT).unwrap(),
            description: "payment reference l2ZQnMo".to_owned(),
        }],
        created_at: Timestamp::from_micros(1_795_250_936_767_571),
        expires_at: Some(Timestamp::from_micros(1_795_337_336_000_000)),
        payment_url: "http://127.0.0.1:8445/dpp/api/v1/payment/l2ZQnMo".to_owned(),
        memo: "invoice l2ZQnMo".to_owned(),
        merchant: Merchant {
            name: "Shop".to_owned(),
            avatar: "https://shop.example/a.png".to_owned(),
            email: "shop@shop.example".to_owned(),
            address: "1 the street".to_owned(),
        },
        reference: "l2ZQnMo".to_owned(),
        fees: Some(Fees {
            standard: FeeRate { satoshis: 500, bytes: 1000 },
            data: FeeRate { satoshis: 250, bytes: 1000 },
        }),
        wants_ancestry: false,
    }
}

fn transaction() -> Transaction {
    Transaction {
        version: 1,
        inputs: vec![TxIn {
            previous_output: OutPoint { txid: Txid::from_bytes([7; 32]), vout: 0 },
            unlocking_script: Script::default(),
            sequence: u32::MAX,
        }],
        outputs: vec![TxOut {
            satoshis: 20_000,
            locking_script: Script::from_hex(SCRIPT).unwrap(),
        }],
        lock_time: 0,
    }
}
