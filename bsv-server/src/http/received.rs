use bytes::Bytes;
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Uri};

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
