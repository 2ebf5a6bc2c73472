use bsv_tx::opcode::{OP_0, OP_RETURN};
use bsv_tx::{Instruction, Instructions, Script, ScriptBuilder, Signature};
use thiserror::Error;

/// The first bytes of every output script of generation 0.2: `OP_FALSE OP_RETURN`, then the push of
/// the protocol prefix.
pub(crate) const PREFIX: [u8; 7] = [OP_0, OP_RETURN, 0x04, 0xac, 0x1e, 0xed, 0x88];
/// The first bytes of every output script of generation 1.0.
const PREFIX_1_0: [u8; 7] = [OP_0, OP_RETURN, 0x04, 0x60, 0x1d, 0xfa, 0xce];

/// The content of a coinbase output script of generation 0.2: an identity document and the
/// signature over its SHA-256.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityScript {
    /// The document, JSON as it was signed.
    pub document: Vec<u8>,
    /// The signature by the document's `minerId`, in DER form.
    pub signature: Vec<u8>,
}

/// Why a script is not an identity output script of generation 0.2.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IdentityScriptError {
    /// The script does not start with `006a04ac1eed88`.
    #[error("not an identity output script: it does not start with 006a04ac1eed88")]
    Prefix,
    /// The prefix is not followed by exactly two pushes in their shortest form.
    #[error("an identity output script holds a document and a signature, each as a shortest push")]
    Pushes,
}

impl IdentityScript {
    /// Parses an output script.
    pub fn parse(script: &Script) -> Result<Self, IdentityScriptError> {
        let rest = script.as_bytes().strip_prefix(&PREFIX).ok_or(IdentityScriptError::Prefix)?;
        let rest = Script::from_bytes(rest);
        let mut pushes = rest.instructions();
        let (Some(Ok(Instruction::Push(document))), Some(Ok(Instruction::Push(signature))), None) =
            (pushes.next(), pushes.next(), pushes.next())
        else {
            return Err(IdentityScriptError::Pushes);
        };
        if build(document, signature) != *script {
            return Err(IdentityScriptError::Pushes);
        }
        Ok(Self { document: document.to_vec(), signature: signature.to_vec() })
    }

    /// Builds the output script.
    pub fn to_script(&self) -> Script {
        build(&self.document, &self.signature)
    }
}

/// The output script for a document and the signature over it.
pub(crate) fn signed(document: &str, signature: &Signature) -> Script {
    build(document.as_bytes(), &signature.to_der())
}

/// Whether a locking script claims to carry a miner identity of either generation.
pub(crate) fn is_identity(script: &[u8]) -> bool {
    script.starts_with(&PREFIX) || is_miner_info(script)
}

/// Whether a locking script claims to be of generation 1.0.
pub(crate) fn is_miner_info(script: &[u8]) -> bool {
    script.starts_with(&PREFIX_1_0)
}

/// Why a script is not of generation 1.0.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MinerInfoScriptError {
    /// The script does not start with `006a04601dface`.
    #[error("not a script of miner info: it does not start with 006a04601dface")]
    Prefix,
    /// The prefix is not followed by a push of one zero byte.
    #[error("the version of the script is not 0, pushed as 0100")]
    Version,
    /// A push is missing.
    #[error("the script does not push {0}")]
    Missing(&'static str),
    /// A push has the wrong length.
    #[error("the script pushes {found} bytes for {part}, not {expected}")]
    Length {
        /// The name of the pushed part.
        part: &'static str,
        /// The required length.
        expected: usize,
        /// The actual length.
        found: usize,
    },
}

/// The version that every script of generation 1.0 pushes after the prefix. Nodes do not accept
/// `OP_0` for it.
const VERSION_1_0: [u8; 1] = [0];

/// A script of generation 1.0 that pushes `parts`.
pub(crate) fn versioned<const N: usize>(parts: [&[u8]; N]) -> Script {
    let [op_false, op_return, _, prefix @ ..] = PREFIX_1_0;
    let len: usize = parts.iter().map(|part| part.len() + 5).sum();
    let start = ScriptBuilder::with_capacity(PREFIX_1_0.len() + 2 + len)
        .op(op_false)
        .op(op_return)
        .push(&prefix)
        .push_bytes(&VERSION_1_0);
    parts.into_iter().fold(start, ScriptBuilder::push_bytes).into_script()
}

/// The pushes after the version in a script of generation 1.0.
pub(crate) fn versioned_pushes(script: &Script) -> Result<Pushes<'_>, MinerInfoScriptError> {
    if !is_miner_info(script.as_bytes()) {
        return Err(MinerInfoScriptError::Prefix);
    }
    let mut instructions = script.instructions();
    // Skips two opcodes and the protocol's prefix.
    instructions.nth(2);
    match instructions.next() {
        Some(Ok(Instruction::Push(version))) if version == VERSION_1_0 => Ok(Pushes(instructions)),
        _ => Err(MinerInfoScriptError::Version),
    }
}

/// Pushes of any form, as nodes accept them. Nodes ignore everything after the pushes that they
/// need.
pub(crate) struct Pushes<'a>(Instructions<'a>);

impl<'a> Pushes<'a> {
    pub(crate) fn next(&mut self, part: &'static str) -> Result<&'a [u8], MinerInfoScriptError> {
        match self.0.next() {
            Some(Ok(Instruction::Push(bytes))) => Ok(bytes),
            _ => Err(MinerInfoScriptError::Missing(part)),
        }
    }

    pub(crate) fn next_array<const N: usize>(
        &mut self,
        part: &'static str,
    ) -> Result<[u8; N], MinerInfoScriptError> {
        let bytes = self.next(part)?;
        let found = bytes.len();
        bytes.try_into().map_err(|_| MinerInfoScriptError::Length { part, expected: N, found })
    }
}

fn build(document: &[u8], signature: &[u8]) -> Script {
    let [op_false, op_return, _, prefix @ ..] = PREFIX;
    ScriptBuilder::with_capacity(PREFIX.len() + document.len() + signature.len() + 10)
        .op(op_false)
        .op(op_return)
        .push(&prefix)
        .push_bytes(document)
        .push_bytes(signature)
        .into_script()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_script_reads_back_at_every_push_boundary() {
        for len in [0, 1, 2, 0x4b, 0x4c, 0xff, 0x100, 0xffff, 0x1_0000] {
            let script = IdentityScript { document: vec![b'x'; len], signature: vec![0x30; 70] };
            assert_eq!(IdentityScript::parse(&script.to_script()), Ok(script));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for (text, error) in [
            ("", IdentityScriptError::Prefix),
            ("006a04ac1eed", IdentityScriptError::Prefix),
            ("006a04601dface", IdentityScriptError::Prefix),
            ("006a4c04ac1eed88", IdentityScriptError::Prefix),
            ("006a04ac1eed88", IdentityScriptError::Pushes),
            ("006a04ac1eed8802aabb", IdentityScriptError::Pushes),
            ("006a04ac1eed8802aabb02ccdd02eeff", IdentityScriptError::Pushes),
            ("006a04ac1eed8802aabb02ccddac", IdentityScriptError::Pushes),
            ("006a04ac1eed8802aabb02cc", IdentityScriptError::Pushes),
            ("006a04ac1eed884c02aabb02ccdd", IdentityScriptError::Pushes),
        ] {
            let script = Script::from_hex(text).unwrap();
            assert_eq!(IdentityScript::parse(&script), Err(error), "{text}");
        }
    }
}
