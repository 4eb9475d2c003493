//! What connections do: open, answer, fail, and give way to others.

use rustix::event::epoll::{Event, EventFlags};
use rustix::io::Errno;

use super::{BACKOFF, Worker};
use crate::load::clock::{self, NEVER};
use crate::load::conn::{Conn, Purpose, Stage};
use crate::load::report::ErrorClass;
use crate::load::signal::{InFlight, Signal};

impl Worker {
    pub(super) fn open(&mut self, index: usize) {
        let conn = &mut self.conns[index];
        let generation = conn.generation;
        let result = conn.open(&self.task.target, &mut self.dialer);
        let started = conn.timeline.started;
        match conn.purpose {
            Purpose::Handshake { intended } => self.meter.handshake_started(intended, started),
            Purpose::Pool => self.alive += 1,
        }
        self.deadlines[index] = started + self.task.connect_timeout;
        // Over loopback the connection is there already; waiting for the event would be measured as TCP's time.
        let result = result
            .and_then(|()| self.check_connected(index))
            .and_then(|()| self.register(index));
        self.after(index, generation, result);
    }

    fn register(&mut self, index: usize) -> Result<(), ErrorClass> {
        let conn = &mut self.conns[index];
        conn.watches_writable = conn.awaits_writable();
        let token = token(index, conn.generation);
        let Some(socket) = conn.socket() else {
            return Ok(());
        };
        self.poller
            .add(socket, token, conn.watches_writable)
            .map_err(|errno| match errno {
                Errno::MFILE | Errno::NFILE | Errno::NOSPC => ErrorClass::DescriptorsExhausted,
                _ => ErrorClass::Connect,
            })
    }

    /// Watches a socket for being writable while that matters, and no longer.
    fn adjust_interest(&mut self, index: usize) -> Result<(), ErrorClass> {
        let conn = &mut self.conns[index];
        let wanted = conn.awaits_writable();
        if wanted != conn.watches_writable
            && let Some(socket) = conn.socket()
        {
            self.poller
                .modify(socket, token(index, conn.generation), wanted)
                .map_err(|_| ErrorClass::Connect)?;
            conn.watches_writable = wanted;
        }
        Ok(())
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

    pub(super) fn on_event(&mut self, event: Event) {
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
            let flushed = if conn.awaits_writable() {
                conn.flush()
            } else {
                Ok(())
            };
            flushed.and_then(|()| {
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
    pub(super) fn after(
        &mut self,
        index: usize,
        generation: u32,
        mut result: Result<(), ErrorClass>,
    ) {
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
            self.meter.received(received, self.conns[index].heard);
        }
        let conn = &mut self.conns[index];
        if conn.generation == generation {
            // Acknowledgements, when no request is about to be sent along with them.
            if result.is_ok() && !self.sending && conn.is_multiplexed() && conn.has_output() {
                self.collect(index, self.conns[index].heard);
            }
            let result = result.and_then(|()| self.adjust_interest(index));
            match result {
                Ok(()) => self.retire_if_done(index),
                Err(class) => self.fail(index, class, clock::now()),
            }
        }
        self.send_waiting();
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
    fn retire_if_done(&mut self, index: usize) {
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
            self.replace(index, clock::now(), 0);
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
        self.alive -= 1;
        self.deadlines[index] = now + backoff;
        if backoff == 0 {
            self.reopen(index, now);
        }
    }

    pub(super) fn reopen(&mut self, index: usize, now: u64) {
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

    pub(super) fn fail(&mut self, index: usize, class: ErrorClass, now: u64) {
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
        if opening && self.alive == 1 {
            // This was the last one: nothing that waits has a connection to wait for.
            self.fail_unsent(self.task.source.unsent(), class, now);
        } else if opening && lost.is_empty() {
            // The request that waited for this connection fails with it.
            self.fail_unsent(1, class, now);
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
}

/// What the poller gives back with an event: which slot, and which socket of it.
fn token(index: usize, generation: u32) -> u64 {
    u64::from(generation) << 32 | index as u64
}
