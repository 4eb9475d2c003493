//! The coordinator: splits a job over threads, announces the phases on time, and merges what the threads measured.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use super::LoadError;
use super::clock::{self, MS, SEC, US};
use super::http::Target;
use super::http1::RequestTemplate;
use super::meter::{Meter, Window};
use super::ready::prime_tickets;
use super::report::LoadReport;
use super::schedule::{Arrivals as Schedule, Source};
use super::socket::raise_descriptor_limit;
use super::summary::{self, Frame};
use super::tls::TlsClient;
use super::worker::{Control, Task, Worker};
use crate::agent::job::{Job, Phase};
use crate::spec::settings::{Arrivals, Load, LoadMode};

/// Time for threads to start before the schedule does.
const LEAD: u64 = 5 * MS;
/// Persistent connections are opened this far apart, unless the warm-up is too short for that.
const STAGGER: u64 = MS;

/// Generates the load of one job.
#[derive(Debug)]
pub struct Generator {
    job: Job,
    tls: Option<TlsClient>,
}

impl Generator {
    /// Prepares everything that can fail before a connection is made.
    ///
    /// # Errors
    /// When keys, certificates or the server's name cannot be used, or the job asks for an impossible combination.
    pub fn new(job: &Job) -> Result<Self, LoadError> {
        let tls = client(job)?;
        raise_descriptor_limit();
        Ok(Self {
            job: job.clone(),
            tls,
        })
    }

    /// Warm-up, measured window, drain. Blocks until the report is made.
    ///
    /// `on_phase` is called in this thread at the moment when each phase begins, while other threads generate the load;
    /// `Measure` and `Drain` mark the ends of the window. Once `stop` is true the run ends early, the window with it.
    ///
    /// # Errors
    /// When a thread cannot be started, or the kernel refuses to wait for sockets.
    pub fn run(
        &mut self,
        on_phase: &mut dyn FnMut(Phase),
        stop: &AtomicBool,
    ) -> Result<LoadReport, LoadError> {
        if let (Some(tls), Some(material)) = (&self.tls, &self.job.tls)
            && material.settings.resumption
        {
            prime_tickets(&self.job, tls, || stop.load(Ordering::Relaxed));
        }
        let start = clock::now() + LEAD;
        let window_start = start + self.job.warmup.0 * US;
        let window = Window {
            start: window_start,
            end: window_start + self.job.duration.0 * US,
        };
        let control = Control {
            abort: AtomicBool::new(false),
            end: AtomicU64::new(window.end),
        };
        let workers = self.workers(start, window)?;
        let meters = thread::scope(|scope| {
            let mut handles = Vec::new();
            for (number, worker) in workers.into_iter().enumerate() {
                let control = &control;
                let spawned = thread::Builder::new()
                    .name(format!("load-{number}"))
                    .spawn_scoped(scope, move || worker.run(control));
                match spawned {
                    Ok(handle) => handles.push(handle),
                    Err(source) => {
                        control.abort.store(true, Ordering::Relaxed);
                        return Err(LoadError::Thread { source });
                    }
                }
            }
            announce(window, on_phase, stop, &control, || {
                handles.iter().all(thread::ScopedJoinHandle::is_finished)
            });
            handles
                .into_iter()
                .map(|handle| handle.join().unwrap_or(Err(LoadError::Panicked)))
                .collect::<Result<Vec<Meter>, LoadError>>()
        })?;
        Ok(self.summarize(&meters, window, control.end.load(Ordering::Relaxed)))
    }

    fn summarize(&self, meters: &[Meter], window: Window, end: u64) -> LoadReport {
        let load = &self.job.load;
        let frame = Frame {
            window: Window {
                end: end.max(window.start),
                ..window
            },
            offered_rate_rps: (load.mode == LoadMode::Open).then_some(load.rate.0),
            users: (load.mode == LoadMode::Closed).then_some(load.users),
            cpus: self.job.agent_cpus.min(f64::from(threads(load))),
            max_pacing_lag_us: load.max_pacing_lag.0,
        };
        summary::summarize(meters, &frame)
    }

    fn workers(&self, start: u64, window: Window) -> Result<Vec<Worker>, LoadError> {
        let load = &self.job.load;
        let template = RequestTemplate::of(load, &self.job.server_name);
        let threads = u64::from(threads(load));
        let stagger = stagger(load.connections, self.job.warmup.0 * US);
        (0..threads)
            .map(|thread| {
                let part = Part {
                    thread,
                    threads,
                    start,
                };
                let (source, rate) = part.source(load, self.job.seed);
                Worker::new(Task {
                    target: Target::new(self.tls.clone(), load, &template),
                    address: self.job.target,
                    source,
                    handshakes: part.handshakes(load, self.job.seed),
                    rate: rate + load.handshake_rate.0 / threads as f64,
                    spin: self.job.spin,
                    open_at: (thread..u64::from(load.connections))
                        .step_by(threads as usize)
                        .map(|connection| start + connection * stagger)
                        .collect(),
                    collect: load.mode == LoadMode::Closed,
                    per_connection: load.requests_per_connection,
                    timeout: load.timeout.0 * US,
                    connect_timeout: load.connect_timeout.0 * US,
                    window,
                    drain_end: window.end + self.job.drain.0 * US,
                })
            })
            .collect()
    }
}

/// The TLS client of a job; `None` for plain TCP.
pub(crate) fn client(job: &Job) -> Result<Option<TlsClient>, LoadError> {
    job.tls
        .as_ref()
        .map(|material| TlsClient::new(material, &job.server_name, job.load.protocol))
        .transpose()
}

/// Threads that have work: each needs a connection, and in a closed loop a user.
fn threads(load: &Load) -> u32 {
    let most = match load.mode {
        LoadMode::Open => load.connections,
        LoadMode::Closed => load.connections.min(load.users),
    };
    load.threads.clamp(1, most.max(1))
}

fn stagger(connections: u32, warmup: u64) -> u64 {
    let half = warmup / 2 / u64::from(connections.max(1));
    half.min(STAGGER)
}

/// One thread's part of the whole.
struct Part {
    thread: u64,
    threads: u64,
    start: u64,
}

impl Part {
    /// Requests of this thread, and how many per second.
    fn source(&self, load: &Load, seed: u64) -> (Source, f64) {
        let rate = load.rate.0 / self.threads as f64;
        match (load.mode, load.arrivals) {
            (LoadMode::Closed, _) => {
                let users = u64::from(load.users);
                let own = users / self.threads + u64::from(self.thread < users % self.threads);
                (Source::closed(own as u32, self.start), 0.0)
            }
            (LoadMode::Open, Arrivals::Constant) => {
                let whole = Schedule::constant(self.start, load.rate.0, self.thread, self.threads);
                (Source::open(whole), rate)
            }
            // Independent Poisson processes add up to one of the whole rate.
            (LoadMode::Open, Arrivals::Poisson) => {
                let own = Schedule::poisson(self.start, rate, self.seed(seed, 0));
                (Source::open(own), rate)
            }
        }
    }

    fn handshakes(&self, load: &Load, seed: u64) -> Schedule {
        let rate = load.handshake_rate.0;
        match load.arrivals {
            Arrivals::Constant => Schedule::constant(self.start, rate, self.thread, self.threads),
            Arrivals::Poisson => {
                Schedule::poisson(self.start, rate / self.threads as f64, self.seed(seed, 1))
            }
        }
    }

    /// A seed of its own for each thread and stream.
    fn seed(&self, seed: u64, stream: u64) -> u64 {
        // The golden ratio's odd multiple, as in SplitMix64: distinct for all small numbers.
        seed ^ (2 * self.thread + stream + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }
}

/// Calls `on_phase` on time; on `stop` has the threads end and moves the window's end here.
fn announce(
    window: Window,
    on_phase: &mut dyn FnMut(Phase),
    stop: &AtomicBool,
    control: &Control,
    done: impl Fn() -> bool,
) {
    clock::precise_timers();
    let stopped = || stop.load(Ordering::Relaxed) || done();
    on_phase(Phase::Warmup);
    if clock::sleep_until(window.start, stopped) {
        on_phase(Phase::Measure);
        if clock::sleep_until(window.end, stopped) {
            on_phase(Phase::Drain);
            clock::sleep_until(window.end + 24 * 3600 * SEC, stopped);
            control.abort.store(true, Ordering::Relaxed);
            return;
        }
        end_early(window, control);
        on_phase(Phase::Drain);
        return;
    }
    end_early(window, control);
}

fn end_early(window: Window, control: &Control) {
    let now = clock::now().clamp(window.start, window.end);
    control.end.store(now, Ordering::Relaxed);
    control.abort.store(true, Ordering::Relaxed);
}
