use std::fmt;

use thiserror::Error;

use crate::encode::{DecodeError, Reader};

/// The opcodes that this project writes or recognises.
pub mod opcode {
    /// Pushes nothing; also written `OP_FALSE`.
    pub const OP_0: u8 = 0x00;
    /// The next byte is a length.
    pub const OP_PUSHDATA1: u8 = 0x4c;
    /// The next two bytes are a length, little-endian.
    pub const OP_PUSHDATA2: u8 = 0x4d;
    /// The next four bytes are a length, little-endian.
    pub const OP_PUSHDATA4: u8 = 0x4e;
    /// Pushes the number -1.
    pub const OP_1NEGATE: u8 = 0x4f;
    /// Pushes the number 1. The opcodes for the numbers up to 16 follow.
    pub const OP_1: u8 = 0x51;
    /// Pushes the number 16.
    pub const OP_16: u8 = 0x60;
    /// Ends the script. After `OP_FALSE`, it marks an output that carries data.
    pub const OP_RETURN: u8 = 0x6a;
    /// Duplicates the top of the stack.
    pub const OP_DUP: u8 = 0x76;
    /// Fails unless the two top items are equal.
    pub const OP_EQUALVERIFY: u8 = 0x88;
    /// RIPEMD-160 of SHA-256 of the top item.
    pub const OP_HASH160: u8 = 0xa9;
    /// Checks a signature against a public key.
    pub const OP_CHECKSIG: u8 = 0xac;
}
use opcode::{
    OP_0, OP_1, OP_1NEGATE, OP_16, OP_CHECKSIG, OP_DUP, OP_EQUALVERIFY, OP_HASH160, OP_PUSHDATA1,
    OP_PUSHDATA2, OP_PUSHDATA4,
};

/// A locking or unlocking script, which may hold any bytes, valid instructions or not.
#[derive(Clone, PartialEq, Eq, Hash, Default)]
pub struct Script(Vec<u8>);

/// One step of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instruction<'a> {
    /// Pushes these bytes. `OP_0` pushes none.
    Push(&'a [u8]),
    /// Any other opcode, among them the small numbers `OP_1NEGATE` and `OP_1` to `OP_16`.
    Op(u8),
}

/// The last push of a script announces more bytes than there are.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("the script ends within a push")]
pub struct ScriptError;

/// The hash of the public key that a P2PKH script with these bytes pays to; `None` for every other
/// script.
pub fn public_key_hash(script: &[u8]) -> Option<&[u8; 20]> {
    let rest = script.strip_prefix(&[OP_DUP, OP_HASH160, 20])?;
    let (hash, rest) = rest.split_first_chunk::<20>()?;
    (rest == [OP_EQUALVERIFY, OP_CHECKSIG]).then_some(hash)
}

impl Script {
    /// Takes the bytes of a script unchecked.
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Self {
        Self(bytes.into())
    }

    /// Reads a script from hexadecimal text of either case.
    pub fn from_hex(text: &str) -> Result<Self, DecodeError> {
        Ok(Self(hex::decode(text)?))
    }

    /// The P2PKH script, which locks an output to the public key with this
    /// [`hash160`](crate::hash160).
    pub fn p2pkh(public_key_hash: &[u8; 20]) -> Self {
        ScriptBuilder::new()
            .op(OP_DUP)
            .op(OP_HASH160)
            .push(public_key_hash)
            .op(OP_EQUALVERIFY)
            .op(OP_CHECKSIG)
            .into_script()
    }

    /// The hash of the public key that a P2PKH script pays to; `None` for every other script.
    pub fn public_key_hash(&self) -> Option<&[u8; 20]> {
        public_key_hash(&self.0)
    }

    /// The script's bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Takes the script's bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// The script as lower-case hexadecimal text.
    pub fn to_hex(&self) -> String {
        hex::encode(&self.0)
    }

    /// The steps of the script, in order. The iterator ends after the first error.
    pub fn instructions(&self) -> Instructions<'_> {
        Instructions { reader: Reader::new(&self.0) }
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Script({})", self.to_hex())
    }
}

/// Iterates over the steps of a [`Script`].
#[derive(Clone, Debug)]
pub struct Instructions<'a> {
    reader: Reader<'a>,
}

impl<'a> Instructions<'a> {
    fn read(&mut self) -> Result<Instruction<'a>, DecodeError> {
        let reader = &mut self.reader;
        let [op] = reader.array()?;
        let len = match op {
            OP_0..OP_PUSHDATA1 => op.into(),
            OP_PUSHDATA1 => u8::from_le_bytes(reader.array()?).into(),
            OP_PUSHDATA2 => u16::from_le_bytes(reader.array()?).into(),
            OP_PUSHDATA4 => reader.u32()? as usize,
            _ => return Ok(Instruction::Op(op)),
        };
        reader.take(len).map(Instruction::Push)
    }
}

impl<'a> Iterator for Instructions<'a> {
    type Item = Result<Instruction<'a>, ScriptError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.reader.remaining() == 0 {
            return None;
        }
        Some(self.read().map_err(|_| {
            self.reader = Reader::new(&[]);
            ScriptError
        }))
    }
}

/// Writes a script step by step.
///
/// ```
/// use bsv_tx::{ScriptBuilder, opcode::{OP_0, OP_RETURN}};
///
/// let script = ScriptBuilder::new().op(OP_0).op(OP_RETURN).push(b"hello").into_script();
/// assert_eq!(script.to_hex(), "006a0568656c6c6f");
/// ```
#[derive(Clone, Debug, Default)]
pub struct ScriptBuilder {
    bytes: Vec<u8>,
}

impl ScriptBuilder {
    /// Starts an empty script.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts an empty script with room for `capacity` bytes.
    pub fn with_capacity(capacity: usize) -> Self {
        Self { bytes: Vec::with_capacity(capacity) }
    }

    /// Appends an opcode.
    pub fn op(mut self, op: u8) -> Self {
        self.bytes.push(op);
        self
    }

    /// Pushes `data` in the shortest way (the node's "minimal push" rule): a small number becomes
    /// `OP_1NEGATE` or `OP_1` to `OP_16`.
    pub fn push(self, data: &[u8]) -> Self {
        match data {
            [n @ 1..=16] => self.op(OP_1 - 1 + n),
            [0x81] => self.op(OP_1NEGATE),
            _ => self.push_bytes(data),
        }
    }

    /// Pushes `data` as bytes, with the shortest length prefix, even where a number opcode would
    /// be shorter.
    ///
    /// # Panics
    /// If `data` is 4 GiB or longer: no push can carry it.
    pub fn push_bytes(mut self, data: &[u8]) -> Self {
        let len = u32::try_from(data.len()).expect("a push carries less than 4 GiB");
        match len {
            0..=0x4b => self.bytes.push(len as u8),
            0x4c..=0xff => self.bytes.extend_from_slice(&[OP_PUSHDATA1, len as u8]),
            0x100..=0xffff => {
                self.bytes.push(OP_PUSHDATA2);
                self.bytes.extend_from_slice(&(len as u16).to_le_bytes());
            }
            _ => {
                self.bytes.push(OP_PUSHDATA4);
                self.bytes.extend_from_slice(&len.to_le_bytes());
            }
        }
        self.bytes.extend_from_slice(data);
        self
    }

    /// The finished script.
    pub fn into_script(self) -> Script {
        Script(self.bytes)
    }
}

// `push` maps the numbers 1 to 16 onto these opcodes.
const _: () = assert!(OP_1 - 1 + 16 == OP_16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_gives_back_its_bytes() {
        let script = Script::from_bytes([0x00, 0x6a, 0x51]);
        assert_eq!(script.clone().into_bytes(), [0x00, 0x6a, 0x51]);
        assert_eq!(script.as_bytes(), [0x00, 0x6a, 0x51]);
    }

    #[test]
    fn the_length_prefix_changes_at_every_boundary() {
        for (len, prefix) in [
            (0, "00"),
            (2, "02"),
            (0x4b, "4b"),
            (0x4c, "4c4c"),
            (0xff, "4cff"),
            (0x100, "4d0001"),
            (0xffff, "4dffff"),
            (0x1_0000, "4e00000100"),
        ] {
            let data = vec![0xab; len];
            let script = ScriptBuilder::new().push(&data).into_script();
            assert_eq!(script.to_hex(), format!("{prefix}{}", hex::encode(&data)), "{len:#x}");
            let read: Vec<_> = script.instructions().collect();
            assert_eq!(read, [Ok(Instruction::Push(&data))]);
        }
    }

    #[test]
    fn small_numbers_have_opcodes_of_their_own_unless_bytes_are_asked_for() {
        for (data, minimal, bytes) in [
            (&[0x00][..], "0100", "0100"),
            (&[0x01], "51", "0101"),
            (&[0x10], "60", "0110"),
            (&[0x11], "0111", "0111"),
            (&[0x80], "0180", "0180"),
            (&[0x81], "4f", "0181"),
            (&[], "00", "00"),
        ] {
            assert_eq!(ScriptBuilder::new().push(data).into_script().to_hex(), minimal);
            assert_eq!(ScriptBuilder::new().push_bytes(data).into_script().to_hex(), bytes);
        }
    }

    #[test]
    fn a_push_cut_short_is_the_last_thing_read() {
        for text in ["05aabb", "4c", "4c02aa", "4d01", "4d0200aa", "4e010000", "4effffffff00"] {
            let script = Script::from_hex(text).unwrap();
            assert_eq!(script.instructions().collect::<Vec<_>>(), [Err(ScriptError)], "{text}");
        }
    }

    #[test]
    fn p2pkh() {
        let script = Script::p2pkh(&[0x11; 20]);
        assert_eq!(script.to_hex(), format!("76a914{}88ac", "11".repeat(20)));
    }
}
