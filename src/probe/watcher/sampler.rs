//! The sampler thread: looks often while the proxy may die, and exactly on schedule in the window.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::state::{Phase, State};

/// Between two looks at whether the proxy lives and was hit by the OOM killer. The engine removes the cgroup of a dead container
/// some tens of milliseconds later; whoever looks less often never sees `oom_kill` move.
const WATCH: Duration = Duration::from_millis(5);
/// The same in the window, where every sample watches too, and waking up costs more than looking.
const WATCH_IN_WINDOW: Duration = Duration::from_millis(30);
/// Of so many watches one asks what costs more.
const THOROUGH: u32 = 4;
/// Between two full readings outside the window, and between two readings of the slow files.
const LOOK: Duration = Duration::from_millis(100);
const SLOW: Duration = Duration::from_secs(1);

/// What the watcher and its thread share.
#[derive(Debug)]
pub(super) struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    stop: AtomicBool,
    pub(super) alive: AtomicBool,
    /// CPU time of the sampler so far, waking up and waiting included, nanoseconds.
    sampler_cpu_ns: AtomicU64,
    /// CPU time that probing took on other threads.
    other_cpu_ns: AtomicU64,
}

impl Shared {
    pub(super) fn new(state: State) -> Self {
        Self {
            state: Mutex::new(state),
            wake: Condvar::new(),
            stop: AtomicBool::new(false),
            alive: AtomicBool::new(true),
            sampler_cpu_ns: AtomicU64::new(0),
            other_cpu_ns: AtomicU64::new(0),
        }
    }

    /// A panic elsewhere leaves values that are at worst old, so a poisoned lock is taken all the same.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn wake(&self) {
        self.wake.notify_all();
    }

    pub(super) fn stop(&self) {
        let _state = self.lock();
        self.stop.store(true, Ordering::Relaxed);
        self.wake.notify_all();
    }

    /// Adds this thread's CPU time since `started` to the probes' cost.
    pub(super) fn charge(&self, started: Duration) {
        let spent = nanos(thread_cpu().saturating_sub(started));
        self.other_cpu_ns.fetch_add(spent, Ordering::Relaxed);
    }

    /// CPU time of all probing so far.
    pub(super) fn cpu_ns(&self) -> u64 {
        let sampler = self.sampler_cpu_ns.load(Ordering::Relaxed);
        sampler.saturating_add(self.other_cpu_ns.load(Ordering::Relaxed))
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// CPU time of the calling thread.
pub(super) fn thread_cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or(0),
        u32::try_from(time.tv_nsec).unwrap_or(0),
    )
}

/// Starts the thread; without one (no threads left) there are no samples, and a gap says so.
pub(super) fn spawn(shared: &Arc<Shared>) -> Option<JoinHandle<()>> {
    let for_thread = Arc::clone(shared);
    let spawned = std::thread::Builder::new()
        .name("probe-sampler".to_owned())
        .spawn(move || run(&for_thread));
    match spawned {
        Ok(handle) => Some(handle),
        Err(_) => {
            shared.lock().gap("sampler_thread");
            None
        }
    }
}

/// Times that the thread keeps.
struct Clock {
    next_watch: Instant,
    next_look: Instant,
    next_slow: Instant,
    watches: u32,
}

fn run(shared: &Shared) {
    let now = Instant::now();
    let mut clock = Clock {
        next_watch: now,
        next_look: now,
        next_slow: now,
        watches: 0,
    };
    let mut state = shared.lock();
    while !shared.stop.load(Ordering::Relaxed) {
        step(shared, &mut state, &mut clock);
        shared
            .sampler_cpu_ns
            .store(nanos(thread_cpu()), Ordering::Relaxed);
        let wait = clock.wait(&state);
        state = match shared.wake.wait_timeout(state, wait) {
            Ok((state, _)) => state,
            Err(poisoned) => poisoned.into_inner().0,
        };
    }
}

fn step(shared: &Shared, state: &mut State, clock: &mut Clock) {
    if state.phase == Phase::Waiting {
        return;
    }
    let now = Instant::now();
    let in_window = state.phase == Phase::Window;
    let sample_due = in_window && state.is_sample_due();
    if sample_due || now >= clock.next_watch {
        clock.next_watch = now + if in_window { WATCH_IN_WINDOW } else { WATCH };
        watch(shared, state, clock);
    }
    if sample_due {
        let slow = clock.slow(now);
        state.sample(slow);
    } else if !in_window && now >= clock.next_look {
        clock.next_look = now + LOOK;
        let slow = clock.slow(now);
        state.look_around(slow);
    }
}

/// Looks at once when the proxy has died or lost a process to the OOM killer: the cgroup is about to go.
fn watch(shared: &Shared, state: &mut State, clock: &mut Clock) {
    clock.watches = clock.watches.wrapping_add(1);
    let thorough = clock.watches.is_multiple_of(THOROUGH);
    let Some(signs) = state.vital_signs(thorough) else {
        return;
    };
    let died = signs.alive.is_some_and(|alive| {
        let was_alive = shared.alive.swap(alive, Ordering::Relaxed);
        was_alive && !alive
    });
    if died || signs.killed {
        state.look(true);
    }
}

impl Clock {
    fn slow(&mut self, now: Instant) -> bool {
        let due = now >= self.next_slow;
        if due {
            self.next_slow = now + SLOW;
        }
        due
    }

    fn wait(&self, state: &State) -> Duration {
        const IDLE: Duration = Duration::from_secs(3600);
        if state.phase == Phase::Waiting {
            return IDLE;
        }
        let other = state.next_sample_at().unwrap_or(self.next_look);
        let next = self.next_watch.min(other);
        next.saturating_duration_since(Instant::now())
    }
}
