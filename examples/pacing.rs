//! How true the generator's pace and latency are, by the stamps of the server itself: a Markdown table, one row a rate.
//!
//! ```text
//! cargo run --release --example pacing -- [sleep] [RATE…]
//! ```
//! The server (the project's upstream, 200 us) runs on CPU 0 and the generator on CPU 1, in one process. The generator has
//! its CPU for itself and so spins while an answer or an arrival is near, unless told to `sleep`.
#![expect(clippy::print_stdout, reason = "the table is this program's output")]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::atomic::AtomicBool;

use rustix::thread::{CpuSet, sched_setaffinity};
use sweep::agent::job::{Job, Phase};
use sweep::load::Generator;
use sweep::load::report::LoadReport;
use sweep::spec::settings::{Arrivals, Load, LoadMode, Protocol, Wait};
use sweep::units::{Bytes, Micros, RatePerSecond};

const RATES: [f64; 7] = [0.5, 2.0, 99.0, 101.0, 1_000.0, 3_900.0, 10_000.0];
const CONNECTIONS: u32 = 32;

fn main() -> Result<(), Box<dyn Error>> {
    let spin = !std::env::args().any(|word| word == "sleep");
    let given: Vec<f64> = std::env::args()
        .skip(1)
        .filter(|word| word != "sleep")
        .map(|rate| rate.parse())
        .collect::<Result<_, _>>()?;
    let rates = if given.is_empty() { &RATES[..] } else { &given };
    println!(
        "| rate/s | arrivals | expected | gap p99.9, us | bound, us | send lag p99, us | pacing lag p99, us | served p50, us | response p50, us | served p99, us | response p99, us | bottlenecks |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|");
    for &rate in rates {
        println!("{}", row(rate, spin)?);
    }
    Ok(())
}

fn row(rate: f64, spin: bool) -> Result<String, Box<dyn Error>> {
    pin(0)?;
    let server = sweep_upstream::serve(&sweep_upstream::Config {
        record_arrivals: 1_000_000,
        ..sweep_upstream::Config::default()
    })?;
    pin(1)?;
    let seconds = if rate < 10.0 { 8 } else { 5 };
    let mut window = (0, 0);
    let report = Generator::new(&job(server.addr(), rate, seconds, spin))?.run(
        &mut |phase| match phase {
            Phase::Measure => {
                let _ = server.reset();
                window.0 = sweep_upstream::monotonic_ns();
            }
            Phase::Drain => window.1 = sweep_upstream::monotonic_ns(),
            _ => {}
        },
        &AtomicBool::new(false),
    )?;
    let arrivals: Vec<u64> = server
        .arrivals()
        .into_iter()
        .filter(|at| (window.0..window.1).contains(at))
        .collect();
    let served = server.shutdown();
    Ok(tell(rate, seconds, &arrivals, &report, &served))
}

fn tell(
    rate: f64,
    seconds: u64,
    arrivals: &[u64],
    report: &LoadReport,
    served: &sweep_upstream::Report,
) -> String {
    let mut gaps: Vec<u64> = arrivals
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) / 1_000)
        .collect();
    gaps.sort_unstable();
    let rank = ((gaps.len() as f64 * 0.999).ceil() as usize).saturating_sub(1);
    let gap = gaps.get(rank).copied();
    let us = |value: Option<u64>| value.map_or_else(|| "-".to_owned(), |us| us.to_string());
    let kinds: Vec<String> = report
        .bottlenecks
        .iter()
        .map(|found| found.detail.clone())
        .collect();
    format!(
        "| {rate} | {} | {} | {} | {:.0} | {} | {} | {} | {} | {} | {} | {} |",
        arrivals.len(),
        rate * seconds as f64,
        us(gap),
        2.0 * 1e6 / rate + 200.0,
        us(report.send_lag.quantile_us(0.99)),
        us(report.pacing_lag.quantile_us(0.99)),
        us(served.delay_p50_us),
        us(report.response_time.quantile_us(0.5)),
        us(served.delay_p99_us),
        us(report.response_time.quantile_us(0.99)),
        kinds.join("; "),
    )
}

fn pin(cpu: usize) -> Result<(), rustix::io::Errno> {
    let mut set = CpuSet::new();
    set.set(cpu);
    sched_setaffinity(None, &set)
}

fn job(target: std::net::SocketAddr, rate: f64, seconds: u64, spin: bool) -> Job {
    Job {
        target,
        server_name: "localhost".to_owned(),
        tls: None,
        load: Load {
            mode: LoadMode::Open,
            rate: RatePerSecond(rate),
            arrivals: Arrivals::Constant,
            users: 1,
            connections: CONNECTIONS,
            requests_per_connection: None,
            streams: 1,
            handshake_rate: RatePerSecond(0.0),
            protocol: Protocol::H1,
            method: "GET".to_owned(),
            path: "/".to_owned(),
            headers: BTreeMap::new(),
            body: Bytes(0),
            timeout: Micros(10_000_000),
            connect_timeout: Micros(10_000_000),
            max_pacing_lag: Micros(1_000),
            threads: 1,
            wait: Wait::Auto,
        },
        warmup: Micros(500_000),
        duration: Micros(seconds * 1_000_000),
        drain: Micros(1_000_000),
        seed: 1,
        upstream_control: target,
        ready_path: "/".to_owned(),
        ready_deadline: Micros(1_000_000),
        proxy: None,
        upstream_container: None,
        sample_interval: Micros(50_000),
        agent_cpus: 1.0,
        spin,
        listen_port: target.port(),
    }
}
