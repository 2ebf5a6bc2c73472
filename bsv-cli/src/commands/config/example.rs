//! Examples of settings.

use bsv_tx::Network;
use clap::Args;
use serde_json::json;

use crate::context::Context;
use crate::error::CliError;

#[derive(Debug, Args)]
pub(crate) struct ExampleArguments {
    /// Settings of a shop without a node, with public services
    #[arg(long = "services", required = true)]
    _services: bool,
    /// The network: livenet or testnet
    #[arg(long, value_name = "NETWORK", default_value = "livenet", value_parser = read_network)]
    network: Network,
}

const SETTINGS: &str = include_str!("example.toml");

/// Public hosts of a network.
struct Hosts {
    arcade: &'static str,
    other_arcade: &'static str,
    arc: &'static str,
    peer: &'static str,
}

impl ExampleArguments {
    pub(crate) fn run(self, context: &Context) -> Result<(), CliError> {
        let text = settings(self.network);
        context.print_exactly(json!({ "toml": text }), || text.clone())
    }
}

fn settings(network: Network) -> String {
    let (hosts, money) = match network {
        Network::Livenet => (LIVENET, "of real money"),
        Network::Testnet | Network::Regtest => (TESTNET, "for tests"),
    };
    let values = [
        ("{network}", network.name()),
        ("{money}", money),
        ("{arcade}", hosts.arcade),
        ("{other_arcade}", hosts.other_arcade),
        ("{arc}", hosts.arc),
        ("{peer}", hosts.peer),
    ];
    values.iter().fold(SETTINGS.to_owned(), |text, (name, value)| text.replace(name, value))
}

const LIVENET: Hosts = Hosts {
    arcade: "https://arcade-v2-us-1.bsvblockchain.tech",
    other_arcade: "https://arcade.gorillapool.io",
    arc: "https://arc.taal.com",
    peer: "seed.bitcoinsv.io:8333",
};
const TESTNET: Hosts = Hosts {
    arcade: "https://arcade-v2-testnet-us-1.bsvblockchain.tech",
    other_arcade: "https://testnet.arcade.gorillapool.io",
    arc: "https://arc-test.taal.com",
    peer: "testnet-seed.bitcoinsv.io:18333",
};

fn read_network(name: &str) -> Result<Network, String> {
    match name.parse() {
        Ok(Network::Regtest) => Err("regtest has no public services".to_owned()),
        Ok(network) => Ok(network),
        Err(error) => Err(error.to_string()),
    }
}
