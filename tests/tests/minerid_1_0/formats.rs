//! Documents and references that the library alone makes, as a node reads them.

use bsv_minerid::formats::{MinerInfo, OperatorMembers, Succession};
use bsv_tests::{Node, Template, miner_info};
use bsv_tx::PrivateKey;

#[test]
fn a_node_believes_a_document_and_its_successor() {
    let node = Node::start();
    node.mine(101);
    miner_info::fund(&node);
    let [first, second, revocation_key] = [(); 3].map(|()| PrivateKey::generate().unwrap());
    let mut document = MinerInfo {
        height: Template::of(&node, 1).height(),
        miner_id: Succession::sign(&first, first.public_key()).unwrap(),
        revocation_key: Succession::sign(&revocation_key, revocation_key.public_key()).unwrap(),
        revocation: None,
        operator: OperatorMembers::from_json(r#"{"minerContact":{"name":"a pool"}}"#).unwrap(),
        data_refs: Vec::new(),
    };
    miner_info::mine_document(&node, &document, &first);
    let [first_id, second_id] = [&first, &second].map(|key| key.public_key().to_string());
    let state = |id: &str, state: &str| (id.to_owned(), state.to_owned());
    assert_eq!(miner_info::states(&node), [[state(&first_id, "CURRENT")]], "{}", node.log());

    document.height += 1;
    document.miner_id = Succession::sign(&first, second.public_key()).unwrap();
    let mined = miner_info::mine_document(&node, &document, &second);
    assert_eq!(mined.height, document.height);
    let states = [[state(&second_id, "CURRENT"), state(&first_id, "ROTATED")]];
    assert_eq!(miner_info::states(&node), states, "{}", node.log());
}
