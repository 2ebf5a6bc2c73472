//! Verifying the miner identity in one block.

use std::sync::Arc;

use bsv_minerid::node::{DataCache, GatheredBlock, gather};
use bsv_minerid::verify::{
    BlockProof, Candidate, Claim, DataOutputs, Evidence, Finding, MinerInfoEvidence, Outcome,
    Report, RevocationKeys, Verdict, verify,
};
use bsv_network::{NodeError, NodeRpc};
use bsv_server::Config;
use bsv_tx::{BlockHash, BlockHeader, MerkleBranch, Sibling, Transaction};
use clap::{ArgGroup, Args};
use serde::Serialize;

use crate::context::Context;
use crate::error::CliError;
use crate::output::{self, optional, printable};
use crate::shared_arguments::height;

#[derive(Debug, Args)]
#[command(
    group(ArgGroup::new("source").required(true)),
    override_usage = "bsv-cli miner verify [OPTIONS] --block <HASH>\n       \
                      bsv-cli miner verify [OPTIONS] --height <N>\n       \
                      bsv-cli miner verify [OPTIONS] --coinbase <HEX> --header <HEX>"
)]
pub(crate) struct VerifyArguments {
    /// The block with this hash, from the node
    #[arg(long, value_name = "HASH", group = "source")]
    block: Option<BlockHash>,
    /// The block at this height, from the node
    #[arg(long, value_name = "N", value_parser = height(), group = "source")]
    height: Option<u32>,
    /// A coinbase transaction; no node is asked
    #[arg(long, value_name = "HEX", value_parser = transaction, group = "source", requires = "header")]
    coinbase: Option<Transaction>,
    /// The header of the coinbase transaction's block
    #[arg(long, value_name = "HEX", value_parser = header, requires = "coinbase")]
    header: Option<BlockHeader>,
    /// The Merkle branch of the coinbase transaction: hashes from the bottom, in display order.
    /// Leave it out if the block has no other transactions
    #[arg(long, value_name = "HASH", value_delimiter = ',', num_args = 0.., requires = "coinbase")]
    branch: Vec<Sibling>,
    /// The miner-info transaction that the coinbase transaction refers to
    #[arg(long, value_name = "HEX", value_parser = transaction, requires = "coinbase")]
    minerinfo_tx: Option<Transaction>,
    /// The Merkle branch of the miner-info transaction; * stands for a duplicate
    #[arg(long, value_name = "HASH", value_delimiter = ',', num_args = 1.., requires = "minerinfo_index")]
    minerinfo_branch: Vec<Sibling>,
    /// The index of the miner-info transaction in the block
    #[arg(long, value_name = "N", requires_all = ["minerinfo_tx", "minerinfo_branch"])]
    minerinfo_index: Option<u64>,
    /// A transaction that the document's dataRefs refer to
    #[arg(long, value_name = "HEX", value_parser = transaction, requires = "minerinfo_tx")]
    dataref_tx: Vec<Transaction>,
}

/// The source of a block.
enum Source {
    Hash(BlockHash),
    Height(u32),
    Given(Box<BlockProof>, Evidence),
}

impl VerifyArguments {
    /// Only a valid identity is a success.
    pub(crate) async fn run(self, context: &Context) -> Result<(), CliError> {
        let (report, in_main_chain, known) = match self.source() {
            Source::Given(proof, evidence) => (verify(&proof, &evidence), None, None),
            from_node => {
                let node = node(&context.config()?)?;
                let _waiting = context.wait("asking the node");
                let GatheredBlock { proof, evidence, in_main_chain } =
                    fetch(&node, &from_node).await?;
                let report = verify(&proof, &evidence);
                let known = known_ids(&node, report.claim()).await?;
                (report, Some(in_main_chain), known)
            }
        };
        let shown = ShownReport { report: &report, in_main_chain, known_to_node: known };
        context.print(output::json(&shown), || describe(&report, in_main_chain, known))?;
        match report.verdict() {
            Verdict::Valid => Ok(()),
            Verdict::Invalid | Verdict::Undecided | Verdict::NoIdentity => Err(CliError::Told),
        }
    }

    fn source(&self) -> Source {
        match (self.block, self.height, &self.coinbase, self.header) {
            (Some(hash), ..) => Source::Hash(hash),
            (_, Some(height), ..) => Source::Height(height),
            (_, _, Some(coinbase), Some(header)) => self.given(coinbase.clone(), header),
            _ => unreachable!(
                "the command line demands one of the three, and a header with the last"
            ),
        }
    }

    fn given(&self, coinbase: Transaction, header: BlockHeader) -> Source {
        let branch = MerkleBranch { position: 0, siblings: self.branch.clone() };
        let proof = BlockProof { header, height: None, coinbase, branch };
        let miner_info = match self.minerinfo_tx.clone() {
            None => MinerInfoEvidence::Unknown,
            Some(transaction) => {
                let siblings = self.minerinfo_branch.clone();
                let branch = |position| MerkleBranch { position, siblings };
                MinerInfoEvidence::Found { transaction, branch: self.minerinfo_index.map(branch) }
            }
        };
        let outputs = |transaction: &Transaction| Arc::new(DataOutputs::of(transaction));
        let data = self.dataref_tx.iter().map(|tx| (tx.txid(), outputs(tx))).collect();
        Source::Given(Box::new(proof), Evidence { miner_info, data, ..Evidence::default() })
    }
}

fn transaction(text: &str) -> Result<Transaction, String> {
    Transaction::from_hex(text).map_err(|error| error.to_string())
}

fn header(text: &str) -> Result<BlockHeader, String> {
    let bytes = hex::decode(text).map_err(|_| "not hexadecimal")?;
    BlockHeader::from_bytes(&bytes).map_err(|error| error.to_string())
}

/// The node of the configuration.
pub(super) fn node(config: &Config) -> Result<NodeRpc, CliError> {
    config.node.clone().map(NodeRpc::new).ok_or(CliError::NoNode)
}

async fn fetch(node: &NodeRpc, source: &Source) -> Result<GatheredBlock, CliError> {
    let hash = match source {
        Source::Height(height) => {
            node.block_hash(*height).await?.ok_or(CliError::BeyondTip(*height))?
        }
        Source::Hash(hash) => *hash,
        Source::Given(proof, _) => proof.header.block_hash(),
    };
    gather(node, &hash, &DataCache::default()).await?.ok_or(CliError::UnknownBlock(hash))
}

/// A report, with what only the node tells.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ShownReport<'a> {
    #[serde(flatten)]
    report: &'a Report,
    in_main_chain: Option<bool>,
    known_to_node: Option<KnownIds>,
}

/// Which miner ids of a rotation the node knows.
#[derive(Clone, Copy, Serialize)]
struct KnownIds {
    #[serde(rename = "minerId")]
    current: bool,
    #[serde(rename = "previousMinerId")]
    previous: bool,
}

/// Asks the node about the miner ids of a document that names a previous one. Answers `None` if it
/// names none, or if the node keeps no miner ids.
async fn known_ids(node: &NodeRpc, claim: Option<&Claim>) -> Result<Option<KnownIds>, CliError> {
    let Some(claim) = claim.filter(|claim| claim.previous_miner_id != claim.miner_id) else {
        return Ok(None);
    };
    let mut known = [false; 2];
    for (known, id) in known.iter_mut().zip([claim.previous_miner_id, claim.miner_id]) {
        match node.miner_id_info(&id).await {
            Ok(info) => *known = info.is_some(),
            Err(NodeError::Rejected { .. }) => return Ok(None),
            Err(error) => return Err(error.into()),
        }
    }
    let [previous, current] = known;
    Ok(Some(KnownIds { previous, current }))
}

/// The report for people.
fn describe(report: &Report, in_main_chain: Option<bool>, known: Option<KnownIds>) -> String {
    let mut text = format!("{}\n", in_words(report));
    text.push_str(&output::line("block", report.block));
    text.push_str(&output::line("height", optional(report.height)));
    if in_main_chain == Some(false) {
        text.push_str("The block is not in the main chain.\n");
    }
    if let Some(claim) = report.claim() {
        text.push_str(&claimed(claim));
    }
    text.push_str(taken_in_words(report, known));
    text.extend(report.findings.iter().map(line));
    for candidate in &report.candidates {
        let Candidate { output, generation, .. } = candidate;
        text.push_str(&format!("output {output}, protocol {generation}\n"));
        text.extend(candidate.findings.iter().map(line));
    }
    text
}

/// Whether nodes take the identity. A block alone does not tell whether nodes know the previous
/// miner id.
fn taken_in_words(report: &Report, known: Option<KnownIds>) -> &'static str {
    match (report.passes_node(), known) {
        _ if report.verdict() == Verdict::NoIdentity => "",
        (Some(true), Some(KnownIds { current: true, .. })) => "Nodes take it: the node knows it.\n",
        (Some(true), Some(KnownIds { previous: false, .. })) => {
            "Nodes do not take it: the node does not know the previous miner id.\n"
        }
        (Some(true), Some(_)) => "The node has not taken it.\n",
        (Some(true), None) => "By this block alone, nodes take it.\n",
        (Some(false), _) => "Nodes do not take it.\n",
        (None, _) => "Whether nodes take it is unknown.\n",
    }
}

fn in_words(report: &Report) -> &'static str {
    match report.verdict() {
        Verdict::Valid => "A valid miner identity",
        Verdict::Invalid => "No valid miner identity",
        Verdict::Undecided => "A miner identity that could not be fully checked",
        Verdict::NoIdentity => "No miner identity",
    }
}

fn claimed(claim: &Claim) -> String {
    let is_rotation = claim.previous_miner_id != claim.miner_id;
    let keys = claim.revocation_keys;
    [
        output::line("miner id", claim.miner_id),
        output::line("previous id", optional(is_rotation.then_some(claim.previous_miner_id))),
        output::line("name", optional(claim.name.as_ref())),
        output::line("revocation", optional(keys.map(|keys| keys.current))),
        output::line(
            "previous key",
            optional(keys.filter(RevocationKeys::is_roll).map(|keys| keys.previous)),
        ),
        output::line("compromised", optional(claim.compromised_miner_id.as_ref())),
        output::line("VCTx", optional(claim.vctx)),
    ]
    .concat()
}

fn line(finding: &Finding) -> String {
    let outcome = match &finding.outcome {
        Outcome::Holds => "holds".to_owned(),
        Outcome::Fails(reason) if finding.passes_node == Some(true) => {
            format!("FAILS, but nodes take it: {}", printable(reason))
        }
        Outcome::Fails(reason) => format!("FAILS: {}", printable(reason)),
        Outcome::Unchecked(reason) => format!("not checked: {}", printable(reason)),
    };
    format!("  {:<27}{outcome}\n", finding.check)
}
