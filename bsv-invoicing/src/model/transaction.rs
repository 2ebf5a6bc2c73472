//! The wallet's transactions: their states, and what follows from those.

use bsv_tx::{BlockHash, DecodeError, MerkleBranch, Transaction, TransactionView, Txid, sha256d};
use minicbor::{Decode, Encode};

use crate::model::coin::KeyPath;
use crate::model::time::Timestamp;

/// The block that a transaction is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct BlockPlace {
    /// Its hash.
    #[cbor(n(0), with = "crate::model::byte_members::block_hash")]
    pub hash: BlockHash,
    /// Its height.
    #[n(1)]
    pub height: u32,
}

/// A proof that a transaction is in a block of the main chain. It was checked against the block's
/// header.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct Proof {
    /// The block.
    #[n(0)]
    pub block: BlockPlace,
    /// The Merkle branch from the transaction to the Merkle root of the block.
    #[cbor(n(1), with = "crate::model::byte_members::merkle_branch")]
    pub branch: MerkleBranch,
}

/// A proof as the payer can read it.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode)]
pub struct FoundProof {
    /// Its number among the transaction's proofs, from 1 on.
    #[n(0)]
    pub sequence: u32,
    /// The proof.
    #[n(1)]
    pub proof: Proof,
    /// When it was found.
    #[n(2)]
    pub found_at: Timestamp,
    /// Whether the payer has read it.
    #[n(3)]
    pub is_read: bool,
}

/// What a transaction is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum Purpose {
    /// It was offered as a payment of the invoice of this number.
    #[n(0)]
    Incoming(#[n(0)] u64),
    /// It is the payment by the wallet of this number.
    #[n(1)]
    Outgoing(#[n(0)] u64),
    /// It takes a coin back from the payment by the wallet of this number.
    #[n(2)]
    Cancellation(#[n(0)] u64),
    /// The network showed it before anybody offered it.
    #[n(3)]
    Found,
    /// It is the coinbase transaction of a block. Its outputs can be spent [`COINBASE_MATURITY`]
    /// blocks later.
    #[n(4)]
    Coinbase,
}

/// How many blocks after the block of a coinbase transaction its outputs can be spent.
pub const COINBASE_MATURITY: u32 = 100;

/// The state of a transaction. The tables in the documentation of [`ledger`](crate::ledger) say
/// what each state means for receipts and coins, and what changes one state to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub enum TransactionState {
    /// Its bytes are stored, and the network has not shown it yet.
    #[n(0)]
    Offered,
    /// The payee has agreed to this payment by the wallet, and the network has not shown it yet.
    #[n(1)]
    Unseen,
    /// It is in the mempool, but only a block makes it count: see [`WaitReason`].
    #[n(2)]
    Waiting,
    /// It is in the mempool, and its fee is sufficient.
    #[n(3)]
    Seen,
    /// It is in this block of the main chain.
    #[n(4)]
    Mined(#[n(0)] BlockPlace),
    /// The network showed it before. Now it is neither in the mempool nor in a block, and no
    /// transaction in the chain spends the same coins.
    #[n(5)]
    Contested {
        /// Whether an event of this was written.
        #[n(0)]
        told: bool,
    },
    /// Another transaction in the chain spends the same coins.
    #[n(6)]
    Displaced,
    /// The network refused the transaction itself at several tips in a row, or it had shown the
    /// transaction and refused it when the wallet offered it again. Or it is the coinbase
    /// transaction of a block that has left the main chain.
    #[n(7)]
    Invalid,
    /// The network or the payee did not take it.
    #[n(8)]
    Refused,
    /// The wallet cancelled it: a cancellation spent one of its coins.
    #[n(9)]
    Cancelled,
}

impl TransactionState {
    /// Whether its receipts count in the balance and towards invoices.
    pub fn counts(self) -> bool {
        matches!(self, Self::Seen | Self::Mined(_) | Self::Contested { .. })
    }

    /// Whether its receipts can be spent.
    pub fn can_be_spent(self) -> bool {
        matches!(self, Self::Seen | Self::Mined(_))
    }

    /// Whether the coins that it spends are spent.
    pub fn spends(self) -> bool {
        self == Self::Waiting || self.counts()
    }

    /// Whether it may be on its way to the network, which has not shown it yet.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Offered | Self::Unseen)
    }

    /// Whether it counts as lost. It comes back if the network shows it.
    pub fn is_lost(self) -> bool {
        matches!(self, Self::Displaced | Self::Invalid | Self::Refused | Self::Cancelled)
    }

    /// What the network has shown of a transaction in this state.
    fn shown(self) -> ShownAs {
        match self {
            Self::Mined(_) => ShownAs::Mined,
            Self::Seen | Self::Contested { .. } => ShownAs::Seen,
            Self::Waiting => ShownAs::Waiting,
            _ => ShownAs::Nothing,
        }
    }

    /// The block that it is in.
    pub fn block(self) -> Option<BlockPlace> {
        match self {
            Self::Mined(block) => Some(block),
            _ => None,
        }
    }
}

/// The most that the network has ever shown of a transaction. This only rises, whatever becomes of
/// the transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
#[cbor(index_only)]
pub enum ShownAs {
    /// Nothing.
    #[default]
    #[n(0)]
    Nothing,
    /// It was in the mempool, always with a fee that may be too low.
    #[n(1)]
    Waiting,
    /// It was in the mempool with a sufficient fee. It does not wait for a higher fee any more: a
    /// reorganisation may return its parents to the mempool, and an operator may raise the rate.
    #[n(2)]
    Seen,
    /// It was in a block of the main chain.
    #[n(3)]
    Mined,
}

/// A transaction's id and bytes, for the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedTransaction {
    /// Its id.
    pub txid: Txid,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

impl EncodedTransaction {
    /// What the transaction spends and pays.
    pub fn view(&self) -> Result<TransactionView<'_>, DecodeError> {
        TransactionView::from_bytes(&self.bytes)
    }
}

impl From<&Transaction> for EncodedTransaction {
    fn from(transaction: &Transaction) -> Self {
        let bytes = transaction.to_bytes();
        Self { txid: Txid::from_bytes(sha256d(&bytes)), bytes }
    }
}

impl Purpose {
    /// Whether the transaction comes from outside, so that this wallet did not make it.
    pub fn is_from_outside(self) -> bool {
        matches!(self, Self::Incoming(_) | Self::Found | Self::Coinbase)
    }
}

/// What the wallet knows about a transaction, besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Encode, Decode)]
pub struct TransactionRecord {
    /// The transaction.
    #[cbor(n(0), with = "crate::model::byte_members::txid")]
    pub txid: Txid,
    /// What it is for.
    #[n(1)]
    pub purpose: Purpose,
    /// Its state.
    #[n(2)]
    pub state: TransactionState,
    /// The most that the network has ever shown of it.
    #[n(3)]
    pub shown: ShownAs,
    /// What it pays to scripts of the wallet, or to the payee, in satoshis.
    #[n(4)]
    pub satoshis: u64,
    /// When it arrived, or when the wallet made it. One that arrived while the clock was doubted has
    /// the time since which the clock was doubted.
    #[n(5)]
    pub at: Timestamp,
    /// Whether the wallet keeps its bytes.
    #[n(6)]
    pub raw: RawBytes,
    /// What is known of it if services tell of it. `None` if nobody has told of it yet, and once a node
    /// has judged it.
    #[n(7)]
    pub word: Option<Word>,
}

/// What is known of a transaction that services tell of, and that no node has judged since.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Encode, Decode)]
pub struct Word {
    /// Whether another transaction is known that spends one of its coins. Then only a block decides
    /// whether it counts.
    #[n(0)]
    pub has_rival: bool,
    /// Why it waits if it does, and has no rival.
    #[n(1)]
    pub waits_for: WaitReason,
}

/// Why a transaction that the network has does not count before it is in a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Encode, Decode)]
#[cbor(index_only)]
pub enum WaitReason {
    /// Its fee may be too low.
    #[default]
    #[n(0)]
    LowFee,
    /// So much counts by the word of services alone that the limit is reached.
    #[n(1)]
    Exposure,
    /// It is not known where the coins come from that it spends.
    #[n(2)]
    UnknownCoins,
    /// Another transaction spends one of its coins.
    #[n(3)]
    Rival,
}

/// Whether the wallet keeps the bytes of a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Encode, Decode)]
#[repr(u8)]
#[cbor(index_only)]
pub enum RawBytes {
    /// They are short, and stay for ever.
    #[n(0)]
    Short = 0,
    /// They stay as long as somebody may need them: see [`DropBytes`](crate::ledger::DropBytes).
    #[n(1)]
    Long = 1,
    /// They are dropped.
    #[n(2)]
    Dropped = 2,
}

/// The longest transaction whose bytes stay for ever, in bytes.
const MAX_SHORT_LEN: usize = 100_000;

impl RawBytes {
    /// Of a transaction whose bytes are stored now.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        if bytes.len() > MAX_SHORT_LEN { Self::Long } else { Self::Short }
    }
}

impl TransactionRecord {
    /// The record after a change of the state.
    pub(crate) fn in_state(self, state: TransactionState) -> Self {
        Self { state, shown: self.shown.max(state.shown()), ..self }
    }

    /// Why it waits, if it does.
    pub fn wait_reason(&self) -> WaitReason {
        match self.word {
            None => WaitReason::LowFee,
            Some(word) if word.has_rival => WaitReason::Rival,
            Some(word) => word.waits_for,
        }
    }

    /// The record if it waits for a reason that services give.
    pub(crate) fn waiting_for(self, reason: WaitReason) -> Self {
        let word = self.word.map(|word| Word { waits_for: reason, ..word });
        Self { word, ..self }
    }

    /// Whether only a block decides between it and another transaction that spends one of its coins.
    pub fn has_rival(&self) -> bool {
        self.word.is_some_and(|word| word.has_rival)
    }

    /// The record if services tell of it, unless they already do.
    pub(crate) fn with_word(self) -> Self {
        Self { word: self.word.or(Some(Word::default())), ..self }
    }

    /// The record after it was found to have a rival. `before` is the record before the same step.
    pub(crate) fn with_rival(self, before: &Self) -> Self {
        let word = Some(Word { has_rival: true, ..self.word.unwrap_or_default() });
        match self.state {
            TransactionState::Seen if before.state.counts() => {
                Self { word, ..self }.in_state(TransactionState::Contested { told: false })
            }
            TransactionState::Seen => {
                let shown = before.shown.max(ShownAs::Waiting);
                Self { word, state: TransactionState::Waiting, shown, ..self }
            }
            _ => Self { word, ..self },
        }
    }

    /// Whether a node has shown it, and nothing else has, and no block holds it.
    pub(crate) fn is_judged(&self) -> bool {
        self.word.is_none() && self.state.spends() && self.state.block().is_none()
    }

    /// Whether the network has it by the word of services, and in no block.
    pub(crate) fn is_by_word(&self) -> bool {
        self.word.is_some() && self.state.spends() && self.state.block().is_none()
    }

    /// Whether its receipts can be spent. Those that a stranger makes must be in a block if only services
    /// tell of it.
    pub fn can_be_spent(&self) -> bool {
        let is_own = !self.purpose.is_from_outside();
        self.state.can_be_spent() && (!self.is_by_word() || (is_own && !self.has_rival()))
    }

    /// Whether the coins that it spends are listed, so that rivals are found: only services tell of it,
    /// and it may still be mined. Anybody can make a transaction that spends coins of which nothing is
    /// known, so it must be shown first.
    pub(crate) fn lists_coins(&self) -> bool {
        self.purpose != Purpose::Coinbase
            && self.word.is_some()
            && (self.state.spends() || self.are_coins_known())
            && self.state.block().is_none()
            && !self.state.is_lost()
    }

    /// Whether it is known which coins it spends, as far as that matters with services.
    pub(crate) fn are_coins_known(&self) -> bool {
        self.word.is_none_or(|word| word.waits_for != WaitReason::UnknownCoins)
    }

    /// The record of a payment that is offered to services.
    pub(crate) fn offered_to_services(self, are_coins_known: bool) -> Self {
        match are_coins_known {
            true => self.with_word().waiting_for(WaitReason::LowFee),
            false => self.with_word().waiting_for(WaitReason::UnknownCoins),
        }
    }

    /// Whether the network has shown it at any time.
    pub fn was_seen(&self) -> bool {
        self.shown > ShownAs::Nothing
    }

    /// Whether it holds the coins that it spends, so that no other transaction may spend them. Of
    /// two that are rivals only one does.
    pub fn holds_coins(&self) -> bool {
        let is_payment = matches!(self.purpose, Purpose::Outgoing(_));
        self.state.spends() || (is_payment && self.state.is_open())
    }
}

/// Until when a transaction is followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Encode, Decode)]
pub enum FollowedUntil {
    /// Until this moment.
    #[n(0)]
    Time(#[n(0)] Timestamp),
    /// Until a block holds it.
    #[n(1)]
    Mined,
}

/// A transaction that the wallet follows, because the wallet does not know yet whether the network
/// takes it, or has no proof yet that it is in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed {
    /// The number of the transaction.
    pub number: u64,
    /// The transaction.
    pub record: TransactionRecord,
    /// Until when it is followed.
    pub until: FollowedUntil,
    /// The first of the wallet's keys that it pays, if it is [waiting](TransactionState::Waiting).
    pub waits_for: Option<KeyPath>,
}
