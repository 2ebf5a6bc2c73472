use std::borrow::Cow;
use std::str::FromStr;

use bytes::Bytes;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, StatusCode, Uri};
use matchit::{Params, Router};

use super::Problem;

/// The declaration of a route: its path pattern, such as `/minerid/{alias}`, its methods, such as
/// `GET, HEAD`, and its value.
pub(crate) type Declared<R> = (&'static str, &'static str, R);

/// The paths that a service answers.
#[derive(Debug)]
pub(crate) struct Routes<R>(Router<Declared<R>>);

/// A matched route, with the values of the names in its pattern.
pub(crate) struct Matched<'a, R> {
    pub(crate) pattern: &'static str,
    pub(crate) route: R,
    pub(crate) params: Params<'a, 'a>,
}

/// A request whose body has arrived.
#[derive(Clone, Copy)]
pub(crate) struct Received<'a> {
    pub(crate) head: &'a Parts,
    pub(crate) body: &'a Bytes,
}

impl<'a> Received<'a> {
    pub(crate) fn method(self) -> &'a Method {
        &self.head.method
    }

    pub(crate) fn uri(self) -> &'a Uri {
        &self.head.uri
    }

    pub(crate) fn headers(self) -> &'a HeaderMap {
        &self.head.headers
    }

    pub(crate) fn body(self) -> &'a Bytes {
        self.body
    }
}

/// Why no route was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoute {
    /// The path does not exist.
    Path,
    /// The path exists, but only with these methods.
    Method(&'static str),
}

impl<R: Copy> Routes<R> {
    pub(crate) fn new(routes: impl IntoIterator<Item = Declared<R>>) -> Self {
        let mut router = Router::new();
        for route in routes {
            router.insert(route.0, route).expect("the paths do not contradict each other");
        }
        Self(router)
    }

    /// The route for a path and a method.
    pub(crate) fn find<'a>(
        &'a self,
        path: &'a str,
        method: &Method,
    ) -> Result<Matched<'a, R>, NoRoute> {
        let matched = self.0.at(path).map_err(|_| NoRoute::Path)?;
        let (pattern, methods, route) = *matched.value;
        match methods.split(", ").any(|known| known == method.as_str()) {
            true => Ok(Matched { pattern, route, params: matched.params }),
            false => Err(NoRoute::Method(methods)),
        }
    }

    /// The pattern that matches a path.
    pub(crate) fn pattern(&self, path: &str) -> Option<&'static str> {
        self.0.at(path).ok().map(|matched| matched.value.0)
    }
}

impl<R> Matched<'_, R> {
    /// The part of the path for a name in the pattern.
    pub(crate) fn param(&self, name: &str) -> &str {
        self.params.get(name).unwrap_or_default()
    }
}

/// The parameters of a query, decoded (`application/x-www-form-urlencoded`).
pub(crate) fn parameters(uri: &Uri) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes())
}

/// The fault of an unknown parameter.
pub(crate) const UNKNOWN_PARAMETER: &str = "is not known here";

/// Refuses a request that has any query parameters, and names them.
pub(crate) fn refuse_parameters(uri: &Uri) -> Result<(), Problem> {
    read_parameters(uri, |_, _| Err(UNKNOWN_PARAMETER.to_owned())).unless_faulty(())
}

/// The problem of a query that has no fault yet.
pub(crate) fn query_problem() -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "invalid-query", "the query cannot be answered")
}

/// Hands each parameter of a query to `set`. The problem names those that it refuses.
pub(crate) fn read_parameters(
    uri: &Uri,
    mut set: impl FnMut(&str, &str) -> Result<(), String>,
) -> Problem {
    parameters(uri).fold(query_problem(), |problem, (name, value)| match set(&name, &value) {
        Ok(()) => problem,
        Err(message) => problem.with_field(&name, &[message]),
    })
}

/// The number that the query gives for `name`. No other parameter is allowed.
pub(crate) fn number_parameter<T: FromStr>(uri: &Uri, name: &str) -> Result<Option<T>, Problem> {
    let mut number = None;
    for (key, value) in parameters(uri) {
        match value.parse() {
            Ok(value) if key == name && number.is_none() => number = Some(value),
            _ => {
                let detail = format!("the query must be {name}=<number>");
                return Err(Problem::of_status(StatusCode::BAD_REQUEST, detail));
            }
        }
    }
    Ok(number)
}
