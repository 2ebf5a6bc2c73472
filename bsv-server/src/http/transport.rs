use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, TlsAcceptor};

use super::write_timeout::WriteTimeout;

/// A connection with or without TLS. The TLS handshake takes place while the first bytes are
/// awaited. So the time for the head of a request also limits the handshake, and the connection can
/// be given up during the handshake. The write time-out is beneath TLS, which may hold back the end
/// of an answer.
pub(super) enum Transport<C> {
    Clear(WriteTimeout<C>),
    Handshake(Box<Accept<WriteTimeout<C>>>),
    Tls(Box<TlsStream<WriteTimeout<C>>>),
    /// The handshake failed.
    Failed,
}

impl<C: AsyncRead + AsyncWrite + Unpin> Transport<C> {
    pub(super) fn new(connection: WriteTimeout<C>, acceptor: Option<&TlsAcceptor>) -> Self {
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
            // No answer was begun that the peer could be waiting for.
            Self::Handshake(_) | Self::Failed => Poll::Ready(Ok(())),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
    use rustls::{ClientConfig, RootCertStore, ServerConfig, crypto::ring};
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio_rustls::{TlsConnector, client};

    use super::*;
    use crate::http::connections::Activity;

    const AUTHORITY: &[u8] = include_bytes!("../../../tests/vectors/tls/authority.pem");
    const CERTIFICATE: &[u8] = include_bytes!("../../../tests/vectors/tls/payee.pem");
    const KEY: &[u8] = include_bytes!("../../../tests/vectors/tls/payee.key");

    /// Two ends after the handshake. The server's end gives up after 30 seconds.
    async fn ends() -> (Transport<DuplexStream>, client::TlsStream<DuplexStream>) {
        let provider = Arc::new(ring::default_provider());
        let certificate = |pem| CertificateDer::from_pem_slice(pem).unwrap();
        let server = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(
                vec![certificate(CERTIFICATE)],
                PrivateKeyDer::from_pem_slice(KEY).unwrap(),
            )
            .unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certificate(AUTHORITY)).unwrap();
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        let (near, far) = duplex(1 << 10);
        let activity = Activity::since(Instant::now());
        let near = WriteTimeout::new(near, Duration::from_secs(30), activity);
        let mut near = Transport::new(near, Some(&TlsAcceptor::from(Arc::new(server))));
        let connector = TlsConnector::from(Arc::new(client));
        let far = connector.connect(ServerName::try_from("127.0.0.1").unwrap(), far);
        let greet = async { near.read_exact(&mut [0; 5]).await };
        let greeted = async {
            let mut far = far.await.unwrap();
            far.write_all(b"hello").await.unwrap();
            far
        };
        let (greeting, far) = tokio::join!(greet, greeted);
        assert_eq!(greeting.unwrap(), 5);
        (near, far)
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_of_what_waits_to_be_sent_is_given_up() {
        let (mut server, _client) = ends().await;
        let started = tokio::time::Instant::now();
        // All of it fits into the buffer of TLS.
        server.write_all(&[0; 4 << 10]).await.unwrap();
        assert_eq!(server.flush().await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        assert!((30..32).contains(&started.elapsed().as_secs()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_a_little_now_and_then_is_served() {
        let (mut server, mut client) = ends().await;
        let reader = tokio::spawn(async move {
            for _ in 0..10 {
                tokio::time::sleep(Duration::from_secs(29)).await;
                client.read_exact(&mut [0; 16 << 10]).await.unwrap();
            }
        });
        server.write_all(&[0; 160 << 10]).await.unwrap();
        server.flush().await.unwrap();
        reader.await.unwrap();
    }
}
