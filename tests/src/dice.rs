//! Chance.

use bsv_tx::sha256;

/// What chance decides, the same for the same seed.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Its rolls follow from the seed; those of the next seed are the same from the second roll on.
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

    /// One of these, each as likely.
    pub fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.roll(of.len())]
    }
}
