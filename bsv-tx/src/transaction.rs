use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::encode::{DecodeError, Reader, write_var_bytes, write_var_int};
use crate::hash::{Txid, sha256d};
use crate::script::Script;

/// A transaction, of any size that fits in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// The format version, 1 or 2 in practice.
    pub version: i32,
    /// The outputs that are spent.
    pub inputs: Vec<TxIn>,
    /// The outputs that are made.
    pub outputs: Vec<TxOut>,
    /// The height (below 500,000,000) or Unix time before which the transaction is not final,
    /// unless all inputs are final. See [`Transaction::is_final_at`].
    pub lock_time: u32,
}

/// An input: the output it spends and the script that unlocks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxIn {
    /// The output that is spent.
    pub previous_output: OutPoint,
    /// The unlocking script ("scriptSig").
    pub unlocking_script: Script,
    /// The sequence number; `0xffff_ffff` makes the input final.
    pub sequence: u32,
}

/// An output: an amount and the script that locks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TxOut {
    /// The amount, in satoshis.
    pub satoshis: u64,
    /// The locking script ("scriptPubKey").
    pub locking_script: Script,
}

/// The place of an output: a transaction and the index of one of its outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OutPoint {
    /// The transaction that holds the output.
    pub txid: Txid,
    /// The index of the output, from 0.
    pub vout: u32,
}

/// The text does not have the form `TXID:N`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("an outpoint is written TXID:N, a transaction id and the index of an output")]
pub struct OutPointParseError;

impl OutPoint {
    /// The outpoint in the only input of a coinbase transaction.
    pub const NULL: Self = Self { txid: Txid::from_bytes([0; 32]), vout: u32::MAX };

    const ENCODED_LEN: usize = 36;

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self { txid: Txid::from_bytes(reader.array()?), vout: reader.u32()? })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.txid.as_bytes());
        out.extend_from_slice(&self.vout.to_le_bytes());
    }
}

impl fmt::Display for OutPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.txid, self.vout)
    }
}

impl FromStr for OutPoint {
    type Err = OutPointParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (txid, index) = text.split_once(':').ok_or(OutPointParseError)?;
        let vout: u32 = index.parse().map_err(|_| OutPointParseError)?;
        // Rust also parses a plus sign and leading zeros.
        if vout.to_string() != index {
            return Err(OutPointParseError);
        }
        Ok(Self { txid: txid.parse().map_err(|_| OutPointParseError)?, vout })
    }
}

impl TxIn {
    /// The fewest bytes of an encoded input: an outpoint, an empty script and a sequence number.
    pub(crate) const LEAST_LEN: usize = OutPoint::ENCODED_LEN + 1 + 4;

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            previous_output: OutPoint::read(reader)?,
            unlocking_script: Script::from_bytes(reader.var_bytes()?),
            sequence: reader.u32()?,
        })
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        self.previous_output.encode(out);
        write_var_bytes(out, self.unlocking_script.as_bytes());
        out.extend_from_slice(&self.sequence.to_le_bytes());
    }
}

impl TxOut {
    /// The fewest bytes of an encoded output: an amount and an empty script.
    pub const LEAST_LEN: usize = 8 + 1;

    /// Reads an output.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            satoshis: reader.u64()?,
            locking_script: Script::from_bytes(reader.var_bytes()?),
        })
    }

    /// Appends the output to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.satoshis.to_le_bytes());
        write_var_bytes(out, self.locking_script.as_bytes());
    }
}

impl Transaction {
    /// Decodes a transaction that fills `bytes` to the last byte.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let transaction = Self::read(&mut reader)?;
        reader.finish()?;
        Ok(transaction)
    }

    /// Decodes a transaction from hexadecimal text of either case.
    pub fn from_hex(text: &str) -> Result<Self, DecodeError> {
        Self::from_bytes(&hex::decode(text)?)
    }

    /// Reads a transaction from the front of `reader`, such as one of a block.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            version: reader.i32()?,
            inputs: reader.list(TxIn::LEAST_LEN, TxIn::read)?,
            outputs: reader.list(TxOut::LEAST_LEN, TxOut::read)?,
            lock_time: reader.u32()?,
        })
    }

    /// Appends the transaction to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.version.to_le_bytes());
        write_var_int(out, self.inputs.len() as u64);
        for input in &self.inputs {
            input.encode(out);
        }
        write_var_int(out, self.outputs.len() as u64);
        for output in &self.outputs {
            output.encode(out);
        }
        out.extend_from_slice(&self.lock_time.to_le_bytes());
    }

    /// The encoded transaction.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.estimated_len());
        self.encode(&mut bytes);
        bytes
    }

    /// The length of the encoded transaction, or a little more. A very long script makes it too
    /// low.
    fn estimated_len(&self) -> usize {
        const INPUT: usize = OutPoint::ENCODED_LEN + 3 + 4;
        const OUTPUT: usize = 8 + 3;
        let input = |input: &TxIn| INPUT + input.unlocking_script.as_bytes().len();
        let output = |output: &TxOut| OUTPUT + output.locking_script.as_bytes().len();
        let inputs: usize = self.inputs.iter().map(input).sum();
        let outputs: usize = self.outputs.iter().map(output).sum();
        4 + 3 + inputs + 3 + outputs + 4
    }

    /// The encoded transaction as lower-case hexadecimal text.
    pub fn to_hex(&self) -> String {
        hex::encode(self.to_bytes())
    }

    /// Whether a block at `height` may hold the transaction. `median_time` is the median time past
    /// of the previous block, in seconds since 1970. The rule is that of nodes, with the clock of
    /// BIP113.
    pub fn is_final_at(&self, height: u32, median_time: u32) -> bool {
        /// Lock times from here on are Unix times (`LOCKTIME_THRESHOLD`).
        const FIRST_TIME: u32 = 500_000_000;
        let reached = if self.lock_time < FIRST_TIME { height } else { median_time };
        self.lock_time == 0
            || self.lock_time < reached
            || self.inputs.iter().all(|input| input.sequence == u32::MAX)
    }

    /// Whether this is the coinbase transaction of a block: its only input spends nothing.
    pub fn is_coinbase(&self) -> bool {
        let nothing = OutPoint { txid: Txid::from_bytes([0; 32]), vout: u32::MAX };
        matches!(self.inputs.as_slice(), [input] if input.previous_output == nothing)
    }

    /// The transaction id.
    pub fn txid(&self) -> Txid {
        Txid::from_bytes(sha256d(&self.to_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GENESIS_COINBASE: &str = "01000000010000000000000000000000000000000000000000000000000000000000000000ffffffff4d04ffff001d0104455468652054696d65732030332f4a616e2f32303039204368616e63656c6c6f72206f6e206272696e6b206f66207365636f6e64206261696c6f757420666f722062616e6b73ffffffff0100f2052a01000000434104678afdb0fe5548271967f1a67130b7105cd6a828e03909a67962e0ea1f61deb649f6bc3f4cef38c4f35504e51ec112de5c384df7ba0b8d578a4c702b6bf11d5fac00000000";

    #[test]
    fn the_first_transaction_there_ever_was() {
        let coinbase = Transaction::from_hex(GENESIS_COINBASE).unwrap();
        assert_eq!(coinbase.inputs[0].previous_output, OutPoint::NULL);
        assert!(coinbase.is_coinbase());
        assert_eq!(coinbase.outputs[0].satoshis, 5_000_000_000);
        assert_eq!(
            coinbase.txid().to_string(),
            "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b"
        );
        assert_eq!(coinbase.to_hex(), GENESIS_COINBASE);
    }

    #[test]
    fn every_truncation_and_every_extension_is_refused() {
        let bytes = hex::decode(GENESIS_COINBASE).unwrap();
        for len in 0..bytes.len() {
            assert!(
                matches!(
                    Transaction::from_bytes(&bytes[..len]),
                    Err(DecodeError::UnexpectedEnd { .. })
                ),
                "cut at {len}"
            );
        }
        let longer = [bytes.as_slice(), &[0]].concat();
        assert_eq!(Transaction::from_bytes(&longer), Err(DecodeError::TrailingBytes(1)));
    }

    #[test]
    fn a_transaction_is_final_when_its_lock_time_is_over_or_all_its_inputs_are() {
        const FINAL: u32 = u32::MAX;
        const TIME: u32 = 500_000_000;
        let unlocked = [0].as_slice();
        for (lock_time, sequences, height, median_time, expected) in [
            (0, unlocked, 0, 0, true),
            (0, unlocked, 1, 0, true),
            (1, unlocked, 0, u32::MAX, false),
            (1, unlocked, 1, u32::MAX, false),
            (1, unlocked, 2, 0, true),
            (800_000, unlocked, 799_999, u32::MAX, false),
            (800_000, unlocked, 800_000, u32::MAX, false),
            (800_000, unlocked, 800_001, 0, true),
            (TIME - 1, unlocked, TIME - 1, u32::MAX, false),
            (TIME - 1, unlocked, TIME, 0, true),
            (TIME, unlocked, u32::MAX, TIME - 1, false),
            (TIME, unlocked, u32::MAX, TIME, false),
            (TIME, unlocked, 0, TIME + 1, true),
            (u32::MAX, unlocked, u32::MAX, u32::MAX - 1, false),
            (u32::MAX, unlocked, u32::MAX, u32::MAX, false),
            (u32::MAX, &[FINAL], 0, 0, true),
            (u32::MAX, &[FINAL - 1], 0, 0, false),
            (u32::MAX, &[FINAL, FINAL], 0, 0, true),
            (u32::MAX, &[FINAL, FINAL - 1], 0, 0, false),
            (u32::MAX, &[0, FINAL], 0, 0, false),
        ] {
            let input = |sequence: &u32| TxIn {
                previous_output: OutPoint { txid: Txid::from_bytes([7; 32]), vout: 0 },
                unlocking_script: Script::default(),
                sequence: *sequence,
            };
            let inputs = sequences.iter().map(input).collect();
            let transaction = Transaction { version: 1, inputs, outputs: Vec::new(), lock_time };
            assert_eq!(
                transaction.is_final_at(height, median_time),
                expected,
                "lock time {lock_time}, sequences {sequences:?}, at {height} and {median_time}"
            );
        }
    }

    #[test]
    fn outpoints_are_written_as_txid_and_index() {
        let txid = "4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b";
        let outpoint: OutPoint = format!("{txid}:7").parse().unwrap();
        assert_eq!(outpoint.vout, 7);
        assert_eq!(outpoint.to_string(), format!("{txid}:7"));
        for bad in [txid, &format!("{txid}:"), &format!("{txid}:-1"), "ab:0", ":0"] {
            assert_eq!(bad.parse::<OutPoint>(), Err(OutPointParseError));
        }
    }
}
