//! Reproducible random numbers.

use bsv_tx::sha256;

/// A source of random numbers. The same seed gives the same numbers.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// A source with this seed. The rolls of the next seed are the rolls of this one from the
    /// second roll on.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(1);
        let hash = sha256(&self.0.to_le_bytes());
        let [a, b, c, d, ..] = hash;
        u32::from_le_bytes([a, b, c, d]) as usize % sides
    }

    /// One of these choices, all with the same probability.
    pub fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.roll(of.len())]
    }
}
