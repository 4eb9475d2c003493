//! The agent's main: watch, wait for the first answer, load, and tell.

use std::io::Write;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::job::{AgentEvent, AgentOutcome, AgentResult, Job, Phase, UpstreamReport};
use super::upstream_stats;
use crate::load::judge::CPU_WAIT_SHARE;
use crate::load::{self, Generator, clock};
use crate::probe::report::ProbeReport;
use crate::probe::{FsRoot, Watcher};

/// How long the proxy's cgroup may take to appear: the engine has its own deadline for the start.
const CGROUP_DEADLINE: Duration = Duration::from_secs(120);
/// How often it is asked whether the proxy still lives. Its processes are nobody's children here and come and go, so that
/// there is no event to wait for that means the last of them.
const LIFE_CHECK: Duration = Duration::from_millis(50);

/// Runs the job in a file and writes events to `out`, the last of which is `Done` or `Failed`.
///
/// # Errors
/// When `out` cannot be written.
pub fn run(job_path: &Path, out: impl Write + Send + 'static) -> std::io::Result<()> {
    let events = Events {
        out: Mutex::new(Box::new(out)),
    };
    let last = match read_job(job_path).and_then(|job| measure(&job, &events)) {
        Ok(result) => AgentEvent::Done(Box::new(result)),
        Err(error) => AgentEvent::Failed { error },
    };
    events.send(&last)
}

struct Events {
    out: Mutex<Box<dyn Write + Send>>,
}

impl Events {
    fn send(&self, event: &AgentEvent) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(event)?;
        line.push(b'\n');
        let mut out = self
            .out
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        out.write_all(&line)?;
        out.flush()
    }

    /// A line that only informs: nobody listening is no reason to stop measuring.
    fn tell(&self, event: &AgentEvent) {
        let _ = self.send(event);
    }
}

fn read_job(path: &Path) -> Result<Job, String> {
    let text = fs_err::read_to_string(path).map_err(|e| format!("cannot read the job: {e}"))?;
    // The job holds the client's private key, and nobody needs the file any more.
    let _ = fs_err::remove_file(path);
    serde_json::from_str(&text)
        .map_err(|e| format!("cannot understand the job in {}: {e}", path.display()))
}

fn measure(job: &Job, events: &Events) -> Result<AgentResult, String> {
    let generator = Generator::new(job).map_err(|e| e.to_string())?;
    let interval = job.sample_interval.duration();
    let watcher = Watcher::new(
        job.proxy.as_ref(),
        job.listen_port,
        interval,
        &FsRoot::default(),
    );
    watcher.set_pod_containers(job.upstream_container.as_slice());
    events.tell(&AgentEvent::Watching {
        version: crate::VERSION.to_owned(),
    });
    events.tell(&AgentEvent::Phase {
        phase: Phase::Readiness,
    });
    if !watcher.find_cgroup(Instant::now() + CGROUP_DEADLINE, &|| false) {
        return Err(
            "the proxy's cgroup did not appear below /sys/fs/cgroup; is its container running?"
                .to_owned(),
        );
    }
    let ended = AtomicBool::new(false);
    let gone = AtomicBool::new(false);
    let measured = std::thread::scope(|scope| {
        scope.spawn(|| watch_life(&watcher, &gone, &ended));
        let result = load_phases(job, generator, &watcher, events, &gone);
        ended.store(true, Ordering::Relaxed);
        result
    });
    let probe = watcher.finish();
    measured.map(|result| AgentResult { probe, ..result })
}

/// Notices when the proxy's processes are gone, until the load has ended.
fn watch_life(watcher: &Watcher, gone: &AtomicBool, ended: &AtomicBool) {
    while !ended.load(Ordering::Relaxed) {
        if !watcher.proxy_alive() {
            gone.store(true, Ordering::Relaxed);
            return;
        }
        std::thread::sleep(LIFE_CHECK);
    }
}

fn load_phases(
    job: &Job,
    mut generator: Generator,
    watcher: &Watcher,
    events: &Events,
    gone: &AtomicBool,
) -> Result<AgentResult, String> {
    let seen = Instant::now();
    let waited_before = clock::thread_cpu_wait();
    let deadline = seen + job.ready_deadline.duration();
    let ready = load::probe_ready(job, deadline, || gone.load(Ordering::Relaxed))
        .map_err(|e| e.to_string())?;
    let elapsed = seen.elapsed();
    if !ready
        && !gone.load(Ordering::Relaxed)
        && let Some(waited) = clock::thread_cpu_wait().zip(waited_before)
    {
        let waited = Duration::from_nanos(waited.0.saturating_sub(waited.1));
        refuse_starved(waited, elapsed)?;
    }
    let ready_after_us = ready.then(|| micros(elapsed));
    let mut result = AgentResult {
        outcome: AgentOutcome::Measured,
        ready_after_us,
        load: None,
        probe: ProbeReport::default(),
        upstream: None,
        agent_cpu_usec: None,
    };
    if let Some(after_us) = ready_after_us {
        watcher.mark_ready();
        events.tell(&AgentEvent::Ready { after_us });
        let window = Window {
            job,
            watcher,
            events,
            state: Mutex::new(WindowState::default()),
        };
        let report = generator
            .run(&mut |phase| window.enter(phase), gone)
            .map_err(|e| e.to_string())?;
        result.load = Some(report);
        (result.upstream, result.agent_cpu_usec) = window.finish();
    }
    result.outcome = match (ready, gone.load(Ordering::Relaxed)) {
        (_, true) => AgentOutcome::ProxyGone,
        (false, false) => AgentOutcome::NotReady,
        (true, false) => AgentOutcome::Measured,
    };
    Ok(result)
}

/// # Errors
/// When the agent itself got so little CPU time that no answer means nothing.
fn refuse_starved(waited: Duration, elapsed: Duration) -> Result<(), String> {
    let share = waited.as_secs_f64() / elapsed.as_secs_f64().max(f64::EPSILON);
    // It sleeps most of that time, and so a busy neighbour alone does not bring it there.
    if share < CPU_WAIT_SHARE {
        return Ok(());
    }
    Err(format!(
        "no answer of the proxy within {:.1} s, but the agent itself waited for a CPU in {:.0} % of that time: end what \
         else runs on its CPUs, or give it others (placement.agent)",
        elapsed.as_secs_f64(),
        share * 100.0
    ))
}

/// What happens at the edges of the measured window.
struct Window<'a> {
    job: &'a Job,
    watcher: &'a Watcher,
    events: &'a Events,
    state: Mutex<WindowState>,
}

#[derive(Default)]
struct WindowState {
    was_reset: bool,
    cpu_start: Option<Duration>,
    cpu_usec: Option<u64>,
    upstream: Option<UpstreamReport>,
}

impl Window<'_> {
    fn enter(&self, phase: Phase) {
        let mut state = self
            .state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        match phase {
            Phase::Measure => {
                self.watcher.begin_window();
                self.watcher
                    .prepare_end(Instant::now() + self.job.duration.duration());
                state.cpu_start = process_cpu();
                state.was_reset = upstream_stats::reset(self.job.upstream_control).is_ok();
            }
            Phase::Drain => {
                self.watcher.end_window();
                state.cpu_usec = state
                    .cpu_start
                    .zip(process_cpu())
                    .map(|(start, end)| micros(end - start));
                // Without the reset its numbers would cover the warm-up too: unknown then, not nearly right.
                if state.was_reset {
                    state.upstream = upstream_stats::read(self.job.upstream_control).ok();
                }
            }
            Phase::Warmup => self
                .watcher
                .prepare_window(Instant::now() + self.job.warmup.duration()),
            Phase::Readiness => {}
        }
        drop(state);
        self.events.tell(&AgentEvent::Phase { phase });
    }

    fn finish(self) -> (Option<UpstreamReport>, Option<u64>) {
        let state = self
            .state
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        (state.upstream, state.cpu_usec)
    }
}

fn process_cpu() -> Option<Duration> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Some(Duration::new(
        u64::try_from(time.tv_sec).ok()?,
        u32::try_from(time.tv_nsec).ok()?,
    ))
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_without_a_cpu_does_not_blame_the_proxy() {
        let seconds = Duration::from_secs;
        assert_eq!(refuse_starved(seconds(3), seconds(15)), Ok(()));
        let error = refuse_starved(seconds(14), seconds(15)).expect_err("starved");
        assert!(
            error.contains("93 %") && error.contains("placement.agent"),
            "{error}"
        );
        let before = clock::thread_cpu_wait().expect("this kernel tells");
        assert!(clock::thread_cpu_wait().expect("still") >= before);
    }
}
