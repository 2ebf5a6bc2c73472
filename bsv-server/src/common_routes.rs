use hyper::Method;

use crate::health::{self, Health};
use crate::http::{Declared, Matched, Missed, Routes};
use crate::surface::Surface;

/// The paths that listeners have besides those of their services, also where a service cannot be used.
#[derive(Debug)]
pub(crate) struct CommonRoutes {
    everywhere: Routes<Route>,
    with_metrics: Routes<Route>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Route {
    Health(health::Route),
    Metrics,
}

const METRICS: Declared<Route> = ("/metrics", "GET, HEAD", Route::Metrics);

impl CommonRoutes {
    pub(crate) fn new() -> Self {
        let [everywhere, with_metrics] =
            [Surface::Payments, Surface::Wallet].map(|surface| Routes::new(declared(surface)));
        Self { everywhere, with_metrics }
    }

    /// The route of a path and a method on a surface.
    pub(crate) fn find<'a>(
        &'a self,
        surface: Surface,
        path: &'a str,
        method: &Method,
    ) -> Result<Matched<'a, Route>, Missed> {
        self.of(surface).find(path, method)
    }

    /// The pattern that a path fits on a surface, if there is something.
    pub(crate) fn pattern(&self, surface: Surface, path: &str) -> Option<&'static str> {
        self.of(surface).pattern(path)
    }

    /// The patterns of all paths on a surface.
    pub(crate) fn patterns(surface: Surface) -> impl Iterator<Item = &'static str> {
        declared(surface).map(|(pattern, ..)| pattern)
    }

    fn of(&self, surface: Surface) -> &Routes<Route> {
        if has_metrics(surface) { &self.with_metrics } else { &self.everywhere }
    }
}

fn declared(surface: Surface) -> impl Iterator<Item = Declared<Route>> {
    let health = Health::declared();
    let health = health.map(|(pattern, methods, route)| (pattern, methods, Route::Health(route)));
    health.chain(has_metrics(surface).then_some(METRICS))
}

/// Strangers and nodes are told nothing of what goes on.
fn has_metrics(surface: Surface) -> bool {
    matches!(surface, Surface::MinerId | Surface::Wallet)
}
