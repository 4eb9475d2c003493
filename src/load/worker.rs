//! One generator thread: an event loop that sends what is due, reads what comes, and measures both.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::event::epoll::{Event, EventFlags};

use super::LoadError;
use super::clock::{self, MS, NEVER};
use super::conn::{Conn, Io, Purpose, Stage};
use super::http::Target;
use super::meter::{Meter, Window};
use super::poller::Poller;
use super::report::ErrorClass;
use super::schedule::{Arrivals, Source};
use super::signal::{InFlight, Signal};
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
    /// When each persistent connection of this thread is opened first; empty times mean on demand.
    pub(crate) open_at: Vec<u64>,
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
    /// Requests that a leaving server did not look at, to be sent again: their intended times.
    retries: VecDeque<u64>,
    /// Multiplexed connections with collected output.
    unflushed: Vec<u32>,
    /// In `send_waiting`: a failure within must not start it again, one stack frame per failing connection.
    sending: bool,
}

impl Worker {
    pub(crate) fn new(task: Task) -> Result<Self, LoadError> {
        let mut worker = Self {
            poller: Poller::new(task.rate)?,
            dialer: Dialer::new(task.address),
            conns: Vec::with_capacity(task.open_at.len()),
            deadlines: Vec::with_capacity(task.open_at.len()),
            free: VecDeque::with_capacity(task.open_at.len()),
            spare: Vec::new(),
            meter: Meter::new(task.window),
            io: Io::new(),
            in_flight: 0,
            open_handshakes: 0,
            retries: VecDeque::new(),
            unflushed: Vec::new(),
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
        let mut cpu_start = None;
        loop {
            let now = clock::now();
            if cpu_start.is_none() && now >= window.start {
                cpu_start = Some(clock::thread_cpu());
            }
            if self.meter.cpu.is_none() && now >= window.end {
                self.meter.cpu = cpu_start.map(|start| clock::thread_cpu() - start);
            }
            self.arrivals(now);
            if now >= next_tick {
                self.tick(now);
                next_tick = now + TICK;
            }
            if control.abort.load(Ordering::Relaxed) {
                break;
            }
            if now >= window.end && (self.is_idle() || now >= self.task.drain_end) {
                break;
            }
            self.poller
                .wait(&mut events, self.next_deadline(now).min(next_tick))?;
            for event in &events {
                self.on_event(*event);
                self.arrivals(clock::now());
            }
        }
        let end = control.end.load(Ordering::Relaxed).min(window.end);
        self.meter.window.end = end;
        if self.meter.cpu.is_none() {
            self.meter.cpu = cpu_start.map(|start| clock::thread_cpu() - start);
        }
        self.finish(clock::now());
        Ok(self.meter)
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

    /// Lets in what is due by now, and sends it where a connection is free.
    fn arrivals(&mut self, now: u64) {
        let end = self.task.window.end;
        while self.task.source.next_arrival() < end
            && let Some(intended) = self.task.source.arrive(now)
        {
            self.meter.scheduled(intended);
            self.send_waiting(now);
        }
        while self.task.handshakes.peek() <= now && self.task.handshakes.peek() < end {
            let intended = self.task.handshakes.take();
            self.meter.handshake_scheduled(intended);
            self.begin_handshake(intended);
        }
    }

    /// Sends unsent requests while there are free connections.
    fn send_waiting(&mut self, now: u64) {
        if self.sending {
            return;
        }
        self.sending = true;
        // The users of a closed loop go home at the window's end.
        let over = self.task.source.is_closed() && now >= self.task.window.end;
        loop {
            while !over
                && (self.task.source.unsent() > 0 || !self.retries.is_empty())
                && let Some(free) = self.take_free()
            {
                self.send_next(free);
            }
            let Some(index) = self.unflushed.pop() else {
                break;
            };
            let generation = self.conns[index as usize].generation;
            let result = self.conns[index as usize].flush();
            self.after(index as usize, generation, result);
        }
        self.sending = false;
    }

    fn send_next(&mut self, free: Free) {
        if let Some(intended) = self.retries.pop_front() {
            self.send(free, intended);
        } else if let Some(intended) = self.task.source.take() {
            if self.task.source.is_closed() {
                self.meter.scheduled(intended);
            }
            self.meter.sent(intended, free.since, clock::now());
            self.send(free, intended);
        }
    }

    fn take_free(&mut self) -> Option<Free> {
        loop {
            let free = self.free.pop_front()?;
            let conn = &self.conns[free.index as usize];
            let fits = self
                .task
                .per_connection
                .is_none_or(|most| conn.begun < most);
            if conn.generation == free.generation && fits {
                return Some(free);
            }
        }
    }

    fn send(&mut self, free: Free, intended: u64) {
        let index = free.index as usize;
        let now = clock::now();
        self.in_flight += 1;
        let request = InFlight {
            intended,
            sent: now,
        };
        let conn = &mut self.conns[index];
        if conn.has_room() {
            let mut result = conn.begin(&self.task.target, request);
            self.deadlines[index] = self.deadlines[index].min(now + self.task.timeout);
            if conn.is_multiplexed() {
                if self.unflushed.last() != Some(&free.index) {
                    self.unflushed.push(free.index);
                }
            } else {
                result = result.and_then(|()| conn.flush());
            }
            self.after(index, free.generation, result);
        } else {
            conn.waiting.push(request);
            if conn.stage == Stage::Closed {
                self.open(index);
            }
        }
    }

    fn begin_handshake(&mut self, intended: u64) {
        let purpose = Purpose::Handshake { intended };
        let index = match self.spare.pop() {
            Some(index) => {
                self.conns[index as usize].purpose = purpose;
                index as usize
            }
            None => {
                self.conns.push(Conn::new(purpose, &self.task.target));
                self.deadlines.push(NEVER);
                self.conns.len() - 1
            }
        };
        self.open_handshakes += 1;
        self.open(index);
    }

    fn open(&mut self, index: usize) {
        let poller = &self.poller;
        let conn = &mut self.conns[index];
        let generation = conn.generation;
        let result = conn.open(&self.task.target, &mut self.dialer, |socket, generation| {
            poller.add(socket, u64::from(generation) << 32 | index as u64)
        });
        let started = conn.timeline.started;
        if let Purpose::Handshake { intended } = conn.purpose {
            self.meter.handshake_started(intended, started);
        }
        self.deadlines[index] = started + self.task.connect_timeout;
        // Over loopback the connection is there already; waiting for the event would be measured as TCP's time.
        let result = result.and_then(|()| self.check_connected(index));
        self.after(index, generation, result);
    }

    fn check_connected(&mut self, index: usize) -> Result<(), ErrorClass> {
        let conn = &mut self.conns[index];
        let retransmissions = conn.check_connected(&mut self.io)?;
        if conn.stage != Stage::Connecting {
            self.deadlines[index] = clock::now() + self.task.timeout;
            if let Purpose::Handshake { intended } = conn.purpose {
                self.meter.handshake_connected(intended, retransmissions);
            }
        }
        Ok(())
    }

    fn on_event(&mut self, event: Event) {
        let token = event.data.u64();
        let (index, generation) = (token as u32 as usize, (token >> 32) as u32);
        if self.conns[index].generation != generation {
            return;
        }
        let conn = &mut self.conns[index];
        let gone = EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR;
        let flags = event.flags;
        let result = if conn.stage == Stage::Connecting {
            self.check_connected(index)
        } else {
            conn.flush().and_then(|()| {
                if flags.intersects(EventFlags::IN | gone) {
                    conn.receive(&self.task.target, &mut self.io, flags.intersects(gone))
                } else {
                    Ok(())
                }
            })
        };
        self.after(index, generation, result);
    }

    /// Acts on what an operation on a connection brought: first what was received, then how it ended.
    fn after(&mut self, index: usize, generation: u32, mut result: Result<(), ErrorClass>) {
        let mut signals = std::mem::take(&mut self.io.signals);
        for signal in signals.drain(..) {
            if self.conns[index].generation != generation {
                break;
            }
            if let Err(class) = self.on_signal(index, signal) {
                result = result.and(Err(class));
            }
        }
        // Nested operations had their own buffer; the larger one stays.
        self.io.signals = signals;
        if self.io.received > 0 {
            let received = std::mem::take(&mut self.io.received);
            self.meter.received(received, clock::now());
        }
        let conn = &mut self.conns[index];
        if conn.generation == generation {
            // Acknowledgements, when no request is about to be sent along with them.
            if result.is_ok() && !self.sending && conn.is_multiplexed() && conn.has_output() {
                self.unflushed.push(index as u32);
            }
            match result {
                Ok(()) => self.retire_if_done(index, clock::now()),
                Err(class) => self.fail(index, class, clock::now()),
            }
        }
        self.send_waiting(clock::now());
    }

    fn on_signal(&mut self, index: usize, signal: Signal) -> Result<(), ErrorClass> {
        match signal {
            Signal::Finished => {
                let conn = &self.conns[index];
                if let Some(negotiated) = conn.negotiated() {
                    self.meter.negotiated(negotiated);
                    if let Purpose::Handshake { intended } = conn.purpose {
                        self.meter.handshake_finished(intended, negotiated);
                    }
                }
                Ok(())
            }
            Signal::Opened => self.opened(index),
            Signal::FirstByte => {
                let conn = &self.conns[index];
                if let Purpose::Handshake { intended } = conn.purpose {
                    self.meter.handshake_completed(intended, &conn.timeline);
                }
                Ok(())
            }
            Signal::Answered {
                request,
                status,
                now,
            } => self.answered(index, request, status, now),
            Signal::Failed { .. } | Signal::Unprocessed { .. }
                if self.conns[index].purpose != Purpose::Pool =>
            {
                Err(ErrorClass::Reset)
            }
            Signal::Failed { request, class } => {
                let now = clock::now();
                self.in_flight -= 1;
                self.meter
                    .failed(request.intended, Some(request.sent), now, class);
                self.task.source.ended(now);
                self.release(index, now)
            }
            Signal::Unprocessed { request } => {
                self.in_flight -= 1;
                self.retries.push_back(request.intended);
                self.release(index, clock::now())
            }
        }
    }

    fn opened(&mut self, index: usize) -> Result<(), ErrorClass> {
        let now = clock::now();
        self.deadlines[index] = NEVER;
        let conn = &mut self.conns[index];
        if let Purpose::Handshake { intended } = conn.purpose {
            // Its one request; not one of the load's.
            let request = InFlight {
                intended,
                sent: now,
            };
            conn.begin(&self.task.target, request)?;
            self.deadlines[index] = now + self.task.timeout;
            return conn.flush();
        }
        self.meter.connection_opened(now);
        if self.task.per_connection.is_none() {
            for _ in 0..conn.capacity() {
                self.offer(index, now);
            }
        }
        self.begin_promised(index, now)
    }

    /// Sends the requests that waited for this connection.
    fn begin_promised(&mut self, index: usize, now: u64) -> Result<(), ErrorClass> {
        let conn = &mut self.conns[index];
        while conn.has_room() && !conn.waiting.is_empty() {
            let request = conn.waiting.remove(0);
            conn.begin(&self.task.target, request)?;
            self.deadlines[index] = self.deadlines[index].min(now + self.task.timeout);
        }
        conn.flush()
    }

    fn offer(&mut self, index: usize, since: u64) {
        self.free.push_back(Free {
            index: index as u32,
            generation: self.conns[index].generation,
            since,
        });
    }

    fn answered(
        &mut self,
        index: usize,
        request: InFlight,
        status: u16,
        now: u64,
    ) -> Result<(), ErrorClass> {
        if let Purpose::Handshake { .. } = self.conns[index].purpose {
            self.end_handshake(index);
            return Ok(());
        }
        self.in_flight -= 1;
        self.meter
            .answered(request.intended, request.sent, now, status);
        self.task.source.ended(now);
        let conn = &mut self.conns[index];
        conn.answered += 1;
        conn.backoff = 0;
        self.release(index, now)
    }

    /// A request on this connection ended: another may follow, unless the connection has served its time.
    fn release(&mut self, index: usize, now: u64) -> Result<(), ErrorClass> {
        let conn = &self.conns[index];
        if self.is_worn(conn) || conn.is_leaving() {
            return Ok(());
        }
        if !conn.waiting.is_empty() {
            return self.begin_promised(index, now);
        }
        self.offer(index, now);
        Ok(())
    }

    /// Whether a connection has carried its share of requests.
    fn is_worn(&self, conn: &Conn) -> bool {
        self.task
            .per_connection
            .is_some_and(|most| conn.begun >= most && conn.waiting.is_empty())
    }

    /// Replaces a connection of the pool that has served its time, once nothing is open on it.
    fn retire_if_done(&mut self, index: usize, now: u64) {
        let conn = &self.conns[index];
        let done = conn.purpose == Purpose::Pool
            && conn.stage == Stage::Open
            && (conn.is_leaving() || self.is_worn(conn))
            && conn.open_requests() == conn.waiting.len();
        if done {
            // What was promised to this connection goes to another.
            let stranded = self.conns[index].take_requests();
            self.in_flight -= stranded.len() as u64;
            self.retries
                .extend(stranded.iter().map(|request| request.intended));
            self.replace(index, now, 0);
        }
    }

    fn end_handshake(&mut self, index: usize) {
        self.open_handshakes -= 1;
        self.conns[index].close(&self.task.target);
        self.deadlines[index] = NEVER;
        self.spare.push(index as u32);
    }

    /// Closes a connection of the pool and has another take its place, after `backoff`.
    fn replace(&mut self, index: usize, now: u64, backoff: u64) {
        self.conns[index].close(&self.task.target);
        self.deadlines[index] = now + backoff;
        if backoff == 0 {
            self.reopen(index, now);
        }
    }

    fn reopen(&mut self, index: usize, now: u64) {
        self.deadlines[index] = NEVER;
        if self.task.per_connection.is_some() {
            // Opened by the request that needs it, whose time then includes it.
            for _ in 0..self.task.target.places() {
                self.offer(index, now);
            }
        } else {
            self.open(index);
        }
    }

    fn fail(&mut self, index: usize, class: ErrorClass, now: u64) {
        let conn = &mut self.conns[index];
        if let Purpose::Handshake { intended } = conn.purpose {
            if conn.timeline.first_byte.is_none() {
                self.meter.handshake_failed(intended, class);
            }
            self.end_handshake(index);
            return;
        }
        let opening = conn.stage != Stage::Open;
        let lost = conn.take_requests();
        if opening || !lost.is_empty() {
            self.meter.connection_failed(class, now);
        }
        for request in &lost {
            self.in_flight -= 1;
            self.meter
                .failed(request.intended, Some(request.sent), now, class);
            self.task.source.ended(now);
        }
        if opening && lost.is_empty() {
            self.fail_oldest_unsent(class, now);
        }
        let conn = &self.conns[index];
        let backoff = if conn.answered == 0 {
            (conn.backoff * 2).clamp(BACKOFF.0, BACKOFF.1)
        } else {
            0
        };
        self.conns[index].backoff = backoff;
        self.replace(index, now, backoff);
    }

    /// The request that waited for a connection that could not be opened fails with it.
    fn fail_oldest_unsent(&mut self, class: ErrorClass, now: u64) {
        if let Some(intended) = self.task.source.take() {
            if self.task.source.is_closed() {
                self.meter.scheduled(intended);
            }
            self.meter.failed(intended, None, now, class);
            self.task.source.ended(now);
        }
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
        self.send_waiting(now);
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
