/// Which addresses a request may reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The owner chose the URL. It may lead anywhere except to the owner's listeners. A redirect
    /// may lead to an internal address only if the URL itself does, and never to a listener of this
    /// process.
    Chosen,
    /// A stranger chose the URL beside one that is internal. It may lead anywhere except to a
    /// listener of this process.
    Anywhere,
    /// A webhook. Over TLS it may lead to public addresses. With or without TLS it may lead to the
    /// networks that are open to webhooks. It must not lead to a listener of this process.
    Webhook {
        /// Whether the scheme is https.
        is_tls: bool,
    },
    /// A stranger chose the URL. It may lead only to public addresses, and not to a listener of
    /// this process.
    Public,
}
