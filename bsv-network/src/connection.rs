//! TCP connections to a node.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower_service::Service;

/// Connects to one node. Ignores the host in the URI.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    /// `host:port`.
    address: Arc<str>,
}

/// A connection that acknowledges received data at once.
///
/// A node sends the head of many answers before their body (those in chunks: `getblockheader`,
/// `getrawtransaction`), and holds the body until the head is acknowledged. Linux by itself delays
/// that acknowledgement by 40 milliseconds.
#[derive(Debug)]
pub(crate) struct NodeConnection(TokioIo<TcpStream>);

impl Connector {
    pub(crate) fn new(address: String) -> Self {
        Self { address: address.into() }
    }
}

impl Service<Uri> for Connector {
    type Response = NodeConnection;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<NodeConnection>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let address = Arc::clone(&self.address);
        Box::pin(async move {
            let stream = TcpStream::connect(&*address).await?;
            stream.set_nodelay(true)?;
            Ok(NodeConnection(TokioIo::new(stream)))
        })
    }
}

impl Connection for NodeConnection {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Read for NodeConnection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.0).poll_read(cx, buf);
        #[cfg(target_os = "linux")]
        if read.is_ready() {
            // The option covers only what has arrived, so it is set after each read. Without it,
            // answers only take longer.
            let _ = self.0.inner().set_quickack(true);
        }
        read
    }
}

impl Write for NodeConnection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, bufs)
    }
}
