use std::fmt;

use bsv_tx::{BlockHash, OutPoint, PublicKey, Txid};

use crate::data_refs::DataRef;

/// The checks of an identity in a block, with stable names ([`Check::name`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Check {
    /// The header's hash meets the target that the header states.
    ProofOfWork,
    /// The transaction is a coinbase transaction, and its Merkle branch leads to the header's root.
    CoinbaseInclusion,
    /// The output script in the coinbase transaction has the protocol's form.
    OutputScript,
    /// The miner-info transaction is the one that the coinbase transaction names, and its output
    /// script has the protocol's form (1.0).
    MinerInfoTransaction,
    /// The miner-info transaction is in the block (1.0).
    MinerInfoInclusion,
    /// The document has all its members, each once and of the right type.
    Document,
    /// The document is signed by the miner id that it names. In generation 1.0, nodes do not check
    /// this.
    DocumentSignature,
    /// The dynamic document is signed by its key (0.2).
    DynamicDocument,
    /// The document's height is the block's. In generation 1.0, nodes do not check this.
    Height,
    /// The previous miner id has signed the miner id.
    MinerIdSuccession,
    /// The previous revocation key has signed the revocation key (1.0).
    RevocationKeySuccession,
    /// The revocation is signed by the revocation key and the previous miner id, and does not come
    /// with a new revocation key (1.0).
    Revocation,
    /// The document (0.2) or the coinbase transaction (1.0) is bound to this block. In generation
    /// 0.2 the binding is optional, and nodes do not check it.
    BlockBinding,
    /// The block binding is signed by the miner id (1.0).
    BlockBindingSignature,
    /// The validity check output is unspent (0.2). Nodes do not check this, but read the index of
    /// the output.
    Vctx,
    /// The references to data have the protocol's form, and name existing data if their
    /// transactions are available.
    DataRefs,
}

impl Check {
    /// The stable name of the check.
    pub fn name(self) -> &'static str {
        match self {
            Self::ProofOfWork => "proof-of-work",
            Self::CoinbaseInclusion => "coinbase-inclusion",
            Self::OutputScript => "output-script",
            Self::MinerInfoTransaction => "miner-info-transaction",
            Self::MinerInfoInclusion => "miner-info-inclusion",
            Self::Document => "document",
            Self::DocumentSignature => "document-signature",
            Self::DynamicDocument => "dynamic-document",
            Self::Height => "height",
            Self::MinerIdSuccession => "miner-id-succession",
            Self::RevocationKeySuccession => "revocation-key-succession",
            Self::Revocation => "revocation",
            Self::BlockBinding => "block-binding",
            Self::BlockBindingSignature => "block-binding-signature",
            Self::Vctx => "vctx",
            Self::DataRefs => "data-refs",
        }
    }

    /// Whether an identity needs this check to be valid. The state of a validity check output and
    /// the data behind references depend on more than the block.
    pub fn is_required(self) -> bool {
        !matches!(self, Self::Vctx | Self::DataRefs)
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The outcome of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The check holds.
    Holds,
    /// The check fails, for this reason. The reason may quote text of strangers.
    Fails(String),
    /// The check could not be made, for this reason.
    Unchecked(String),
}

/// A line of a [`Report`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was checked.
    pub check: Check,
    /// The outcome.
    pub outcome: Outcome,
    /// Whether a node accepts the identity in this respect; `None` if unknown.
    pub passes_node: Option<bool>,
}

/// The generations of the protocol, which differ in the place of the document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// The document is in the coinbase transaction (document versions 0.1 and 0.2).
    V0_2,
    /// The coinbase transaction refers to a miner-info transaction (document version 0.3).
    V1_0,
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::V0_2 => "0.2",
            Self::V1_0 => "1.0",
        })
    }
}

/// The claims of a document, believed or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The document's version.
    pub version: String,
    /// The miner id that signs the document.
    pub miner_id: PublicKey,
    /// The previous miner id; the same one, if it is not new.
    pub previous_miner_id: PublicKey,
    /// The revocation keys (1.0).
    pub revocation_keys: Option<RevocationKeys>,
    /// The miner id that a revocation calls compromised, as the document spells it (1.0).
    pub compromised_miner_id: Option<String>,
    /// The validity check output (0.2).
    pub vctx: Option<OutPoint>,
    /// References to data.
    pub data_refs: Vec<DataRef>,
    /// `name` of `minerContact`, as nodes show it.
    pub name: Option<String>,
}

/// The keys that can revoke an identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RevocationKeys {
    /// The current key.
    pub current: PublicKey,
    /// The previous key; the same one, if it is not new.
    pub previous: PublicKey,
}

impl RevocationKeys {
    /// Whether the current key is new.
    pub fn is_roll(&self) -> bool {
        self.current != self.previous
    }
}

/// An output that claims to carry an identity, with the findings about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The index of the output in the coinbase transaction.
    pub output: usize,
    /// The generation of the output.
    pub generation: Generation,
    /// The miner-info transaction that it refers to (1.0).
    pub miner_info: Option<Txid>,
    /// The claims of its document, if readable.
    pub claim: Option<Claim>,
    /// The findings, in the order of the protocol.
    pub findings: Vec<Finding>,
    /// Whether nodes that refuse this output look at no later one.
    pub(super) ends_scan: bool,
}

impl Candidate {
    /// Whether nodes accept this identity, by the rules that concern the block alone; `None` if
    /// something is unavailable that nodes look at.
    pub fn passes_node(&self) -> Option<bool> {
        all(self.findings.iter().map(|finding| finding.passes_node))
    }
}

/// The verdict over a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The block carries an identity, and all required checks hold.
    Valid,
    /// The block claims to carry an identity, and a check fails.
    Invalid,
    /// No check fails, but a required check could not be made.
    Undecided,
    /// No output of the coinbase transaction claims to carry an identity.
    NoIdentity,
}

impl Verdict {
    /// The stable name of the verdict.
    pub fn name(self) -> &'static str {
        match self {
            Self::Valid => "valid",
            Self::Invalid => "invalid",
            Self::Undecided => "undecided",
            Self::NoIdentity => "no-identity",
        }
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The findings about the identity in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The hash of the header.
    pub block: BlockHash,
    /// The height that documents were compared with, if known.
    pub height: Option<u32>,
    /// The findings about the block itself.
    pub findings: Vec<Finding>,
    /// The outputs that claim to carry an identity, in order, up to the one that counts.
    pub candidates: Vec<Candidate>,
}

impl Report {
    /// The output that counts: the first that nodes do not refuse. Nodes look no further.
    pub fn chosen(&self) -> Option<&Candidate> {
        self.candidates.last().filter(|candidate| candidate.passes_node() != Some(false))
    }

    /// The verdict over everything.
    pub fn verdict(&self) -> Verdict {
        let fails = |finding: &Finding| matches!(finding.outcome, Outcome::Fails(_));
        if self.findings.iter().any(fails) {
            return Verdict::Invalid;
        }
        if self.candidates.is_empty() {
            return Verdict::NoIdentity;
        }
        let Some(chosen) = self.chosen() else { return Verdict::Invalid };
        if chosen.findings.iter().any(fails) {
            return Verdict::Invalid;
        }
        let is_open = |finding: &Finding| {
            matches!(finding.outcome, Outcome::Unchecked(_)) && finding.check.is_required()
        };
        if self.findings.iter().chain(&chosen.findings).any(is_open) || chosen.claim.is_none() {
            return Verdict::Undecided;
        }
        Verdict::Valid
    }

    /// The claims of the identity, if the verdict is [`Verdict::Valid`].
    pub fn identity(&self) -> Option<&Claim> {
        self.claim().filter(|_| self.verdict() == Verdict::Valid)
    }

    /// The claims of the document that counts, believed or not.
    pub fn claim(&self) -> Option<&Claim> {
        self.chosen()?.claim.as_ref()
    }

    /// Whether nodes accept an identity from this block, by the rules that concern the block alone.
    /// A node's database may still refuse an identity that contradicts earlier blocks
    /// ([`Ledger`](crate::ledger::Ledger)). Answers `None` if something is unavailable that nodes look at.
    ///
    /// The rules are those of node 1.2.2, except for two cases that do not occur in practice. Both
    /// count as refused: uncompressed keys in 0.2 documents, and new revocation keys that are no
    /// point of the curve.
    pub fn passes_node(&self) -> Option<bool> {
        let block = all(self.findings.iter().map(|finding| finding.passes_node));
        let candidate = self.chosen().map_or(Some(false), Candidate::passes_node);
        all([block, candidate])
    }
}

/// Quotes a text of strangers for a reason.
pub(super) fn quoted(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("\"{}…\"", &text[..end]),
        None => format!("\"{text}\""),
    }
}

/// Combines answers: false if one is false, otherwise `None` if one is `None`.
fn all(answers: impl IntoIterator<Item = Option<bool>>) -> Option<bool> {
    let mut together = Some(true);
    for answer in answers {
        match answer {
            Some(false) => return Some(false),
            None => together = None,
            Some(true) => {}
        }
    }
    together
}

/// The findings so far. Checks that nodes make too are in the nodes' order.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) entered: Vec<Finding>,
    /// Whether nodes refuse the identity and look for no other.
    pub(super) ends_scan: bool,
}

impl Findings {
    pub(super) fn holds(&mut self, check: Check) {
        self.add(check, Outcome::Holds, Some(true));
    }

    /// Reports a failure that makes nodes refuse the identity.
    pub(super) fn refused(&mut self, check: Check, reason: impl Into<String>) {
        self.add(check, Outcome::Fails(reason.into()), Some(false));
    }

    /// Reports a failure that makes nodes fail, so that they look at no further output. Nodes do
    /// not get there if they have refused the identity before.
    pub(super) fn ends_scan(&mut self, check: Check, reason: impl Into<String>) {
        self.ends_scan |= self.entered.iter().all(|finding| finding.passes_node != Some(false));
        self.refused(check, reason);
    }

    /// Reports a failure that nodes tolerate.
    pub(super) fn fails(&mut self, check: Check, reason: impl Into<String>) {
        self.add(check, Outcome::Fails(reason.into()), Some(true));
    }

    /// Reports a check that could not be made, and that nodes do not make.
    pub(super) fn unchecked(&mut self, check: Check, reason: impl Into<String>) {
        self.add(check, Outcome::Unchecked(reason.into()), Some(true));
    }

    /// Reports a check that could not be made, but that nodes make.
    pub(super) fn unknown(&mut self, check: Check, reason: impl Into<String>) {
        self.add(check, Outcome::Unchecked(reason.into()), None);
    }

    pub(super) fn add(&mut self, check: Check, outcome: Outcome, passes_node: Option<bool>) {
        self.entered.push(Finding { check, outcome, passes_node });
    }
}
