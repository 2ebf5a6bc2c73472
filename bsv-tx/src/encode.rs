use thiserror::Error;

/// Why bytes or text cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The bytes end before the announced length.
    #[error("the bytes end early: {missing} announced bytes are missing")]
    UnexpectedEnd {
        /// How many more bytes were announced.
        missing: u64,
    },
    /// A variable-length integer takes more bytes than its value needs.
    #[error("a variable-length integer is not in its shortest form")]
    NonMinimalVarInt,
    /// Bytes remain after the end of the value.
    #[error("{0} bytes are left over after the end")]
    TrailingBytes(usize),
    /// The text has a character that is not hexadecimal, or an odd number of digits.
    #[error("not hexadecimal")]
    NotHex,
    /// A Merkle branch has more siblings than a tree can have levels.
    #[error("a merkle branch has {0} siblings, more than 64")]
    TooManySiblings(usize),
    /// The byte that tells the kind of a sibling in a Merkle branch is unknown.
    #[error("a merkle branch has a sibling of the unknown kind {0}")]
    UnknownSibling(u8),
    /// A transaction lacks the marker of the Extended Format.
    #[error("not a transaction in extended format")]
    NotExtended,
}

/// Reads encoded values from the front of a byte slice.
///
/// The reader trusts no announced length before that many bytes are there.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
}

impl From<hex::FromHexError> for DecodeError {
    fn from(_: hex::FromHexError) -> Self {
        Self::NotHex
    }
}

impl<'a> Reader<'a> {
    /// Starts at the first of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// The number of bytes that are left.
    pub fn remaining(&self) -> usize {
        self.bytes.len()
    }

    /// Takes the next `len` bytes.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8], DecodeError> {
        let missing = len.saturating_sub(self.bytes.len()) as u64;
        let (taken, rest) =
            self.bytes.split_at_checked(len).ok_or(DecodeError::UnexpectedEnd { missing })?;
        self.bytes = rest;
        Ok(taken)
    }

    /// Takes the next `N` bytes as an array.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    /// Reads a little-endian 32-bit unsigned integer.
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads a little-endian 32-bit signed integer.
    pub fn i32(&mut self) -> Result<i32, DecodeError> {
        self.array().map(i32::from_le_bytes)
    }

    /// Reads a little-endian 64-bit unsigned integer.
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a variable-length integer ("compact size"), which must be in its shortest form, as
    /// nodes demand.
    pub fn var_int(&mut self) -> Result<u64, DecodeError> {
        let (value, least) = match self.array::<1>()?[0] {
            0xfd => (u16::from_le_bytes(self.array()?).into(), 0xfd),
            0xfe => (self.u32()?.into(), 0x1_0000),
            0xff => (self.u64()?, 0x1_0000_0000),
            small => (small.into(), 0),
        };
        if value < least {
            return Err(DecodeError::NonMinimalVarInt);
        }
        Ok(value)
    }

    /// Reads bytes that follow their number.
    pub fn var_bytes(&mut self) -> Result<&'a [u8], DecodeError> {
        let len = self.var_int()?;
        let remaining = self.remaining() as u64;
        if len > remaining {
            return Err(DecodeError::UnexpectedEnd { missing: len - remaining });
        }
        self.take(len as usize)
    }

    /// Reads a list that follows its number of items. Each item takes at least `least_size` bytes.
    /// The list reserves memory only for as many items as the remaining bytes can hold.
    pub fn list<T>(
        &mut self,
        least_size: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, DecodeError>,
    ) -> Result<Vec<T>, DecodeError> {
        let count = self.var_int()?;
        let least_total = count.saturating_mul(least_size as u64);
        let remaining = self.remaining() as u64;
        if least_total > remaining {
            return Err(DecodeError::UnexpectedEnd { missing: least_total - remaining });
        }
        let mut items = Vec::with_capacity(count as usize);
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Checks that nothing is left over.
    pub fn finish(self) -> Result<(), DecodeError> {
        match self.remaining() {
            0 => Ok(()),
            left => Err(DecodeError::TrailingBytes(left)),
        }
    }
}

/// Appends a variable-length integer ("compact size") in its shortest form.
pub fn write_var_int(out: &mut Vec<u8>, value: u64) {
    match value {
        0..=0xfc => out.push(value as u8),
        0xfd..=0xffff => {
            out.push(0xfd);
            out.extend_from_slice(&(value as u16).to_le_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out.push(0xfe);
            out.extend_from_slice(&(value as u32).to_le_bytes());
        }
        _ => {
            out.push(0xff);
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

/// Appends the number of bytes, then the bytes.
pub fn write_var_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    write_var_int(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn var_ints_take_their_shortest_form_at_every_boundary() {
        for (value, encoded) in [
            (0, "00"),
            (0xfc, "fc"),
            (0xfd, "fdfd00"),
            (0xffff, "fdffff"),
            (0x1_0000, "fe00000100"),
            (0xffff_ffff, "feffffffff"),
            (0x1_0000_0000, "ff0000000001000000"),
            (u64::MAX, "ffffffffffffffffff"),
        ] {
            let mut bytes = Vec::new();
            write_var_int(&mut bytes, value);
            assert_eq!(hex::encode(&bytes), encoded);
            let mut reader = Reader::new(&bytes);
            assert_eq!(reader.var_int(), Ok(value));
            assert_eq!(reader.finish(), Ok(()));
        }
    }

    #[test]
    fn longer_forms_are_refused() {
        for encoded in ["fdfc00", "feffff0000", "ffffffffff00000000"] {
            let bytes = hex::decode(encoded).unwrap();
            assert_eq!(Reader::new(&bytes).var_int(), Err(DecodeError::NonMinimalVarInt));
        }
    }

    #[test]
    fn an_announced_length_is_not_believed() {
        let bytes = hex::decode("ffffffffffffffffff00").unwrap();
        let missing = u64::MAX - 1;
        assert_eq!(Reader::new(&bytes).var_bytes(), Err(DecodeError::UnexpectedEnd { missing }));
        assert!(Reader::new(&bytes).list(1, Reader::array::<1>).is_err());
        assert!(Reader::new(&bytes).list(41, Reader::array::<1>).is_err());
    }
}
