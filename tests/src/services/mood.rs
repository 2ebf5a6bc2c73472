//! How a service behaves.

use std::collections::BTreeMap;
use std::time::Duration;

use bsv_tx::Txid;

/// How a service behaves. By default it is honest.
#[derive(Clone, Debug)]
pub struct Mood {
    /// Whether the node gets what the service takes. A transaction that it does not get stays
    /// `RECEIVED` until it is submitted again.
    pub relays: bool,
    /// Refuses each transaction at once, with this code of ARC, and forgets it.
    pub refuses: Option<u16>,
    /// Says this of each transaction that is not mined.
    pub says: Option<Word>,
    /// Says this of single transactions that are not mined.
    pub says_of: BTreeMap<Txid, Word>,
    /// Shows this `extraInfo` with each state.
    pub extra_info: Option<String>,
    /// Names this transaction in place of the one that a question is about.
    pub other_txid: Option<Txid>,
    /// The Merkle paths that it gives.
    pub path: Path,
    /// Whether it goes on to say `MINED` of a transaction whose block has left the chain.
    pub keeps_orphans: bool,
    /// Answers each request with this HTTP status, and with these seconds in `Retry-After`.
    pub condition: Option<(u16, Option<u32>)>,
    /// Answers 401 to requests without this key.
    pub api_key: Option<String>,
    /// Answers each request this much later.
    pub delay: Duration,
    /// Cuts each connection.
    pub cut: Option<Cut>,
    /// Answers this in place of each JSON.
    pub nonsense: Option<String>,
    /// What it does with callbacks.
    pub callbacks: Callbacks,
    /// Whether streams stay open without a word. What they miss is in the log of events.
    pub is_mute: bool,
    /// Hides so many blocks at the end of the chain of headers.
    pub withheld: usize,
    /// Whether it does not tell how far it knows the chain.
    pub tells_no_height: bool,
    /// Alters the last header that it shows.
    pub altered: Option<HeaderPart>,
    /// The lowest fee: satoshis, for so many bytes.
    pub fee: (u64, u64),
    /// How many seconds its clock is ahead.
    pub clock: i64,
}

/// What a service says of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// The `txStatus`, which may be unknown to clients.
    pub status: &'static str,
    /// The code of a refusal. Only Arcade shows it.
    pub code: Option<u16>,
    /// The `extraInfo`.
    pub extra_info: &'static str,
}

/// The Merkle path of a mined transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Path {
    /// The right one.
    #[default]
    Right,
    /// None.
    Missing,
    /// That of another transaction of the block.
    Foreign,
    /// One for another position in the block.
    Shifted,
    /// One for the next height.
    Lifted,
}

/// Where a connection breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// Before the service does anything.
    Request,
    /// After it has done everything, before its answer.
    Answer,
    /// In the middle of its answer.
    Body,
}

/// How a service delivers callbacks. It tries each once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Callbacks {
    /// In their order.
    #[default]
    Honest,
    /// Never.
    Dropped,
    /// Twice.
    Doubled,
    /// Each second one before the first.
    Reordered,
    /// Each after one that says that the transaction is mined in a block that does not exist.
    Forged,
}

/// A part of a header whose alteration makes the header invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderPart {
    /// The difficulty.
    Bits,
    /// The time.
    Time,
    /// The nonce.
    Nonce,
}

impl Word {
    /// This `txStatus`, and nothing else.
    pub fn of(status: &'static str) -> Self {
        Self { status, code: None, extra_info: "" }
    }
}

impl Default for Mood {
    fn default() -> Self {
        Self {
            relays: true,
            refuses: None,
            says: None,
            says_of: BTreeMap::new(),
            extra_info: None,
            other_txid: None,
            path: Path::default(),
            keeps_orphans: false,
            condition: None,
            api_key: None,
            delay: Duration::ZERO,
            cut: None,
            nonsense: None,
            callbacks: Callbacks::default(),
            is_mute: false,
            withheld: 0,
            tells_no_height: false,
            altered: None,
            fee: (100, 1000),
            clock: 0,
        }
    }
}
