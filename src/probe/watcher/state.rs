//! What the watcher knows, and the steps that change it.

use std::time::{Duration, Instant};

use super::budget::WalkBudget;
use super::early::EarlyLimits;
use super::last;
use super::pod::Pod;
use super::sampler::thread_cpu;
use super::schedule::Schedule;
use crate::probe::cgroup::{Group, Hierarchies, Location, Reading, limits_in_force};
use crate::probe::delta::delta;
use crate::probe::descriptors::{Descriptors, OpenFds};
use crate::probe::host::HostProbe;
use crate::probe::net::NetFiles;
use crate::probe::report::{Counters, LimitsInForce, MemoryGauges, ProbeReport, Queues, Sample};
use crate::probe::sockets::SockDiag;
use crate::probe::{FsRoot, sysctls};

/// Of so many samples one counts descriptors.
const FDS_EVERY: u32 = 5;

/// Where in its life the watcher is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// No cgroup yet.
    Waiting,
    /// Last values are kept current.
    Watching,
    /// Samples are kept too.
    Window,
    /// The window is over.
    After,
}

/// What a glance tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct VitalSigns {
    /// `None`: not asked this time.
    pub(super) alive: Option<bool>,
    /// The OOM killer has taken a process since the last glance.
    pub(super) killed: bool,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) phase: Phase,
    pub(super) location: Option<Location>,
    pub(super) group: Option<Group>,
    pub(super) report: ProbeReport,
    pub(super) last: Option<Counters>,
    pub(super) last_memory: Option<MemoryGauges>,
    pub(super) window_began: Option<Instant>,
    /// CPU time of the probes when the window began, nanoseconds.
    pub(super) cpu_ns_at_start: u64,
    hierarchies: Hierarchies,
    /// Limits before the window, for a proxy that never reaches it.
    early_limits: EarlyLimits,
    origin: Instant,
    net: NetFiles,
    host: HostProbe,
    pod: Option<Pod>,
    descriptors: Descriptors,
    sockets: Option<SockDiag>,
    buffer: Vec<u8>,
    oom_kill: Option<u64>,
    schedule: Schedule,
    /// Index of the next sample of the window.
    next_sample: u32,
    walks: WalkBudget,
}

impl State {
    pub(super) fn new(
        root: &FsRoot,
        hierarchies: Hierarchies,
        listen_port: u16,
        interval: Duration,
    ) -> Self {
        let mut state = Self {
            phase: Phase::Waiting,
            cpu_ns_at_start: 0,
            hierarchies,
            early_limits: EarlyLimits::default(),
            location: None,
            group: None,
            report: ProbeReport::default(),
            last: None,
            last_memory: None,
            window_began: None,
            origin: Instant::now(),
            net: NetFiles::new(root),
            host: HostProbe::new(root),
            pod: None,
            descriptors: Descriptors::new(root),
            sockets: None,
            buffer: Vec::new(),
            oom_kill: None,
            schedule: Schedule::new(interval),
            next_sample: 0,
            walks: WalkBudget::default(),
        };
        state.report.sysctls = sysctls::read(root);
        match SockDiag::open(listen_port) {
            Ok(sockets) => state.sockets = Some(sockets),
            Err(_) => state.gap("sock_diag_open"),
        }
        state
    }

    pub(super) fn gap(&mut self, probe: &str) {
        self.gaps(probe, 1);
    }

    pub(super) fn gaps(&mut self, probe: &str, count: u64) {
        if count > 0 {
            *self.report.gaps.entry(probe.to_owned()).or_default() += count;
        }
    }

    /// Reads the proxy's cgroup, and the namespace's counters when `slow`, and remembers what it saw as the last look.
    pub(super) fn look(&mut self, slow: bool) -> Reading {
        let Some(group) = &mut self.group else {
            let mut reading = Reading::default();
            if slow {
                self.net.read_into(&mut reading.counters, &mut self.buffer);
            }
            reading.counters.t_us = self.now_us();
            return reading;
        };
        let mut reading = group.read(slow, &mut self.buffer);
        reading.counters.t_us = micros(self.origin.elapsed());
        if slow {
            self.net.read_into(&mut reading.counters, &mut self.buffer);
        }
        let counters = self.last.get_or_insert_default();
        let memory = self.last_memory.get_or_insert_default();
        last::keep(counters, memory, &reading);
        reading
    }

    fn now_us(&self) -> u64 {
        micros(self.origin.elapsed())
    }

    /// A glance at the proxy, `thorough` now and then: what costs more than one read waits for that, or for a suspicion.
    pub(super) fn vital_signs(&mut self, thorough: bool) -> Option<VitalSigns> {
        let group = self.group.as_mut()?;
        let oom_kill = group.oom_kill(&mut self.buffer);
        let killed = oom_kill.is_some() && self.oom_kill.is_some() && oom_kill != self.oom_kill;
        self.oom_kill = oom_kill.or(self.oom_kill);
        let ask = thorough || killed || group.lost() || group.is_cheap_to_ask();
        let alive = ask.then(|| group.is_alive(&mut self.buffer));
        Some(VitalSigns { alive, killed })
    }

    /// A look outside the window.
    pub(super) fn look_around(&mut self, slow: bool) {
        self.look(slow);
        if self.phase == Phase::Watching
            && let Some(limits) = self.limits()
        {
            self.early_limits.saw(limits);
        }
    }

    /// Limits now; `None` once the cgroup is gone.
    fn limits(&self) -> Option<LimitsInForce> {
        let location = self.location.as_ref()?;
        let limits = limits_in_force(&self.hierarchies, location);
        let own = &limits.own;
        let any = own.memory_bytes.is_some() || own.cpu_quota_usec.is_some();
        any.then_some(limits)
    }

    pub(super) fn begin_window(&mut self, now: Instant) {
        let reading = self.look(true);
        self.report.counters_start = Some(reading.counters);
        self.report.limits_start = self.limits();
        self.report.nofile_limit = self.nofile_limit();
        self.report.samples.clear();
        self.host.begin();
        if let Some(pod) = &mut self.pod {
            pod.begin();
        }
        self.walks = WalkBudget::default();
        self.next_sample = 0;
        self.window_began = Some(now);
        self.phase = Phase::Window;
    }

    pub(super) fn end_window(&mut self) {
        let elapsed = self.window_began.map(|began| began.elapsed());
        let missed = elapsed.map_or(0, |elapsed| self.pass_due_samples(elapsed));
        self.gaps("sample", u64::from(missed));
        let reading = self.look(true);
        self.report.counters_end = Some(reading.counters);
        self.report.limits_end = self.limits();
        let pod_cpu_usec = self.pod_cpu_usec();
        self.report.host = self.host.end(pod_cpu_usec);
        self.phase = Phase::After;
    }

    /// CPU time of all containers of the pod over the window.
    fn pod_cpu_usec(&mut self) -> Option<u64> {
        let others = self.pod.as_mut()?.used_usec()?;
        if self.group.is_none() {
            return Some(others);
        }
        let report = &self.report;
        let (start, end) = (
            report.counters_start.as_ref()?,
            report.counters_end.as_ref()?,
        );
        Some(others + delta(start, end).cpu_usage_usec?)
    }

    pub(super) fn set_pod_containers(&mut self, root: &FsRoot, ids: &[String]) {
        self.pod = Some(Pod::find(root, &self.hierarchies, ids));
    }

    fn nofile_limit(&mut self) -> Option<u64> {
        let pids = self.group.as_ref()?.pids(&mut self.buffer);
        self.descriptors.limit(&pids)
    }

    /// Counted with every slow look, and more often where it is cheap.
    fn open_fds(&mut self, slow: bool) -> Option<OpenFds> {
        let often = self.descriptors.is_cheap() && self.next_sample.is_multiple_of(FDS_EVERY);
        if !slow && !often {
            return None;
        }
        let pids = self.group.as_ref()?.pids(&mut self.buffer);
        self.descriptors.count(&pids)
    }

    /// When to take the next sample; `None` outside the window.
    pub(super) fn next_sample_at(&self) -> Option<Instant> {
        let began = self.window_began?;
        (self.phase == Phase::Window).then(|| began + self.schedule.at(self.next_sample))
    }

    pub(super) fn is_sample_due(&self) -> bool {
        self.next_sample_at().is_some_and(|at| at <= Instant::now())
    }

    /// Goes on to the first sample whose time has not come, and answers how many that passes over.
    fn pass_due_samples(&mut self, elapsed: Duration) -> u32 {
        let next = self.schedule.first_after(elapsed, self.next_sample);
        let passed = next - self.next_sample;
        self.next_sample = next;
        passed
    }

    /// The sample that is due. Those between it and the next whose time has not come were missed.
    pub(super) fn sample(&mut self, slow: bool) {
        let Some(began) = self.window_began else {
            return;
        };
        let at = began.elapsed();
        let missed = self.pass_due_samples(at).saturating_sub(1);
        self.gaps("sample", u64::from(missed));
        let Reading {
            counters, memory, ..
        } = self.look(slow);
        if self.group.is_some() && memory.current_bytes.is_none() {
            self.gap("memory");
        }
        if self.group.is_some() && counters.cpu_usage_usec.is_none() {
            self.gap("cpu");
        }
        if slow {
            self.host.sample();
        }
        let open_fds = self.open_fds(slow);
        let sample = Sample {
            t_us: micros(at),
            memory,
            cpu_usage_usec: counters.cpu_usage_usec,
            nr_throttled: counters.nr_throttled,
            nr_periods: counters.nr_periods,
            queues: self.queues(slow),
            open_fds: open_fds.map(|fds| fds.sum),
            open_fds_max: open_fds.map(|fds| fds.max),
        };
        self.report.samples.push(sample);
    }

    fn queues(&mut self, slow: bool) -> Option<Queues> {
        let sockets = self.sockets.as_mut()?;
        let Ok(mut queues) = sockets.listeners(slow) else {
            self.gap("queues");
            return None;
        };
        let now = Instant::now();
        if !self.walks.allow(now) {
            self.gap("connections");
            return Some(queues);
        }
        let started = thread_cpu();
        let walked = sockets.connections(&mut queues);
        self.walks.spent(now, started, thread_cpu());
        if walked.is_err() {
            self.gap("connections");
        }
        Some(queues)
    }

    /// The last look (the namespace outlives the proxy), and the report.
    pub(super) fn finish(&mut self) -> ProbeReport {
        if self.group.is_some() {
            self.look(true);
        }
        if self.window_began.is_none() {
            self.report.host = self.host.end(None);
            self.report.nofile_limit = self.nofile_limit();
        }
        let mut report = std::mem::take(&mut self.report);
        report.counters_last = self.last.take();
        report.memory_at_ready = report.memory_at_ready.or(self.last_memory.take());
        report.limits_start = report.limits_start.or(self.early_limits.settled.take());
        report
    }
}

pub(super) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
