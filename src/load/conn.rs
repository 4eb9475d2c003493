//! One connection: socket, TLS and HTTP state. It reads and writes without blocking and reports what happened as
//! [`Signal`]s; what to do about them is the worker's business.

use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::net::{self, RecvFlags, SendFlags};

use super::clock;
use super::http::{Http, Target};
use super::phases::Timeline;
use super::report::ErrorClass;
use super::signal::{InFlight, Signal};
use super::socket::{Dialer, connected, has_peer, tcp_info, transfer_error};
use super::tls::{TlsError, TlsSession};

/// Bytes read at once, into a buffer that all connections of a thread share.
const READ: usize = 64 * 1024;
/// A send buffer that grew beyond this is given back once it is empty.
const KEEP_SEND_BUFFER: usize = 16 * 1024;

/// What connections of one thread share.
#[derive(Debug)]
pub(crate) struct Io {
    read: Box<[u8]>,
    pub(crate) signals: Vec<Signal>,
    /// Bytes read since the last look.
    pub(crate) received: usize,
}

impl Io {
    pub(crate) fn new() -> Self {
        Self {
            read: vec![0; READ].into_boxed_slice(),
            signals: Vec::new(),
            received: 0,
        }
    }
}

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Closed,
    Connecting,
    Handshaking,
    Open,
}

/// Why a connection exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To carry the load's requests.
    Pool,
    /// To be timed; with its intended start.
    Handshake { intended: u64 },
}

#[derive(Debug)]
pub(crate) struct Conn {
    pub(crate) purpose: Purpose,
    pub(crate) stage: Stage,
    /// Changes whenever the slot gets another socket, so that old events and tokens can be told.
    pub(crate) generation: u32,
    pub(crate) timeline: Timeline,
    /// Requests begun on this socket.
    pub(crate) begun: u32,
    /// Responses read on this socket.
    pub(crate) answered: u32,
    /// Requests that wait for this connection to open.
    pub(crate) waiting: Vec<InFlight>,
    /// Wait before the next attempt, after failed ones.
    pub(crate) backoff: u64,
    /// When bytes came last.
    pub(crate) heard: u64,
    /// Since when output is collected; 0 is overdue.
    pub(crate) collected: Option<u64>,
    /// Whether the poller tells when the socket takes bytes.
    pub(crate) watches_writable: bool,
    /// The socket took no more bytes.
    blocked: bool,
    socket: Option<OwnedFd>,
    tls: Option<Box<TlsSession>>,
    /// Whether application data may be sent: TLS is done, or there is none.
    secured: bool,
    http: Http,
    /// Start of a record whose end has not come.
    unread: Vec<u8>,
    unsent: Vec<u8>,
    unsent_from: usize,
}

impl Conn {
    pub(crate) fn new(purpose: Purpose, target: &Target) -> Self {
        Self {
            purpose,
            stage: Stage::Closed,
            generation: 0,
            timeline: Timeline::default(),
            begun: 0,
            answered: 0,
            waiting: Vec::new(),
            backoff: 0,
            heard: 0,
            collected: None,
            watches_writable: false,
            blocked: false,
            socket: None,
            tls: None,
            secured: false,
            http: Http::new(target),
            unread: Vec::new(),
            unsent: Vec::new(),
            unsent_from: 0,
        }
    }

    /// Begins to connect. The ClientHello is made before the clock starts: computing it is the client's time.
    pub(crate) fn open(&mut self, target: &Target, dialer: &mut Dialer) -> Result<(), ErrorClass> {
        debug_assert_eq!(self.stage, Stage::Closed);
        self.stage = Stage::Connecting;
        if let Some(client) = &target.tls {
            let mut session = client.connect()?;
            session.start(&mut self.unsent)?;
            self.tls = Some(Box::new(session));
        }
        self.timeline = Timeline::start(clock::now());
        self.socket = Some(dialer.dial()?);
        Ok(())
    }

    /// The socket, while there is one.
    pub(crate) fn socket(&self) -> Option<&OwnedFd> {
        self.socket.as_ref()
    }

    /// Whether an event is needed when the socket takes bytes.
    pub(crate) fn awaits_writable(&self) -> bool {
        self.blocked || self.stage == Stage::Connecting
    }

    /// Whether the kernel has finished to connect; if so, goes on to TLS. Tells the number of SYN retransmissions.
    pub(crate) fn check_connected(&mut self, io: &mut Io) -> Result<Option<u32>, ErrorClass> {
        let Some(socket) = &self.socket else {
            return Ok(None);
        };
        let info = tcp_info(socket);
        let established = info.map_or_else(|| has_peer(socket), |info| info.established);
        if !established {
            connected(socket)?;
            return Ok(None);
        }
        self.timeline.connected = Some(clock::now());
        self.stage = Stage::Handshaking;
        self.secured = self.tls.is_none();
        self.open_if_ready(io);
        self.flush()?;
        Ok(info.map(|info| info.retransmissions))
    }

    fn open_if_ready(&mut self, io: &mut Io) {
        if self.stage == Stage::Handshaking && self.secured && self.http.is_ready() {
            self.stage = Stage::Open;
            io.signals.push(Signal::Opened);
        }
    }

    /// Whether another request may begin now.
    pub(crate) fn has_room(&self) -> bool {
        self.stage == Stage::Open && self.http.has_room()
    }

    /// Requests that may be open at once.
    pub(crate) fn capacity(&self) -> u32 {
        self.http.capacity()
    }

    /// Whether the server has nothing to do here before the collected output is sent.
    pub(crate) fn is_all_held(&self) -> bool {
        match &self.http {
            Http::H1 { .. } => true,
            Http::H2(connection) => connection.open() == connection.held(),
        }
    }

    /// Whether many requests share the connection, so that sending is worth collecting.
    pub(crate) fn is_multiplexed(&self) -> bool {
        matches!(self.http, Http::H2(_))
    }

    /// Whether the peer wants no more requests here.
    pub(crate) fn is_leaving(&self) -> bool {
        self.http.is_leaving()
    }

    /// Begins a request. Nothing is sent before [`Conn::flush`].
    pub(crate) fn begin(&mut self, target: &Target, request: InFlight) -> Result<(), ErrorClass> {
        debug_assert!(self.has_room());
        self.begun += 1;
        match &mut self.http {
            Http::H1 { current, .. } => {
                *current = Some(request);
                match &mut self.tls {
                    Some(tls) => tls.encrypt(&target.http1, &mut self.unsent)?,
                    None => self.unsent.extend_from_slice(&target.http1),
                }
            }
            Http::H2(connection) => connection.begin(&target.http2, request),
        }
        Ok(())
    }

    /// Requests sent or waiting on this connection.
    pub(crate) fn open_requests(&self) -> usize {
        self.http.open() + self.waiting.len()
    }

    /// Takes what was sent or waited, when the connection is lost.
    pub(crate) fn take_requests(&mut self) -> Vec<InFlight> {
        let mut lost = std::mem::take(&mut self.waiting);
        self.http.take_requests(&mut lost);
        lost
    }

    /// When the oldest open request was sent.
    pub(crate) fn oldest_sent(&self) -> Option<u64> {
        self.http.oldest_sent()
    }

    /// Gives up the requests that were sent at or before `sent`, if the connection can live on without them.
    pub(crate) fn cancel(&mut self, sent: u64, io: &mut Io) -> bool {
        match &mut self.http {
            Http::H2(connection) if self.heard > sent => {
                connection.cancel(sent, &mut io.signals);
                true
            }
            _ => false,
        }
    }

    /// What was agreed on in the TLS handshake.
    pub(crate) fn negotiated(&self) -> Option<super::tls::Negotiated> {
        self.tls.as_ref().map(|tls| tls.negotiated())
    }

    /// Forgets the socket (which resets the connection) and everything about it.
    pub(crate) fn close(&mut self, target: &Target) {
        self.stage = Stage::Closed;
        self.generation = self.generation.wrapping_add(1);
        self.begun = 0;
        self.answered = 0;
        self.collected = None;
        self.blocked = false;
        self.socket = None;
        self.tls = None;
        self.secured = false;
        self.waiting.clear();
        self.http.reset(target);
        self.unread.clear();
        self.unsent.clear();
        self.unsent_from = 0;
    }

    /// Whether something waits to be sent that was not tried yet.
    pub(crate) fn has_output(&self) -> bool {
        let frames = match &self.http {
            Http::H1 { .. } => false,
            Http::H2(connection) => self.secured && !connection.out.is_empty(),
        };
        frames || (!self.blocked && !self.unsent.is_empty())
    }

    /// Sends what is waiting to be sent, as far as the socket takes it.
    pub(crate) fn flush(&mut self) -> Result<(), ErrorClass> {
        if let Http::H2(connection) = &mut self.http
            && self.secured
        {
            // All frames so far go into as few records as possible.
            match &mut self.tls {
                Some(tls) => tls.encrypt(&connection.out, &mut self.unsent)?,
                None => self.unsent.extend_from_slice(&connection.out),
            }
            connection.flushed();
        }
        self.blocked = false;
        let Some(socket) = &self.socket else {
            return Ok(());
        };
        while self.unsent_from < self.unsent.len() {
            match net::send(
                socket,
                &self.unsent[self.unsent_from..],
                SendFlags::NOSIGNAL,
            ) {
                Ok(sent) => self.unsent_from += sent,
                Err(Errno::AGAIN) => {
                    self.blocked = true;
                    return Ok(());
                }
                Err(Errno::INTR) => {}
                Err(errno) => return Err(transfer_error(errno)),
            }
        }
        self.unsent.clear();
        self.unsent_from = 0;
        if self.unsent.capacity() > KEEP_SEND_BUFFER {
            self.unsent.shrink_to(0);
        }
        Ok(())
    }

    /// Reads everything that has come. `closing` when the peer is known to have closed its side.
    pub(crate) fn receive(
        &mut self,
        target: &Target,
        io: &mut Io,
        closing: bool,
    ) -> Result<(), ErrorClass> {
        loop {
            let Some(socket) = &self.socket else {
                return Ok(());
            };
            let kept = self.unread.len();
            io.read[..kept].copy_from_slice(&self.unread);
            match net::recv(socket, &mut io.read[kept..], RecvFlags::empty()) {
                Ok((_, 0)) => return self.end_of_stream(io),
                Ok((_, count)) => {
                    io.received += count;
                    let drained = kept + count < io.read.len();
                    self.unread.clear();
                    self.consume(target, io, kept + count)?;
                    // Edge-triggered: a short read means that the next byte makes a new event.
                    if drained && !closing {
                        return Ok(());
                    }
                }
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(transfer_error(errno)),
            }
        }
    }

    fn consume(&mut self, target: &Target, io: &mut Io, length: usize) -> Result<(), ErrorClass> {
        let now = clock::now();
        self.heard = now;
        let Io { read, signals, .. } = io;
        let data = &mut read[..length];
        let (http, timeline) = (&mut self.http, &mut self.timeline);
        let mut closed = false;
        if let Some(tls) = &mut self.tls {
            timeline.server_hello.get_or_insert(now);
            let received = tls.receive(data, &mut self.unsent, |plain| {
                http.feed(plain, target, timeline, now, signals)
            })?;
            self.unread.extend_from_slice(&data[received.used..]);
            closed = received.closed;
            if received.finished {
                // Later than `now`: checking the server's flight is what takes the client's time.
                self.timeline.finished = Some(clock::now());
                self.secured = true;
                signals.push(Signal::Finished);
            }
        } else {
            http.feed(data, target, timeline, now, signals)?;
        }
        self.open_if_ready(io);
        if closed {
            return self.end_of_stream(io);
        }
        if self.stage == Stage::Handshaking {
            self.flush()?;
        }
        Ok(())
    }

    fn end_of_stream(&mut self, io: &mut Io) -> Result<(), ErrorClass> {
        match self.http.close(clock::now()) {
            Some(answered) => {
                io.signals.push(answered);
                Ok(())
            }
            None => Err(ErrorClass::Closed),
        }
    }
}

impl From<TlsError> for ErrorClass {
    fn from(_: TlsError) -> Self {
        Self::Tls
    }
}
