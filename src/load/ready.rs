//! Waiting for the first answer: a real request over a connection like the load's.

use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};

use super::LoadError;
use super::clock::{self, MS, SEC};
use super::conn::{Conn, Io, Purpose, Stage};
use super::generator::client;
use super::http::Target;
use super::http1::RequestTemplate;
use super::signal::{InFlight, Signal};
use super::socket::Dialer;
use super::tls::TlsClient;
use crate::agent::job::Job;

/// An attempt is given this long at first; twice as long each time, up to [`LONGEST_ATTEMPT`]. A starved proxy needs
/// seconds for its first handshake, and giving up early would make it begin again and again.
const FIRST_ATTEMPT: u64 = SEC;
const LONGEST_ATTEMPT: u64 = 5 * SEC;
/// A server gives one or two tickets per connection; this many connections start a stock.
const PRIMING_CONNECTIONS: usize = 4;
/// Pause between attempts that failed: at first, and at most.
const PAUSE: (u64, u64) = (5 * MS, 50 * MS);

/// Asks for the job's `ready_path` until an answer of 2xx comes: `true`; or until `deadline` or `stop`: `false`.
///
/// # Errors
/// When the job's TLS material cannot be used at all.
pub fn probe_ready(
    job: &Job,
    deadline: Instant,
    stop: impl Fn() -> bool,
) -> Result<bool, LoadError> {
    let template = RequestTemplate {
        method: "GET".to_owned(),
        path: job.ready_path.clone(),
        body: 0,
        ..RequestTemplate::of(&job.load, &job.server_name)
    };
    let target = Target::new(client(job)?, &job.load, &template);
    let mut dialer = Dialer::new(job.target);
    let deadline = clock::now() + nanos(deadline.saturating_duration_since(Instant::now()));
    let mut patience = FIRST_ATTEMPT;
    let mut pause = PAUSE.0;
    loop {
        let started = clock::now();
        let give_up = deadline.min(started + patience);
        if attempt(&target, &mut dialer, give_up, &stop) {
            return Ok(true);
        }
        if clock::now() >= give_up {
            patience = (2 * patience).min(LONGEST_ATTEMPT);
        }
        if clock::now() >= deadline
            || !clock::sleep_until(deadline.min(clock::now() + pause), &stop)
        {
            return Ok(false);
        }
        pause = (2 * pause).min(PAUSE.1);
    }
}

/// Makes connections one after the other, so that the store has tickets for those that are to resume.
pub(crate) fn prime_tickets(job: &Job, tls: &TlsClient, stop: impl Fn() -> bool) {
    let template = RequestTemplate {
        method: "GET".to_owned(),
        path: job.ready_path.clone(),
        body: 0,
        ..RequestTemplate::of(&job.load, &job.server_name)
    };
    let target = Target::new(Some(tls.clone()), &job.load, &template);
    let mut dialer = Dialer::new(job.target);
    let give_up = clock::now() + LONGEST_ATTEMPT;
    for _ in 0..PRIMING_CONNECTIONS {
        // One that fails leaves the first connections of the warm-up without a ticket, which the report shows as full.
        attempt(&target, &mut dialer, give_up, &stop);
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX / 2)
}

/// One connection, one request; whether it was answered with 2xx.
fn attempt(target: &Target, dialer: &mut Dialer, give_up: u64, stop: &impl Fn() -> bool) -> bool {
    let mut io = Io::new();
    let mut conn = Conn::new(Purpose::Pool, target);
    if conn.open(target, dialer).is_err() {
        return false;
    }
    while clock::now() < give_up && !stop() {
        let step = if conn.stage == Stage::Connecting {
            conn.check_connected(&mut io).map(|_| ())
        } else {
            conn.flush()
                .and_then(|()| conn.receive(target, &mut io, false))
        };
        for signal in std::mem::take(&mut io.signals) {
            match signal {
                Signal::Opened => {
                    let now = clock::now();
                    let request = InFlight {
                        intended: now,
                        sent: now,
                    };
                    let begun = conn.begin(target, request).and_then(|()| conn.flush());
                    if begun.is_err() {
                        return false;
                    }
                }
                Signal::Answered { status, .. } => return (200..300).contains(&status),
                Signal::Failed { .. } | Signal::Unprocessed { .. } => return false,
                Signal::Finished | Signal::FirstByte => {}
            }
        }
        if step.is_err() {
            return false;
        }
        let wanted = if conn.stage == Stage::Connecting {
            PollFlags::OUT
        } else {
            PollFlags::IN
        };
        let slice = give_up.saturating_sub(clock::now()).min(5 * MS);
        let Some(socket) = conn.socket() else {
            return false;
        };
        let _ = poll(
            &mut [PollFd::new(socket, wanted)],
            Some(&clock::timespec(slice)),
        );
    }
    false
}
