use bsv_tx::sha256;

/// Chance that can be repeated.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// The same seed rolls the same numbers.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `sides`.
    pub fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_add(1);
        let [a, b, c, d, ..] = sha256(&self.0.to_le_bytes());
        u32::from_le_bytes([a, b, c, d]) as usize % sides
    }

    /// One of these.
    pub fn pick<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.roll(of.len())]
    }
}
