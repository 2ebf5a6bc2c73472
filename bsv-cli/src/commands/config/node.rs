//! Checking the node against the settings.

use bsv_minerid::Alias;
use bsv_network::{NodeError, NodeRpc};
use bsv_server::{Config, Create, MinerIdConfig, OpenError, Outcome, Verdicts};
use serde_json::Value;

use crate::context::{Stores, service_of};
use crate::error::CliError;
use crate::service::ReachError;

/// The node's settings for the generator of miner ids.
struct Generator {
    url: String,
    alias: Option<String>,
}

/// Asks the node, and adds the results.
pub(super) async fn check(lines: &mut Verdicts, config: &Config) -> Result<(), CliError> {
    let node = config.node.clone().map(NodeRpc::new).ok_or(CliError::NoNode)?;
    let generator = check_node(lines, config, &node).await?;
    if let Some(minerid) = &config.minerid {
        check_generator(lines, minerid, config.access.require_token, &generator);
        check_alias(lines, config, minerid, &generator).await;
        lines.unchecked(
            "PublicIP",
            "other nodes compare the PublicIP in the documents of the alias with the address that they see",
        );
        lines.unchecked(
            "miner-info-funding",
            "a node does not tell whether it has coins for miner-info transactions (protocol 1.0)",
        );
    }
    Ok(())
}

/// The checks that every node allows. Answers the node's settings for the generator, or an error if
/// the node does not tell them.
async fn check_node(
    lines: &mut Verdicts,
    config: &Config,
    node: &NodeRpc,
) -> Result<Result<Option<Generator>, &'static str>, CliError> {
    const SILENT: &str = "the node does not answer";
    let version = match node.version().await {
        Ok(version) => version,
        Err(error) if error.is_unavailable() => {
            lines.fails("node", error.to_string());
            for check in ["version", "network", "blocks", "minerid=1", "txindex=1"] {
                lines.unchecked(check, SILENT);
            }
            return Ok(Err(SILENT));
        }
        Err(error) => return Err(error.into()),
    };
    lines.holds("node", "it answers");
    lines.holds("version", version);
    let expected = config.network;
    match node.network().await? {
        Ok(network) if network == expected => lines.holds("network", network.name()),
        Ok(network) => lines.fails(
            "network",
            format!(
                "the node follows {}, but the settings name {}",
                network.name(),
                expected.name()
            ),
        ),
        Err(name) => lines.fails(
            "network",
            format!("the node follows {name}, but the settings name {}", expected.name()),
        ),
    }
    match node.has_all_blocks().await? {
        true => lines.holds("blocks", "the node has all blocks that it has heard of"),
        false => lines.warns("blocks", "the node is still reading blocks that it has heard of"),
    }
    match (node.has_miner_ids().await?, &config.minerid) {
        (true, _) => lines.holds("minerid=1", "the node keeps miner ids"),
        (false, Some(_)) => lines.fails(
            "minerid=1",
            "the node keeps no miner ids, so announcements of identities are never seen",
        ),
        (false, None) => {
            lines.holds("minerid=1", "the node keeps no miner ids, and no service needs them");
        }
    }
    match (node.has_transaction_index().await?, &config.wallet) {
        (true, _) => lines.holds("txindex=1", "the node finds all transactions"),
        (false, Some(_)) => {
            lines.fails(
                "txindex=1",
                "the node has no index of transactions, which the wallet needs",
            );
        }
        (false, None) => lines.warns(
            "txindex=1",
            "the node has no index of transactions: miner verify, scan and import see less",
        ),
    }
    Ok(match node.parameters().await {
        Ok(Some(parameters)) => Ok(Generator::of(&parameters)),
        Ok(None) | Err(NodeError::Rejected { .. }) => {
            Err("nodes of this version do not tell their settings")
        }
        Err(error) => return Err(error.into()),
    })
}

/// Checks that the node can reach the listener in its settings, or a listener that could be set.
fn check_generator(
    lines: &mut Verdicts,
    minerid: &MinerIdConfig,
    requires_token: bool,
    generator: &Result<Option<Generator>, &'static str>,
) {
    const URL: &str = "mineridgeneratorurl";
    let node_listener = minerid.node_listener.as_ref().map(|listener| listener.address);
    match generator {
        Err(reason) => lines.unchecked(URL, *reason),
        Ok(None) => lines.unchecked(URL, "it is not set: the node authenticates no connections"),
        Ok(Some(Generator { url, .. })) => {
            let port = match port_of(url) {
                Ok(port) => port,
                Err(reason) => return lines.fails(URL, format!("{url}: {reason}")),
            };
            if Some(port) == node_listener.map(|address| address.port()) {
                return lines.holds(URL, format!("{url} has the port of minerid.nodeListener"));
            }
            if port != minerid.address.port() {
                let reason = "no listener in the settings has this port, so its target is unknown";
                return lines.unchecked(URL, format!("{url}: {reason}"));
            }
            return match obstacle(minerid, requires_token) {
                Some(reason) => lines.fails(URL, format!("{url}: {reason}")),
                None => lines.holds(URL, format!("{url} has the port of the listener")),
            };
        }
    }
    // What a node would find if it were set to use a listener.
    const LISTENER: &str = "listener";
    let (address, obstacle) = match node_listener {
        Some(address) => (address, None),
        None => (minerid.address, obstacle(minerid, requires_token)),
    };
    let url = format!("http://{address}");
    match obstacle.or_else(|| port_of(&url).err()) {
        Some(reason) => lines.warns(LISTENER, format!("no node can ask {url}: {reason}")),
        None => lines.holds(LISTENER, format!("a node could ask it with {URL}={url}")),
    }
}

/// What prevents a node from using the miner identity listener.
fn obstacle(minerid: &MinerIdConfig, requires_token: bool) -> Option<&'static str> {
    if requires_token {
        Some("the listener requires tokens, which nodes do not have: set minerid.nodeListener")
    } else if minerid.tls.is_some() {
        Some("the listener uses TLS, which nodes do not support: set minerid.nodeListener")
    } else {
        None
    }
}

/// The port that a node finds in the URL of its generator. Fails if the node cannot use the URL.
fn port_of(url: &str) -> Result<u16, &'static str> {
    let rest = url.strip_prefix("http://").ok_or("it does not begin with http://")?;
    if rest.starts_with('[') {
        return Err("nodes cannot read an IPv6 address in it");
    }
    if rest.ends_with('/') {
        return Err("the slash at its end makes the node ask for a path that does not exist");
    }
    let authority = rest.split('/').next().unwrap_or_default();
    let port = match authority.split_once(':') {
        Some((_, port)) => port.parse().map_err(|_| "its port is no number")?,
        None => 80,
    };
    match port {
        0 => Err("the system chooses the port at each start: set one"),
        1..=MAX_PORT => Ok(port),
        _ => Err("nodes only support ports up to 32767"),
    }
}

/// Nodes store the port of their generator in a signed 16-bit integer.
const MAX_PORT: u16 = 32_767;

/// Checks that the alias that the node uses exists and signs.
async fn check_alias(
    lines: &mut Verdicts,
    config: &Config,
    minerid: &MinerIdConfig,
    generator: &Result<Option<Generator>, &'static str>,
) {
    const ALIAS: &str = "mineridgeneratoralias";
    let allowed = minerid.node_listener.as_ref().map(|listener| listener.alias.as_str());
    let (alias, at_fault) = match (generator, allowed) {
        (Ok(Some(Generator { alias: Some(alias), .. })), _) => (alias.as_str(), Outcome::Fails),
        (Ok(Some(Generator { alias: None, .. })), _) => {
            return lines.fails(ALIAS, "it is not set, but mineridgeneratorurl is");
        }
        (_, Some(allowed)) => (allowed, Outcome::Warns),
        (Ok(None), None) => return lines.unchecked(ALIAS, "the node has no mineridgeneratorurl"),
        (Err(reason), None) => return lines.unchecked(ALIAS, *reason),
    };
    if let Some(allowed) = allowed.filter(|allowed| *allowed != alias) {
        let reason = format!("minerid.nodeListener serves \"{allowed}\", not \"{alias}\"");
        return lines.fails(ALIAS, reason);
    }
    match identity(config, alias).await {
        Ok(identity) if identity["blindSigning"] == true => {
            lines.holds(ALIAS, format!("\"{alias}\" signs what a node asks for"));
        }
        Ok(_) => lines.add(
            ALIAS,
            at_fault,
            format!(
                "blind signing is off for \"{alias}\": run bsv-cli miner blind-signing --name {alias} on"
            ),
        ),
        Err(CliError::Refused(refusal)) => lines.add(ALIAS, at_fault, refusal.to_string()),
        Err(CliError::Reach(ReachError::Open(OpenError::Nothing { .. }))) => {
            lines.add(ALIAS, at_fault, format!("there is no identity \"{alias}\" yet"));
        }
        Err(error) => lines.unchecked(ALIAS, error.to_string()),
    }
}

async fn identity(config: &Config, alias: &str) -> Result<Value, CliError> {
    // Checked, because the alias comes from the node and becomes part of a path.
    let alias: Alias = alias.parse().map_err(|error| CliError::Unfitting(format!("{error}")))?;
    let mut service = service_of(config.clone(), Create::Nothing, Stores::Identities).await?;
    service.get(format!("/control/minerids/{alias}")).await?.value()
}

impl Generator {
    fn of(parameters: &[String]) -> Option<Self> {
        let value = |name: &str| {
            let mut values = parameters.iter().filter_map(|line| line.split_once('='));
            values.find(|(set, _)| *set == name).map(|(_, value)| value.to_owned())
        };
        let url = value("mineridgeneratorurl").filter(|url| !url.is_empty())?;
        let alias = value("mineridgeneratoralias").filter(|alias| !alias.is_empty());
        Some(Self { url, alias })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_urls_that_nodes_can_use_have_a_port() {
        for (url, expected) in [
            ("http://127.0.0.1:9002", Ok(9002)),
            ("http://pool.internal", Ok(80)),
            ("http://127.0.0.1:32767/behind", Ok(32_767)),
            ("https://127.0.0.1:9002", Err("http://")),
            ("http://127.0.0.1:9002/", Err("slash")),
            ("http://127.0.0.1:32768", Err("32767")),
            ("http://127.0.0.1:90000", Err("number")),
            ("http://127.0.0.1:0", Err("chooses")),
            ("http://[::1]:9002", Err("IPv6")),
        ] {
            match (port_of(url), expected) {
                (Ok(port), Ok(expected)) => assert_eq!(port, expected, "{url}"),
                (Err(reason), Err(part)) => assert!(reason.contains(part), "{url}: {reason}"),
                (got, _) => panic!("{url}: {got:?}"),
            }
        }
    }
}
