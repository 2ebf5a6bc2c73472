use std::borrow::Cow;

use hyper::{Method, Uri};
use matchit::{Params, Router};

/// The paths that a service answers, as patterns such as `/minerid/{alias}`.
#[derive(Debug)]
pub(crate) struct Routes<R>(Router<(&'static str, R)>);

impl<R: Copy> Routes<R> {
    pub(crate) fn new(routes: impl IntoIterator<Item = (&'static str, R)>) -> Self {
        let mut router = Router::new();
        for (pattern, route) in routes {
            router
                .insert(pattern, (pattern, route))
                .expect("the paths do not contradict each other");
        }
        Self(router)
    }

    /// The route of a path, and what stands in it for the names in the pattern.
    pub(crate) fn at<'r, 'p>(&'r self, path: &'p str) -> Option<(R, Params<'r, 'p>)> {
        let matched = self.0.at(path).ok()?;
        Some((matched.value.1, matched.params))
    }

    /// The pattern that a path fits.
    pub(crate) fn pattern(&self, path: &str) -> Option<&'static str> {
        self.0.at(path).ok().map(|matched| matched.value.0)
    }
}

/// Whether a method is among those of a path, such as `GET, HEAD`.
pub(crate) fn has_method(methods: &str, method: &Method) -> bool {
    methods.split(", ").any(|known| known == method.as_str())
}

/// The parameters of a query, decoded (`application/x-www-form-urlencoded`).
pub(crate) fn parameters(uri: &Uri) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes())
}
