use std::time::Duration;

use bsv_tx::Network;
use ipnet::IpNet;

use crate::dpp::Merchant;
use crate::model::invoice::{DEFAULT_EXPIRY, MAX_SATOSHIS};
use crate::model::settlement::PaymentRules;
use crate::wallet::outbound::OwnListeners;

/// How a wallet works.
#[derive(Clone, Debug)]
pub struct WalletSettings {
    /// The network whose keys are used.
    pub network: Network,
    /// For how long an invoice can be paid that does not say so itself.
    pub expiry: Duration,
    /// The beginning of payment URLs, where payers reach the wallet: a URL without a slash at its end.
    pub public_url: String,
    /// Whether payers see invoices in a browser there.
    pub has_page: bool,
    /// Who is paid, as payers are told.
    pub merchant: Merchant,
    /// The fee rate that payers are asked for, in satoshis per 1000 bytes; if the node wants more, that.
    pub fee_rate: u64,
    /// The highest fee rate that the wallet pays, in satoshis per 1000 bytes.
    pub max_fee_rate: u64,
    /// The most that the wallet pays at once, in satoshis.
    pub pay_limit: u64,
    /// What decides whether an invoice is paid.
    pub payment_rules: PaymentRules,
    /// Where the node publishes the transactions of its mempool, such as `tcp://127.0.0.1:28332`, if that is
    /// not where the node itself says.
    pub transaction_feed: Option<String>,
    /// Whether small coins are brought together whenever there is a new block.
    pub consolidate: bool,
    /// Where this process listens: no payee may have the wallet ask there.
    pub own_listeners: OwnListeners,
    /// Networks that are not of the public Internet, and that webhooks may lead to all the same, also without TLS.
    pub webhook_networks: Vec<IpNet>,
    /// What the wallet calls itself where it posts events, such as `bsv-server/0.1.0`.
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
