//! Transactions with the ancestors that show where their coins are from (BRC-62, BRC-95, BRC-96).

mod assemble;
mod verify;

use std::collections::HashMap;

use thiserror::Error;

use crate::bump::{Bump, BumpError};
use crate::encode::{DecodeError, Reader, write_var_int};
use crate::hash::{Txid, sha256d};
use crate::transaction::Transaction;
pub use assemble::Ancestry;
pub use verify::{BeefVerificationError, Tip};

/// A transaction with its ancestors, back to mined ones and their Merkle paths, in Background Evaluation Extended
/// Format: version 1 (BRC-62) or 2 (BRC-96), either of them Atomic (BRC-95) or not.
///
/// What is read, or assembled, fits together: no transaction is there twice, each that is said to be mined is in
/// its Merkle path, and each other one stands behind all those that it spends. So all ancestors are there back to
/// those that are mined or that only their ids stand for. What the chain says about them, and the amounts, are
/// for [`Beef::verify`] to check. Scripts and the maturity of coinbases are for a node to judge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beef {
    version: BeefVersion,
    is_atomic: bool,
    bumps: Vec<Bump>,
    entries: Vec<Entry>,
    /// Where in `entries` each transaction stands.
    places: HashMap<Txid, usize>,
    /// Where in `entries` the transaction stands that it is about.
    subject: usize,
}

/// The version of a BEEF.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BeefVersion {
    /// BRC-62: all transactions are carried.
    V1,
    /// BRC-96: of transactions that the receiver holds the id suffices.
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
        /// Where in `bumps` its Merkle path stands.
        bump: usize,
    },
    /// The receiver is expected to hold it.
    TxidOnly,
}

/// Why bytes are not a BEEF, or transactions do not make one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BeefError {
    /// The bytes end early, go on after the end, or hold an integer in a longer form than it needs.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A Merkle path is not one.
    #[error("merkle path {index}: {error}")]
    Bump {
        /// Which one, from 0.
        index: usize,
        /// What is wrong with it.
        error: BumpError,
    },
    /// It is longer than [`Beef::MAX_LEN`].
    #[error("the beef has {0} bytes, more than 10,000,000")]
    TooLong(usize),
    /// It begins like no BEEF.
    #[error("a beef begins with 0100beef, 0200beef or 01010101, not with {}", hex::encode(.0))]
    UnknownVersion([u8; 4]),
    /// It has more transactions, or Merkle paths, than [`Beef::MAX_TRANSACTIONS`].
    #[error("the beef announces {0} {1}, more than 1,000")]
    TooMany(u64, &'static str),
    /// What stands with a transaction is of no known kind.
    #[error("a transaction in the beef is of the unknown kind {0}")]
    UnknownKind(u8),
    /// A transaction is there twice.
    #[error("the transaction {0} is in the beef twice")]
    Twice(Txid),
    /// A transaction is said to be in a Merkle path that is not there, or is not in it.
    #[error("the transaction {txid} is not in the merkle path {bump}")]
    NotInBump {
        /// The transaction.
        txid: Txid,
        /// The Merkle path, from 0.
        bump: u64,
    },
    /// A transaction without a Merkle path spends another one that is absent, or stands behind it.
    #[error(
        "the transaction {txid} has no merkle path, and {parent}, which it spends, does not stand before it"
    )]
    ParentNotBefore {
        /// The transaction.
        txid: Txid,
        /// The one that it spends.
        parent: Txid,
    },
    /// A transaction has no inputs, or no outputs.
    #[error("the transaction {0} lacks inputs or outputs")]
    Hollow(Txid),
    /// The transaction that it is about is not there, or only its id is.
    #[error("the beef lacks the transaction that it is about")]
    NoSubject,
    /// An Atomic BEEF has a transaction that is no ancestor of the one that it is about.
    #[error("the transaction {0} is no ancestor of the one that the atomic beef is about")]
    Unrelated(Txid),
    /// Version 1 has no way to leave out a transaction.
    #[error("the transaction {0} is known by its id only, which takes version 2 of beef")]
    TxidOnlyInV1(Txid),
}

/// What stands with a transaction: in version 1 behind it, in version 2 before it.
mod kind {
    pub(super) const UNMINED: u8 = 0;
    pub(super) const MINED: u8 = 1;
    pub(super) const TXID_ONLY: u8 = 2;
}

impl BeefVersion {
    /// What a BEEF of this version begins with.
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
    /// The most bytes that are read. A payment has no more (BRC-55).
    pub const MAX_LEN: usize = 10_000_000;

    /// The most transactions, and the most Merkle paths, that are read.
    pub const MAX_TRANSACTIONS: usize = 1000;

    /// What an Atomic BEEF begins with.
    pub(crate) const ATOMIC_MARKER: [u8; 4] = [1; 4];

    /// The version.
    pub fn version(&self) -> BeefVersion {
        self.version
    }

    /// Whether it is Atomic: it names the transaction that it is about and holds only that one's ancestors.
    pub fn is_atomic(&self) -> bool {
        self.is_atomic
    }

    /// The id of the transaction that it is about: the one that an Atomic BEEF names, else the last one.
    pub fn subject_txid(&self) -> Txid {
        self.entries[self.subject].txid
    }

    /// The transaction that it is about.
    pub fn subject(&self) -> &Transaction {
        self.entries[self.subject].transaction().expect("checked when it was made")
    }

    /// All transactions that it carries, mined and unmined.
    pub fn transactions(&self) -> impl Iterator<Item = (Txid, &Transaction)> {
        self.entries.iter().filter_map(|entry| Some((entry.txid, entry.transaction()?)))
    }

    /// The transactions without a Merkle path, parents before their children. Whoever broadcasts the subject
    /// broadcasts those before it too.
    pub fn unmined(&self) -> impl Iterator<Item = (Txid, &Transaction)> {
        self.entries.iter().filter_map(|entry| match &entry.content {
            Content::Unmined(transaction) => Some((entry.txid, transaction)),
            _ => None,
        })
    }

    /// Those of [`Beef::unmined`] that the subject builds on, directly or through each other.
    pub fn unmined_ancestors(&self) -> impl Iterator<Item = (Txid, &Transaction)> {
        let is_ancestor = self.ancestors(|entry| entry.bump().is_none());
        let ancestors =
            self.entries.iter().zip(is_ancestor).filter(|(_, is_ancestor)| *is_ancestor);
        ancestors.filter_map(|(entry, _)| match &entry.content {
            Content::Unmined(transaction) => Some((entry.txid, transaction)),
            _ => None,
        })
    }

    /// The transactions of which only the id is there, and which the receiver must hold.
    pub fn txid_only(&self) -> impl Iterator<Item = Txid> {
        let named = self.entries.iter().filter(|entry| entry.content == Content::TxidOnly);
        named.map(|entry| entry.txid)
    }

    /// The Merkle paths.
    pub fn bumps(&self) -> &[Bump] {
        &self.bumps
    }

    /// The same as Atomic BEEF, unless it holds a transaction that is no ancestor of its last one.
    pub fn into_atomic(self) -> Result<Self, BeefError> {
        self.check_atomic()?;
        Ok(Self { is_atomic: true, ..self })
    }

    /// Decodes a BEEF of any version, Atomic or not, that fills `bytes` to the last.
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

    /// The encoded BEEF, in the version and form in which it was read or made.
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

    /// Checks that the transactions fit together. `subject` is the one that an Atomic BEEF names.
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

    /// Checks that each transaction that is said to be mined is in its Merkle path.
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

    /// Which entries are ancestors of the subject, if one looks further at the ancestors of those only that `goes_on`
    /// says.
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
    /// `None` where only the id is there.
    fn transaction(&self) -> Option<&Transaction> {
        match &self.content {
            Content::Unmined(transaction) | Content::Mined { transaction, .. } => Some(transaction),
            Content::TxidOnly => None,
        }
    }

    /// Where in the BEEF's list its Merkle path stands.
    fn bump(&self) -> Option<usize> {
        match self.content {
            Content::Mined { bump, .. } => Some(bump),
            _ => None,
        }
    }

    /// The transactions that it spends, as far as that can be seen.
    fn parents(&self) -> impl Iterator<Item = Txid> {
        let inputs = self.transaction().map_or(&[][..], |transaction| &transaction.inputs);
        inputs.iter().map(|input| input.previous_output.txid)
    }

    /// Checks that it can be a transaction, and that all which it depends on is among the `places` of those
    /// before it.
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

/// Reads a list of at most as many items as there may be transactions.
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

/// Reads a transaction, and computes its id from the bytes as they stand.
fn read_transaction(reader: &mut Reader<'_>) -> Result<(Txid, Transaction), DecodeError> {
    let mut bytes = reader.clone();
    let transaction = Transaction::read(reader)?;
    let bytes = bytes.take(bytes.remaining() - reader.remaining())?;
    Ok((Txid::from_bytes(sha256d(bytes)), transaction))
}

#[cfg(test)]
mod tests;
