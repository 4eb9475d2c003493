//! Waiting for sockets and for the next deadline, to the microsecond.

use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::LoadError;
use super::clock::{self, US};

/// Events taken at once. Small, because the schedule is looked at between them.
const BATCH: usize = 64;
/// How long before a deadline the thread wakes and polls, at most: a timer on an idle virtual CPU fires about this late.
const SPIN: u64 = 40 * US;

/// The same where spinning takes time from nobody: also covers the wake-up of a CPU that has been idle for long.
const SPIN_ALONE: u64 = 200 * US;

/// How long a closed loop polls before it sleeps. To sleep and be woken costs several times this in CPU time, so it is
/// little when nothing comes, and saves much when answers follow each other closely.
const LINGER: u64 = 5 * US;

/// Edge-triggered epoll: a socket is registered once.
#[derive(Debug)]
pub(crate) struct Poller {
    epoll: OwnedFd,
    /// Spinning before each deadline; bounded by a tenth of the time between deadlines unless spinning costs nobody.
    spin: u64,
    /// CPU time of polls that found nothing, nanoseconds: spent, but not needed for the load.
    spun: u64,
    /// Polling before each sleep.
    linger: u64,
    /// Whether the kernel is known to wait for nanoseconds; if not, it costs another call.
    has_pwait2: bool,
}

impl Poller {
    /// `rate` is how many deadlines per second will be waited for; 0 in a closed loop, where the next answer is near.
    /// `alone` when spinning takes time from nobody.
    pub(crate) fn new(rate: f64, alone: bool) -> Result<Self, LoadError> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)
            .map_err(|errno| LoadError::io("create an epoll descriptor", errno))?;
        let tenth = if rate > 0.0 {
            (clock::SEC as f64 / rate / 10.0) as u64
        } else {
            0
        };
        Ok(Self {
            epoll,
            spin: if alone { SPIN_ALONE } else { tenth.min(SPIN) },
            spun: 0,
            linger: if rate > 0.0 { 0 } else { LINGER },
            has_pwait2: true,
        })
    }

    /// Watches a socket; `token` comes back with its events. `writable` only while it is waited for: every other event
    /// would bring it along, and bring itself back.
    pub(crate) fn add(&self, socket: impl AsFd, token: u64, writable: bool) -> Result<(), Errno> {
        epoll::add(
            &self.epoll,
            socket,
            EventData::new_u64(token),
            interest(writable),
        )
    }

    /// Changes whether a socket is watched for being writable.
    pub(crate) fn modify(
        &self,
        socket: impl AsFd,
        token: u64,
        writable: bool,
    ) -> Result<(), Errno> {
        epoll::modify(
            &self.epoll,
            socket,
            EventData::new_u64(token),
            interest(writable),
        )
    }

    /// CPU time of polls that found nothing so far, nanoseconds.
    pub(crate) fn spun(&self) -> u64 {
        self.spun
    }

    /// Fills `events` with what is ready; waits for it, but not beyond `deadline`, and without sleeping if an event is
    /// `near`.
    pub(crate) fn wait(
        &mut self,
        events: &mut Vec<epoll::Event>,
        deadline: u64,
        near: bool,
    ) -> Result<(), LoadError> {
        let begun = clock::now();
        let mut left = deadline.saturating_sub(begun);
        let mut now = begun;
        loop {
            events.clear();
            events.reserve(BATCH);
            let nap = if near || now < begun + self.linger {
                0
            } else {
                left.saturating_sub(self.spin)
            };
            match self.wait_once(events, nap) {
                Ok(()) | Err(Errno::INTR) => {}
                Err(errno) => return Err(LoadError::io("wait for sockets", errno)),
            }
            if !events.is_empty() || left == 0 {
                return Ok(());
            }
            let asked = std::mem::replace(&mut now, clock::now());
            if nap == 0 {
                self.spun += now - asked;
            }
            left = deadline.saturating_sub(now);
            if left == 0 {
                return Ok(());
            }
        }
    }

    fn wait_once(&mut self, events: &mut Vec<epoll::Event>, nanos: u64) -> Result<(), Errno> {
        let timeout = clock::timespec(nanos);
        if self.has_pwait2 {
            match sys::epoll_pwait2(&self.epoll, events, &timeout) {
                // Before Linux 5.11, or behind a filter that does not know it.
                Err(Errno::NOSYS | Errno::PERM) => self.has_pwait2 = false,
                result => return result,
            }
        }
        if nanos > 0 {
            // ppoll has nanoseconds on every kernel.
            poll(
                &mut [PollFd::new(&self.epoll, PollFlags::IN)],
                Some(&timeout),
            )?;
        }
        let now = clock::timespec(0);
        epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(events),
            Some(&now),
        )
        .map(|_| ())
    }
}

fn interest(writable: bool) -> EventFlags {
    let always = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    if writable {
        always | EventFlags::OUT
    } else {
        always
    }
}

/// The system call that rustix rounds to milliseconds.
mod sys {
    use std::os::fd::{AsFd, AsRawFd as _};

    use rustix::event::epoll::Event;
    use rustix::io::Errno;
    use rustix::time::Timespec;

    // The layout that the call below relies on.
    const _: () = assert!(size_of::<Event>() == size_of::<libc::epoll_event>());

    /// Appends to the spare capacity of `events`.
    pub(super) fn epoll_pwait2(
        epoll: impl AsFd,
        events: &mut Vec<Event>,
        timeout: &Timespec,
    ) -> Result<(), Errno> {
        let timeout = libc::timespec {
            tv_sec: timeout.tv_sec,
            tv_nsec: timeout.tv_nsec as libc::c_long,
        };
        let spare = events.spare_capacity_mut();
        // SAFETY: the kernel writes at most `spare.len()` events, of the layout asserted above, into memory that is
        // borrowed for the call; timeout and descriptor live as long; there is no signal mask.
        let count = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                epoll.as_fd().as_raw_fd(),
                spare.as_mut_ptr(),
                spare.len() as libc::c_int,
                &raw const timeout,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        let Ok(count) = usize::try_from(count) else {
            let errno = std::io::Error::last_os_error().raw_os_error();
            return Err(errno.map_or(Errno::INVAL, Errno::from_raw_os_error));
        };
        let filled = events.len() + count;
        // SAFETY: the kernel has initialized `count` events behind the old length.
        unsafe { events.set_len(filled) };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How late waits for a deadline end, nanoseconds, and that a ready socket ends one.
    fn check(has_pwait2: bool) {
        let mut poller = Poller::new(100.0, false).expect("epoll");
        poller.has_pwait2 = has_pwait2;
        let mut events = Vec::new();
        for wait in [0, 300 * US, 3_000 * US] {
            let deadline = clock::now() + wait;
            for near in [false, true] {
                poller.wait(&mut events, deadline, near).expect("wait");
                assert!(events.is_empty() && clock::now() >= deadline, "never early");
            }
        }
        let before = poller.spun();
        let deadline = clock::now() + 300 * US;
        poller.wait(&mut events, deadline, true).expect("wait");
        let spun = poller.spun() - before;
        assert!(spun > 0, "a wait for something near is spent polling");
        let (reader, writer) = std::os::unix::net::UnixStream::pair().expect("sockets");
        poller.add(&reader, 7, false).expect("add");
        poller.wait(&mut events, clock::now(), false).expect("wait");
        events.clear();
        rustix::io::write(&writer, b"x").expect("write");
        let far = clock::now() + 10 * clock::SEC;
        poller.wait(&mut events, far, false).expect("wait");
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].data.u64(), 7);
        assert!(clock::now() < far);
    }

    #[test]
    fn waits_to_the_deadline_or_an_event() {
        check(true);
        check(false);
    }
}
