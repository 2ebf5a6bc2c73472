use crate::common_routes::CommonRoutes;
use crate::control::ControlApi;
use crate::minerid::MinerIdApi;
use crate::payments::PaymentsApi;
use crate::surface::Surface;
use crate::wallet::WalletApi;

/// The patterns of all paths on a surface, such as `/minerid/{alias}`.
pub fn patterns(surface: Surface) -> Vec<&'static str> {
    paths(surface).into_iter().map(|(pattern, _)| pattern).collect()
}

/// The patterns of all paths, each with its methods, such as `GET, HEAD`.
pub(crate) fn paths(surface: Surface) -> Vec<(&'static str, &'static str)> {
    let mut paths: Vec<_> = CommonRoutes::paths(surface).collect();
    match surface {
        Surface::MinerId => paths.extend(MinerIdApi::paths()),
        Surface::Node => paths.extend(MinerIdApi::node_paths()),
        Surface::Wallet => paths.extend(WalletApi::paths()),
        Surface::Payments => paths.extend(PaymentsApi::paths()),
        Surface::Control => {
            paths.extend(MinerIdApi::paths());
            paths.extend(WalletApi::paths());
            paths.extend(ControlApi::paths());
        }
    }
    paths
}
