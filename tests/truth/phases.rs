//! Handshake phases: a delay injected into one moves that one alone.

use std::net::TcpStream;
use std::thread;
use std::time::Duration;

use rustix::net::{AddressFamily, SocketType, bind, listen, socket};
use sweep::agent::job::Job;
use sweep::load::report::HandshakeReport;
use sweep::units::{Micros, RatePerSecond};

use crate::job::{assert_near, job, load, ms, run, tell, tls, tls_settings};
use crate::server::{Delays, Identity, Server, phased, serve};

const DELAY: Duration = Duration::from_millis(50);

/// Medians in milliseconds: tcp, ServerHello, Finished, first byte, total.
fn medians(report: &HandshakeReport) -> [f64; 5] {
    [
        &report.tcp,
        &report.server_hello,
        &report.finished,
        &report.first_byte,
        &report.total,
    ]
    .map(|histogram| ms(histogram, 0.5))
}

fn handshakes_only(job: &mut Job) {
    job.load.rate = RatePerSecond(1.0);
    job.load.connections = 1;
    job.load.handshake_rate = RatePerSecond(20.0);
    job.duration = Micros(1_000_000);
}

#[test]
fn only_the_delayed_phase_moves() {
    let identity = Identity::new();
    let slow = [
        (0, Delays::default()),
        (
            1,
            Delays {
                server_hello: DELAY,
                ..Delays::default()
            },
        ),
        (
            2,
            Delays {
                finished: DELAY,
                ..Delays::default()
            },
        ),
        (
            3,
            Delays {
                first_byte: DELAY,
                ..Delays::default()
            },
        ),
    ];
    for (phase, delays) in slow {
        let server = phased(identity.server_config(b"http/1.1", false), delays);
        let mut job = job(server.address, load());
        job.tls = Some(tls(&identity, tls_settings()));
        handshakes_only(&mut job);
        let report = run(&job);
        assert_eq!(report.handshake.completed, 20, "{}", tell(&report));
        let found = medians(&report.handshake);
        for (number, length) in found.iter().enumerate() {
            let delayed = number == phase && phase > 0;
            let expected = if delayed || (number == 4 && phase > 0) {
                55.0
            } else {
                5.0
            };
            assert_near(
                &format!("phase {number} of {found:?} with {delays:?}"),
                *length,
                expected,
                20.0,
            );
        }
        let handshake = &report.handshake;
        let sum: f64 = [
            &handshake.tcp,
            &handshake.server_hello,
            &handshake.finished,
            &handshake.first_byte,
        ]
        .map(|histogram| histogram.mean_us().unwrap())
        .iter()
        .sum();
        let total = handshake.total.mean_us().unwrap();
        // Each connection's phases add up exactly; the histograms round to three digits.
        assert_near("sum of the phases", sum, total, total * 0.002 + 5.0);
    }
}

#[test]
fn a_dropped_syn_shows_in_tcp_and_is_counted() {
    // An accept queue of one place: the next SYN is dropped until it is emptied.
    let listener = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(
        &listener,
        &"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap(),
    )
    .unwrap();
    listen(&listener, 0).unwrap();
    let listener = std::net::TcpListener::from(listener);
    let address = listener.local_addr().unwrap();
    let filler = TcpStream::connect(address).unwrap();
    let mut job = job(address, load());
    handshakes_only(&mut job);
    job.load.handshake_rate = RatePerSecond(1.0);
    job.warmup = Micros(0);
    let generator = thread::spawn(move || run(&job));
    thread::sleep(Duration::from_millis(800));
    let server = Server::on(listener, |stream, _| serve(stream, || {}));
    let report = generator.join().unwrap();
    drop((server, filler));
    assert_eq!(report.handshake.completed, 1, "{}", tell(&report));
    assert_eq!(
        report
            .handshake
            .syn_retries
            .keys()
            .copied()
            .collect::<Vec<_>>(),
        [1]
    );
    assert_near("tcp", ms(&report.handshake.tcp, 0.5), 1020.0, 100.0);
    assert!(ms(&report.handshake.first_byte, 0.5) < 100.0);
}
