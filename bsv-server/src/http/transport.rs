use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, TlsAcceptor};

/// A connection in the clear or over TLS, whose handshake takes place while the first bytes are awaited: the
/// time for the head of a request, and making room, count for it too.
pub(super) enum Transport<C> {
    Clear(C),
    Handshake(Box<Accept<C>>),
    Tls(Box<TlsStream<C>>),
    /// The handshake has failed.
    Failed,
}

impl<C: AsyncRead + AsyncWrite + Unpin> Transport<C> {
    pub(super) fn new(connection: C, acceptor: Option<&TlsAcceptor>) -> Self {
        match acceptor {
            Some(acceptor) => Self::Handshake(Box::new(acceptor.accept(connection))),
            None => Self::Clear(connection),
        }
    }

    fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Self::Handshake(handshake) = self {
            match ready!(Pin::new(handshake).poll(context)) {
                Ok(stream) => *self = Self::Tls(Box::new(stream)),
                Err(error) => {
                    *self = Self::Failed;
                    return Poll::Ready(Err(error));
                }
            }
        }
        Poll::Ready(Ok(()))
    }
}

impl<C: AsyncRead + AsyncWrite + Unpin> AsyncRead for Transport<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_handshake(context))?;
        match &mut *self {
            Self::Clear(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Handshake(_) | Self::Failed => Poll::Ready(Ok(())),
        }
    }
}

impl<C: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Transport<C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_handshake(context))?;
        match &mut *self {
            Self::Clear(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Handshake(_) | Self::Failed => {
                Poll::Ready(Err(io::ErrorKind::NotConnected.into()))
            }
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Clear(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
            Self::Handshake(_) | Self::Failed => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut *self {
            Self::Clear(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
            // Nothing has been said that the peer waits for the end of.
            Self::Handshake(_) | Self::Failed => Poll::Ready(Ok(())),
        }
    }
}
