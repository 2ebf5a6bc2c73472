//! Checking the services that the settings name: each is asked for what is needed of it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bsv_network::broadcasters::{BroadcasterError, Dialect, Health};
use bsv_network::headers::{
    Chaintracks, Checkpoint, HeaderChain, HeaderError, HeaderSource, Peer, SourceNames, seeds,
};
use bsv_tx::{Network, Txid};
use futures_util::future::join_all;
use reqwest::{Client, RequestBuilder};
use secrecy::ExposeSecret;
use serde::Deserialize;
use tokio::time::timeout;

use crate::config::{BroadcasterConfig, Config, ServicesConfig};
use crate::config_check::Verdicts;
use crate::headers::client;
use crate::services::broadcaster_of;

/// How long all questions to one service may take.
const PATIENCE: Duration = Duration::from_secs(20);
/// How much later a service may have a block.
const LATE_BLOCKS: u32 = 2;
/// How far two clocks may differ, in seconds.
const CLOCKS: u64 = 60;
/// How long an answer about the service itself may be.
const MOST_BYTES: usize = 1 << 16;
/// A transaction that no service has.
const NOBODYS: Txid = Txid::from_bytes([0x5a; 32]);

/// What a service has told.
#[derive(Default)]
struct Told {
    /// What holds.
    holds: Vec<String>,
    /// What is risky.
    warnings: Vec<String>,
    height: Option<u32>,
}

/// What an answer about the service itself tells.
struct About {
    body: Members,
    clock: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Members {
    network: Option<String>,
}

/// Asks each service of the settings, and adds the results. `own` is the height of the server's headers, if it has
/// any. Answers false if the settings name no services.
pub async fn check_services(verdicts: &mut Verdicts, config: &Config, own: Option<u32>) -> bool {
    let Some(names) = &config.headers else { return false };
    let client = client();
    let sources = ask_sources(&client, config.network, names).await;
    let claims = sources.iter().filter_map(|(_, told)| told.as_ref().ok()?.height).max();
    let newest = own.max(claims);
    let is_seeded = names.urls.is_empty() && names.peers.is_empty();
    let has_one = sources.iter().any(|(_, told)| told.is_ok());
    for (name, mut told) in sources {
        compare(&mut told, own, newest, config.network);
        match told {
            // There are several seeds, because some do not answer.
            Err(reason) if is_seeded && has_one => {
                verdicts.warns("headers", format!("{name}: {reason}"));
            }
            told => add(verdicts, "headers", &name, told),
        }
    }
    if let (Some(services), Some(wallet)) = (&config.services, &config.wallet) {
        check_broadcasters(verdicts, services, wallet.max_fee_rate, newest, config.network).await;
    }
    true
}

async fn check_broadcasters(
    verdicts: &mut Verdicts,
    services: &ServicesConfig,
    max_fee_rate: u64,
    newest: Option<u32>,
    network: Network,
) {
    const CHECK: &str = "broadcaster";
    let client = client();
    let asked = services.broadcasters.iter().map(|settings| {
        let client = &client;
        async move {
            let name = name_of(settings.dialect.name(), broadcaster_of(client, settings).host());
            let asked = ask_broadcaster(client, settings, max_fee_rate, network);
            (name, in_time(asked).await)
        }
    });
    let mut usable = 0;
    for (name, mut told) in join_all(asked).await {
        usable += usize::from(told.is_ok());
        compare(&mut told, None, newest, network);
        add(verdicts, CHECK, &name, told);
    }
    let (named, seen_by) = (services.broadcasters.len(), services.seen_by);
    if (1..seen_by).contains(&usable) {
        verdicts.fails(
            "services.seenBy",
            format!(
                "{seen_by} broadcasters must have a payment, and {usable} of {named} can be used: no payment counts \
                 before its block"
            ),
        );
    }
}

async fn ask_sources(
    client: &Client,
    network: Network,
    names: &SourceNames,
) -> Vec<(String, Result<Told, String>)> {
    let SourceNames { urls, peers } = names;
    let services = urls.iter().map(|url| async move {
        let service = Chaintracks::new(client.clone(), url);
        let name = name_of("chaintracks", service.name());
        let asked = async {
            let mut told = ask_source(HeaderSource::Chaintracks(service), network).await?;
            // Its headers are those of the network. The route tells its clock, too.
            if let Ok(about) = about(client, &format!("{url}/network"), None).await {
                told.note_clock(about.clock);
            }
            Ok(told)
        };
        (name, in_time(asked).await)
    });
    let seeds: Vec<_> = match urls.is_empty() && peers.is_empty() {
        true => seeds(network).iter().map(|seed| (*seed).to_owned()).collect(),
        false => Vec::new(),
    };
    let nodes = peers.iter().chain(&seeds).map(|peer| async move {
        let asked = async {
            let node = Peer::connect(network, peer).await.map_err(|error| error.to_string())?;
            ask_source(HeaderSource::Peer(node), network).await
        };
        (name_of("p2p", peer), in_time(asked).await)
    });
    let (mut told, of_nodes) = tokio::join!(join_all(services), join_all(nodes));
    told.extend(of_nodes);
    told
}

/// Asks a source of headers for its height, and for headers after the checkpoint, which only the same network has.
async fn ask_source(mut source: HeaderSource, network: Network) -> Result<Told, String> {
    let mut chain = HeaderChain::new(network, &Checkpoint::of(network));
    let height = source.claimed_height().await.map_err(|error| error.to_string())?;
    let locator = chain.locator(None);
    let headers = source.headers_after(&locator).await.map_err(|error| error.to_string())?;
    match chain.extend(&headers, now()).refusal {
        None | Some(HeaderError::TooNew(_)) => {}
        Some(refusal) => return Err(format!("it gives a header that is refused: {refusal}")),
    }
    let holds = vec![format!("its headers are those of {network}")];
    Ok(Told { holds, height: Some(height), ..Told::default() })
}

async fn ask_broadcaster(
    client: &Client,
    settings: &BroadcasterConfig,
    max_fee_rate: u64,
    network: Network,
) -> Result<Told, String> {
    let broadcaster = broadcaster_of(client, settings);
    let BroadcasterConfig { dialect, url, api_key, .. } = settings;
    broadcaster.status(&NOBODYS).await.map_err(|error| match (&error, api_key) {
        (BroadcasterError::Unauthorized(_), None) => {
            format!("it wants an API key: set apiKeyFile ({error})")
        }
        (BroadcasterError::Unauthorized(_), Some(_)) => format!("{error}: check apiKeyFile"),
        _ => error.to_string(),
    })?;
    let mut told = Told::default();
    let access = if api_key.is_some() { "it takes the API key" } else { "it asks for no API key" };
    told.holds.push(access.to_owned());
    match broadcaster.fee_rate().await {
        Ok(rate) if rate > max_fee_rate => {
            return Err(format!(
                "it asks for {rate} satoshis per 1000 bytes, more than wallet.maxFeeRate ({max_fee_rate}), so it is \
                 given no transactions"
            ));
        }
        Ok(rate) => told.holds.push(format!("it asks for {rate} satoshis per 1000 bytes")),
        Err(_) => told.holds.push("it tells no fee, so payments.feeRate counts".to_owned()),
    }
    let key = api_key.as_ref().map(ExposeSecret::expose_secret);
    if let Ok(Health { height, healthy, date }) = broadcaster.health().await {
        told.height = height;
        told.note_clock(date.as_deref().and_then(seconds_of));
        if healthy == Some(false) {
            told.warnings.push("it says that it is not healthy".to_owned());
        }
    }
    // Arcade serves headers beside its own routes.
    let headers = format!("{url}/chaintracks/v2/network");
    let named = match dialect {
        Dialect::Arcade => about(client, &headers, key).await.ok().and_then(|it| it.body.network),
        Dialect::Arc => None,
    };
    match named.map(|name| (network_named(&name), name)) {
        Some((Some(same), _)) if same == network => told.holds.push(format!("it serves {network}")),
        Some((Some(other), _)) => {
            return Err(format!("it serves {other}, and the settings name {network}"));
        }
        Some((None, _)) => {
            return Err(format!("it serves another network, and the settings name {network}"));
        }
        None => told.holds.push("it does not tell its network".to_owned()),
    }
    Ok(told)
}

/// Adds how the height that a service claims compares with ours, and with the highest that is known.
fn compare(
    told: &mut Result<Told, String>,
    own: Option<u32>,
    newest: Option<u32>,
    network: Network,
) {
    let Ok(Told { holds, warnings, height }) = told else { return };
    let Some(height) = *height else {
        return holds.push("it does not tell its height".to_owned());
    };
    match (newest, own) {
        (Some(newest), _) if newest.abs_diff(height) > LATE_BLOCKS => warnings.push(format!(
            "it is at block {height}, and the newest block of {network} that is known is {newest}"
        )),
        (_, Some(own)) => holds.push(format!("it is at block {height}, and our headers at {own}")),
        _ => holds.push(format!("it is at block {height}")),
    }
}

fn add(verdicts: &mut Verdicts, check: &str, name: &str, told: Result<Told, String>) {
    match told {
        Err(reason) => verdicts.fails(check, format!("{name}: {reason}")),
        Ok(Told { holds, warnings, .. }) => {
            verdicts.holds(check, format!("{name}: {}", holds.join(", ")));
            warnings.iter().for_each(|it| verdicts.warns(check, format!("{name}: {it}")));
        }
    }
}

impl Told {
    fn note_clock(&mut self, clock: Option<u64>) {
        let Some(theirs) = clock else { return };
        match theirs.abs_diff(now()) {
            0..=CLOCKS => self.holds.push("its clock agrees with ours".to_owned()),
            apart => self.warnings.push(format!(
                "its clock and that of this machine differ by {apart} s, and a wrong clock here stops headers"
            )),
        }
    }
}

/// Asks for a small answer, whose header `Date` tells the clock.
async fn about(client: &Client, url: &str, key: Option<&str>) -> Result<About, ()> {
    let request = client.get(url);
    let request = key.into_iter().fold(request, RequestBuilder::bearer_auth);
    let mut answer = request.send().await.map_err(drop)?;
    let date = answer.headers().get("date").and_then(|date| date.to_str().ok());
    let clock = date.and_then(seconds_of);
    let is_good = answer.status().is_success();
    let mut body = Vec::new();
    while let Some(part) = answer.chunk().await.map_err(drop)? {
        body.extend_from_slice(&part);
        if body.len() > MOST_BYTES {
            return Err(());
        }
    }
    let members = is_good.then(|| serde_json::from_slice(&body).ok()).flatten();
    Ok(About { body: members.unwrap_or_default(), clock })
}

/// The seconds since 1970 of a date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn seconds_of(date: &str) -> Option<u64> {
    let time = jiff::fmt::rfc2822::parse(date).ok()?.timestamp();
    u64::try_from(time.as_second()).ok()
}

/// The network that services call so.
fn network_named(name: &str) -> Option<Network> {
    match name {
        "main" => Some(Network::Livenet),
        "test" => Some(Network::Testnet),
        name => name.parse().ok(),
    }
}

fn name_of(kind: &str, host: &str) -> String {
    format!("{host} ({kind})")
}

async fn in_time(asked: impl Future<Output = Result<Told, String>>) -> Result<Told, String> {
    let late = || format!("it has not answered all questions within {} s", PATIENCE.as_secs());
    timeout(PATIENCE, asked).await.unwrap_or_else(|_| Err(late()))
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_of_http_are_read() {
        assert_eq!(seconds_of("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        for wrong in ["", "Sunday, 06-Nov-94 08:49:37 GMT", "1994-11-06T08:49:37Z"] {
            assert_eq!(seconds_of(wrong), None, "{wrong}");
        }
    }
}
