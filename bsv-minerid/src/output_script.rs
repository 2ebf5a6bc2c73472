use bsv_tx::opcode::{OP_0, OP_RETURN};
use bsv_tx::{Instruction, Script, ScriptBuilder, Signature};
use thiserror::Error;

/// Starts every output script of generation 0.2: `OP_FALSE OP_RETURN`, then the push of the
/// protocol prefix.
pub(crate) const PREFIX: [u8; 7] = [OP_0, OP_RETURN, 0x04, 0xac, 0x1e, 0xed, 0x88];
/// Starts every output script of generation 1.0.
const PREFIX_1_0: [u8; 7] = [OP_0, OP_RETURN, 0x04, 0x60, 0x1d, 0xfa, 0xce];

/// A coinbase output script of generation 0.2, taken apart: an identity document and the signature
/// over its SHA-256.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityScript {
    /// The document, JSON as it was signed.
    pub document: Vec<u8>,
    /// The signature by the document's `minerId`, in DER form.
    pub signature: Vec<u8>,
}

/// A script that is not an identity output script of generation 0.2.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum IdentityScriptError {
    /// It does not start with `006a04ac1eed88`.
    #[error("not an identity output script: it does not start with 006a04ac1eed88")]
    Prefix,
    /// It does not consist of two shortest pushes after the prefix.
    #[error("an identity output script holds a document and a signature, each as a shortest push")]
    Pushes,
}

impl IdentityScript {
    /// Takes an output script apart.
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

    /// Puts the output script together.
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
    script.starts_with(&PREFIX) || script.starts_with(&PREFIX_1_0)
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
