use std::fmt;

use bsv_tx::{BlockHash, OutPoint, PublicKey, Txid};

use crate::data_refs::DataRef;

/// What is checked of an identity in a block. The names, as [`Check::name`] gives them, are stable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Check {
    /// The header's hash meets the target that the header states.
    ProofOfWork,
    /// The coinbase transaction is one, and its Merkle branch leads to the header's root.
    CoinbaseInclusion,
    /// The output script in the coinbase transaction is of the protocol's form.
    OutputScript,
    /// The miner-info transaction is the one that the coinbase transaction names, and its output
    /// script is of the protocol's form (1.0).
    MinerInfoTransaction,
    /// The miner-info transaction is in the block (1.0).
    MinerInfoInclusion,
    /// The document has all its members, once and of the right types.
    Document,
    /// The document is signed by the miner id that it names. Of generation 1.0 nodes do not check
    /// it.
    DocumentSignature,
    /// The dynamic document is signed by its key (0.2).
    DynamicDocument,
    /// The document's height is the block's. Of generation 1.0 nodes do not check it.
    Height,
    /// The previous miner id has signed the miner id.
    MinerIdSuccession,
    /// The previous revocation key has signed the revocation key (1.0).
    RevocationKeySuccession,
    /// The revocation is signed by the revocation key and the previous miner id, and no revocation
    /// key is rolled with it (1.0).
    Revocation,
    /// The document (0.2) or the coinbase transaction (1.0) is bound to this very block. Of
    /// generation 0.2 it is optional, and nodes do not check it.
    BlockBinding,
    /// The block binding is signed by the miner id (1.0).
    BlockBindingSignature,
    /// The validity check output is unspent (0.2). Nodes do not check it, but read its index.
    Vctx,
    /// The references to data are of the protocol's form, and lead to data where their
    /// transactions are at hand.
    DataRefs,
}

impl Check {
    /// The stable name.
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

    /// Whether an identity cannot be called valid while this could not be checked. The state of a
    /// validity check output and the data behind references depend on more than the block.
    pub fn is_required(self) -> bool {
        !matches!(self, Self::Vctx | Self::DataRefs)
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What a check came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It holds.
    Holds,
    /// It does not hold, for this reason. The reason may quote what others wrote.
    Fails(String),
    /// It could not be checked, for this reason.
    Unchecked(String),
}

/// A line of a [`Report`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was checked.
    pub check: Check,
    /// What it came to.
    pub outcome: Outcome,
    /// Whether a node takes the identity as far as this goes; `None` where that is not known.
    pub passes_node: Option<bool>,
}

/// The generations of the protocol, which differ in where the document is.
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

/// What a document says, whether or not it is to be believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The document's version.
    pub version: String,
    /// The miner id that signs the document.
    pub miner_id: PublicKey,
    /// The one before; the same, where it is not a new one.
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
    /// The current one.
    pub current: PublicKey,
    /// The one before; the same, where it is not a new one.
    pub previous: PublicKey,
}

impl RevocationKeys {
    /// Whether the current key is a new one.
    pub fn is_roll(&self) -> bool {
        self.current != self.previous
    }
}

/// An output that means to carry an identity, and what was found of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The index of the output in the coinbase transaction.
    pub output: usize,
    /// The generation that the output is of.
    pub generation: Generation,
    /// The miner-info transaction that it refers to (1.0).
    pub miner_info: Option<Txid>,
    /// What its document says, where that can be read.
    pub claim: Option<Claim>,
    /// What was checked, in the order of the protocol.
    pub findings: Vec<Finding>,
    /// Whether nodes look at no output after this one, should they refuse it.
    pub(super) ends_scan: bool,
}

impl Candidate {
    /// Whether a node takes this identity, as far as its rules can be told from the block alone;
    /// `None` where not all is at hand that a node looks at.
    pub fn passes_node(&self) -> Option<bool> {
        all(self.findings.iter().map(|finding| finding.passes_node))
    }
}

/// What all this comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The block carries an identity, and all that must hold of it holds.
    Valid,
    /// The block carries what means to be an identity, and something does not hold.
    Invalid,
    /// Nothing fails, but something that must hold could not be checked.
    Undecided,
    /// No output of the coinbase transaction means to carry an identity.
    NoIdentity,
}

impl Verdict {
    /// The stable name.
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

/// What was found of the identity in a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The hash of the header.
    pub block: BlockHash,
    /// The height that documents were compared with, if it is known.
    pub height: Option<u32>,
    /// What was found of the block itself.
    pub findings: Vec<Finding>,
    /// The outputs that mean to carry an identity, in their order, up to the one that counts.
    pub candidates: Vec<Candidate>,
}

impl Report {
    /// The output that counts: the first that a node does not refuse. Nodes look no further.
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

    /// What the identity is, if the verdict is [`Verdict::Valid`].
    pub fn identity(&self) -> Option<&Claim> {
        self.claim().filter(|_| self.verdict() == Verdict::Valid)
    }

    /// What the document of the output that counts says, believed or not.
    pub fn claim(&self) -> Option<&Claim> {
        self.chosen()?.claim.as_ref()
    }

    /// Whether a node takes an identity from this block, as far as its rules can be told from the
    /// block alone; its database may still refuse what does not go with what it has seen before
    /// ([`Ledger`](crate::Ledger)). `None` where not all is at hand that a node looks at.
    ///
    /// The rules are those of node 1.2.2, but for two things that nobody does, which count as refused:
    /// keys of 0.2 documents that are not compressed, and new revocation keys that are no point of the
    /// curve.
    pub fn passes_node(&self) -> Option<bool> {
        let block = all(self.findings.iter().map(|finding| finding.passes_node));
        let candidate = self.chosen().map_or(Some(false), Candidate::passes_node);
        all([block, candidate])
    }
}

/// A text that somebody else wrote, as a reason may quote it.
pub(super) fn quoted(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("\"{}…\"", &text[..end]),
        None => format!("\"{text}\""),
    }
}

/// One no is a no; one unknown is unknown.
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

/// Findings as they are made, those that nodes make in the order in which nodes do.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) entered: Vec<Finding>,
    /// Whether nodes, which refuse the identity, look for no other.
    pub(super) ends_scan: bool,
}

impl Findings {
    pub(super) fn holds(&mut self, check: Check) {
        self.add(check, Outcome::Holds, Some(true));
    }

    /// Something fails that nodes refuse too.
    pub(super) fn refused(&mut self, check: Check, reason: impl Into<String>) {
        self.add(check, Outcome::Fails(reason.into()), Some(false));
    }

    /// Something fails over which nodes fail themselves, so that they look at no further output;
    /// unless they have refused the identity before they come to it.
    pub(super) fn ends_scan(&mut self, check: Check, reason: impl Into<String>) {
        self.ends_scan |= self.entered.iter().all(|finding| finding.passes_node != Some(false));
        self.refused(check, reason);
    }

    /// Something fails that nodes do not mind.
    pub(super) fn fails(&mut self, check: Check, reason: impl Into<String>) {
        self.add(check, Outcome::Fails(reason.into()), Some(true));
    }

    /// Something could not be checked that nodes do not look at either.
    pub(super) fn unchecked(&mut self, check: Check, reason: impl Into<String>) {
        self.add(check, Outcome::Unchecked(reason.into()), Some(true));
    }

    /// Something could not be checked that nodes do look at.
    pub(super) fn unknown(&mut self, check: Check, reason: impl Into<String>) {
        self.add(check, Outcome::Unchecked(reason.into()), None);
    }

    pub(super) fn add(&mut self, check: Check, outcome: Outcome, passes_node: Option<bool>) {
        self.entered.push(Finding { check, outcome, passes_node });
    }
}
