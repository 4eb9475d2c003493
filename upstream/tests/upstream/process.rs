//! The executable: arguments, signals, exit codes.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Instant;

use rustix::process::{Pid, Signal, kill_process};
use sweep_upstream::Report;

use crate::client::{DEADLINE, Raw, eventually, get};

struct Process {
    child: Child,
    out: BufReader<ChildStdout>,
    addr: SocketAddr,
}

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweep-upstream"));
    command.args(arguments);
    command
}

fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    // A lifetime, so that arguments which are taken by mistake fail the test instead of hanging it.
    let output: Output = command(arguments)
        .arg("--max-lifetime=5s")
        .output()
        .expect("runs");
    let text = String::from_utf8(output.stderr).expect("text");
    (output.status.code(), text)
}

impl Process {
    fn start(arguments: &[&str]) -> Self {
        let mut child = command(arguments)
            .args(["--listen=127.0.0.1:0", "--delay=0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("starts");
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let mut line = String::new();
        out.read_line(&mut line).expect("a first line");
        let addr = line
            .trim()
            .strip_prefix("listening on ")
            .and_then(|addr| addr.parse().ok())
            .unwrap_or_else(|| panic!("no address in {line:?}"));
        Self { child, out, addr }
    }

    fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).expect("a pid");
        kill_process(Pid::from_raw(pid).expect("not 0"), signal).expect("signalled");
    }

    fn end(mut self) -> (Option<i32>, Report) {
        let mut status = None;
        eventually("the process ends", || {
            status = self.child.try_wait().expect("wait");
            status.is_some()
        });
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).expect("text");
        let last = rest.lines().last().expect("a last line");
        let report = serde_json::from_str(last).expect("the report");
        (status.and_then(|status| status.code()), report)
    }
}

#[test]
fn a_signal_ends_it_at_once_with_its_report() {
    for signal in [Signal::TERM, Signal::INT] {
        let process = Process::start(&[]);
        for _ in 0..3 {
            assert_eq!(get(process.addr, "/").status, 200);
        }
        // An open request does not hold it up.
        let mut open = Raw::connect(process.addr);
        open.send("GET /delay/100s HTTP/1.1\r\nhost: x\r\n\r\n");
        let start = Instant::now();
        process.signal(signal);
        let (code, report) = process.end();
        assert!(start.elapsed() < DEADLINE);
        assert_eq!((code, report.requests), (Some(0), 3));
        assert_eq!(open.rest(), b"");
    }
}

#[test]
fn its_lifetime_ends_it() {
    let (code, report) = Process::start(&["--max-lifetime=300ms"]).end();
    assert_eq!((code, report.requests), (Some(0), 0));
    assert!(report.window_us >= 300_000 - 50_000, "{report:?}");
}

#[test]
fn bad_arguments_exit_2_with_value_and_remedy() {
    for (arguments, expected) in [
        (&["--body", "lots"][..], "`lots` is not a size; give bytes"),
        (
            &["--delay=5"],
            "`5` is not a delay; give a number with its unit",
        ),
        (
            &["--distribution=bimodal", "--delay-high=1us"],
            "--delay-high 1us is below --delay 200us; give a longer delay",
        ),
        (
            &["--distribution=bimodal"],
            "needs --delay-high-share; give",
        ),
        (&["--threads=0"], "--threads 0 cannot work; give 1 to 256"),
        (&["--colour"], "--colour"),
    ] {
        let (code, text) = refused(arguments);
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains(expected), "{text}");
    }
}

#[test]
fn an_address_that_is_taken_exits_3() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("bind");
    let addr = taken.local_addr().expect("address").to_string();
    let (code, text) = refused(&["--listen", &addr]);
    assert_eq!(code, Some(3), "{text}");
    assert!(
        text.contains(&addr) && text.contains("choose a free port"),
        "{text}"
    );
}

#[test]
fn help_tells_of_paths_and_control() {
    let output = command(&["--help"]).output().expect("runs");
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success());
    for part in [
        "/delay/1ms/size/10KiB",
        "POST /reset",
        "--max-lifetime",
        "Exit codes",
    ] {
        assert!(text.contains(part), "{part} is missing: {text}");
    }
}
