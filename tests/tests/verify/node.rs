//! Compares the verdicts on spoilt identities with a real node's.

use bsv_minerid::formats::{Coinbase2, CoinbaseReference, MinerInfo};
use bsv_minerid::node::{DataCache, GatheredBlock, gather};
use bsv_minerid::verify::{Report, Verdict, verify};
use bsv_network::NodeRpc;
use bsv_tests::identified_block::Keys;
use bsv_tests::{Node, Template, miner_info};
use bsv_tx::{BlockHash, PrivateKey, Script, Transaction, TxOut, Txid};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::verify::blocks::check_verdict;
use crate::verify::spoilt::{self, coinbase_documents, documents, nested, signed, with_member};

/// A node that mines, and the client through which the verifier asks it.
pub(crate) struct Chain {
    pub(crate) node: Node,
    runtime: Runtime,
    rpc: NodeRpc,
}

impl Chain {
    pub(crate) fn start() -> Self {
        let node = Node::start();
        node.mine(101);
        let rpc = NodeRpc::new(node.settings());
        Self { node, runtime: Runtime::new().unwrap(), rpc }
    }

    pub(crate) fn gather(&self, block: &BlockHash) -> GatheredBlock {
        self.gather_with(block, &DataCache::default())
    }

    pub(crate) fn gather_with(&self, block: &BlockHash, data: &DataCache) -> GatheredBlock {
        self.runtime.block_on(gather(&self.rpc, block, data)).unwrap().unwrap()
    }

    pub(crate) fn verify(&self, block: &BlockHash) -> Report {
        let GatheredBlock { proof, evidence, .. } = self.gather(block);
        verify(&proof, &evidence)
    }

    pub(crate) fn next_height(&self) -> u32 {
        Template::of(&self.node, 1).height()
    }

    /// Mines a block with `script` in an output of its coinbase transaction.
    pub(crate) fn mine_output(&self, script: &Script) -> BlockHash {
        self.mine_outputs(std::slice::from_ref(script))
    }

    /// Mines a block with these scripts in outputs of its coinbase transaction.
    pub(crate) fn mine_outputs(&self, scripts: &[Script]) -> BlockHash {
        let template = Template::of(&self.node, 1);
        let mut coinbase2 = hex::decode(&template.coinbase2).unwrap();
        let lock_time = coinbase2.split_off(coinbase2.len() - 4);
        // The count of outputs comes after the input's sequence number.
        coinbase2[4] += scripts.len() as u8;
        for script in scripts {
            TxOut { satoshis: 0, locking_script: script.clone() }.encode(&mut coinbase2);
        }
        coinbase2.extend(lock_time);
        template.mine(&self.node, &hex::encode(coinbase2))
    }

    /// Mines a block with the script `miner_info` in a transaction, whatever the script is.
    /// `reference` gets the right reference to it, signed by `key`, and answers the script for the
    /// coinbase transaction.
    pub(crate) fn mine_miner_info(
        &self,
        miner_info: &Script,
        key: &PrivateKey,
        reference: impl FnOnce(CoinbaseReference) -> Script,
    ) -> BlockHash {
        let txid = self.send(miner_info);
        let template = miner_info::template_with_all(&self.node);
        let coinbase2 = hex::decode(&template.coinbase2).unwrap();
        let coinbase2 = Coinbase2::parse(&coinbase2).unwrap();
        let (previous, branch) = (template.previous_block(), template.merkle_branch());
        let right = CoinbaseReference::sign(key, txid, &coinbase2, &previous, &branch).unwrap();
        let coinbase2 = coinbase2.with_output(&reference(right)).unwrap();
        template.mine(&self.node, &hex::encode(coinbase2))
    }

    /// Mines a block with this document, signed by these keys.
    pub(crate) fn mine_document(&self, keys: &Keys, document: &MinerInfo) -> BlockHash {
        let script = document.sign(&keys.miner_id).unwrap().to_script();
        self.mine_miner_info(&script, &keys.miner_id, |right| right.to_script())
    }

    /// Mines a block with the next document of these keys.
    pub(crate) fn announce(&self, keys: &Keys) -> BlockHash {
        self.mine_document(keys, &keys.miner_info(self.next_height()))
    }

    /// Puts a script into a transaction of the next block. The node's own calls for this purpose
    /// would refuse spoilt scripts.
    pub(crate) fn send(&self, script: &Script) -> Txid {
        let outputs = vec![TxOut { satoshis: 0, locking_script: script.clone() }];
        let bare = Transaction { version: 1, inputs: vec![], outputs, lock_time: 0 };
        let funded = self.node.call("fundrawtransaction", json!([bare.to_hex()]));
        let signed = self.node.call("signrawtransaction", json!([funded["hex"]]));
        let txid = self.node.call("sendrawtransaction", json!([signed["hex"]]));
        txid.as_str().unwrap().parse().unwrap()
    }

    /// Whether the node has accepted the identity in the block, which must be its newest.
    pub(crate) fn is_taken(&self, block: &BlockHash) -> bool {
        self.taken_by(block).is_some()
    }

    /// The miner id under which the node has accepted the block, which must be its newest.
    pub(crate) fn taken_by(&self, block: &BlockHash) -> Option<String> {
        let dump = self.node.call("dumpminerids", json!([]));
        let mut miners = dump["miners"].as_array().unwrap().iter();
        let miner = miners.find(|miner| miner["latestblock"] == block.to_string())?;
        // The current miner id comes first.
        Some(miner["minerids"][0]["minerid"].as_str().unwrap().to_owned())
    }
}

#[test]
fn the_node_and_the_verifier_agree_on_each_spoilt_miner_info() {
    let chain = Chain::start();
    let first = Keys::first();
    let block = chain.announce(&first);
    assert!(chain.is_taken(&block), "{}", chain.node.log());
    assert_eq!(chain.verify(&block).verdict(), Verdict::Valid, "{:#?}", chain.verify(&block));
    for variant in documents::all() {
        let keys = (variant.keys)(&first);
        let document = (variant.document)(&keys, keys.miner_info(chain.next_height()));
        let script = (variant.script)(&keys, &document);
        let block = chain
            .mine_miner_info(&script, &keys.miner_id, |right| (variant.reference)(&keys, right));
        let report = chain.verify(&block);
        check_verdict(variant.name, variant.fail, variant.node, &report);
        check_node(&chain, variant.name, variant.node, &block);
    }
    let document = with_member(&first.miner_info(chain.next_height()).to_json(), &nested(2048));
    let script = signed(&first, document);
    let block = chain.mine_miner_info(&script, &first.miner_id, |right| right.to_script());
    assert!(chain.is_taken(&block), "{}", chain.node.log());
    assert_eq!(chain.verify(&block).verdict(), Verdict::Valid, "{:#?}", chain.verify(&block));
    let id = first.miner_id.public_key().to_string();
    assert_eq!(miner_info::states(&chain.node), [[(id, "CURRENT".to_owned())]]);
}

#[test]
fn the_node_and_the_verifier_agree_on_each_spoilt_coinbase_document() {
    let chain = Chain::start();
    let keys = Keys::first();
    let document = |keys: &Keys| keys.document(chain.next_height()).to_json();
    let block = chain.mine_output(&keys.sign(&document(&keys)));
    assert!(chain.is_taken(&block), "{}", chain.node.log());
    assert_eq!(chain.verify(&block).verdict(), Verdict::Valid, "{:#?}", chain.verify(&block));
    for variant in coinbase_documents::all() {
        let text = (variant.document)(&keys, document(&keys));
        let block = chain.mine_output(&(variant.script)(&keys, &text));
        let report = chain.verify(&block);
        check_verdict(variant.name, variant.fail, variant.node, &report);
        check_node(&chain, variant.name, variant.node, &block);
    }
}

/// Checks whether the node of the tests has accepted a spoilt identity.
fn check_node(chain: &Chain, name: &str, expected: spoilt::Node, block: &BlockHash) {
    let takes = expected != spoilt::Node::Refuses;
    assert_eq!(chain.is_taken(block), takes, "{name}: {}", chain.node.log());
}
