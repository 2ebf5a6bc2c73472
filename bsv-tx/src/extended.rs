use crate::encode::{DecodeError, Reader, write_var_int};
use crate::transaction::{Transaction, TxIn, TxOut};

/// A transaction in Extended Format (BRC-30): each input carries the output that it spends.
///
/// The format does not prove that these outputs are the real ones. Only their transactions do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtendedTransaction {
    transaction: Transaction,
    /// One output for each input.
    previous_outputs: Vec<TxOut>,
}

impl ExtendedTransaction {
    /// Marks the format, between the version and the inputs. A parser that does not know the format
    /// reads a transaction without inputs and outputs.
    pub(crate) const MARKER: [u8; 6] = [0, 0, 0, 0, 0, 0xef];

    /// Extends a transaction by the outputs that it spends, in the order of its inputs. Answers
    /// `None` unless there is one output for each input.
    pub fn new(transaction: Transaction, previous_outputs: Vec<TxOut>) -> Option<Self> {
        let is_whole = transaction.inputs.len() == previous_outputs.len();
        is_whole.then_some(Self { transaction, previous_outputs })
    }

    /// The transaction.
    pub fn transaction(&self) -> &Transaction {
        &self.transaction
    }

    /// The outputs that the inputs claim to spend, in the order of the inputs. These outputs are
    /// not verified.
    pub fn previous_outputs(&self) -> &[TxOut] {
        &self.previous_outputs
    }

    /// Takes the value apart into the transaction and the claimed outputs, which are not verified.
    pub fn into_parts(self) -> (Transaction, Vec<TxOut>) {
        (self.transaction, self.previous_outputs)
    }

    /// Decodes a transaction in Extended Format that fills `bytes` to the last byte.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let transaction = Self::read(&mut reader)?;
        reader.finish()?;
        Ok(transaction)
    }

    /// Reads a transaction in Extended Format from the front of `reader`.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let version = reader.i32()?;
        if reader.array()? != Self::MARKER {
            return Err(DecodeError::NotExtended);
        }
        let extended_input =
            |reader: &mut Reader<'_>| Ok((TxIn::read(reader)?, TxOut::read(reader)?));
        let inputs: Vec<_> = reader.list(TxIn::LEAST_LEN + TxOut::LEAST_LEN, extended_input)?;
        let (inputs, previous_outputs) = inputs.into_iter().unzip();
        let outputs = reader.list(TxOut::LEAST_LEN, TxOut::read)?;
        let transaction = Transaction { version, inputs, outputs, lock_time: reader.u32()? };
        Ok(Self { transaction, previous_outputs })
    }

    /// Appends the transaction, in Extended Format, to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let Transaction { version, inputs, outputs, lock_time } = &self.transaction;
        out.extend_from_slice(&version.to_le_bytes());
        out.extend_from_slice(&Self::MARKER);
        write_var_int(out, inputs.len() as u64);
        for (input, previous_output) in inputs.iter().zip(&self.previous_outputs) {
            input.encode(out);
            previous_output.encode(out);
        }
        write_var_int(out, outputs.len() as u64);
        for output in outputs {
            output.encode(out);
        }
        out.extend_from_slice(&lock_time.to_le_bytes());
    }

    /// The transaction, encoded in Extended Format.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.encode(&mut bytes);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;
    use crate::transaction::OutPoint;

    fn output(satoshis: u64) -> TxOut {
        TxOut { satoshis, locking_script: Script::p2pkh(&[7; 20]) }
    }

    fn transaction() -> Transaction {
        let input = TxIn {
            previous_output: OutPoint::NULL,
            unlocking_script: Script::from_bytes([0x51]),
            sequence: u32::MAX,
        };
        let outputs = vec![output(1)];
        Transaction { version: 1, inputs: vec![input.clone(), input], outputs, lock_time: 3 }
    }

    #[test]
    fn previous_outputs_stand_behind_their_inputs() {
        let transaction = transaction();
        assert_eq!(ExtendedTransaction::new(transaction.clone(), vec![output(2)]), None);
        let previous_outputs = vec![output(0x0203), output(4)];
        let extended =
            ExtendedTransaction::new(transaction.clone(), previous_outputs.clone()).unwrap();
        let script = format!("19{}", output(0).locking_script.to_hex());
        let input = format!("{}ffffffff0151ffffffff", "00".repeat(32));
        let bytes = extended.to_bytes();
        assert_eq!(
            hex::encode(&bytes),
            format!(
                "010000000000000000ef02{input}0302000000000000{script}{input}0400000000000000{script}\
                 010100000000000000{script}03000000"
            )
        );
        assert_eq!(ExtendedTransaction::from_bytes(&bytes).as_ref(), Ok(&extended));
        assert_eq!(extended.previous_outputs(), previous_outputs);
        assert_eq!(extended.into_parts(), (transaction, previous_outputs));
        for len in 0..bytes.len() {
            assert!(ExtendedTransaction::from_bytes(&bytes[..len]).is_err(), "cut at {len}");
        }
    }

    #[test]
    fn a_transaction_without_the_marker_is_not_extended() {
        let bytes = transaction().to_bytes();
        assert_eq!(ExtendedTransaction::from_bytes(&bytes), Err(DecodeError::NotExtended));
    }
}
