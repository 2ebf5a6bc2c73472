use hyper::Method;

use crate::health::{self, Health};
use crate::http::{Declared, Matched, NoRoute, Routes};
use crate::openapi;
use crate::surface::Surface;

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
        let routes = |surface| Routes::new(declared(surface));
        Self {
            wallet: routes(Surface::Wallet),
            payments: routes(Surface::Payments),
            minerid: routes(Surface::MinerId),
            others: routes(Surface::Node),
        }
    }

    /// The route for a path and a method on a surface.
    pub(crate) fn find<'a>(
        &'a self,
        surface: Surface,
        path: &'a str,
        method: &Method,
    ) -> Result<Matched<'a, Route>, NoRoute> {
        self.of(surface).find(path, method)
    }

    /// The pattern that matches a path on a surface, if there is one.
    pub(crate) fn pattern(&self, surface: Surface, path: &str) -> Option<&'static str> {
        self.of(surface).pattern(path)
    }

    /// The patterns of all paths on a surface, with their methods.
    pub(crate) fn paths(surface: Surface) -> impl Iterator<Item = (&'static str, &'static str)> {
        declared(surface).map(|(pattern, methods, _)| (pattern, methods))
    }

    fn of(&self, surface: Surface) -> &Routes<Route> {
        match surface {
            Surface::Wallet => &self.wallet,
            Surface::Payments => &self.payments,
            Surface::MinerId => &self.minerid,
            Surface::Node | Surface::Control => &self.others,
        }
    }
}

fn declared(surface: Surface) -> impl Iterator<Item = Declared<Route>> {
    let health = Health::declared();
    let health = health.map(|(pattern, methods, route)| (pattern, methods, Route::Health(route)));
    let openapi = openapi::document(surface);
    let openapi = openapi.map(|(path, document)| (path, "GET, HEAD", Route::OpenApi(document)));
    health.chain(has_metrics(surface).then_some(METRICS)).chain(openapi)
}

/// Whether a surface has metrics. Strangers and nodes get none.
fn has_metrics(surface: Surface) -> bool {
    matches!(surface, Surface::MinerId | Surface::Wallet)
}
