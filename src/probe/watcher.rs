//! The watcher: one object from before the proxy's start to after the window's end, and a sampler thread under it.

mod pod;
mod sampler;
mod schedule;
mod state;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sampler::Shared;
use state::{Phase, State};

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
        let mut state = State::new(root, hierarchies.clone(), listen_port);
        if watched.is_some() {
            state.report.cgroup_version = Some(hierarchies.version);
        }
        let shared = Arc::new(Shared::new(state, sample_interval));
        let sampler = sampler::spawn(&shared);
        Self {
            shared,
            hierarchies,
            finder,
            root: root.clone(),
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

    /// The measured window begins now.
    pub fn begin_window(&self) {
        let started = sampler::thread_cpu();
        let mut state = self.shared.lock();
        state.cpu_ns_at_start = self.shared.cpu_ns();
        state.begin_window(Instant::now());
        drop(state);
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
    }

    /// Stops watching and tells what was seen. A window that is still open ends here.
    #[must_use]
    pub fn finish(mut self) -> ProbeReport {
        self.end_window();
        self.stop_sampler();
        self.shared.lock().finish()
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
