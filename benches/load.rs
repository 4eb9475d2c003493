//! What the generator does for every request, without sockets and TLS: nanoseconds that bound its rate.

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sweep::hdr::LatencyHistogram;
use sweep::load::h2;
use sweep::load::http1::{RequestTemplate, ResponseReader};
use sweep::load::schedule::{Arrivals, Source};
use sweep::load::signal::InFlight;

fn template() -> RequestTemplate {
    RequestTemplate {
        method: "GET".into(),
        path: "/route?x=1".into(),
        authority: "proxy.test".into(),
        headers: vec![("x-request".into(), "sweep".into())],
        body: 0,
    }
}

fn schedule(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("schedule");
    group.throughput(Throughput::Elements(1));
    for (name, arrivals) in [
        ("constant", Arrivals::constant(0, 10_000.0, 0, 1)),
        ("poisson", Arrivals::poisson(0, 10_000.0, 1)),
    ] {
        let mut source = Source::open(arrivals);
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                let due = source.next_arrival();
                black_box(source.arrive(due));
                black_box(source.take())
            });
        });
    }
}

fn http1(criterion: &mut Criterion) {
    // What Envoy adds to an upstream's answer.
    let mut response = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 1024\r\n\
        date: Mon, 30 Nov 2026 12:00:00 GMT\r\nx-envoy-upstream-service-time: 0\r\nserver: envoy\r\n\r\n"
        .to_vec();
    response.extend([b'x'; 1024]);
    let mut group = criterion.benchmark_group("http1");
    group.throughput(Throughput::Elements(1));
    let mut reader = ResponseReader::new(false);
    group.bench_function("response of 1 KiB", |bencher| {
        bencher.iter(|| black_box(reader.feed(black_box(&response))));
    });
    let (first, second) = response.split_at(80);
    group.bench_function("response in two reads", |bencher| {
        bencher.iter(|| {
            let _ = black_box(reader.feed(black_box(first)));
            black_box(reader.feed(black_box(second)))
        });
    });
}

fn http2(criterion: &mut Criterion) {
    let request = h2::Request::new(&template(), true);
    let in_flight = InFlight {
        intended: 1,
        sent: 2,
    };
    let mut group = criterion.benchmark_group("http2");
    group.throughput(Throughput::Elements(1));
    group.bench_function("request and response of 1 KiB", |bencher| {
        let mut connection = h2::Connection::new(100);
        let mut signals = Vec::new();
        let _ = connection.feed(&[0, 0, 0, 4, 0, 0, 0, 0, 0], &request, 0, &mut signals);
        let mut stream = 1u32;
        let mut answer = vec![0, 0, 1, 1, 4, 0, 0, 0, 0, 0x88, 0, 4, 0, 0, 1, 0, 0, 0, 0];
        answer.extend([b'x'; 1024]);
        bencher.iter(|| {
            connection.begin(&request, in_flight);
            answer[5..9].copy_from_slice(&stream.to_be_bytes());
            answer[15..19].copy_from_slice(&stream.to_be_bytes());
            let result = connection.feed(black_box(&answer), &request, 3, &mut signals);
            assert!(result.is_ok() && connection.open() == 0);
            connection.flushed();
            signals.clear();
            stream += 2;
        });
    });
}

fn histogram(criterion: &mut Criterion) {
    let mut histogram = LatencyHistogram::default();
    let mut value = 1u64;
    let mut group = criterion.benchmark_group("histogram");
    group.throughput(Throughput::Elements(1));
    group.bench_function("record", |bencher| {
        bencher.iter(|| {
            value = (value * 25) % 65_521;
            histogram.record_us(black_box(value));
        });
    });
}

criterion_group!(benches, schedule, http1, http2, histogram);
criterion_main!(benches);
