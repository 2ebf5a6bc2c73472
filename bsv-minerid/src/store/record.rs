use bsv_tx::{OutPoint, PublicKey, Transaction};

use crate::alias::Alias;
use crate::json_object::MinerContact;

/// What is stored of an identity. Private keys are not: they lie in the keystore.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityRecord {
    /// All keys there have been, the current one last. Never empty.
    pub keys: Vec<KeyRecord>,
    /// Whether a document has been handed out since the last rotation.
    pub handed_out: bool,
    /// What the identity tells about its miner.
    pub contact: MinerContact,
    /// The validity check output.
    pub vctx: Vctx,
}

/// One key of an identity. Its private half lies in the keystore as `<alias>_<number>`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// The number of the key, from 1.
    pub number: u32,
    /// The public key, which is the miner id.
    pub public_key: PublicKey,
}

/// How far the validity check output of an identity has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vctx {
    /// Not begun.
    None,
    /// Its key lies in the keystore as `<alias>_vctx`, and its address waits for coins.
    AwaitingFunds,
    /// This transaction, whose output 0 it is, may or may not have reached the network.
    Broadcasting(Transaction),
    /// It is on the network.
    Recorded(OutPoint, VctxView),
}

/// What the chain has shown of a validity check output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VctxView {
    /// The greatest height at which it was seen unspent.
    pub last_seen: Option<u32>,
    /// The height of the chain when, having been seen, it was first found gone.
    pub gone_since: Option<u32>,
    /// Whether it has been gone for [`VctxView::FINAL_AFTER`] blocks.
    pub is_spent: bool,
}

impl VctxView {
    /// For how many blocks, the one that spends it counted, an output must be gone to count as
    /// spent.
    pub const FINAL_AFTER: u32 = 6;

    /// What is known once the chain with its tip at `height` has been asked.
    ///
    /// An output that was never seen says nothing (it may still have to be mined), and neither
    /// does a node whose chain is shorter than one on which the output was seen.
    pub fn observe(self, height: u32, is_unspent: bool) -> Self {
        let Some(last_seen) = self.last_seen else {
            return Self { last_seen: is_unspent.then_some(height), ..Self::default() };
        };
        if is_unspent {
            return Self { last_seen: Some(last_seen.max(height)), ..Self::default() };
        }
        if height < last_seen {
            return self;
        }
        let gone_since = self.gone_since.map_or(height, |since| since.min(height));
        let is_spent = self.is_spent || height - gone_since >= Self::FINAL_AFTER - 1;
        Self { gone_since: Some(gone_since), is_spent, ..self }
    }
}

impl IdentityRecord {
    /// A new identity.
    pub fn new(key: KeyRecord) -> Self {
        Self {
            keys: vec![key],
            handed_out: true,
            contact: MinerContact::default(),
            vctx: Vctx::None,
        }
    }

    /// The key that signs.
    pub fn current_key(&self) -> &KeyRecord {
        self.keys.last().expect("an identity begins with a key, and keys are only added")
    }

    /// The key before the current one; the current one where it is the first.
    pub fn previous_key(&self) -> &KeyRecord {
        self.keys.iter().rev().nth(1).unwrap_or(self.current_key())
    }

    /// The name under which the keystore holds a key of the identity.
    pub fn key_name(alias: &Alias, number: u32) -> String {
        format!("{alias}_{number}")
    }

    /// The name under which the keystore holds the key of the validity check output.
    pub fn vctx_key_name(alias: &Alias) -> String {
        format!("{alias}_vctx")
    }

    /// The changes below answer why they cannot be made from this state.
    pub(super) fn rotate(&mut self, from: u32, key: KeyRecord) -> Result<(), &'static str> {
        if self.current_key().number != from {
            return Err("its key was rotated");
        }
        self.keys.push(key);
        self.handed_out = false;
        Ok(())
    }

    pub(super) fn await_vctx_funding(&mut self) -> Result<(), &'static str> {
        match self.vctx {
            Vctx::None | Vctx::AwaitingFunds => {
                self.vctx = Vctx::AwaitingFunds;
                Ok(())
            }
            _ => Err("its VCTx is made already"),
        }
    }

    pub(super) fn begin_vctx(&mut self, transaction: &Transaction) -> Result<(), &'static str> {
        if self.vctx != Vctx::AwaitingFunds {
            return Err("its VCTx does not wait for funds");
        }
        self.vctx = Vctx::Broadcasting(transaction.clone());
        Ok(())
    }

    pub(super) fn abandon_vctx(&mut self) -> Result<(), &'static str> {
        if !matches!(self.vctx, Vctx::Broadcasting(_)) {
            return Err("its VCTx is not being broadcast");
        }
        self.vctx = Vctx::AwaitingFunds;
        Ok(())
    }

    pub(super) fn record_vctx(&mut self, outpoint: OutPoint) -> Result<(), &'static str> {
        match self.vctx {
            Vctx::Recorded(recorded, _) if recorded == outpoint => Ok(()),
            Vctx::Recorded(..) => Err("it has another VCTx"),
            _ => {
                self.vctx = Vctx::Recorded(outpoint, VctxView::default());
                Ok(())
            }
        }
    }

    pub(super) fn note_vctx_view(&mut self, seen: OutPoint, seen_view: VctxView) {
        match &mut self.vctx {
            Vctx::Recorded(outpoint, view) if *outpoint == seen => *view = seen_view,
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(history: &[(u32, bool)]) -> VctxView {
        history.iter().fold(VctxView::default(), |view, (height, is_unspent)| {
            view.observe(*height, *is_unspent)
        })
    }

    #[test]
    fn an_output_is_spent_once_seen_and_then_gone_for_six_blocks() {
        for (history, is_spent) in [
            (&[(100, false), (200, false)][..], false),
            (&[(100, true)], false),
            (&[(100, true), (101, false), (105, false)], false),
            (&[(100, true), (101, false), (106, false)], true),
            (&[(100, true), (101, false), (102, false), (106, false)], true),
            // A reorganisation brings it back, and another takes it again.
            (&[(100, true), (101, false), (105, false), (105, true), (106, false)], false),
            (&[(100, true), (101, false), (106, false), (107, true)], false),
            // A node that has yet to catch up knows nothing.
            (&[(100, true), (3, false), (50, false), (99, false)], false),
            (&[(100, true), (101, false), (106, false), (3, false)], true),
            // A reorganisation to a shorter chain in which it is gone too.
            (&[(100, true), (103, false), (101, false), (106, false)], true),
        ] {
            assert_eq!(after(history).is_spent, is_spent, "{history:?}");
        }
    }
}
