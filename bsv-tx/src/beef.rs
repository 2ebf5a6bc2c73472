//! Transactions with the ancestors that prove where their coins come from (BRC-62, BRC-95, BRC-96).

mod assemble;
mod verify;

use std::collections::HashMap;

use thiserror::Error;

use crate::bump::{Bump, BumpError};
use crate::encode::{DecodeError, Reader, write_var_int};
use crate::hash::{MerkleRoot, Txid, sha256d};
use crate::merkle::MerkleBranch;
use crate::transaction::Transaction;
pub use assemble::Ancestry;
pub use verify::{BeefVerificationError, Tip};

/// A transaction, its subject, with its ancestors back to mined ones and their Merkle paths, in
/// Background Evaluation Extended Format: version 1 (BRC-62) or 2 (BRC-96), either of them Atomic
/// (BRC-95) or not.
///
/// Every value of this type is consistent. No transaction occurs twice. Each transaction that is
/// marked as mined is in its Merkle path. Every other transaction follows all the transactions that
/// it spends. So the ancestors are complete, back to those that are mined or that only their ids
/// stand for. [`Beef::verify`] checks the claims about the chain, and the amounts. A node judges
/// scripts and the maturity of coinbases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beef {
    version: BeefVersion,
    is_atomic: bool,
    bumps: Vec<Bump>,
    entries: Vec<Entry>,
    /// The index in `entries` of each transaction.
    places: HashMap<Txid, usize>,
    /// The index in `entries` of the subject.
    subject: usize,
}

/// The version of a BEEF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BeefVersion {
    /// BRC-62: the BEEF carries all transactions.
    V1,
    /// BRC-96: an id is enough for a transaction that the receiver holds.
    V2,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    txid: Txid,
    content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    Unmined(Transaction),
    Mined {
        transaction: Transaction,
        /// The index in `bumps` of the transaction's Merkle path.
        bump: usize,
    },
    /// Only the id. The receiver must hold the transaction.
    TxidOnly,
}

/// Why bytes are not a BEEF, or why transactions do not make one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BeefError {
    /// The bytes end early, go on after the end, or hold an integer in a longer form than it needs.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A Merkle path is malformed.
    #[error("merkle path {index}: {error}")]
    Bump {
        /// The index of the Merkle path, from 0.
        index: usize,
        /// What is wrong with the path.
        error: BumpError,
    },
    /// The BEEF is longer than [`Beef::MAX_LEN`].
    #[error("the beef has {0} bytes, more than 10,000,000")]
    TooLong(usize),
    /// The bytes begin with no known marker of a BEEF.
    #[error("a beef begins with 0100beef, 0200beef or 01010101, not with {}", hex::encode(.0))]
    UnknownVersion([u8; 4]),
    /// The BEEF announces more transactions, or more Merkle paths, than [`Beef::MAX_TRANSACTIONS`].
    #[error("the beef announces {0} {1}, more than 1,000")]
    TooMany(u64, &'static str),
    /// The byte that tells what stands with a transaction is unknown.
    #[error("a transaction in the beef is of the unknown kind {0}")]
    UnknownKind(u8),
    /// A transaction occurs twice.
    #[error("the transaction {0} is in the beef twice")]
    Twice(Txid),
    /// A transaction refers to a Merkle path that is absent or does not contain it.
    #[error("the transaction {txid} is not in the merkle path {bump}")]
    NotInBump {
        /// The transaction.
        txid: Txid,
        /// The index of the Merkle path, from 0.
        bump: u64,
    },
    /// A transaction without a Merkle path spends another transaction that is absent or follows it.
    #[error(
        "the transaction {txid} has no merkle path, and its parent {parent} does not precede it"
    )]
    ParentNotBefore {
        /// The transaction.
        txid: Txid,
        /// The transaction that it spends.
        parent: Txid,
    },
    /// A transaction has no inputs, or no outputs.
    #[error("the transaction {0} lacks inputs or outputs")]
    Hollow(Txid),
    /// The subject is absent, or only its id is there.
    #[error("the beef lacks its subject transaction")]
    NoSubject,
    /// An Atomic BEEF carries a transaction that is no ancestor of its subject.
    #[error("the transaction {0} is no ancestor of the subject of the atomic beef")]
    Unrelated(Txid),
    /// Version 1 cannot leave out a transaction.
    #[error("the transaction {0} is known only by its id, which needs version 2 of beef")]
    TxidOnlyInV1(Txid),
}

/// The byte that tells what stands with a transaction, after the transaction in version 1, and
/// before it in version 2.
mod kind {
    pub(super) const UNMINED: u8 = 0;
    pub(super) const MINED: u8 = 1;
    pub(super) const TXID_ONLY: u8 = 2;
}

impl BeefVersion {
    /// The bytes that a BEEF of this version begins with.
    pub(crate) fn marker(self) -> [u8; 4] {
        match self {
            Self::V1 => [1, 0, 0xbe, 0xef],
            Self::V2 => [2, 0, 0xbe, 0xef],
        }
    }

    pub(crate) fn of(marker: [u8; 4]) -> Option<Self> {
        [Self::V1, Self::V2].into_iter().find(|version| version.marker() == marker)
    }
}

impl Beef {
    /// The longest BEEF that is read, in bytes. BRC-55 limits a payment to the same length.
    pub const MAX_LEN: usize = 10_000_000;

    /// The largest number of transactions that is read, and of Merkle paths.
    pub const MAX_TRANSACTIONS: usize = 1000;

    /// The bytes that an Atomic BEEF begins with.
    pub(crate) const ATOMIC_MARKER: [u8; 4] = [1; 4];

    /// The version.
    pub fn version(&self) -> BeefVersion {
        self.version
    }

    /// Whether the BEEF is Atomic: it names its subject and carries only ancestors of the subject.
    pub fn is_atomic(&self) -> bool {
        self.is_atomic
    }

    /// The id of the subject: the transaction that an Atomic BEEF names, otherwise the last one.
    pub fn subject_txid(&self) -> Txid {
        self.entries[self.subject].txid
    }

    /// The subject.
    pub fn subject(&self) -> &Transaction {
        self.entries[self.subject].transaction().expect("checked when it was made")
    }

    /// All transactions that the BEEF carries, mined and unmined.
    pub fn transactions(&self) -> impl Iterator<Item = (Txid, &Transaction)> {
        self.entries.iter().filter_map(|entry| Some((entry.txid, entry.transaction()?)))
    }

    /// The transactions without a Merkle path, parents before their children. Whoever broadcasts
    /// the subject must broadcast its ancestors among them first.
    pub fn unmined(&self) -> impl Iterator<Item = (Txid, &Transaction)> {
        self.entries.iter().filter_map(|entry| match &entry.content {
            Content::Unmined(transaction) => Some((entry.txid, transaction)),
            _ => None,
        })
    }

    /// The transactions of [`Beef::unmined`] that the subject spends from, directly or through
    /// others.
    pub fn unmined_ancestors(&self) -> impl Iterator<Item = (Txid, &Transaction)> {
        let is_ancestor = self.ancestors(|entry| entry.bump().is_none());
        let ancestors =
            self.entries.iter().zip(is_ancestor).filter(|(_, is_ancestor)| *is_ancestor);
        ancestors.filter_map(|(entry, _)| match &entry.content {
            Content::Unmined(transaction) => Some((entry.txid, transaction)),
            _ => None,
        })
    }

    /// The ids that stand for transactions which the receiver must hold.
    pub fn txid_only(&self) -> impl Iterator<Item = Txid> {
        let named = self.entries.iter().filter(|entry| entry.content == Content::TxidOnly);
        named.map(|entry| entry.txid)
    }

    /// The Merkle paths.
    pub fn bumps(&self) -> &[Bump] {
        &self.bumps
    }

    /// The transactions that Merkle paths to this root of a block at this height prove.
    pub fn proved_by(
        &self,
        height: u32,
        root: MerkleRoot,
    ) -> impl Iterator<Item = (Txid, &Transaction)> {
        let is_proof = move |bump: usize| {
            let bump = &self.bumps[bump];
            (bump.height(), bump.root()) == (height, root)
        };
        let proved = self.entries.iter().filter(move |entry| entry.bump().is_some_and(is_proof));
        proved.filter_map(|entry| Some((entry.txid, entry.transaction()?)))
    }

    /// Whether the BEEF has a Merkle path for a transaction.
    pub fn is_mined(&self, txid: &Txid) -> bool {
        self.places.get(txid).is_some_and(|place| self.entries[*place].bump().is_some())
    }

    /// The height of the block that holds a transaction, and its branch in that block, if the BEEF has a
    /// Merkle path for it.
    pub fn branch(&self, txid: &Txid) -> Option<(u32, MerkleBranch)> {
        let bump = &self.bumps[self.entries[*self.places.get(txid)?].bump()?];
        Some((bump.height(), bump.branch(txid)?))
    }

    /// Makes this BEEF Atomic. Fails if it carries a transaction that is no ancestor of its last
    /// one.
    pub fn into_atomic(self) -> Result<Self, BeefError> {
        self.check_atomic()?;
        Ok(Self { is_atomic: true, ..self })
    }

    /// Decodes a BEEF of any version, Atomic or not. The BEEF must fill `bytes` to the last byte.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BeefError> {
        if bytes.len() > Self::MAX_LEN {
            return Err(BeefError::TooLong(bytes.len()));
        }
        let mut reader = Reader::new(bytes);
        let mut marker = reader.array()?;
        let mut subject = None;
        if marker == Self::ATOMIC_MARKER {
            subject = Some(Txid::from_bytes(reader.array()?));
            marker = reader.array()?;
        }
        let version = BeefVersion::of(marker).ok_or(BeefError::UnknownVersion(marker))?;
        let mut index = 0;
        let bumps = read_list(&mut reader, "merkle paths", |reader| {
            index += 1;
            Bump::read(reader).map_err(|error| BeefError::Bump { index: index - 1, error })
        })?;
        let entries =
            read_list(&mut reader, "transactions", |reader| Entry::read(reader, version))?;
        reader.finish()?;
        Self::checked(version, subject, bumps, entries)
    }

    /// The encoded BEEF, in its version and form.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if self.is_atomic {
            bytes.extend_from_slice(&Self::ATOMIC_MARKER);
            bytes.extend_from_slice(self.subject_txid().as_bytes());
        }
        bytes.extend_from_slice(&self.version.marker());
        write_var_int(&mut bytes, self.bumps.len() as u64);
        for bump in &self.bumps {
            bump.encode(&mut bytes);
        }
        write_var_int(&mut bytes, self.entries.len() as u64);
        for entry in &self.entries {
            entry.encode(self.version, &mut bytes);
        }
        bytes
    }

    /// Checks that the transactions fit together. `subject` is the transaction that an Atomic BEEF
    /// names.
    fn checked(
        version: BeefVersion,
        subject: Option<Txid>,
        bumps: Vec<Bump>,
        entries: Vec<Entry>,
    ) -> Result<Self, BeefError> {
        let mut places = HashMap::with_capacity(entries.len());
        for (place, entry) in entries.iter().enumerate() {
            entry.check(&places)?;
            if places.insert(entry.txid, place).is_some() {
                return Err(BeefError::Twice(entry.txid));
            }
        }
        let last = entries.last().map(|entry| entry.txid);
        let subject_place = subject.or(last).and_then(|txid| places.get(&txid).copied());
        let subject_place = subject_place
            .filter(|place| entries[*place].transaction().is_some())
            .ok_or(BeefError::NoSubject)?;
        let is_atomic = subject.is_some();
        let beef = Self { version, is_atomic, bumps, entries, places, subject: subject_place };
        beef.check_mined()?;
        if is_atomic {
            beef.check_atomic()?;
        }
        Ok(beef)
    }

    /// Checks that each transaction that is marked as mined is in its Merkle path.
    fn check_mined(&self) -> Result<(), BeefError> {
        let mut is_found = vec![false; self.entries.len()];
        for (index, bump) in self.bumps.iter().enumerate() {
            for place in bump.leaves().filter_map(|txid| self.places.get(&txid)) {
                is_found[*place] |= self.entries[*place].bump() == Some(index);
            }
        }
        for (entry, is_found) in self.entries.iter().zip(is_found) {
            if let (Some(bump), false) = (entry.bump(), is_found) {
                return Err(BeefError::NotInBump { txid: entry.txid, bump: bump as u64 });
            }
        }
        Ok(())
    }

    /// Checks that every transaction is the subject or one of its ancestors.
    fn check_atomic(&self) -> Result<(), BeefError> {
        let mut is_related = self.ancestors(|_| true);
        is_related[self.subject] = true;
        match is_related.iter().position(|is_related| !is_related) {
            Some(place) => Err(BeefError::Unrelated(self.entries[place].txid)),
            None => Ok(()),
        }
    }

    /// Marks the entries that are ancestors of the subject. The search goes on to the parents of an
    /// entry only where `goes_on` says so.
    fn ancestors(&self, goes_on: impl Fn(&Entry) -> bool) -> Vec<bool> {
        let mut is_ancestor = vec![false; self.entries.len()];
        let mut to_visit = vec![self.subject];
        while let Some(place) = to_visit.pop() {
            let entry = &self.entries[place];
            if !goes_on(entry) {
                continue;
            }
            for parent in entry.parents().filter_map(|txid| self.places.get(&txid)) {
                if !is_ancestor[*parent] {
                    is_ancestor[*parent] = true;
                    to_visit.push(*parent);
                }
            }
        }
        is_ancestor
    }
}

impl Entry {
    /// The transaction, or `None` if only its id is there.
    fn transaction(&self) -> Option<&Transaction> {
        match &self.content {
            Content::Unmined(transaction) | Content::Mined { transaction, .. } => Some(transaction),
            Content::TxidOnly => None,
        }
    }

    /// The index of the transaction's Merkle path in the BEEF's list.
    fn bump(&self) -> Option<usize> {
        match self.content {
            Content::Mined { bump, .. } => Some(bump),
            _ => None,
        }
    }

    /// The transactions that this one spends; none if only its id is there.
    fn parents(&self) -> impl Iterator<Item = Txid> {
        let inputs = self.transaction().map_or(&[][..], |transaction| &transaction.inputs);
        inputs.iter().map(|input| input.previous_output.txid)
    }

    /// Checks that the transaction has inputs and outputs. Checks for an unmined one that all its
    /// parents are among `places`, the places of the entries before it.
    fn check(&self, places: &HashMap<Txid, usize>) -> Result<(), BeefError> {
        let is_hollow = |transaction: &Transaction| {
            transaction.inputs.is_empty() || transaction.outputs.is_empty()
        };
        if self.transaction().is_some_and(is_hollow) {
            return Err(BeefError::Hollow(self.txid));
        }
        if !matches!(self.content, Content::Unmined(_)) {
            return Ok(());
        }
        match self.parents().find(|parent| !places.contains_key(parent)) {
            Some(parent) => Err(BeefError::ParentNotBefore { txid: self.txid, parent }),
            None => Ok(()),
        }
    }

    fn read(reader: &mut Reader<'_>, version: BeefVersion) -> Result<Self, BeefError> {
        match version {
            BeefVersion::V1 => {
                let (txid, transaction) = read_transaction(reader)?;
                let [kind] = reader.array()?;
                let bump = read_bump_index(reader, kind)?;
                Self::carried(txid, transaction, bump)
            }
            BeefVersion::V2 => {
                let [kind] = reader.array()?;
                if kind == kind::TXID_ONLY {
                    let txid = Txid::from_bytes(reader.array()?);
                    return Ok(Self { txid, content: Content::TxidOnly });
                }
                let bump = read_bump_index(reader, kind)?;
                let (txid, transaction) = read_transaction(reader)?;
                Self::carried(txid, transaction, bump)
            }
        }
    }

    fn carried(txid: Txid, transaction: Transaction, bump: Option<u64>) -> Result<Self, BeefError> {
        let Some(bump) = bump else {
            return Ok(Self { txid, content: Content::Unmined(transaction) });
        };
        let bump = usize::try_from(bump).map_err(|_| BeefError::NotInBump { txid, bump })?;
        Ok(Self { txid, content: Content::Mined { transaction, bump } })
    }

    fn encode(&self, version: BeefVersion, out: &mut Vec<u8>) {
        if let (BeefVersion::V1, Some(transaction)) = (version, self.transaction()) {
            transaction.encode(out);
        }
        match &self.content {
            Content::Unmined(_) => out.push(kind::UNMINED),
            Content::Mined { bump, .. } => {
                out.push(kind::MINED);
                write_var_int(out, *bump as u64);
            }
            Content::TxidOnly => {
                out.push(kind::TXID_ONLY);
                out.extend_from_slice(self.txid.as_bytes());
            }
        }
        if let (BeefVersion::V2, Some(transaction)) = (version, self.transaction()) {
            transaction.encode(out);
        }
    }
}

/// Reads a list of at most [`Beef::MAX_TRANSACTIONS`] items.
fn read_list<T>(
    reader: &mut Reader<'_>,
    what: &'static str,
    mut item: impl FnMut(&mut Reader<'_>) -> Result<T, BeefError>,
) -> Result<Vec<T>, BeefError> {
    let count = reader.var_int()?;
    if count > Beef::MAX_TRANSACTIONS as u64 {
        return Err(BeefError::TooMany(count, what));
    }
    (0..count).map(|_| item(reader)).collect()
}

fn read_bump_index(reader: &mut Reader<'_>, kind: u8) -> Result<Option<u64>, BeefError> {
    match kind {
        kind::UNMINED => Ok(None),
        kind::MINED => Ok(Some(reader.var_int()?)),
        unknown => Err(BeefError::UnknownKind(unknown)),
    }
}

/// Reads a transaction, and computes its id from the bytes that were read.
fn read_transaction(reader: &mut Reader<'_>) -> Result<(Txid, Transaction), DecodeError> {
    let mut bytes = reader.clone();
    let transaction = Transaction::read(reader)?;
    let bytes = bytes.take(bytes.remaining() - reader.remaining())?;
    Ok((Txid::from_bytes(sha256d(bytes)), transaction))
}

#[cfg(test)]
mod tests;
