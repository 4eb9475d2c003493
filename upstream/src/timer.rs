//! Delays that end within microseconds of their deadline.
//!
//! A timer wheel with ticks of 1 ms (as async runtimes have) cannot do this, and a kernel timer alone wakes a thread some
//! tens of microseconds late, more so on a virtual machine. So each serving thread has one `timerfd`, armed a *lead* before
//! the earliest deadline; the lead is learned from how late its wake-ups come and is never over 50 us. From the
//! wake-up to the deadline the thread yields in a loop, in which it still reads and answers other requests. Without an
//! open request nothing is armed and nothing runs.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use self::lead::Lead;
use crate::clock::{NANOS_PER_SECOND, monotonic_ns};

mod lead;

/// Deadlines of one serving thread. Clones share the queue.
#[derive(Clone)]
pub(crate) struct DelayTimer {
    inner: Rc<Inner>,
}

struct Inner {
    fd: AsyncFd<OwnedFd>,
    // Keyed by deadline and a serial number, which tells equal deadlines apart.
    queue: RefCell<BTreeMap<(u64, u64), Waker>>,
    next_serial: Cell<u64>,
    armed: Cell<Option<Armed>>,
    // While it spins, the driver looks at the queue by itself.
    spinning: Cell<bool>,
    lead: Cell<Lead>,
}

#[derive(Clone, Copy)]
struct Armed {
    wake_at: u64,
    // Whether it lay in the future when armed, so that its lateness says something.
    ahead: bool,
}

impl DelayTimer {
    /// A timer on the current runtime, which needs its I/O driver.
    ///
    /// # Errors
    /// If the kernel gives no `timerfd`.
    pub(crate) fn new() -> io::Result<Self> {
        let fd = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        // SAFETY: an OwnedFd is open and stays the same descriptor for as long as the AsyncFd owns it; nothing takes it out.
        let fd = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE)? };
        Ok(Self {
            inner: Rc::new(Inner {
                fd,
                queue: RefCell::default(),
                next_serial: Cell::new(0),
                armed: Cell::new(None),
                spinning: Cell::new(false),
                lead: Cell::new(Lead::default()),
            }),
        })
    }

    /// Waits until `deadline` (`CLOCK_MONOTONIC`, nanoseconds), never less.
    #[must_use]
    pub(crate) fn sleep_until(&self, deadline: u64) -> Sleep {
        Sleep {
            inner: Rc::clone(&self.inner),
            deadline,
            key: None,
        }
    }

    /// Ends the sleeps whose time has come; must run beside them on the same runtime.
    ///
    /// # Errors
    /// If the kernel's timer fails.
    pub(crate) async fn drive(&self) -> io::Result<Infallible> {
        let inner = &self.inner;
        loop {
            let now = monotonic_ns();
            inner.wake_due(now);
            let earliest = inner.earliest();
            let near = earliest.is_some_and(|deadline| deadline <= now + inner.lead.get().ns());
            inner.spinning.set(near);
            if near {
                tokio::task::yield_now().await;
                continue;
            }
            if let Some(deadline) = earliest {
                inner.arm(deadline, now)?;
            }
            inner.expired().await?;
        }
    }
}

impl Inner {
    fn earliest(&self) -> Option<u64> {
        let queue = self.queue.borrow();
        queue.first_key_value().map(|((deadline, _), _)| *deadline)
    }

    fn wake_due(&self, now: u64) {
        let mut queue = self.queue.borrow_mut();
        while let Some(entry) = queue.first_entry() {
            if entry.key().0 > now {
                break;
            }
            entry.remove().wake();
        }
    }

    fn arm(&self, deadline: u64, now: u64) -> io::Result<()> {
        let wake_at = deadline.saturating_sub(self.lead.get().ns());
        if self
            .armed
            .get()
            .is_some_and(|armed| armed.wake_at <= wake_at)
        {
            return Ok(());
        }
        // A time in the past expires at once; zero would disarm.
        timerfd_settime(
            self.fd.get_ref(),
            TimerfdTimerFlags::ABSTIME,
            &Itimerspec {
                it_interval: timespec(0),
                it_value: timespec(wake_at.max(1)),
            },
        )?;
        self.armed.set(Some(Armed {
            wake_at,
            ahead: wake_at > now,
        }));
        Ok(())
    }

    async fn expired(&self) -> io::Result<()> {
        loop {
            let mut guard = self.fd.readable().await?;
            let mut expirations = [0; 8];
            let read = rustix::io::read(self.fd.get_ref(), &mut expirations);
            // The read took every expiration, so the next one is a new event either way.
            guard.clear_ready();
            match read {
                Ok(_) => break,
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(armed) = self.armed.take()
            && armed.ahead
        {
            let late = monotonic_ns().saturating_sub(armed.wake_at);
            self.lead.set(self.lead.get().learned(late));
        }
        Ok(())
    }
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(ns / NANOS_PER_SECOND).unwrap_or(i64::MAX),
        // Below 1e9, so it fits.
        tv_nsec: (ns % NANOS_PER_SECOND) as _,
    }
}

/// A wait for a deadline; see [`DelayTimer::sleep_until`].
pub(crate) struct Sleep {
    inner: Rc<Inner>,
    deadline: u64,
    key: Option<(u64, u64)>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let now = monotonic_ns();
        if now >= self.deadline {
            return Poll::Ready(());
        }
        let key = match self.key {
            Some(key) => key,
            None => {
                let serial = self.inner.next_serial.get();
                self.inner.next_serial.set(serial + 1);
                (self.deadline, serial)
            }
        };
        self.key = Some(key);
        let waker = context.waker().clone();
        self.inner.queue.borrow_mut().insert(key, waker);
        if !self.inner.spinning.get() && self.inner.arm(self.deadline, now).is_err() {
            // Without the kernel's timer, polling keeps the delay true.
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            self.inner.queue.borrow_mut().remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn on_timer<F: Future>(test: impl FnOnce(DelayTimer) -> F) -> F::Output {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .build_local(tokio::runtime::LocalOptions::default())
            .expect("runtime");
        runtime.block_on(async {
            let timer = DelayTimer::new().expect("timerfd");
            let driver = timer.clone();
            tokio::task::spawn_local(async move { driver.drive().await });
            test(timer).await
        })
    }

    #[test]
    fn never_early_and_in_order_of_deadlines() {
        on_timer(|timer| async move {
            let start = monotonic_ns();
            let order = Rc::new(RefCell::new(Vec::new()));
            let tasks: Vec<_> = [30, 0, 5, 20, 5, 1, 90]
                .map(|ms: u64| {
                    let (timer, order) = (timer.clone(), Rc::clone(&order));
                    tokio::task::spawn_local(async move {
                        let deadline = start + ms * 1_000_000;
                        timer.sleep_until(deadline).await;
                        assert!(monotonic_ns() >= deadline);
                        order.borrow_mut().push(ms);
                    })
                })
                .into();
            for task in tasks {
                task.await.expect("sleeper");
            }
            assert_eq!(*order.borrow(), [0, 1, 5, 5, 20, 30, 90]);
        });
    }

    #[test]
    fn an_earlier_deadline_is_not_held_up_by_a_later_one() {
        on_timer(|timer| async move {
            let late = timer.sleep_until(monotonic_ns() + 60 * NANOS_PER_SECOND);
            let late = tokio::task::spawn_local(late);
            tokio::task::yield_now().await;
            let start = monotonic_ns();
            timer.sleep_until(start + 1_000_000).await;
            assert!(monotonic_ns() - start < 30 * NANOS_PER_SECOND);
            late.abort();
        });
    }

    #[test]
    fn abandoned_sleeps_leave_nothing_behind() {
        on_timer(|timer| async move {
            for _ in 0..10 {
                let sleep = timer.sleep_until(monotonic_ns() + 60 * NANOS_PER_SECOND);
                let task = tokio::task::spawn_local(sleep);
                tokio::task::yield_now().await;
                assert_eq!(timer.inner.queue.borrow().len(), 1);
                task.abort();
                assert!(task.await.is_err_and(|e| e.is_cancelled()));
                assert_eq!(timer.inner.queue.borrow().len(), 0);
            }
        });
    }

    #[test]
    fn idle_uses_no_cpu() {
        on_timer(|timer| async move {
            timer.sleep_until(monotonic_ns() + 1_000_000).await;
            let before = thread_cpu();
            timer.sleep_until(monotonic_ns() + 300_000_000).await;
            // Two wake-ups and at most 50 us of spinning; a thread that spun would use 300 ms.
            assert!(thread_cpu() - before < Duration::from_millis(30));
        });
    }

    fn thread_cpu() -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        Duration::try_from(time).expect("positive")
    }
}
