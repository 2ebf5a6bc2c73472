use bsv_tx::{Instruction, Instructions, Script};

/// The operands of a script's instructions, as nodes iterate over them. An instruction that pushes
/// nothing has an empty operand. A truncated push ends the script.
pub(super) struct Pushes<'a>(Instructions<'a>);

impl<'a> Pushes<'a> {
    /// Starts after `OP_FALSE OP_RETURN` and the protocol's prefix, which must be present.
    pub(super) fn after_prefix(script: &'a Script) -> Self {
        let mut instructions = script.instructions();
        for _ in 0..3 {
            instructions.next();
        }
        Self(instructions)
    }
}

impl<'a> Iterator for Pushes<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        match self.0.next()?.ok()? {
            Instruction::Push(operand) => Some(operand),
            Instruction::Op(_) => Some(&[]),
        }
    }
}
