use crate::beef::{Beef, BeefError, BeefVersion};
use crate::extended::ExtendedTransaction;
use crate::transaction::Transaction;

/// The forms in which programs exchange transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TransactionForm {
    /// The form in blocks (BRC-12).
    Raw,
    /// With the outputs that the transaction spends (BRC-30).
    Extended,
    /// With its ancestors (BRC-62, BRC-96).
    Beef(BeefVersion),
    /// With its ancestors and nothing else (BRC-95).
    AtomicBeef,
}

/// A transaction in one of the forms in which programs exchange it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FormedTransaction {
    /// The form in blocks.
    Raw(Transaction),
    /// With the outputs that the transaction spends, which are not verified.
    Extended(ExtendedTransaction),
    /// With its ancestors, which are not verified.
    Beef(Beef),
}

impl TransactionForm {
    /// The name of the form in messages, with its article.
    pub fn name(self) -> &'static str {
        match self {
            Self::Raw => "a raw transaction",
            Self::Extended => "a transaction in extended format",
            Self::Beef(BeefVersion::V1) => "a BEEF of version 1",
            Self::Beef(BeefVersion::V2) => "a BEEF of version 2",
            Self::AtomicBeef => "an Atomic BEEF",
        }
    }

    /// Detects the form of `bytes` from their beginning. Bytes that begin like no other form count
    /// as raw.
    pub fn of(bytes: &[u8]) -> Self {
        let Some((marker, rest)) = bytes.split_first_chunk() else { return Self::Raw };
        match BeefVersion::of(*marker) {
            Some(version) => Self::Beef(version),
            None if *marker == Beef::ATOMIC_MARKER => Self::AtomicBeef,
            None if rest.starts_with(&ExtendedTransaction::MARKER) => Self::Extended,
            None => Self::Raw,
        }
    }
}

impl FormedTransaction {
    /// Decodes a transaction of any form that fills `bytes` to the last byte.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, BeefError> {
        let decoded = match TransactionForm::of(bytes) {
            TransactionForm::Raw => Transaction::from_bytes(bytes).map(Self::Raw),
            TransactionForm::Extended => ExtendedTransaction::from_bytes(bytes).map(Self::Extended),
            TransactionForm::Beef(_) | TransactionForm::AtomicBeef => {
                return Beef::from_bytes(bytes).map(Self::Beef);
            }
        };
        Ok(decoded?)
    }

    /// The transaction, encoded in its form.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Raw(transaction) => transaction.to_bytes(),
            Self::Extended(extended) => extended.to_bytes(),
            Self::Beef(beef) => beef.to_bytes(),
        }
    }

    /// The transaction itself. For a BEEF, that is its subject.
    pub fn transaction(&self) -> &Transaction {
        match self {
            Self::Raw(transaction) => transaction,
            Self::Extended(extended) => extended.transaction(),
            Self::Beef(beef) => beef.subject(),
        }
    }

    /// Takes the transaction itself and drops the rest.
    pub fn into_transaction(self) -> Transaction {
        match self {
            Self::Raw(transaction) => transaction,
            Self::Extended(extended) => extended.into_parts().0,
            Self::Beef(beef) => beef.subject().clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_form_has_a_name_in_messages() {
        for (form, name) in [
            (TransactionForm::Raw, "a raw transaction"),
            (TransactionForm::Extended, "a transaction in extended format"),
            (TransactionForm::Beef(BeefVersion::V1), "a BEEF of version 1"),
            (TransactionForm::Beef(BeefVersion::V2), "a BEEF of version 2"),
            (TransactionForm::AtomicBeef, "an Atomic BEEF"),
        ] {
            assert_eq!(form.name(), name);
        }
    }

    #[test]
    fn the_first_bytes_tell_the_form() {
        use TransactionForm::{AtomicBeef, Extended, Raw};
        for (bytes, form) in [
            ("", Raw),
            ("0100be", Raw),
            ("0100beef", TransactionForm::Beef(BeefVersion::V1)),
            ("0200beef", TransactionForm::Beef(BeefVersion::V2)),
            ("0300beef", Raw),
            ("01010101", AtomicBeef),
            ("0100000001", Raw),
            ("010000000000000000", Raw),
            ("010000000000000000ee", Raw),
            ("010000000000000000ef", Extended),
            ("020000000000000000ef00", Extended),
        ] {
            assert_eq!(TransactionForm::of(&hex::decode(bytes).unwrap()), form, "{bytes}");
        }
    }

    #[test]
    fn nothing_is_read_in_another_form_than_it_begins_with() {
        for bytes in ["", "0100beef", "010000000000000000ef", "01010101", "01000000"] {
            let bytes = hex::decode(bytes).unwrap();
            assert!(FormedTransaction::from_bytes(&bytes).is_err(), "{bytes:?}");
        }
        let raw = hex::decode("01000000000000000000").unwrap();
        let read = FormedTransaction::from_bytes(&raw).unwrap();
        assert!(matches!(&read, FormedTransaction::Raw(transaction) if transaction.version == 1));
        assert_eq!(read.to_bytes(), raw);
    }
}
