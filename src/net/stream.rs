//! One type for every kind of byte stream: TCP, Unix, TLS from either end, and what is compressed over one of them.

use std::io::{self, IoSlice};
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::{TlsAcceptor, TlsConnector, client, server};

use super::compressed::Compressed;
use crate::protocol::compression::Algorithm;

/// A connected byte stream.
#[derive(Debug)]
pub enum Stream {
    /// Plain TCP.
    Tcp(TcpStream),
    /// A Unix socket.
    Unix(UnixStream),
    /// TLS over TCP, we are the server.
    TlsServer(Box<server::TlsStream<TcpStream>>),
    /// TLS over TCP, we are the client.
    TlsClient(Box<client::TlsStream<TcpStream>>),
    /// Compressed frames over another stream.
    Compressed(Box<Compressed>),
    /// Nothing: the stream was lost while TLS was starting.
    Lost,
}

impl Stream {
    /// Are the bytes encrypted?
    #[must_use]
    pub fn is_tls(&self) -> bool {
        matches!(self.under(), Self::TlsServer(_) | Self::TlsClient(_))
    }

    /// Is it a Unix socket?
    #[must_use]
    pub fn is_local(&self) -> bool {
        matches!(self.under(), Self::Unix(_))
    }

    /// Do the bytes travel in compressed frames?
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        matches!(self, Self::Compressed(_))
    }

    /// May it hold written bytes back until it is flushed?
    #[must_use]
    pub fn holds_back(&self) -> bool {
        matches!(self, Self::TlsServer(_) | Self::TlsClient(_) | Self::Compressed(_))
    }

    /// The stream itself, or what is under its frames.
    fn under(&self) -> &Self {
        match self {
            Self::Compressed(stream) => stream.inner(),
            _ => self,
        }
    }

    /// Compresses all that is read and written from here on; `buffer` bytes are borrowed at a time in either direction.
    pub fn compress(&mut self, algorithm: Algorithm, buffer: usize) {
        debug_assert!(!self.is_compressed(), "compressing once is enough");
        let stream = std::mem::replace(self, Self::Lost);
        *self = Self::Compressed(Box::new(Compressed::new(stream, algorithm, buffer)));
    }

    /// What is written from now on answers the next command, or nothing that was asked: frames count from there.
    pub fn begin_reply(&mut self) {
        if let Self::Compressed(stream) = self {
            stream.begin();
        }
    }

    /// Our own address, if it is a TCP connection.
    #[must_use]
    pub fn local_address(&self) -> Option<IpAddr> {
        let address = match self.under() {
            Self::Tcp(stream) => stream.local_addr(),
            Self::TlsServer(stream) => stream.get_ref().0.local_addr(),
            Self::TlsClient(stream) => stream.get_ref().0.local_addr(),
            Self::Unix(_) | Self::Compressed(_) | Self::Lost => return None,
        };
        address.ok().map(|address| address.ip().to_canonical())
    }

    /// Wraps a plain TCP stream in TLS, as the server. If that fails, the stream is lost.
    ///
    /// # Errors
    /// What the handshake says; anything but plain TCP is `InvalidInput`.
    pub async fn accept_tls(&mut self, acceptor: &TlsAcceptor) -> io::Result<()> {
        match std::mem::replace(self, Self::Lost) {
            Self::Tcp(tcp) => {
                *self = Self::TlsServer(Box::new(acceptor.accept(tcp).await?));
                Ok(())
            }
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "TLS starts on a plain TCP stream only")),
        }
    }

    /// Wraps a plain TCP stream in TLS, as the client of a server called `name`.
    ///
    /// # Errors
    /// What the handshake says; anything but plain TCP is `InvalidInput`.
    pub async fn connect_tls(
        self,
        connector: &TlsConnector,
        name: rustls::pki_types::ServerName<'static>,
    ) -> io::Result<Self> {
        match self {
            Self::Tcp(tcp) => Ok(Self::TlsClient(Box::new(connector.connect(name, tcp).await?))),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "TLS starts on a plain TCP stream only")),
        }
    }

    /// Is there something to read, or the end of the stream? Takes no buffer to find out.
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::Tcp(stream) => stream.poll_read_ready(cx),
            Self::Unix(stream) => stream.poll_read_ready(cx),
            Self::TlsServer(stream) => stream.get_ref().0.poll_read_ready(cx),
            Self::TlsClient(stream) => stream.get_ref().0.poll_read_ready(cx),
            Self::Compressed(stream) => return stream.poll_readable(cx),
            Self::Lost => return Poll::Ready(()),
        }
        .map(|_| ())
    }

    /// Is this idle stream still open and silent? Costs a system call only if something happened to it.
    pub fn is_silent(&mut self) -> bool {
        let mut byte = [0; 1];
        let mut room = ReadBuf::new(&mut byte);
        Pin::new(self).poll_read(&mut Context::from_waker(Waker::noop()), &mut room).is_pending()
    }
}

/// Calls the same method on whatever stream it is.
macro_rules! each {
    ($self:ident, $stream:ident => $call:expr) => {
        match $self.get_mut() {
            Stream::Lost => Poll::Ready(Err(io::ErrorKind::NotConnected.into())),
            Stream::Tcp($stream) => $call,
            Stream::Unix($stream) => $call,
            Stream::TlsServer($stream) => $call,
            Stream::TlsClient($stream) => $call,
            Stream::Compressed($stream) => $call,
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_read(cx, buf))
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write(cx, buf))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, stream => Pin::new(stream).poll_shutdown(cx))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, stream => Pin::new(stream).poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }
}
