use super::managed::Services;
use super::{audit, backup, books, identities, keystore, status, tokens, wallet};
use crate::http::{Answer, Declared, Matched, Problem, Received, Routes};

/// Answers the requests of the command line that no listener offers.
#[derive(Debug)]
pub(crate) struct ControlApi {
    managed: Services,
    routes: Routes<Route>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Route {
    Status,
    Identities(identities::Route),
    Wallet(wallet::Route),
    Keystore(keystore::Route),
    Tokens(tokens::Route),
    Audit(audit::Route),
    Books,
    Backup,
}

impl ControlApi {
    pub(crate) fn new(managed: Services) -> Self {
        Self { managed, routes: Routes::new(declared()) }
    }

    pub(crate) fn routes(&self) -> &Routes<Route> {
        &self.routes
    }

    /// The patterns of all paths, with their methods.
    pub(crate) fn paths() -> impl Iterator<Item = (&'static str, &'static str)> {
        declared().map(|(pattern, methods, _)| (pattern, methods))
    }

    pub(crate) fn managed(&self) -> &Services {
        &self.managed
    }

    /// Answers a request.
    pub(crate) async fn answer(
        &self,
        matched: &Matched<'_, Route>,
        request: Received<'_>,
    ) -> Answer {
        let managed = &self.managed;
        let param = |name| matched.param(name);
        let answered = match matched.route {
            Route::Status => status::answer(managed).await,
            Route::Identities(route) => {
                identities::answer(managed, route, param("alias"), request).await
            }
            Route::Wallet(route) => wallet::answer(managed, route, request).await,
            Route::Keystore(route) => keystore::answer(managed, route, request).await,
            Route::Tokens(route) => tokens::answer(managed, route, param("id"), request).await,
            Route::Audit(route) => audit::answer(managed, route, param("log"), request).await,
            Route::Books => books::answer(managed, request).await,
            Route::Backup => backup::answer(managed, request).await,
        };
        answered.unwrap_or_else(Problem::into_answer)
    }
}

/// The routes of all nouns.
fn declared() -> impl Iterator<Item = Declared<Route>> {
    fn of<R: Copy>(
        routes: &'static [Declared<R>],
        route: fn(R) -> Route,
    ) -> impl Iterator<Item = Declared<Route>> {
        routes.iter().map(move |(pattern, methods, of)| (*pattern, *methods, route(*of)))
    }
    [
        ("/control/status", "GET", Route::Status),
        ("/control/books", "GET", Route::Books),
        ("/control/backup", "GET, POST", Route::Backup),
    ]
    .into_iter()
    .chain(of(identities::ROUTES, Route::Identities))
    .chain(of(wallet::ROUTES, Route::Wallet))
    .chain(of(keystore::ROUTES, Route::Keystore))
    .chain(of(tokens::ROUTES, Route::Tokens))
    .chain(of(audit::ROUTES, Route::Audit))
}
