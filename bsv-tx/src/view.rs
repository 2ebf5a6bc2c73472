use crate::encode::{DecodeError, Reader};
use crate::hash::{Txid, sha256d};
use crate::transaction::{OutPoint, TxIn, TxOut};

/// An encoded transaction that is read in place. No script is copied, so that a transaction of any
/// size takes only the memory of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransactionView<'a> {
    bytes: &'a [u8],
    inputs: List<'a>,
    outputs: List<'a>,
}

/// Encoded items, which were checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct List<'a> {
    count: u64,
    items: &'a [u8],
}

impl<'a> TransactionView<'a> {
    /// Takes a transaction that fills `bytes` to the last byte.
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let view = Self::read(&mut reader)?;
        reader.finish()?;
        Ok(view)
    }

    /// Takes a transaction from the front of `reader`, such as one of a block.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let mut all = reader.clone();
        reader.i32()?;
        let inputs = List::read(reader, TxIn::LEAST_LEN, |reader| input(reader).map(drop))?;
        let outputs = List::read(reader, TxOut::LEAST_LEN, |reader| output(reader).map(drop))?;
        reader.u32()?;
        let bytes = all.take(all.remaining() - reader.remaining())?;
        Ok(Self { bytes, inputs, outputs })
    }

    /// The encoded transaction.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The transaction id.
    pub fn txid(&self) -> Txid {
        Txid::from_bytes(sha256d(self.bytes))
    }

    /// The outputs that are spent, in the order of the inputs.
    pub fn spent(&self) -> impl Iterator<Item = OutPoint> + use<'a> {
        self.inputs.decoded(input)
    }

    /// The amount and the locking script of each output.
    pub fn outputs(&self) -> impl Iterator<Item = (u64, &'a [u8])> + use<'a> {
        self.outputs.decoded(output)
    }

    /// Whether this is the coinbase transaction of a block.
    pub fn is_coinbase(&self) -> bool {
        self.inputs.count == 1 && self.spent().next() == Some(OutPoint::NULL)
    }
}

impl<'a> List<'a> {
    fn read(
        reader: &mut Reader<'a>,
        least_size: usize,
        skip: impl Fn(&mut Reader<'a>) -> Result<(), DecodeError>,
    ) -> Result<Self, DecodeError> {
        let count = reader.var_int()?;
        let remaining = reader.remaining() as u64;
        let missing = count.saturating_mul(least_size as u64).saturating_sub(remaining);
        if missing > 0 {
            return Err(DecodeError::UnexpectedEnd { missing });
        }
        let mut items = reader.clone();
        (0..count).try_for_each(|_| skip(reader))?;
        Ok(Self { count, items: items.take(items.remaining() - reader.remaining())? })
    }

    fn decoded<T>(
        self,
        decode: impl Fn(&mut Reader<'a>) -> Result<T, DecodeError>,
    ) -> impl Iterator<Item = T> {
        let mut reader = Reader::new(self.items);
        (0..self.count).map(move |_| decode(&mut reader).expect("the items were checked"))
    }
}

fn input(reader: &mut Reader<'_>) -> Result<OutPoint, DecodeError> {
    let spent = OutPoint::read(reader)?;
    reader.var_bytes()?;
    reader.u32()?;
    Ok(spent)
}

fn output<'a>(reader: &mut Reader<'a>) -> Result<(u64, &'a [u8]), DecodeError> {
    Ok((reader.u64()?, reader.var_bytes()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Script, Transaction};

    fn transaction() -> Transaction {
        let input = |number: u8| TxIn {
            previous_output: OutPoint { txid: Txid::from_bytes([number; 32]), vout: number.into() },
            unlocking_script: Script::from_bytes(vec![number; 300]),
            sequence: 7,
        };
        let output = |satoshis| TxOut { satoshis, locking_script: Script::p2pkh(&[3; 20]) };
        let (inputs, outputs) = (vec![input(1), input(2)], (5..300).map(output).collect());
        Transaction { version: 1, inputs, outputs, lock_time: 9 }
    }

    #[test]
    fn a_view_shows_what_the_decoded_transaction_has() {
        let transaction = transaction();
        let bytes = transaction.to_bytes();
        let view = TransactionView::from_bytes(&bytes).unwrap();
        assert_eq!((view.txid(), view.bytes()), (transaction.txid(), bytes.as_slice()));
        assert!(view.spent().eq(transaction.inputs.iter().map(|it| it.previous_output)));
        let outputs = transaction.outputs.iter();
        assert!(view.outputs().eq(outputs.map(|it| (it.satoshis, it.locking_script.as_bytes()))));
        assert!(!view.is_coinbase());
    }

    #[test]
    fn only_an_input_that_spends_nothing_makes_a_coinbase() {
        let mut transaction = transaction();
        transaction.inputs[0].previous_output = OutPoint::NULL;
        for (inputs, expected) in [(2, false), (1, true), (0, false)] {
            transaction.inputs.truncate(inputs);
            let bytes = transaction.to_bytes();
            let view = TransactionView::from_bytes(&bytes).unwrap();
            assert_eq!((view.is_coinbase(), transaction.is_coinbase()), (expected, expected));
        }
    }

    #[test]
    fn every_truncation_and_every_extension_is_refused() {
        let bytes = transaction().to_bytes();
        for len in 0..bytes.len() {
            let view = TransactionView::from_bytes(&bytes[..len]);
            assert!(matches!(view, Err(DecodeError::UnexpectedEnd { .. })), "cut at {len}");
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        assert_eq!(TransactionView::from_bytes(&longer), Err(DecodeError::TrailingBytes(1)));
    }
}
