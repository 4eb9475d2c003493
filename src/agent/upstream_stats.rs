//! Asks the upstream for its own account of the delay that it served.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use super::job::UpstreamReport;

const TIMEOUT: Duration = Duration::from_secs(2);

/// Forgets what was served so far. Failure is not an error: the counts then cover more than the window, which the
/// caller marks by leaving the report out.
pub(super) fn reset(control: SocketAddr) -> std::io::Result<()> {
    request(control, "POST", "/reset").map(|_| ())
}

/// What was served since the reset.
pub(super) fn read(control: SocketAddr) -> std::io::Result<UpstreamReport> {
    let body = request(control, "GET", "/stats")?;
    serde_json::from_str(&body).map_err(|e| std::io::Error::new(std::io::ErrorKind::InvalidData, e))
}

fn request(address: SocketAddr, method: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    write!(stream, "{method} {path} HTTP/1.1\r\nHost: upstream\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let invalid = || std::io::Error::new(std::io::ErrorKind::InvalidData, "not an HTTP answer");
    let (head, body) = answer.split_once("\r\n\r\n").ok_or_else(invalid)?;
    let ok = head.split(' ').nth(1).is_some_and(|status| status.starts_with('2'));
    if ok { Ok(body.to_owned()) } else { Err(std::io::Error::other(head.lines().next().unwrap_or("").to_owned())) }
}
