//! What the network says of a transaction that no block holds.

use bsv_network::Evidence;

/// What the network says of a transaction that no block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// Whether its fee is sufficient. If not, its receipts do not count until it is mined, or until
    /// its fee is found to be sufficient. Once it was, a later judgement does not matter.
    pub is_fee_sufficient: bool,
    /// What stands behind it.
    pub evidence: Evidence,
}

impl Sighting {
    /// A sighting by a node.
    pub const fn judged(is_fee_sufficient: bool) -> Self {
        Self { is_fee_sufficient, evidence: Evidence::Judged }
    }
}
