use hyper::Method;

use crate::api::Api;
use crate::health::{self, Health};
use crate::http::{Declared, Matched, NoRoute, Routes};
use crate::openapi;

/// The paths that listeners have besides those of their services. These paths also work if a
/// service cannot be used.
#[derive(Debug)]
pub(crate) struct CommonRoutes {
    wallet: Routes<Route>,
    payments: Routes<Route>,
    minerid: Routes<Route>,
    others: Routes<Route>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Route {
    Health(health::Route),
    Metrics,
    /// The OpenAPI document.
    OpenApi(&'static str),
}

const METRICS: Declared<Route> = ("/metrics", "GET, HEAD", Route::Metrics);

impl CommonRoutes {
    pub(crate) fn new() -> Self {
        let routes = |api| Routes::new(declared(api));
        Self {
            wallet: routes(Api::Wallet),
            payments: routes(Api::Payments),
            minerid: routes(Api::MinerId),
            others: routes(Api::Node),
        }
    }

    /// The route for a path and a method of an API.
    pub(crate) fn find<'a>(
        &'a self,
        api: Api,
        path: &'a str,
        method: &Method,
    ) -> Result<Matched<'a, Route>, NoRoute> {
        self.of(api).find(path, method)
    }

    /// The pattern that matches a path of an API, if there is one.
    pub(crate) fn pattern(&self, api: Api, path: &str) -> Option<&'static str> {
        self.of(api).pattern(path)
    }

    /// The patterns of all paths of an API, with their methods.
    pub(crate) fn paths(api: Api) -> impl Iterator<Item = (&'static str, &'static str)> {
        declared(api).map(|(pattern, methods, _)| (pattern, methods))
    }

    fn of(&self, api: Api) -> &Routes<Route> {
        match api {
            Api::Wallet => &self.wallet,
            Api::Payments => &self.payments,
            Api::MinerId => &self.minerid,
            Api::Node | Api::Control => &self.others,
        }
    }
}

fn declared(api: Api) -> impl Iterator<Item = Declared<Route>> {
    let health = Health::declared();
    let health = health.map(|(pattern, methods, route)| (pattern, methods, Route::Health(route)));
    let openapi = openapi::document(api);
    let openapi = openapi.map(|(path, document)| (path, "GET, HEAD", Route::OpenApi(document)));
    health.chain(has_metrics(api).then_some(METRICS)).chain(openapi)
}

/// Whether an API has metrics. Strangers and nodes get none.
fn has_metrics(api: Api) -> bool {
    matches!(api, Api::MinerId | Api::Wallet)
}
