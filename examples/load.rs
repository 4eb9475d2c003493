//! Runs the load generator alone, against any server: what `bench/peers` compares with other generators.
//!
//! ```text
//! cargo run --release --example load -- --target 127.0.0.1:8080 --users 50 --connections 50 --duration 5s
//! ```
#![expect(clippy::print_stdout, reason = "the result is this program's output")]

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;

use clap::Parser;
use sweep::agent::job::{Job, TlsMaterial};
use sweep::hdr::LatencyHistogram;
use sweep::load::Generator;
use sweep::load::report::LoadReport;
use sweep::spec::settings::{
    Arrivals, CertificateKey, KeyExchange, Load, LoadMode, Protocol, Tls, TlsVersion, Verify, Wait,
};
use sweep::units::{Bytes, Micros, RatePerSecond};

#[derive(Debug, Parser)]
#[command(about = "Generate load and print what became of it, per second of the client's CPU")]
struct Options {
    /// Address of the server.
    #[arg(long)]
    target: SocketAddr,
    /// Name for SNI, `Host` and the certificate.
    #[arg(long, default_value = "localhost")]
    name: String,
    /// PEM of the CA; TLS is on when given.
    #[arg(long)]
    ca: Option<PathBuf>,
    /// Trust the certificate in this PEM itself instead of the CA.
    #[arg(long)]
    pin: Option<PathBuf>,
    /// TLS 1.2 instead of 1.3.
    #[arg(long)]
    tls12: bool,
    /// P-256 instead of X25519.
    #[arg(long)]
    p256: bool,
    /// Resume TLS sessions.
    #[arg(long)]
    resume: bool,
    /// HTTP/2.
    #[arg(long)]
    h2: bool,
    /// Requests per second; closed loop when not given.
    #[arg(long)]
    rate: Option<f64>,
    /// Poisson arrivals.
    #[arg(long)]
    poisson: bool,
    /// Users of the closed loop.
    #[arg(long, default_value_t = 50)]
    users: u32,
    /// Connections.
    #[arg(long, default_value_t = 50)]
    connections: u32,
    /// Streams per HTTP/2 connection.
    #[arg(long, default_value_t = 1)]
    streams: u32,
    /// Requests per connection; 1 opens a connection for each.
    #[arg(long)]
    per_connection: Option<u32>,
    /// Connections per second that only time their handshake.
    #[arg(long, default_value_t = 0.0)]
    handshake_rate: f64,
    /// Path.
    #[arg(long, default_value = "/")]
    path: String,
    /// Measured window.
    #[arg(long, default_value = "5s")]
    duration: humantime::Duration,
    /// Before it.
    #[arg(long, default_value = "500ms")]
    warmup: humantime::Duration,
    /// Threads.
    #[arg(long, default_value_t = 1)]
    threads: u32,
    /// Spin while an answer or an arrival is near, on a CPU that nothing else uses.
    #[arg(long)]
    spin: bool,
}

impl Options {
    fn load(&self) -> Load {
        Load {
            mode: if self.rate.is_some() {
                LoadMode::Open
            } else {
                LoadMode::Closed
            },
            rate: RatePerSecond(self.rate.unwrap_or(0.0)),
            arrivals: if self.poisson {
                Arrivals::Poisson
            } else {
                Arrivals::Constant
            },
            users: self.users,
            connections: self.connections,
            requests_per_connection: self.per_connection,
            streams: self.streams,
            handshake_rate: RatePerSecond(self.handshake_rate),
            protocol: if self.h2 { Protocol::H2 } else { Protocol::H1 },
            method: "GET".to_owned(),
            path: self.path.clone(),
            headers: BTreeMap::new(),
            body: Bytes(0),
            timeout: Micros(30_000_000),
            connect_timeout: Micros(20_000_000),
            max_pacing_lag: Micros(1_000),
            threads: self.threads,
            wait: Wait::Auto,
        }
    }

    fn tls(&self) -> std::io::Result<Option<TlsMaterial>> {
        let read = |path: &Option<PathBuf>| {
            path.as_ref()
                .map_or(Ok(String::new()), fs_err::read_to_string)
        };
        if self.ca.is_none() && self.pin.is_none() {
            return Ok(None);
        }
        Ok(Some(TlsMaterial {
            settings: Tls {
                version: if self.tls12 {
                    TlsVersion::V1_2
                } else {
                    TlsVersion::V1_3
                },
                certificate: CertificateKey::EcdsaP256,
                key_exchange: if self.p256 {
                    KeyExchange::P256
                } else {
                    KeyExchange::X25519
                },
                resumption: self.resume,
                mutual: false,
                verify: if self.pin.is_some() {
                    Verify::Pin
                } else {
                    Verify::Ca
                },
            },
            ca_pem: read(&self.ca)?,
            server_cert_pem: read(&self.pin)?,
            client: None,
        }))
    }

    fn job(&self) -> std::io::Result<Job> {
        let micros = |duration: humantime::Duration| Micros(duration.as_micros() as u64);
        Ok(Job {
            target: self.target,
            server_name: self.name.clone(),
            tls: self.tls()?,
            load: self.load(),
            warmup: micros(self.warmup),
            duration: micros(self.duration),
            drain: Micros(1_000_000),
            seed: 1,
            upstream_control: self.target,
            ready_path: self.path.clone(),
            ready_deadline: Micros(5_000_000),
            proxy: None,
            upstream_container: None,
            sample_interval: Micros(50_000),
            agent_cpus: f64::from(self.threads),
            spin: self.spin,
            listen_port: self.target.port(),
        })
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(report) => {
            print(&report);
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> Result<LoadReport, Box<dyn std::error::Error>> {
    let job = options.job()?;
    Ok(Generator::new(&job)?.run(&mut |_| {}, &AtomicBool::new(false))?)
}

fn print(report: &LoadReport) {
    let cpu = report.generator_cpu_usec.map(|usec| usec as f64 / 1e6);
    let answered = report.achieved_rate_rps * report.window_us as f64 / 1e6;
    println!("requests_per_second {:.1}", report.achieved_rate_rps);
    if let Some(cpu) = cpu {
        println!("client_cpu_seconds {cpu:.3}");
        println!("requests_per_cpu_second {:.0}", answered / cpu);
    }
    for (name, histogram) in [
        ("response_time", &report.response_time),
        ("service_time", &report.service_time),
        ("send_lag", &report.send_lag),
        ("pacing_lag", &report.pacing_lag),
        ("handshake_tcp", &report.handshake.tcp),
        ("handshake_server_hello", &report.handshake.server_hello),
        ("handshake_finished", &report.handshake.finished),
        ("handshake_first_byte", &report.handshake.first_byte),
        ("handshake_total", &report.handshake.total),
    ] {
        print_quantiles(name, histogram);
    }
    println!(
        "scheduled {} sent {} requests {}",
        report.scheduled, report.sent, report.requests
    );
    println!(
        "handshakes {} of {}",
        report.handshake.completed, report.handshake.scheduled
    );
    println!(
        "full {} resumed {}",
        report.handshake.full, report.handshake.resumed
    );
    println!("errors {:?} {:?}", report.errors, report.handshake.errors);
    println!("connection_errors {:?}", report.connection_errors);
    println!("negotiated {:?}", report.negotiated);
    println!("littles_law_users {:?}", report.littles_law_users);
    for bottleneck in &report.bottlenecks {
        println!("bottleneck {:?}: {}", bottleneck.kind, bottleneck.detail);
    }
}

fn print_quantiles(name: &str, histogram: &LatencyHistogram) {
    if histogram.count() == 0 {
        return;
    }
    let quantile = |q| {
        histogram
            .quantile_us(q)
            .map_or_else(|| "-".to_owned(), |us| us.to_string())
    };
    println!(
        "{name}_us p50 {} p99 {} p99.9 {} max {}",
        quantile(0.5),
        quantile(0.99),
        quantile(0.999),
        quantile(1.0)
    );
}
