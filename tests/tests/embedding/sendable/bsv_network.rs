use std::sync::Arc;

use bsv_network::broadcasters::{Broadcaster, BroadcasterSet, EventStream};
use bsv_network::headers::{Chaintracks, HeaderFollower, HeaderSource, Locator, Peer};
use bsv_network::{BlockStream, NetworkSource, NodeRpc, TransactionFeed};
use tokio::net::TcpStream;

use super::{any, is_send};

pub(super) fn node(
    node: &NodeRpc,
    blocks: &mut BlockStream<'_>,
    feed: &mut TransactionFeed,
    text: &str,
) {
    is_send(node.call(text, any()));
    is_send(node.tip());
    is_send(node.has_all_blocks());
    is_send(node.unspent_output(any(), any()));
    is_send(node.outputs(any(), any()));
    is_send(node.transaction(any()));
    is_send(node.transaction_place(any()));
    is_send(node.transaction_places(any()));
    is_send(node.mempool_ancestors(any()));
    is_send(node.send_transaction(any()));
    is_send(node.import_address(any()));
    is_send(node.coins_of(any()));
    is_send(node.wallet_balance());
    is_send(node.send_to_address(any(), any()));
    is_send(node.generate(any()));
    is_send(node.policy());
    is_send(node.block(any()));
    is_send(blocks.next());
    is_send(node.block_again(any()));
    is_send(node.merkle_proof(any()));
    is_send(node.block_coinbase(any()));
    is_send(node.merkle_branch(any(), any()));
    is_send(node.has_transaction_index());
    is_send(node.block_header(any()));
    is_send(node.wait_for_height(any(), any()));
    is_send(node.block_hash(any()));
    is_send(node.transaction_feed_address());
    is_send(node.version());
    is_send(node.network());
    is_send(node.has_miner_ids());
    is_send(node.parameters());
    is_send(node.wallet_transaction(any()));
    is_send(node.unlock_coins(any()));
    is_send(node.mempool());
    is_send(node.mempool_entry(any()));
    is_send(node.mempool_entries(any()));
    is_send(node.submit_transaction(any()));
    is_send(node.miner_id_info(any()));
    is_send(node.latest_block_of(any()));
    is_send(node.revoke_miner_id(any()));
    is_send(TransactionFeed::connect(text));
    is_send(feed.next());
}

pub(super) fn source(source: &NetworkSource) {
    is_send(source.header(any()));
    is_send(source.header_at(any()));
    is_send(source.block_at(any()));
    is_send(source.unmined());
    is_send(source.entries(any()));
    is_send(source.unmined_ancestors(any()));
    is_send(source.feed_address());
    is_send(source.place(any()));
    is_send(source.places(any()));
    is_send(source.blind_spot());
    is_send(source.ask_fees());
    is_send(source.listen(|_| ()));
    is_send(source.confirms(any()));
    is_send(source.sight(any(), any()));
    is_send(source.mined_in(any()));
    is_send(source.coins(any()));
    is_send(source.offer(any()));
    is_send(source.show(any()));
    is_send(source.fate(any()));
}

pub(super) fn broadcaster(
    broadcaster: &Broadcaster,
    set: &BroadcasterSet,
    events: &mut EventStream,
) {
    is_send(broadcaster.send(any()));
    is_send(broadcaster.status(any()));
    is_send(broadcaster.fee_rate());
    is_send(broadcaster.health());
    is_send(set.send(any(), any(), any()));
    is_send(set.ask(any(), any(), any(), |_| true));
    is_send(set.ask_fees());
    is_send(events.next());
}

pub(super) fn headers(
    source: &mut HeaderSource,
    service: &Chaintracks,
    peer: &mut Peer,
    locator: &Locator,
    follower: &Arc<HeaderFollower>,
    stream: TcpStream,
) {
    is_send(Peer::connect(any(), any()));
    is_send(Peer::greet(any(), any(), stream));
    is_send(follower.follow());
    is_send(follower.catch_up(any()));
    is_send(peer.headers_after(locator));
    is_send(peer.announcement());
    is_send(service.headers_after(locator));
    is_send(service.claimed_height());
    is_send(source.headers_after(locator));
    is_send(source.claimed_height());
    is_send(source.catch_up(any(), || 0));
}
