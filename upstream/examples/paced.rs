//! A small open-loop client for measuring a server's delay: constant rate, one spinning thread, one request at a time per
//! connection.
//!
//! `paced ADDR RATE SECONDS [CONNECTIONS]` prints what a client sees, from the *intended* send time, in microseconds.

use std::error::Error;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};

use hdrhistogram::Histogram;
use rustix::event::epoll;
use sweep_upstream::monotonic_ns;

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: upstream\r\n\r\n";

struct Connection {
    tcp: TcpStream,
    intended: u64,
    sent: u64,
    received: usize,
    // Length of a whole response, known from the first one.
    expected: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [addr, rate, seconds, rest @ ..] = arguments.as_slice() else {
        return Err("usage: paced ADDR RATE SECONDS [CONNECTIONS]".into());
    };
    let (addr, rate, seconds): (SocketAddr, u64, u64) =
        (addr.parse()?, rate.parse()?, seconds.parse()?);
    let connections = rest.first().map_or(Ok(64), |count| count.parse())?;
    let line = run(addr, rate, seconds, connections)?;
    writeln!(io::stdout(), "{line}")?;
    Ok(())
}

fn run(addr: SocketAddr, rate: u64, seconds: u64, count: u64) -> Result<String, Box<dyn Error>> {
    let poll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let mut connections = Vec::new();
    for index in 0..count {
        let connection = connect(addr)?;
        let data = epoll::EventData::new_u64(index);
        epoll::add(&poll, &connection.tcp, data, epoll::EventFlags::IN)?;
        connections.push(connection);
    }
    let mut free: Vec<usize> = (0..connections.len()).collect();
    let (mut response, mut service) = (histogram()?, histogram()?);
    let (total, interval) = (rate * seconds, 1_000_000_000 / rate);
    let start = monotonic_ns() + 1_000_000;
    let (mut sent, mut received, mut starved) = (0, 0, 0u64);
    let mut events = Vec::with_capacity(64);
    while received < total {
        let now = monotonic_ns();
        let intended = start + sent * interval;
        if sent < total && now >= intended {
            if let Some(index) = free.pop() {
                let connection = &mut connections[index];
                connection.tcp.write_all(REQUEST)?;
                (connection.intended, connection.sent) = (intended, now);
                sent += 1;
                continue;
            }
            starved += 1;
        }
        events.clear();
        let no_wait = rustix::time::Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        epoll::wait(
            &poll,
            rustix::buffer::spare_capacity(&mut events),
            Some(&no_wait),
        )?;
        for event in &events {
            let index = usize::try_from(event.data.u64())?;
            let connection = &mut connections[index];
            if connection.receive()? {
                let now = monotonic_ns();
                response.record((now - connection.intended) / 1_000)?;
                service.record((now - connection.sent) / 1_000)?;
                received += 1;
                free.push(index);
            }
        }
    }
    let took = (monotonic_ns() - start) as f64 / 1e9;
    Ok(format!(
        "{received} responses in {took:.3} s ({:.1}/s), waits for a connection: {starved}; {}; {}",
        received as f64 / took,
        describe("response", &response),
        describe("service", &service),
    ))
}

fn histogram() -> Result<Histogram<u64>, Box<dyn Error>> {
    Ok(Histogram::new_with_bounds(1, 100_000_000, 3)?)
}

fn describe(name: &str, histogram: &Histogram<u64>) -> String {
    let at = |quantile| histogram.value_at_quantile(quantile);
    format!(
        "{name} p50 {} p90 {} p99 {} p99.9 {} max {} us",
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        histogram.max()
    )
}

fn connect(addr: SocketAddr) -> Result<Connection, Box<dyn Error>> {
    let mut tcp = TcpStream::connect(addr)?;
    tcp.set_nodelay(true)?;
    tcp.write_all(REQUEST)?;
    let mut first = vec![0; 1 << 20];
    let mut length = 0;
    let expected = loop {
        let read = tcp.read(&mut first[length..])?;
        if read == 0 {
            return Err("the server closed the connection".into());
        }
        length += read;
        if let Some(whole) = whole_length(&first[..length]) {
            break whole;
        }
    };
    while length < expected {
        length += tcp.read(&mut first[length..])?;
    }
    tcp.set_nonblocking(true)?;
    Ok(Connection {
        tcp,
        intended: 0,
        sent: 0,
        received: 0,
        expected,
    })
}

/// Head and body together, once the head is complete.
fn whole_length(response: &[u8]) -> Option<usize> {
    let text = String::from_utf8_lossy(response);
    let head = text.split_once("\r\n\r\n")?.0.to_ascii_lowercase();
    let value = head.split("content-length: ").nth(1)?;
    let body: usize = value.lines().next()?.trim().parse().ok()?;
    Some(head.len() + 4 + body)
}

impl Connection {
    /// Reads what there is; whether the response is complete.
    fn receive(&mut self) -> Result<bool, Box<dyn Error>> {
        let mut buffer = [0; 16_384];
        match self.tcp.read(&mut buffer) {
            Ok(0) => return Err("the server closed the connection".into()),
            Ok(read) => self.received += read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        let complete = self.received >= self.expected;
        if complete {
            self.received = 0;
        }
        Ok(complete)
    }
}
