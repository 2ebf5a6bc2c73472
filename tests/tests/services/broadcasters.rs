//! The clients of broadcasters in `bsv-network`.

use bsv_network::SecretString;
use bsv_network::broadcasters::{Answer, Broadcaster, BroadcasterError, Dialect, Word};
use bsv_tests::ancestry::{bump, previous_outputs};
use bsv_tests::payee::output;
use bsv_tests::purse::{FEE, knows};
use bsv_tests::services::{Cut, Path, Word as Said};
use bsv_tx::{ExtendedTransaction, Transaction};
use tokio::runtime::Runtime;

use super::{Scene, http_client};

const DIALECTS: [Dialect; 2] = [Dialect::Arcade, Dialect::Arc];

type Told = Result<Answer, BroadcasterError>;

/// The answers of both dialects.
fn both(scene: &Scene, ask: impl AsyncFn(&Broadcaster) -> Told) -> [Told; 2] {
    let runtime = Runtime::new().unwrap();
    DIALECTS.map(|dialect| {
        let key = SecretString::from("key");
        let broadcaster =
            Broadcaster::new(dialect, http_client(), scene.service.url()).with_api_key(key);
        runtime.block_on(ask(&broadcaster))
    })
}

fn send(scene: &Scene, transaction: &Transaction) -> [Told; 2] {
    let spent = previous_outputs(&scene.node, transaction);
    let extended = ExtendedTransaction::new(transaction.clone(), spent).unwrap();
    both(scene, async |broadcaster| broadcaster.send(&extended).await)
}

fn words(told: [Told; 2]) -> [Word; 2] {
    told.map(|told| told.unwrap().word)
}

fn states(scene: &Scene, transaction: &Transaction) -> [Answer; 2] {
    let txid = transaction.txid();
    both(scene, async |broadcaster| broadcaster.status(&txid).await).map(Result::unwrap)
}

#[test]
fn a_payment_is_taken_and_proved() {
    let scene = Scene::new(1);
    let payment = scene.payment();
    assert_eq!(states(&scene, &payment).map(|it| it.word), [Word::Unknown, Word::Unknown]);
    for word in words(send(&scene, &payment)) {
        assert!(matches!(word, Word::Taken | Word::Open), "{word:?}");
    }
    assert!(knows(&scene.node, &payment));
    assert_eq!(states(&scene, &payment).map(|it| it.word), [Word::Taken, Word::Taken]);
    scene.node.mine(1);
    let root = bump(&scene.node, &payment.txid()).root();
    for Answer { word, path } in states(&scene, &payment) {
        // Nobody's word says that it is mined.
        assert_eq!((word, path.map(|path| path.root())), (Word::Open, Some(root)));
    }
    for (path, is_told) in [(Path::Missing, false), (Path::Foreign, false), (Path::Shifted, true)] {
        scene.service.change(|mood| mood.path = path);
        for Answer { path, .. } in states(&scene, &payment) {
            // A wrong path that names the transaction is told, and leads to no header.
            assert_eq!(path.as_ref().is_some(), is_told);
            assert!(path.is_none_or(|path| path.root() != root));
        }
    }
}

#[test]
fn refusals_are_told_apart() {
    let scene = Scene::new(2);
    let coin = scene.purse.coin();
    let first = scene.purse.spend(&[coin], vec![output(1_000)], FEE);
    let rival = scene.purse.spend(&[coin], vec![output(2_000)], FEE);
    let cheap = scene.purse.spend(&[scene.purse.coin()], vec![output(1_000)], 1);
    assert!(send(&scene, &first).iter().all(Result::is_ok));
    let [arcade, arc] = words(send(&scene, &rival));
    // Arcade answers before the network judges.
    assert_eq!(arcade, Word::Open);
    assert!(matches!(arc, Word::Rival { .. }), "{arc:?}");
    for Answer { word, .. } in states(&scene, &rival) {
        assert!(matches!(word, Word::Rival { spenders, .. } if spenders == [first.txid()]));
    }
    let [arcade, arc] = words(send(&scene, &cheap));
    assert!(matches!(arcade, Word::Refused { code: Some(465), .. }), "{arcade:?}");
    // The services remember the refusal, and ARC shows no code with a state.
    assert!(matches!(arc, Word::Rejected { .. }), "{arc:?}");
    let said = Said { status: "REJECTED", code: None, extra_info: "parent rejected: it" };
    scene.service.change(|mood| mood.says = Some(said));
    assert_eq!(states(&scene, &first).map(|it| it.word), [Word::NotYet, Word::NotYet]);
}

#[test]
fn trouble_is_no_verdict() {
    let scene = Scene::new(1);
    let payment = scene.payment();
    scene.service.change(|mood| mood.api_key = Some("another key".to_owned()));
    for told in send(&scene, &payment) {
        assert_eq!(told, Err(BroadcasterError::Unauthorized(401)));
    }
    scene.service.change(|mood| mood.api_key = Some("key".to_owned()));
    scene.service.change(|mood| mood.condition = Some((503, Some(7))));
    for told in send(&scene, &payment) {
        assert!(matches!(told, Err(BroadcasterError::Busy { status: 503, retry_after: Some(_) })));
    }
    scene.service.change(|mood| mood.condition = None);
    for cut in [Cut::Request, Cut::Answer, Cut::Body] {
        scene.service.change(|mood| mood.cut = Some(cut));
        for told in send(&scene, &payment) {
            assert!(matches!(told, Err(BroadcasterError::Unreachable(_))), "{cut:?}: {told:?}");
        }
    }
    scene.service.change(|mood| mood.cut = None);
    // It took the payment although its answers were lost.
    assert_eq!(states(&scene, &payment).map(|it| it.word), [Word::Taken, Word::Taken]);
    scene.service.change(|mood| mood.nonsense = Some("<html>".to_owned()));
    for told in send(&scene, &payment) {
        assert!(matches!(told, Err(BroadcasterError::Nonsense(_))), "{told:?}");
    }
}

#[test]
fn the_fee_rate_is_that_of_the_policy() {
    let scene = Scene::new(0);
    scene.service.change(|mood| mood.fee = (5, 20));
    let runtime = Runtime::new().unwrap();
    for dialect in DIALECTS {
        let broadcaster = Broadcaster::new(dialect, http_client(), scene.service.url());
        assert_eq!(runtime.block_on(broadcaster.fee_rate()), Ok(250));
    }
}
