//! The server: its threads, its listening socket, and how it is started and stopped.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener, TcpStream as StdStream};
use std::rc::Rc;
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::clock::monotonic_ns;
use crate::config::Config;
use crate::connection::Service;
use crate::control;
use crate::error::ServeError;
use crate::schedule::prefer_short_slices;
use crate::stats::{Report, Stats};
use crate::threads::Threads;
use crate::timer::DelayTimer;

const BACKLOG: i32 = 4096;
// How long to leave new connections in the backlog when there is no descriptor for them.
const ACCEPT_PAUSE_NS: u64 = 10_000_000;

/// A running server; it stops when dropped.
#[derive(Debug)]
pub struct Server {
    addr: SocketAddr,
    control_addr: Option<SocketAddr>,
    stats: Arc<Stats>,
    threads: Threads,
}

/// Starts a server. Connections are taken from the moment this returns.
///
/// # Errors
/// If the settings cannot work, an address cannot be used, or the system gives no thread.
pub fn serve(config: &Config) -> Result<Server, ServeError> {
    let faults = config.faults();
    if !faults.is_empty() {
        return Err(ServeError::Config(faults));
    }
    let (listener, addr) = listen(config.listen)?;
    let control = config.control.map(listen).transpose()?;
    let stats = Arc::new(Stats::new(config));
    let mut threads = Threads::new();
    let control_addr = control.as_ref().map(|(_, addr)| *addr);
    if let Some((listener, _)) = control {
        let stats = Arc::clone(&stats);
        threads.start("control", move || control::run(listener, stats))?;
    }
    let mut peers = Vec::new();
    for index in 1..config.threads {
        let (sender, receiver) = unbounded_channel();
        peers.push(sender);
        let (config, stats) = (config.clone(), Arc::clone(&stats));
        threads.start(&format!("serve-{index}"), move || {
            serve_handed_over(config, stats, index, receiver)
        })?;
    }
    let (config, thread_stats) = (config.clone(), Arc::clone(&stats));
    threads.start("serve-0", move || {
        serve_accepted(config, thread_stats, listener, peers)
    })?;
    Ok(Server {
        addr,
        control_addr,
        stats,
        threads,
    })
}

impl Server {
    /// Where requests are served.
    #[must_use]
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Where the control port is, if there is one.
    #[must_use]
    pub fn control_addr(&self) -> Option<SocketAddr> {
        self.control_addr
    }

    /// What was served since the start or the last reset.
    #[must_use]
    pub fn report(&self) -> Report {
        self.stats.report()
    }

    /// Begins a new window of statistics and arrivals; returns the report of the one that ended.
    pub fn reset(&self) -> Report {
        self.stats.reset()
    }

    /// Arrival times since the start or the last reset, up to `Config::record_arrivals` of them: when each request had
    /// been read to its end (`CLOCK_MONOTONIC`, nanoseconds, ascending).
    #[must_use]
    pub fn arrivals(&self) -> Vec<u64> {
        self.stats.arrivals.sorted()
    }

    /// Resolves when a thread failed, after which the server does not serve as it should.
    pub async fn failure(&mut self) -> ServeError {
        self.threads.failure().await
    }

    /// Stops at once, open requests unanswered, and returns the last window's report.
    #[must_use]
    pub fn shutdown(mut self) -> Report {
        self.threads.stop();
        self.stats.report()
    }
}

fn listen(addr: SocketAddr) -> Result<(StdListener, SocketAddr), ServeError> {
    let bind = || {
        let listener = StdListener::bind(addr)?;
        // The standard library's backlog of 128 overflows under a burst of new connections; listening again widens it.
        rustix::net::listen(&listener, BACKLOG)?;
        listener.set_nonblocking(true)?;
        let addr = listener.local_addr()?;
        Ok((listener, addr))
    };
    bind().map_err(|source| ServeError::Listen { addr, source })
}

/// Thread 0: accepts, keeps its share of the connections, hands the others to its peers in turn.
async fn serve_accepted(
    config: Config,
    stats: Arc<Stats>,
    listener: StdListener,
    peers: Vec<UnboundedSender<StdStream>>,
) -> io::Result<Infallible> {
    let (timer, service) = prepare(&config, stats, 0)?;
    let listener = TcpListener::from_std(listener)?;
    let pause = timer.clone();
    while_driven(&timer, async move {
        for turn in (0..=peers.len()).cycle() {
            let tcp = accept(&listener, &pause).await;
            match peers.get(turn) {
                Some(peer) => {
                    if let Ok(tcp) = tcp.into_std() {
                        // A peer that is gone has reported its failure.
                        let _ = peer.send(tcp);
                    }
                }
                None => serve_one(&service, tcp),
            }
        }
        std::future::pending().await
    })
    .await
}

/// Any other thread: serves what thread 0 hands over.
async fn serve_handed_over(
    config: Config,
    stats: Arc<Stats>,
    index: usize,
    mut connections: UnboundedReceiver<StdStream>,
) -> io::Result<Infallible> {
    let (timer, service) = prepare(&config, stats, index)?;
    while_driven(&timer, async move {
        while let Some(tcp) = connections.recv().await {
            serve_one(&service, TcpStream::from_std(tcp)?);
        }
        std::future::pending().await
    })
    .await
}

fn prepare(
    config: &Config,
    stats: Arc<Stats>,
    index: usize,
) -> io::Result<(DelayTimer, Rc<Service>)> {
    // Without it the delay is as true on an idle CPU, and what it is on a busy one is measured.
    let _ = prefer_short_slices();
    let timer = DelayTimer::new()?;
    let service = Service::new(config, stats, timer.clone(), index);
    Ok((timer, Rc::new(service)))
}

async fn while_driven(
    timer: &DelayTimer,
    task: impl Future<Output = io::Result<Infallible>>,
) -> io::Result<Infallible> {
    let driver = timer.clone();
    // A task of its own, so that its many turns do not poll everything else.
    let driver = tokio::task::spawn_local(async move { driver.drive().await });
    tokio::select! {
        ended = driver => ended.map_err(io::Error::other)?,
        ended = task => ended,
    }
}

async fn accept(listener: &TcpListener, timer: &DelayTimer) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((tcp, _)) => return tcp,
            // The peer gave up before its turn.
            Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => {}
            Err(_) => timer.sleep_until(monotonic_ns() + ACCEPT_PAUSE_NS).await,
        }
    }
}

fn serve_one(service: &Rc<Service>, tcp: TcpStream) {
    // Refused only on a socket that is closed already, which serving it then finds.
    let _ = tcp.set_nodelay(true);
    tokio::task::spawn_local(Rc::clone(service).serve(tcp));
}
