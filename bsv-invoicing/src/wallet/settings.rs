use std::time::Duration;

use bsv_tx::Network;
use ipnet::IpNet;

use crate::dpp::Merchant;
use crate::model::invoice::{DEFAULT_EXPIRY, MAX_SATOSHIS};
use crate::model::settlement::PaymentRules;
use crate::wallet::outbound::OwnListeners;

/// The settings of a wallet.
#[derive(Clone, Debug)]
pub struct WalletSettings {
    /// The network whose keys are used.
    pub network: Network,
    /// How long an invoice can be paid if its draft does not say.
    pub expiry: Duration,
    /// The beginning of payment URLs, at which payers reach the wallet: a URL without a slash at
    /// its end.
    pub public_url: String,
    /// Whether there are payment pages for browsers under that URL.
    pub has_page: bool,
    /// The merchant that payers see.
    pub merchant: Merchant,
    /// The fee rate that payers must pay, in satoshis per 1000 bytes. The node's rate takes its
    /// place if that is higher.
    pub fee_rate: u64,
    /// The highest fee rate that the wallet pays, in satoshis per 1000 bytes.
    pub max_fee_rate: u64,
    /// The most that the wallet pays at once, in satoshis, fee included.
    pub pay_limit: u64,
    /// The rules that decide whether an invoice is paid.
    pub payment_rules: PaymentRules,
    /// The address at which the node publishes the transactions of its mempool, such as
    /// `tcp://127.0.0.1:28332`. `None` stands for the address that the node itself names.
    pub transaction_feed: Option<String>,
    /// Whether the wallet consolidates small coins whenever there is a new block.
    pub consolidate: bool,
    /// The addresses on which this process listens. Payees and webhooks must not make the wallet
    /// connect to them.
    pub own_listeners: OwnListeners,
    /// Networks outside the public Internet that webhooks may lead to nevertheless, even without
    /// TLS.
    pub webhook_networks: Vec<IpNet>,
    /// The name and version that requests to webhooks carry, such as `bsv-server/0.1.0`.
    pub user_agent: String,
}

impl WalletSettings {
    /// The defaults on a network: invoices expire after 24 hours, payers are asked for 100 satoshis per
    /// 1000 bytes, and the wallet pays any amount, at no more than 1000 satoshis per 1000 bytes. No
    /// listeners are known.
    pub fn new(network: Network) -> Self {
        Self {
            network,
            expiry: DEFAULT_EXPIRY,
            public_url: "http://127.0.0.1:8445".to_owned(),
            has_page: false,
            merchant: Merchant {
                name: String::new(),
                avatar: String::new(),
                email: String::new(),
                address: String::new(),
            },
            fee_rate: 100,
            max_fee_rate: 1000,
            pay_limit: MAX_SATOSHIS,
            payment_rules: PaymentRules::default(),
            transaction_feed: None,
            consolidate: false,
            own_listeners: OwnListeners::default(),
            webhook_networks: Vec::new(),
            user_agent: concat!("bsv-invoicing/", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}
