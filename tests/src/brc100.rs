//! Another project's wallet that web pages call (BRC-100) and that broadcasts its payments.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdin, Stdio};

use bsv_network::NodeRpc;
use bsv_tx::{Ancestry, Beef, BeefVersion, Script, TxOut};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::ancestry::bump;
use crate::fetch::node_js;
use crate::http::{Client, Reply};
use crate::node::Node;
use crate::purse::send;

/// npm `@bsv/wallet-toolbox-client`, whose program is `tests/npm/brc100_wallet.cjs`. It stops when dropped.
#[derive(Debug)]
pub struct Brc100Wallet {
    child: Child,
    /// The program ends when this is dropped.
    _stdin: ChildStdin,
    client: Client,
}

impl Brc100Wallet {
    /// Starts a wallet without coins at any port. It broadcasts to `node`.
    pub fn start(node: &Node) -> Self {
        Self::at_port(node, 0)
    }

    /// Starts such a wallet at this port of 127.0.0.1. Pages look for wallets at port 3321.
    pub fn at_port(node: &Node, port: u16) -> Self {
        let settings = node.settings();
        let mut program = node_js();
        program.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/npm/brc100_wallet.cjs"));
        program.env("RPC_URL", format!("http://{}:{}", settings.host, settings.port));
        program.env("RPC_USER", &node.user).env("RPC_PASSWORD", &node.password);
        program.env("WALLET_PORT", port.to_string());
        program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = program.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let client = Client::new(&format!("127.0.0.1:{}", line.trim()));
        Self { _stdin: child.stdin.take().unwrap(), child, client }
    }

    /// Its address.
    pub fn address(&self) -> &str {
        self.client.address()
    }

    /// Gives it coins of these amounts from the node's wallet, in a block.
    ///
    /// # Panics
    /// If it does not accept them.
    pub fn fund(&self, node: &Node, amounts: &[u64]) {
        let script = self.ask("fund", &json!({}))["script"].as_str().unwrap().to_owned();
        let script = Script::from_bytes(hex::decode(script).unwrap());
        let output = |satoshis: &u64| TxOut { satoshis: *satoshis, locking_script: script.clone() };
        let outputs: Vec<_> = amounts.iter().map(output).collect();
        let rpc = NodeRpc::new(node.settings());
        let funds = Runtime::new().unwrap().block_on(rpc.wallet_transaction(&outputs)).unwrap();
        send(node, &funds);
        node.mine(1);
        let paying = funds.outputs.iter().zip(0_u32..);
        let indexes: Vec<_> = paying
            .filter(|(output, _)| output.locking_script == script)
            .map(|(_, index)| index)
            .collect();
        let ancestry =
            Ancestry { transactions: vec![], bumps: vec![bump(node, &funds.txid())], held: vec![] };
        let tx = Beef::new(BeefVersion::V2, funds, ancestry).unwrap();
        let tx = hex::encode(tx.into_atomic().unwrap().to_bytes());
        let answer = self.ask("funded", &json!({ "tx": tx, "outputIndexes": indexes }));
        assert_eq!(answer["accepted"], true, "{answer}");
    }

    /// Calls a method as a page does.
    pub fn call(&self, method: &str, arguments: &Value) -> Reply {
        self.client.post(&format!("/{method}"), arguments.to_string())
    }

    /// Calls a method.
    ///
    /// # Panics
    /// If it fails.
    pub fn ask(&self, method: &str, arguments: &Value) -> Value {
        let reply = self.call(method, arguments);
        assert_eq!(reply.status, 200, "{method}: {}", reply.body);
        serde_json::from_str(&reply.body).unwrap()
    }

    /// Pays an output in the same way as the payment page. Returns the wallet's answer.
    ///
    /// # Panics
    /// If it does not pay.
    pub fn pay(&self, output: &TxOut, options: &Value) -> Paid {
        let answer = self.ask(
            "createAction",
            &json!({
                "description": "a payment of a test",
                "outputs": [{
                    "lockingScript": output.locking_script.to_hex(),
                    "satoshis": output.satoshis,
                    "outputDescription": "an invoice",
                }],
                "options": options,
            }),
        );
        let bytes = answer["tx"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let bytes = bytes.iter().map(|byte| u8::try_from(byte.as_u64().unwrap()).unwrap());
        Paid { bytes: bytes.collect(), change: answer["noSendChange"].clone() }
    }
}

/// A wallet's answer after it has paid.
#[derive(Clone, Debug)]
pub struct Paid {
    /// The transaction, in the form in which wallets return it.
    pub bytes: Vec<u8>,
    /// The change, for the next payment that is not broadcast either.
    pub change: Value,
}

impl Paid {
    /// The BEEF that the wallet returned.
    ///
    /// # Panics
    /// If it is no Atomic BEEF.
    pub fn beef(&self) -> Beef {
        let beef = Beef::from_bytes(&self.bytes).unwrap();
        assert!(beef.is_atomic());
        beef
    }
}

impl Drop for Brc100Wallet {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
