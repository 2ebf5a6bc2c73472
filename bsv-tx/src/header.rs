use crate::encode::{DecodeError, Reader};
use crate::hash::{BlockHash, MerkleRoot, sha256d};

/// A block header: 80 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHeader {
    /// The block version.
    pub version: i32,
    /// The hash of the previous block.
    pub previous_block: BlockHash,
    /// The root of the tree of the block's transaction ids.
    pub merkle_root: MerkleRoot,
    /// Unix time in seconds, as the miner claims it.
    pub time: u32,
    /// The proof-of-work target in compact form ("nBits").
    pub bits: u32,
    /// The number that the miner varies to find the proof of work.
    pub nonce: u32,
}

impl BlockHeader {
    /// The length of a header, in bytes.
    pub const LEN: usize = 80;

    /// Decodes a header that fills `bytes` to the last byte.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut reader = Reader::new(bytes);
        let header = Self::read(&mut reader)?;
        reader.finish()?;
        Ok(header)
    }

    /// Reads a header from the front of `reader`.
    pub fn read(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(Self {
            version: reader.i32()?,
            previous_block: BlockHash::from_bytes(reader.array()?),
            merkle_root: MerkleRoot::from_bytes(reader.array()?),
            time: reader.u32()?,
            bits: reader.u32()?,
            nonce: reader.u32()?,
        })
    }

    /// Appends the header to `out`.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.version.to_le_bytes());
        out.extend_from_slice(self.previous_block.as_bytes());
        out.extend_from_slice(self.merkle_root.as_bytes());
        out.extend_from_slice(&self.time.to_le_bytes());
        out.extend_from_slice(&self.bits.to_le_bytes());
        out.extend_from_slice(&self.nonce.to_le_bytes());
    }

    /// The encoded header.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(Self::LEN);
        self.encode(&mut bytes);
        bytes
    }

    /// The hash that names the block.
    pub fn block_hash(&self) -> BlockHash {
        BlockHash::from_bytes(sha256d(&self.to_bytes()))
    }

    /// The number that the block hash, read as a little-endian integer, must not exceed. The most
    /// significant byte comes first. Answers `None` if the compact form is negative, zero or too
    /// large.
    pub fn target(&self) -> Option<[u8; 32]> {
        let size = (self.bits >> 24) as usize;
        let mantissa = (self.bits & 0x007f_ffff).to_be_bytes();
        if self.bits & 0x0080_0000 != 0 || mantissa == [0; 4] {
            return None;
        }
        let mut target = [0; 32];
        for (place, byte) in mantissa[1..].iter().rev().enumerate() {
            // The mantissa's last byte has the weight 256^(size - 3).
            match (size + place).checked_sub(3) {
                Some(weight) if weight < 32 => target[31 - weight] = *byte,
                Some(_) if *byte != 0 => return None,
                _ => {}
            }
        }
        (target != [0; 32]).then_some(target)
    }

    /// Whether the block hash meets the target that the header states.
    pub fn has_proof_of_work(&self) -> bool {
        self.target().is_some_and(|target| self.block_hash().to_display_bytes() <= target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GENESIS: &str = "0100000000000000000000000000000000000000000000000000000000000000000000003ba3edfd7a7b12b27ac72c3e67768f617fc81bc3888a51323a9fb8aa4b1e5e4a29ab5f49ffff001d1dac2b7c";

    fn genesis() -> BlockHeader {
        BlockHeader::from_bytes(&hex::decode(GENESIS).unwrap()).unwrap()
    }

    #[test]
    fn a_compact_target_is_positive_and_fits_in_32_bytes() {
        let target = |bits| BlockHeader { bits, ..genesis() }.target();
        for bits in [0, 0x1d00_0000, 0x1d80_0000, 0x1d80_ffff, 0x2101_0000, 0x2200_ff00] {
            assert_eq!(target(bits), None, "{bits:08x}");
        }
        let largest = target(0x2100_ffff).unwrap();
        assert_eq!(largest[..2], [0xff; 2]);
        assert_eq!(largest[2..], [0; 30]);
    }

    #[test]
    fn the_first_header_there_ever_was() {
        let header = genesis();
        assert_eq!(hex::encode(header.to_bytes()), GENESIS);
        assert_eq!(
            header.block_hash().to_string(),
            "000000000019d6689c085ae165831e934ff763ae46a2a6c172b3f1b60a8ce26f"
        );
        assert!(header.has_proof_of_work());
        assert!(!BlockHeader { nonce: 0, ..header }.has_proof_of_work());
        assert!(BlockHeader::from_bytes(&[0; 79]).is_err());
        assert!(BlockHeader::from_bytes(&[0; 81]).is_err());
    }

    #[test]
    fn compact_targets() {
        let target = |bits| BlockHeader { bits, ..genesis() }.target().map(hex::encode);
        let expanded = |text: &str, zeros| Some(format!("{text}{}", "0".repeat(zeros)));
        assert_eq!(target(0x1d00_ffff), expanded("00000000ffff", 52));
        assert_eq!(target(0x207f_ffff), expanded("7fffff", 58));
        assert_eq!(target(0x0300_0001), Some(format!("{:064x}", 1)));
        assert_eq!(target(0x0201_0000), Some(format!("{:064x}", 0x100)));
        for bits in [0, 0x0180_0001, 0x0100_0001, 0x2100_ffff + 0x0100_0000, 0xff12_3456] {
            assert_eq!(target(bits), None, "{bits:08x}");
        }
    }
}
