//! A chain in which miners make every possible change to their identities.

use bsv_minerid::formats::Revocation;
use bsv_tests::Site;
use bsv_tests::identified_block::Keys;
use bsv_tx::{BlockHash, PrivateKey};

use crate::verify::node::Chain;
use crate::verify::spoilt::stranger;

/// Such a chain, and the events that a scan must find.
pub(crate) struct History {
    pub(crate) chain: Chain,
    /// The height and the event of each block with an identity.
    pub(crate) events: Vec<(u32, &'static str)>,
}

impl History {
    fn note(&mut self, event: &'static str, mine: impl FnOnce(&Chain) -> BlockHash) -> BlockHash {
        self.events.push((self.chain.next_height(), event));
        mine(&self.chain)
    }

    pub(crate) fn announce(&mut self, event: &'static str, keys: &Keys) -> BlockHash {
        self.note(event, |chain| chain.announce(keys))
    }

    fn revoke(&mut self, event: &'static str, keys: &Keys, compromised: &PrivateKey) -> BlockHash {
        self.note(event, |chain| {
            let mut document = keys.miner_info(chain.next_height());
            document.revocation = Some(
                Revocation::sign(
                    compromised.public_key(),
                    &keys.revocation_key,
                    &keys.previous_miner_id,
                )
                .unwrap(),
            );
            chain.mine_document(keys, &document)
        })
    }

    /// One miner rotates its key, rotates its revocation key, and revokes some keys. Another comes
    /// from generation 0.2, and revokes all keys.
    pub(crate) fn begin() -> (Self, Keys) {
        let mut history = Self { chain: Chain::start(), events: Vec::new() };
        let first = Keys::first();
        history.announce("first", &first);
        history.announce("continued", &first);
        let second = first.rotated();
        history.announce("rotated", &second);
        history.announce("rotation-repeated", &second);
        history.announce("refused", &first);
        let second = second.settled();
        let rolled = second.rolled();
        history.announce("continued", &rolled);
        history.announce("refused", &rolled);
        let rolled = rolled.settled();
        let both = rolled.rotated().rolled();
        history.announce("rotated", &both);
        let third = both.settled();
        history.announce("refused", &Keys::first().rotated());
        history.note("no-identity", |chain| chain.node.mine(1)[0]);

        let older = Keys::first();
        history.note("first", |chain| {
            chain.mine_output(&older.sign(&older.document(chain.next_height()).to_json()))
        });
        history.announce("refused", &older.rolled());
        history.announce("continued", &older);
        let newer = older.rotated();
        history.announce("rotated", &newer);
        let newer = newer.settled();
        history.revoke("revoked-completely", &newer, &older.miner_id);
        history.announce("refused", &newer);

        // A miner that revokes a stranger's miner id loses all of its own keys.
        let careless = Keys::first();
        history.announce("first", &careless);
        history.announce("rotated", &careless.rotated());
        let careless = careless.rotated();
        history.revoke("revoked-partially", &careless, &stranger());
        history.revoke("refused", &Keys::first(), &stranger());

        let fourth = third.rotated();
        history.revoke("revoked-partially", &fourth, &second.miner_id);
        history.revoke("revoked-partially", &fourth, &second.miner_id);
        history.announce("refused", &third);
        let fourth = fourth.settled();
        history.announce("continued", &fourth);
        (history, fourth)
    }

    pub(crate) fn site(&self) -> Site {
        let site = Site::on(&self.chain.node);
        site.cli_ok(&["init"]);
        site
    }
}
