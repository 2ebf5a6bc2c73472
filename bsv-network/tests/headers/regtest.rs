use bsv_network::bsv_tx::{BlockHeader, MerkleRoot};

/// Headers of regtest after another one, of which nobody else has any.
pub(crate) fn regtest(after: BlockHeader, count: usize, own: u8) -> Vec<BlockHeader> {
    let mut parent = after;
    let mut headers = Vec::with_capacity(count);
    for _ in 0..count {
        let mut header = BlockHeader {
            version: 4,
            previous_block: parent.block_hash(),
            merkle_root: MerkleRoot::from_bytes([own; 32]),
            time: parent.time + 1,
            bits: 0x207f_ffff,
            nonce: 0,
        };
        while !header.has_proof_of_work() {
            header.nonce += 1;
        }
        headers.push(header);
        parent = header;
    }
    headers
}
