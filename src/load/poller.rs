//! Waiting for sockets and for the next deadline, to the microsecond.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};

use super::LoadError;
use super::clock::{self, US};

/// Events taken at once. Small, because the schedule is looked at between them.
const BATCH: usize = 64;
/// How long before a deadline the thread wakes and polls, at most: a timer on an idle virtual CPU fires about this late.
const SPIN: u64 = 40 * US;

/// Edge-triggered epoll: a socket is registered once, for everything.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
    /// Spinning before each deadline; bounded by a tenth of the time between deadlines.
    spin: u64,
}

impl Poller {
    /// `rate` is how many deadlines per second will be waited for.
    pub(crate) fn new(rate: f64) -> Result<Self, LoadError> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)
            .map_err(|errno| LoadError::io("create an epoll descriptor", errno))?;
        let tenth = if rate > 0.0 {
            (clock::SEC as f64 / rate / 10.0) as u64
        } else {
            0
        };
        Ok(Self {
            epoll,
            spin: tenth.min(SPIN),
        })
    }

    /// Watches a socket; `token` comes back with its events.
    pub(crate) fn add(&self, socket: impl AsFd, token: u64) -> Result<(), rustix::io::Errno> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        epoll::add(&self.epoll, socket, EventData::new_u64(token), flags)
    }

    /// Fills `events` with what is ready; waits for it, but not beyond `deadline`.
    pub(crate) fn wait(
        &self,
        events: &mut Vec<epoll::Event>,
        deadline: u64,
    ) -> Result<(), LoadError> {
        loop {
            self.ready(events)?;
            let now = clock::now();
            if !events.is_empty() || now >= deadline {
                return Ok(());
            }
            let left = deadline - now;
            if left > self.spin {
                // ppoll has nanoseconds on every kernel; epoll_pwait2 is missing before 5.11.
                let mut descriptors = [PollFd::new(&self.epoll, PollFlags::IN)];
                let timeout = clock::timespec(left - self.spin);
                match poll(&mut descriptors, Some(&timeout)) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(errno) => return Err(LoadError::io("wait for sockets", errno)),
                }
            } else {
                std::hint::spin_loop();
            }
        }
    }

    fn ready(&self, events: &mut Vec<epoll::Event>) -> Result<(), LoadError> {
        events.clear();
        events.reserve(BATCH);
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(events),
            Some(&clock::timespec(0)),
        ) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(LoadError::io("wait for sockets", errno)),
        }
    }
}
