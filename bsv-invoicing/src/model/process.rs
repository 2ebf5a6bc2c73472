//! The processes that have a wallet open, and the work that one of them does at a time.

/// Identifies a process that has a wallet open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessId([u8; 16]);

impl ProcessId {
    /// The process of a store that only one process at a time can open.
    pub const ALONE: Self = Self([0; 16]);

    /// The id of these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0
    }
}

/// Work that only one process does at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Task {
    /// Following the chain, and all that is done without a request: expiry, watching the mempool,
    /// sending to webhooks.
    Following,
    /// Offering the transaction with this number to the network.
    Offering(u64),
    /// Signing and recording a payment that spends the coins reserved under this number.
    Spending(u64),
    /// Making the payment whose name has this SHA-256 hash.
    Paying([u8; 32]),
    /// Moving the wallet to another store. No other process can open it meanwhile.
    Moving,
}

/// Who has a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claimed {
    /// The process.
    pub holder: ProcessId,
    /// Tells this claim from other claims of the same task by the same process.
    pub number: u64,
}

impl Task {
    /// Its kind and its subject, as they are stored.
    pub(crate) fn to_parts(self) -> (u8, [u8; 32]) {
        match self {
            Self::Following => (0, [0; 32]),
            Self::Offering(number) => (1, subject(number)),
            Self::Spending(number) => (2, subject(number)),
            Self::Paying(hash) => (3, hash),
            Self::Moving => (4, [0; 32]),
        }
    }

    /// The task of a stored kind and subject, if there is one.
    pub(crate) fn from_parts(kind: u8, subject: [u8; 32]) -> Option<Self> {
        let (zeros, number) = subject.split_at(SUBJECT_ZEROS);
        let number = number.try_into().ok().map(u64::from_be_bytes);
        let number = number.filter(|_| zeros.iter().all(|byte| *byte == 0));
        match kind {
            0 => number.filter(|number| *number == 0).map(|_| Self::Following),
            1 => number.map(Self::Offering),
            2 => number.map(Self::Spending),
            3 => Some(Self::Paying(subject)),
            4 => number.filter(|number| *number == 0).map(|_| Self::Moving),
            _ => None,
        }
    }
}

/// How many zeros come before the number of a subject.
const SUBJECT_ZEROS: usize = 24;

fn subject(number: u64) -> [u8; 32] {
    let mut subject = [0; 32];
    subject[SUBJECT_ZEROS..].copy_from_slice(&number.to_be_bytes());
    subject
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stored_task_is_the_task() {
        let tasks = [
            Task::Following,
            Task::Offering(0),
            Task::Offering(u64::MAX),
            Task::Spending(258),
            Task::Paying([7; 32]),
            Task::Moving,
        ];
        for task in tasks {
            let (kind, subject) = task.to_parts();
            assert_eq!(Task::from_parts(kind, subject), Some(task));
        }
    }

    #[test]
    fn what_is_no_task_is_refused() {
        for (kind, subject) in
            [(0, subject(1)), (1, [1; 32]), (2, [1; 32]), (4, [1; 32]), (5, [0; 32])]
        {
            assert_eq!(Task::from_parts(kind, subject), None);
        }
    }
}
