//! What is due goes out: arrivals, free places on connections, and the order among them.

use super::{Free, Worker};
use crate::load::clock::{self, NEVER, US};
use crate::load::conn::{Conn, Purpose, Stage};
use crate::load::report::ErrorClass;
use crate::load::signal::InFlight;

/// A multiplexed closed loop collects output this long at most, while the server has other requests of the connection to
/// answer: answers that come one by one would otherwise be answered by requests one by one, each at the price of system
/// calls on both sides.
const COLLECT: u64 = 50 * US;

impl Worker {
    /// Lets in what is due by now, and sends it where a connection is free.
    pub(super) fn arrivals(&mut self, now: u64) {
        let end = self.task.window.end;
        while self.task.source.next_arrival() < end
            && let Some(intended) = self.task.source.arrive(now)
        {
            self.meter.scheduled(intended);
            self.send_waiting();
        }
        while self.task.handshakes.peek() <= now && self.task.handshakes.peek() < end {
            let intended = self.task.handshakes.take();
            self.meter.handshake_scheduled(intended);
            self.begin_handshake(intended);
        }
    }

    /// Sends unsent requests while there are free connections.
    pub(super) fn send_waiting(&mut self) {
        if self.sending {
            return;
        }
        self.sending = true;
        loop {
            while (self.task.source.unsent() > 0 || !self.retries.is_empty())
                && !self.over
                && let Some(free) = self.take_free()
            {
                self.send_next(free);
            }
            let Some(index) = self.next_flush() else {
                break;
            };
            let generation = self.conns[index].generation;
            let result = self.conns[index].flush();
            self.after(index, generation, result);
        }
        self.sending = false;
    }

    /// Has a multiplexed connection's output sent: at the end of this round, or in a closed loop up to [`COLLECT`] later
    /// unless the server would have nothing to do meanwhile.
    pub(super) fn collect(&mut self, index: usize, now: u64) {
        let conn = &mut self.conns[index];
        let overdue = !self.task.collect || conn.is_all_held();
        match conn.collected {
            Some(0) => {}
            _ if overdue => {
                conn.collected = Some(0);
                self.unflushed.push_front((index as u32, 0));
            }
            Some(_) => {}
            None => {
                conn.collected = Some(now);
                self.unflushed.push_back((index as u32, now));
            }
        }
    }

    /// When the output that was collected first must be sent.
    pub(super) fn flush_deadline(&self) -> u64 {
        self.unflushed
            .front()
            .map_or(NEVER, |(_, since)| since + COLLECT)
    }

    fn next_flush(&mut self) -> Option<usize> {
        loop {
            let (index, since) = *self.unflushed.front()?;
            if since > 0 && clock::now() < since + COLLECT {
                return None;
            }
            self.unflushed.pop_front();
            // An entry without anything collected has been overtaken.
            if self.conns[index as usize].collected.take().is_some() {
                return Some(index as usize);
            }
        }
    }

    fn send_next(&mut self, free: Free) {
        if let Some(intended) = self.retries.pop_front() {
            self.send(free, intended, clock::now());
        } else if let Some(intended) = self.task.source.take() {
            if self.task.source.is_closed() {
                self.meter.scheduled(intended);
            }
            let now = clock::now();
            self.meter.sent(intended, free.since, now);
            self.send(free, intended, now);
        }
    }

    fn take_free(&mut self) -> Option<Free> {
        loop {
            let free = self.free.pop_front()?;
            let conn = &self.conns[free.index as usize];
            let promised = conn.begun + conn.waiting.len() as u32;
            let fits = self.task.per_connection.is_none_or(|most| promised < most);
            let has_room = conn.stage != Stage::Open || conn.has_room();
            if conn.generation == free.generation && fits && has_room {
                return Some(free);
            }
        }
    }

    fn send(&mut self, free: Free, intended: u64, now: u64) {
        let index = free.index as usize;
        self.in_flight += 1;
        let request = InFlight {
            intended,
            sent: now,
        };
        let conn = &mut self.conns[index];
        if conn.has_room() {
            let mut result = conn.begin(&self.task.target, request);
            let multiplexed = conn.is_multiplexed();
            if !multiplexed {
                result = result.and_then(|()| conn.flush());
            }
            self.deadlines[index] = self.deadlines[index].min(now + self.task.timeout);
            if multiplexed && result.is_ok() {
                self.collect(index, now);
            }
            self.after(index, free.generation, result);
        } else {
            conn.waiting.push(request);
            if conn.stage == Stage::Closed {
                self.open(index);
            }
        }
    }

    pub(super) fn offer(&mut self, index: usize, since: u64) {
        self.free.push_back(Free {
            index: index as u32,
            generation: self.conns[index].generation,
            since,
        });
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

    /// Fails the oldest unsent requests, up to `most`.
    pub(super) fn fail_unsent(&mut self, most: u64, class: ErrorClass, now: u64) {
        for _ in 0..most {
            let Some(intended) = self.task.source.take() else {
                return;
            };
            if self.task.source.is_closed() {
                self.meter.scheduled(intended);
            }
            self.meter.failed(intended, None, now, class);
            self.task.source.ended(now);
        }
    }
}
