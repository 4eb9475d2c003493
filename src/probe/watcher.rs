//! The watcher: one object from before the proxy's start to after the window's end, and a sampler thread under it.

mod budget;
mod early;
mod last;
mod pod;
mod sampler;
mod schedule;
mod state;
mod statistics;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sampler::Shared;
use state::{Phase, State};
use statistics::Statistics;

use super::FsRoot;
use super::cgroup::{Finder, Group, Hierarchies};
use super::report::ProbeReport;
use crate::agent::job::WatchedProxy;

/// Watches one proxy in one trial. See the [module](crate::probe) for its life.
#[derive(Debug)]
pub struct Watcher {
    shared: Arc<Shared>,
    hierarchies: Hierarchies,
    finder: Option<Finder>,
    root: FsRoot,
    statistics: Mutex<Statistics>,
    sampler: Option<JoinHandle<()>>,
}

impl Watcher {
    /// Prepares to watch a container that need not exist yet; `None` in a control without a proxy, where only the
    /// namespace's sockets and counters and the host are watched.
    #[must_use]
    pub fn new(
        watched: Option<&WatchedProxy>,
        listen_port: u16,
        sample_interval: Duration,
        root: &FsRoot,
    ) -> Self {
        let hierarchies = Hierarchies::detect(root);
        let finder = watched.map(|proxy| Finder::new(root, &hierarchies, &proxy.container_id));
        let mut state = State::new(root, hierarchies.clone(), listen_port, sample_interval);
        if watched.is_some() {
            state.report.cgroup_version = Some(hierarchies.version);
        }
        let shared = Arc::new(Shared::new(state));
        let sampler = sampler::spawn(&shared);
        Self {
            shared,
            hierarchies,
            finder,
            root: root.clone(),
            statistics: Mutex::new(Statistics::new(watched)),
            sampler,
        }
    }

    /// Waits for the container's cgroup, and watches it from then on. False when the deadline has passed or `stop` said so
    /// before it was there. Without a proxy to watch there is nothing to wait for, and the answer is true.
    pub fn find_cgroup(&self, deadline: Instant, stop: &dyn Fn() -> bool) -> bool {
        let Some(finder) = &self.finder else {
            return true;
        };
        let Some(location) = finder.wait(deadline, stop) else {
            return false;
        };
        let group = Group::open(&self.hierarchies, &location);
        let mut state = self.shared.lock();
        state.location = Some(location);
        state.group = Some(group);
        state.phase = Phase::Watching;
        drop(state);
        self.shared.wake();
        true
    }

    /// Tells which other containers the pod has (the upstream; the agent's own is known), all of them started by now. Needed for
    /// [`HostNoise::other_cpu_usec`](super::report::HostNoise::other_cpu_usec), which is unknown without it.
    pub fn set_pod_containers(&self, ids: &[String]) {
        self.shared.lock().set_pod_containers(&self.root, ids);
    }

    /// Whether the proxy's container still has processes, by the sampler's last look (some milliseconds ago). True before the
    /// cgroup was found, and without a proxy to watch.
    #[must_use]
    pub fn proxy_alive(&self) -> bool {
        self.shared.alive.load(Ordering::Relaxed)
    }

    /// The proxy has given its first answer: keeps its memory of this moment.
    pub fn mark_ready(&self) {
        let mut state = self.shared.lock();
        let memory = state.look(false).memory;
        state.report.memory_at_ready = Some(memory);
    }

    /// Announces the window, which begins at about `begins_at`: the proxy's own statistics are read shortly before, on another
    /// thread. Returns at once. Without this call they are read when the window begins, and its first moments are missing.
    pub fn prepare_window(&self, begins_at: Instant) {
        self.statistics().prepare(begins_at);
    }

    /// Announces when the window will end: the proxy's gauges are read shortly before, while there is load. Without this call
    /// they are read after it.
    pub fn prepare_end(&self, ends_at: Instant) {
        self.statistics().prepare_end(ends_at);
    }

    fn statistics(&self) -> std::sync::MutexGuard<'_, Statistics> {
        self.statistics
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The measured window begins now.
    pub fn begin_window(&self) {
        let started = sampler::thread_cpu();
        let mut state = self.shared.lock();
        state.cpu_ns_at_start = self.shared.cpu_ns();
        state.begin_window(Instant::now());
        drop(state);
        self.statistics().begin(Instant::now());
        self.shared.charge(started);
        self.shared.wake();
    }

    /// The measured window ends now. Without a window, or after its end, this does nothing.
    pub fn end_window(&self) {
        let started = sampler::thread_cpu();
        let mut state = self.shared.lock();
        if state.phase != Phase::Window {
            return;
        }
        state.end_window();
        self.shared.charge(started);
        let spent = self.shared.cpu_ns().saturating_sub(state.cpu_ns_at_start);
        state.report.probe_cpu_usec = Some(spent / 1000);
        drop(state);
        self.statistics().end(Instant::now(), self.proxy_alive());
    }

    /// Stops watching and tells what was seen. A window that is still open ends here.
    #[must_use]
    pub fn finish(mut self) -> ProbeReport {
        self.end_window();
        self.stop_sampler();
        let mut report = self.shared.lock().finish();
        report.proxy_stats = self.statistics().finish();
        report
    }

    fn stop_sampler(&mut self) {
        self.shared.stop();
        if let Some(thread) = self.sampler.take()
            && thread.join().is_err()
        {
            self.shared.lock().gap("sampler_panicked");
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.stop_sampler();
    }
}

#[cfg(test)]
mod tests;
