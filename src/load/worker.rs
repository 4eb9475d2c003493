//! One generator thread: an event loop that sends what is due, reads what comes, and measures both.

mod connections;
mod dispatch;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::LoadError;
use super::clock::{self, MS, NEVER};
use super::conn::{Conn, Io, Purpose, Stage};
use super::http::Target;
use super::meter::{Meter, Window};
use super::poller::Poller;
use super::report::ErrorClass;
use super::schedule::{Arrivals, Source};
use super::socket::Dialer;

/// Time between looks at timeouts, reconnects and the backlog.
const TICK: u64 = 5 * MS;
/// Wait before a connection that could not be opened is tried again: first, and at most.
const BACKOFF: (u64, u64) = (MS, 20 * MS);

/// What one thread has to do.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) target: Target,
    pub(crate) address: std::net::SocketAddr,
    pub(crate) source: Source,
    pub(crate) handshakes: Arrivals,
    /// Deadlines per second, for the poller.
    pub(crate) rate: f64,
    /// Whether to spin while an answer or an arrival is near.
    pub(crate) spin: bool,
    /// When each persistent connection of this thread is opened first; empty times mean on demand.
    pub(crate) open_at: Vec<u64>,
    /// Whether output of multiplexed connections is collected while more answers are to come.
    pub(crate) collect: bool,
    /// Requests per connection.
    pub(crate) per_connection: Option<u32>,
    pub(crate) timeout: u64,
    pub(crate) connect_timeout: u64,
    pub(crate) window: Window,
    pub(crate) drain_end: u64,
}

/// How the coordinator stops a thread early.
#[derive(Debug)]
pub(crate) struct Control {
    /// End now.
    pub(crate) abort: AtomicBool,
    /// The window's end, moved forward when the run is stopped early.
    pub(crate) end: AtomicU64,
}

/// A free place on a connection, oldest first.
#[derive(Debug, Clone, Copy)]
struct Free {
    index: u32,
    generation: u32,
    since: u64,
}

pub(crate) struct Worker {
    task: Task,
    poller: Poller,
    dialer: Dialer,
    conns: Vec<Conn>,
    /// When something has to be done about a connection; apart from it, so that the scan touches little memory.
    deadlines: Vec<u64>,
    free: VecDeque<Free>,
    /// Slots of handshake connections that ended.
    spare: Vec<u32>,
    meter: Meter,
    io: Io,
    in_flight: u64,
    open_handshakes: u64,
    /// Connections of the pool that are open or being opened.
    alive: u64,
    /// Requests that a leaving server did not look at, to be sent again: their intended times.
    retries: VecDeque<u64>,
    /// Multiplexed connections with collected output, and since when; what must be sent at once comes first.
    unflushed: VecDeque<(u32, u64)>,
    /// No more requests are begun.
    over: bool,
    /// In `send_waiting`: a failure within must not start it again, one stack frame per failing connection.
    sending: bool,
}

/// CPU time that a thread has used and lacked so far.
#[derive(Debug, Clone, Copy)]
struct Usage {
    /// Without polling in vain, nanoseconds. The two come from different clocks, so that a thread which was preempted
    /// while polling is taken for a little less busy than it was; `waited` shows that.
    work: u64,
    /// Runnable without a CPU, nanoseconds.
    waited: Option<u64>,
}

impl Worker {
    pub(crate) fn new(task: Task) -> Result<Self, LoadError> {
        let mut worker = Self {
            poller: Poller::new(task.rate, task.spin)?,
            dialer: Dialer::new(task.address),
            conns: Vec::with_capacity(task.open_at.len()),
            deadlines: Vec::with_capacity(task.open_at.len()),
            free: VecDeque::with_capacity(task.open_at.len()),
            spare: Vec::new(),
            meter: Meter::new(task.window),
            io: Io::new(),
            in_flight: 0,
            open_handshakes: 0,
            alive: 0,
            retries: VecDeque::new(),
            unflushed: VecDeque::new(),
            over: false,
            sending: false,
            task,
        };
        for index in 0..worker.task.open_at.len() {
            let at = worker.task.open_at[index];
            worker
                .conns
                .push(Conn::new(Purpose::Pool, &worker.task.target));
            worker.deadlines.push(at);
        }
        Ok(worker)
    }

    /// Runs to the end of the drain, or until aborted.
    pub(crate) fn run(mut self, control: &Control) -> Result<Meter, LoadError> {
        clock::precise_timers();
        let window = self.task.window;
        let mut events = Vec::new();
        let mut next_tick = 0;
        let mut usage_start = None;
        loop {
            let now = clock::now();
            if usage_start.is_none() && now >= window.start {
                usage_start = Some(self.usage());
            }
            if now >= window.end {
                self.meter_usage(usage_start);
            }
            self.arrivals(now);
            if now >= next_tick {
                self.tick(now);
                next_tick = now + TICK;
            }
            if control.abort.load(Ordering::Relaxed) {
                break;
            }
            // The users of a closed loop go home at the window's end.
            self.over = now >= window.end && self.task.source.is_closed();
            if now >= window.end && (self.is_idle() || now >= self.task.drain_end) {
                break;
            }
            let deadline = self.next_deadline(now).min(next_tick);
            let near = self.task.spin && self.in_flight + self.open_handshakes > 0;
            let deadline = deadline.min(self.flush_deadline());
            self.poller.wait(&mut events, deadline, near)?;
            for event in &events {
                self.on_event(*event);
                if self.has_schedule() {
                    self.arrivals(clock::now());
                }
            }
            if !self.unflushed.is_empty() {
                self.send_waiting();
            }
        }
        let end = control.end.load(Ordering::Relaxed).min(window.end);
        self.meter.window.end = end;
        self.meter_usage(usage_start);
        self.finish(clock::now());
        Ok(self.meter)
    }

    /// What this thread has used so far.
    fn usage(&self) -> Usage {
        Usage {
            work: clock::thread_cpu().saturating_sub(self.poller.spun()),
            waited: clock::thread_cpu_wait(),
        }
    }

    /// Meters, the first time, what was used since the start of the window.
    fn meter_usage(&mut self, start: Option<Usage>) {
        if self.meter.cpu.is_some() {
            return;
        }
        let Some(start) = start else { return };
        let now = self.usage();
        self.meter.cpu = Some(now.work.saturating_sub(start.work));
        self.meter.cpu_wait = now
            .waited
            .zip(start.waited)
            .map(|(now, start)| now.saturating_sub(start));
    }

    /// Whether anything is due by the clock.
    fn has_schedule(&self) -> bool {
        self.task.source.next_arrival() != NEVER || self.task.handshakes.peek() != NEVER
    }

    fn is_idle(&self) -> bool {
        self.in_flight == 0
            && self.open_handshakes == 0
            && self.retries.is_empty()
            && (self.task.source.unsent() == 0 || self.task.source.is_closed())
    }

    fn next_deadline(&self, now: u64) -> u64 {
        let window = self.task.window;
        let mut deadline = self.task.drain_end;
        for moment in [
            self.task.source.next_arrival(),
            self.task.handshakes.peek(),
            window.start,
        ] {
            if moment < window.end && (moment > now || moment != window.start) {
                deadline = deadline.min(moment);
            }
        }
        if now < window.end {
            deadline = deadline.min(window.end);
        }
        deadline
    }

    /// Timeouts, reconnects, and the depth of the queue.
    fn tick(&mut self, now: u64) {
        for index in 0..self.deadlines.len() {
            if self.deadlines[index] <= now {
                self.on_deadline(index, now);
            }
        }
        self.meter
            .sample(now, self.task.source.unsent(), self.in_flight);
        self.send_waiting();
    }

    fn on_deadline(&mut self, index: usize, now: u64) {
        let conn = &mut self.conns[index];
        match conn.stage {
            Stage::Closed => self.reopen(index, now),
            Stage::Connecting => self.fail(index, ErrorClass::ConnectTimeout, now),
            Stage::Handshaking => self.fail(index, ErrorClass::Timeout, now),
            Stage::Open => {
                // The deadline may be that of a request which has ended since.
                let oldest = conn.oldest_sent().unwrap_or(NEVER);
                let due = oldest.saturating_add(self.task.timeout);
                if due > now {
                    self.deadlines[index] = due;
                } else if conn.cancel(now - self.task.timeout, &mut self.io) {
                    self.deadlines[index] = now;
                    self.after(index, self.conns[index].generation, Ok(()));
                } else {
                    self.fail(index, ErrorClass::Timeout, now);
                }
            }
        }
    }

    /// Everything that is still open is censored.
    fn finish(&mut self, now: u64) {
        for index in 0..self.conns.len() {
            let conn = &mut self.conns[index];
            match conn.purpose {
                Purpose::Pool => {
                    for request in conn.take_requests() {
                        self.meter
                            .aborted(request.intended, Some(request.sent), now);
                    }
                }
                Purpose::Handshake { intended } => {
                    if conn.stage != Stage::Closed && conn.timeline.first_byte.is_none() {
                        self.meter.handshake_aborted(intended, now);
                    }
                }
            }
        }
        for intended in std::mem::take(&mut self.retries) {
            self.meter.aborted(intended, None, now);
        }
        if !self.task.source.is_closed() {
            while let Some(intended) = self.task.source.take() {
                self.meter.aborted(intended, None, now);
            }
        }
    }
}
