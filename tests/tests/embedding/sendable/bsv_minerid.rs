use std::future::Ready;
use std::sync::Arc;

use bsv_minerid::MinerIds;
use bsv_minerid::node::{
    carries_identity, check_newest_copy, gather, observe_miner_ids, observe_vctxs,
    preview_vctx_sweep, revoke_miner_ids, revoke_vctx, set_up_vctx, sweep_vctx,
};
use bsv_minerid::store::IdentityStore;
use bsv_network::NodeRpc;

use super::{any, is_send, is_spawnable};

pub(super) fn miner_ids<S: IdentityStore>(ids: &Arc<MinerIds<S>>, node: &NodeRpc) {
    is_spawnable(Arc::clone(ids).run(any::<Ready<()>>()));
    is_send(ids.on_disk(|_| Ok(())));
    is_send(ids.catch_up(any(), any(), any()));
    is_send(set_up_vctx(ids, node, any(), any()));
    is_send(revoke_vctx(ids, node, any()));
    is_send(observe_vctxs(ids, node));
    is_send(observe_miner_ids(ids, node));
    is_send(check_newest_copy(ids, node, any()));
    is_send(carries_identity(node, any()));
    is_send(ids.rotate(Some(node), any(), any()));
    is_send(revoke_miner_ids(ids, node, any(), any(), any()));
    is_send(ids.import(Some(node), any(), any()));
    is_send(preview_vctx_sweep(ids, node, any(), any(), any()));
    is_send(sweep_vctx(ids, node, any(), any(), any()));
    is_send(gather(node, any(), any()));
}
