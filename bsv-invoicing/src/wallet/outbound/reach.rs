/// How far a request may lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The owner chose the URL: it may lead anywhere but to where the owner is answered. Redirects lead
    /// to internal addresses only if it led to one itself, and never to a listener of ours.
    Chosen,
    /// A stranger chose the URL, beside one that is internal: not to a listener of ours.
    Anywhere,
    /// A webhook: over TLS to public addresses, and to the networks that are opened for webhooks in either way, but
    /// not to a listener of ours.
    Webhook {
        /// Whether the URL is one of https.
        is_tls: bool,
    },
    /// A stranger chose the URL: to public addresses only, and not to a listener of ours.
    Public,
}
