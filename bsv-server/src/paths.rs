use crate::api::Api;
use crate::common_routes::CommonRoutes;
use crate::control::ControlApi;
use crate::minerid::MinerIdApi;
use crate::payments::PaymentsApi;
use crate::wallet::WalletApi;

/// The patterns of all paths of an API, such as `/minerid/{alias}`.
pub fn patterns(api: Api) -> Vec<&'static str> {
    paths(api).into_iter().map(|(pattern, _)| pattern).collect()
}

/// The patterns of all paths, each with its methods, such as `GET, HEAD`.
pub(crate) fn paths(api: Api) -> Vec<(&'static str, &'static str)> {
    let mut paths: Vec<_> = CommonRoutes::paths(api).collect();
    match api {
        Api::MinerId => paths.extend(MinerIdApi::paths()),
        Api::Node => paths.extend(MinerIdApi::node_paths()),
        Api::Wallet => paths.extend(WalletApi::paths()),
        Api::Payments => paths.extend(PaymentsApi::paths()),
        Api::Control => {
            paths.extend(MinerIdApi::paths());
            paths.extend(WalletApi::paths());
            paths.extend(ControlApi::paths());
        }
    }
    paths
}
