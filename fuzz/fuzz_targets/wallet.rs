//! Any bytes as the body of a request to the wallet, and as whole requests on connections to the
//! wallet's and the payments listener: no answer is an internal error.

#![no_main]

use std::sync::LazyLock;
use std::time::Duration;

use bsv_fuzz::Service;
use bsv_invoicing::dpp::Merchant;
use bsv_invoicing::invoices::MAX_SATOSHIS;
use bsv_invoicing::webhooks::{
    MAX_SECRET_GRACE, ReplayDraft, SecretDraft, WebhookChange, WebhookDraft,
};
use bsv_invoicing::{InvoiceDraft, Timestamp, UserDraft};
use bsv_minerid::PlainKeys;
use bsv_server::config::{Config, KeystoreConfig, PaymentsConfig, PeerConfig, WalletConfig};
use bsv_server::{AccessConfig, Api};
use bsv_tx::Network;
use libfuzzer_sys::fuzz_target;
use tempfile::TempDir;

static SITE: LazyLock<(Service, TempDir)> = LazyLock::new(|| {
    // In memory, since creating an invoice waits for the disk.
    let dir = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap();
    let config = Config {
        network: Network::Regtest,
        network_dir: dir.path().to_owned(),
        drain_time: Duration::from_secs(30),
        stalled_time: Duration::from_secs(30),
        check_period: Duration::from_secs(24 * 3600),
        keystore: KeystoreConfig {
            dir: dir.path().join("keystore"),
            passphrase: None,
            plain_keys: PlainKeys::Allowed,
        },
        node: None,
        services: None,
        headers: None,
        minerid: None,
        wallet: Some(WalletConfig {
            address: ([127, 0, 0, 1], 0).into(),
            tls: None,
            expiry: Duration::from_secs(3600),
            store: None,
            cache_bytes: 1 << 20,
            merchant: Merchant {
                name: String::new(),
                avatar: String::new(),
                email: String::new(),
                address: String::new(),
            },
            pay_limit: MAX_SATOSHIS,
            max_fee_rate: 1000,
            payment_rules: bsv_invoicing::invoices::PaymentRules::default(),
            transaction_feed: None,
            consolidate: false,
            streams: 64,
            webhook_networks: Vec::new(),
            payments: PaymentsConfig {
                address: ([127, 0, 0, 1], 8445).into(),
                tls: None,
                public_url: None,
                fee_rate: 100,
                connections: 1024,
                streams: 512,
                peers: PeerConfig::default(),
                page: None,
            },
        }),
        allowed_hosts: Vec::new(),
        access: AccessConfig::default(),
        log_requests: false,
        tells_balance: false,
        assume_yes: false,
    };
    (Service::open(config), dir)
});

fuzz_target!(|bytes: &[u8]| {
    if let Ok(draft) = InvoiceDraft::from_json(bytes, Timestamp::of_system()) {
        assert!((1..=MAX_SATOSHIS).contains(&draft.satoshis));
        assert!(draft.description.is_none_or(|text| text.chars().count() <= 1024));
        assert!(draft.reference.is_none_or(|text| text.chars().count() <= 128));
    }
    if let Ok(user) = UserDraft::from_json(bytes) {
        assert!((1..=256).contains(&user.name.chars().count()));
    }
    if let Ok(secret) = SecretDraft::from_json(bytes) {
        assert!(secret.grace <= MAX_SECRET_GRACE);
    }
    let _ = (WebhookDraft::from_json(bytes), WebhookChange::from_json(bytes));
    let _ = ReplayDraft::from_json(bytes);
    // The list of all created invoices is left out, since it would become longer and longer.
    if !bytes.windows(8).any(|window| window == b"invoices") || bytes.starts_with(b"POST") {
        SITE.0.check(Api::Wallet, bytes);
    }
    SITE.0.check(Api::Payments, bytes);
});
