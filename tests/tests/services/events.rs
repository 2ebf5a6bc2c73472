//! Arcade's stream of events, read by the client of `bsv-network`.

use std::time::Duration;

use bsv_network::SecretString;
use bsv_network::broadcasters::{
    Broadcaster, BroadcasterSet, Callback, Dialect, EventStream, ReasonToAsk, Submission, Urgency,
};
use bsv_tests::ancestry::previous_outputs;
use bsv_tx::{ExtendedTransaction, Transaction};
use tokio::runtime::Runtime;
use tokio::time::timeout;

use super::{Scene, http_client};

#[test]
fn events_are_reasons_to_ask() {
    let scene = Scene::new(2);
    let token = Callback::token_of(&[7; 32]);
    let arcade = Broadcaster::new(Dialect::Arcade, http_client(), scene.service.url())
        .with_callback(Callback { url: None, token: token.clone() });
    let others =
        arcade.clone().with_callback(Callback { url: None, token: SecretString::from("t") });
    let (ours, theirs) = (scene.payment(), scene.payment());
    let runtime = Runtime::new().unwrap();
    let send = |broadcaster: &Broadcaster, transaction: &Transaction| {
        let set = BroadcasterSet::new(vec![broadcaster.clone()], 1).unwrap();
        let spent = previous_outputs(&scene.node, transaction);
        let extended = ExtendedTransaction::new(transaction.clone(), spent).unwrap();
        {
            let submission =
                Submission { ancestors: &[], transaction: &extended, newest_block: None };
            runtime.block_on(set.send(submission, Duration::from_secs(10), Urgency::Now))
        }
    };
    let mut events = EventStream::of(&arcade).unwrap();
    let mut next = || {
        runtime.block_on(async { timeout(Duration::from_secs(20), events.next()).await.unwrap() })
    };
    assert_eq!(next(), ReasonToAsk::Missed);
    send(&others, &theirs);
    send(&arcade, &ours);
    assert_eq!(next(), ReasonToAsk::Changed(ours.txid()));
    scene.node.mine(1);
    assert_eq!(next(), ReasonToAsk::Changed(ours.txid()));
    scene.service.say("event: gap\ndata: {\"reason\":\"catchup_truncated\"}\n\n");
    assert_eq!(next(), ReasonToAsk::Missed);
    // It has forgotten everything, and is connected to again.
    scene.service.restart_empty();
    scene.service.change(|mood| mood.condition = Some((503, None)));
    assert_eq!(next(), ReasonToAsk::Missed);
    scene.service.change(|mood| mood.condition = None);
    send(&arcade, &ours);
    assert_eq!(next(), ReasonToAsk::Changed(ours.txid()));
}
