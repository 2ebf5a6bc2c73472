//! The services that tell of the network.

use std::sync::Arc;

use bsv_invoicing::Wallet;
use bsv_network::broadcasters::{self, Broadcaster, BroadcasterReport, BroadcasterSet, Callback};
use bsv_network::headers::{self, HeaderFollower, SourceReport};
use bsv_network::{NetworkSource, NodeRpc, Services};
use reqwest::Client;
use serde_json::{Value, json};

use crate::config::{BroadcasterConfig, Config};
use crate::headers::{client, seconds_since};

/// What tells the wallet of the network, by the settings. Broadcasters tell `wallet` what changes.
pub(crate) fn source(
    config: &Config,
    node: Option<NodeRpc>,
    headers: Option<Arc<HeaderFollower>>,
    wallet: &Wallet,
) -> Option<NetworkSource> {
    let (Some(services), Some(headers), Some(settings)) =
        (&config.services, headers, &config.wallet)
    else {
        return node.map(NetworkSource::node);
    };
    let client = client();
    let callback = Callback { url: services.callback_url.clone(), token: wallet.callback_token() };
    let broadcasters = services.broadcasters.iter();
    let broadcasters =
        broadcasters.map(|it| broadcaster_of(&client, it).with_callback(callback.clone()));
    let set = BroadcasterSet::new(broadcasters.collect(), services.seen_by);
    let set = set.expect("the settings name as many").with_max_fee_rate(settings.max_fee_rate);
    let (timeout, fee_rate) = (services.accept_timeout, settings.payments.fee_rate);
    Some(NetworkSource::services(Arc::new(Services::new(set, headers, timeout, fee_rate))))
}

/// The client of a broadcaster.
pub(crate) fn broadcaster_of(client: &Client, settings: &BroadcasterConfig) -> Broadcaster {
    let BroadcasterConfig { dialect, url, api_key, requests_per_second } = settings.clone();
    let mut broadcaster = Broadcaster::new(dialect, client.clone(), url);
    if let Some(key) = api_key {
        broadcaster = broadcaster.with_api_key(key);
    }
    match requests_per_second {
        Some(rate) => broadcaster.with_requests_per_second(rate),
        None => broadcaster,
    }
}

/// What is known of a service.
pub(crate) struct Report {
    pub(crate) kind: &'static str,
    pub(crate) host: String,
    /// The time of its last answer that could be used, in seconds since 1970.
    pub(crate) last_answer: Option<u64>,
    /// How many questions had each outcome.
    pub(crate) outcomes: Vec<(&'static str, u64)>,
    state: &'static str,
}

/// What is known of each service: those that give headers, and those that take transactions.
pub(crate) fn reports(headers: Option<&HeaderFollower>, wallet: Option<&Wallet>) -> Vec<Report> {
    let sources = headers.into_iter().flat_map(HeaderFollower::sources).map(Report::of_source);
    let broadcasters = wallet.map(Wallet::broadcasters).unwrap_or_default();
    sources.chain(broadcasters.into_iter().map(Report::of_broadcaster)).collect()
}

impl Report {
    fn of_source(source: SourceReport) -> Self {
        let counts = headers::Outcome::ALL.map(|it| (it.name(), source.outcomes[it as usize]));
        Self {
            kind: source.kind,
            host: source.host,
            last_answer: source.last_answer,
            outcomes: counts.to_vec(),
            state: source.state.name(),
        }
    }

    fn of_broadcaster(report: BroadcasterReport) -> Self {
        use broadcasters::Outcome;

        let counts = Outcome::ALL.map(|it| (it.name(), report.outcomes[it as usize]));
        let state = match report.last_outcome {
            _ if !report.is_in_use => "too-expensive",
            None => "new",
            Some(Outcome::Answered) => "live",
            Some(Outcome::Away | Outcome::Unheard) => "away",
            Some(Outcome::Busy) => "busy",
            Some(Outcome::Unauthorized) => "unauthorized",
            Some(Outcome::Nonsense) => "wrong",
        };
        Self {
            kind: report.kind,
            host: report.host,
            last_answer: report.last_answer,
            outcomes: counts.to_vec(),
            state,
        }
    }

    /// As the status shows it.
    pub(crate) fn describe(&self) -> Value {
        json!({
            "kind": self.kind,
            "host": self.host,
            "lastAnswerAgeSeconds": self.last_answer.map(seconds_since),
            "state": self.state,
        })
    }

    /// What the operator must do about it, if anything.
    pub(crate) fn attention(&self) -> Option<String> {
        let Self { kind, host, state, .. } = self;
        match *state {
            "unauthorized" => {
                Some(format!("the {kind} service {host} refuses its API key: check apiKeyFile"))
            }
            "too-expensive" => Some(format!(
                "the {kind} service {host} asks for a higher fee than wallet.maxFeeRate, so it gets no \
                 transactions"
            )),
            _ => None,
        }
    }
}
