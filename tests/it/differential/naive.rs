//! A naive multiplexer: what the proxy would be if it forgot something. The tester must notice.
//!
//! It gives every client a connection of its own; but whenever another client has had a turn in between, it does to
//! that connection what sharing it without a restore might have done.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::{Bytes, BytesMut};
use myriad::protocol::capability::CapabilityFlags;
use myriad::protocol::command::{Command, ReplyKind};
use myriad::protocol::frame::{Header, write_packet};
use myriad::protocol::packet::prepare::PrepareOk;
use myriad::protocol::response::{Class, Event, Reply};
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

use crate::support::Wire;

/// What it forgets.
#[derive(Clone, Copy, Debug)]
pub(super) enum Leak {
    /// Nothing: it is as good as the server.
    Nothing,
    /// Another client's statement may have changed this.
    After(&'static str),
    /// Another client's COM_INIT_DB.
    Schema(&'static str),
    /// Several statements in one text are allowed to whoever did not ask.
    SeveralStatements,
    /// The types of parameters that were sent with an earlier execute.
    Types,
    /// It closes what was prepared.
    Statements,
}

/// The multiplexer; it ends when this is dropped.
pub(super) struct Naive {
    pub(super) address: SocketAddr,
    keeper: JoinHandle<()>,
}

impl Naive {
    pub(super) async fn new(server: SocketAddr, leak: Leak) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
        let address = listener.local_addr().expect("an address");
        let keeper = tokio::spawn(async move {
            let mut clients = JoinSet::new();
            let last = Arc::new(AtomicUsize::new(0));
            let mut number = 0;
            while let Ok((stream, _)) = listener.accept().await {
                number += 1;
                let (last, back) = (Arc::clone(&last), Wire::open(server).await);
                stream.set_nodelay(true).expect("no delay");
                let front = Wire::accepted(stream);
                let client =
                    Client { front, back, leak, number, last, eof: false, track: false, params: HashMap::new() };
                // However it ends: the client sees that it is gone.
                clients.spawn(async move { client.serve().await.is_ok() });
                while clients.try_join_next().is_some() {}
            }
        });
        Self { address, keeper }
    }
}

impl Drop for Naive {
    fn drop(&mut self) {
        self.keeper.abort();
    }
}

struct Client {
    front: Wire,
    back: Wire,
    leak: Leak,
    number: usize,
    /// Who had the last turn.
    last: Arc<AtomicUsize>,
    eof: bool,
    track: bool,
    /// Prepared statements, and how many parameters each has.
    params: HashMap<u32, usize>,
}

impl Client {
    async fn serve(mut self) -> io::Result<()> {
        self.log_in(true).await?;
        loop {
            let (header, mut payload) = self.front.frame().await?;
            let command = Command::from_byte(payload.first().copied().unwrap_or_default());
            if self.last.swap(self.number, Ordering::SeqCst) != self.number {
                self.disturb().await?;
                if let (Command::StmtExecute, Leak::Types) = (command, self.leak) {
                    payload = self.without_types(&payload);
                }
            }
            pass(&mut self.back, header, &payload).await?;
            match command.reply() {
                _ if command == Command::Quit => return Ok(()),
                ReplyKind::ChangeUser => self.log_in(false).await?,
                ReplyKind::None => {}
                _ => self.reply(command, true).await?,
            }
        }
    }

    /// A login, or COM_CHANGE_USER, which goes on like one.
    async fn log_in(&mut self, greets: bool) -> io::Result<()> {
        let mut greeting = greets;
        loop {
            let (header, payload) = self.back.frame().await?;
            pass(&mut self.front, header, &payload).await?;
            match &payload[..] {
                [0x00, ..] => return Ok(()),
                [0xff, ..] => return Err(io::ErrorKind::PermissionDenied.into()),
                // The fast way has worked, and the OK follows.
                [0x01, 0x03] => continue,
                _ => {}
            }
            let (header, payload) = self.front.frame().await?;
            if std::mem::take(&mut greeting) {
                let flags = payload.first_chunk().copied().map(u32::from_le_bytes).unwrap_or_default();
                let flags = CapabilityFlags::from_bits_truncate(flags);
                self.eof = flags.contains(CapabilityFlags::CLIENT_DEPRECATE_EOF);
                self.track = flags.contains(CapabilityFlags::CLIENT_SESSION_TRACK);
            }
            pass(&mut self.back, header, &payload).await?;
        }
    }

    /// Reads a reply, for the client or for nobody.
    async fn reply(&mut self, command: Command, wanted: bool) -> io::Result<()> {
        let mut reply = Reply::new(command.reply(), self.eof, self.track).to_frame(0);
        while !reply.is_done() {
            let (header, payload) = self.back.frame().await?;
            let class = reply.classify(header, payload.first().copied()).map_err(|_| io::ErrorKind::InvalidData)?;
            let event = reply.accept(class, header, &payload).map_err(|_| io::ErrorKind::InvalidData)?;
            if class == Class::PrepareOk
                && let Ok(prepared) = PrepareOk::parse(&payload)
            {
                self.params.insert(prepared.statement_id, usize::from(prepared.params));
            }
            if wanted {
                pass(&mut self.front, header, &payload).await?;
            }
            if event == Event::LocalInfile {
                loop {
                    let (header, payload) = self.front.frame().await?;
                    pass(&mut self.back, header, &payload).await?;
                    if payload.is_empty() {
                        break;
                    }
                }
                reply.infile_sent();
            }
        }
        Ok(())
    }

    /// Does what another client on this connection might have done.
    async fn disturb(&mut self) -> io::Result<()> {
        let (command, argument) = match self.leak {
            Leak::Nothing | Leak::Types => return Ok(()),
            Leak::After(sql) => (Command::Query, sql.as_bytes().to_vec()),
            Leak::Schema(name) => (Command::InitDb, name.as_bytes().to_vec()),
            Leak::SeveralStatements => (Command::SetOption, vec![0, 0]),
            Leak::Statements => {
                for id in std::mem::take(&mut self.params).into_keys() {
                    self.back.try_send(Command::StmtClose, &id.to_le_bytes()).await?;
                }
                return Ok(());
            }
        };
        self.back.try_send(command, &argument).await?;
        self.reply(command, false).await
    }

    /// The execute, every parameter being text if it does not say what it is.
    fn without_types(&self, payload: &Bytes) -> Bytes {
        let id = payload.get(1..5).and_then(|id| id.try_into().ok()).map(u32::from_le_bytes);
        let Some(params) = id.and_then(|id| self.params.get(&id)).copied().filter(|params| *params > 0) else {
            return payload.clone();
        };
        let bound = 10 + params.div_ceil(8);
        if payload.get(bound) != Some(&0) {
            return payload.clone();
        }
        let types = [1].into_iter().chain([0xfd, 0x00].repeat(params));
        let (front, values) = (&payload[..bound], &payload[bound + 1..]);
        front.iter().copied().chain(types).chain(values.iter().copied()).collect()
    }
}

async fn pass(to: &mut Wire, header: Header, payload: &[u8]) -> io::Result<()> {
    let mut out = BytesMut::new();
    write_packet(&mut out, header.seq, payload);
    to.try_write(&out).await
}
