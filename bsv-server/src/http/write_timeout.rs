use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use super::connections::Activity;

/// A connection that is broken off when its peer takes nothing of an answer for too long.
pub(super) struct WriteTimeout<C> {
    connection: C,
    timeout: Duration,
    activity: Arc<Activity>,
    /// Runs while data waits to be written.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<C> WriteTimeout<C> {
    pub(super) fn new(connection: C, timeout: Duration, activity: Arc<Activity>) -> Self {
        Self { connection, timeout, activity, stalled: None }
    }

    /// Passes on the result of writing, or an error after too long a wait.
    fn watch<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            if self.stalled.take().is_some() {
                self.activity.set_stalled(false);
            }
            return written;
        }
        let (timeout, activity) = (self.timeout, &self.activity);
        let stalled = self.stalled.get_or_insert_with(|| {
            activity.set_stalled(true);
            Box::pin(sleep(timeout))
        });
        ready!(stalled.as_mut().poll(context));
        // A further poll must end at once again.
        stalled.as_mut().reset(Instant::now());
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for WriteTimeout<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_read(context, buffer)
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<C> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.connection).poll_write(context, bytes);
        self.watch(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.connection).poll_write_vectored(context, parts);
        self.watch(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    fn timed<C>(connection: C) -> WriteTimeout<C> {
        let activity = Activity::since(std::time::Instant::now());
        WriteTimeout::new(connection, Duration::from_secs(30), activity)
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_nothing_for_long_is_given_up() {
        let (server, _client) = duplex(8);
        let mut server = timed(server);
        let started = Instant::now();
        let error = server.write_all(&[0; 9]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!((30..32).contains(&started.elapsed().as_secs()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_takes_a_little_now_and_then_is_served() {
        let (server, mut client) = duplex(8);
        let mut server = timed(server);
        let reader = tokio::spawn(async move {
            for _ in 0..10 {
                sleep(Duration::from_secs(29)).await;
                client.read_exact(&mut [0; 8]).await.unwrap();
            }
        });
        server.write_all(&[0; 80]).await.unwrap();
        reader.await.unwrap();
    }
}
