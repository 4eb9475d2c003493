//! The independent readers: two shell loops, and what they wrote.

use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::time::{Duration, Instant};

use tempfile::NamedTempFile;

/// The proxy's cgroup at one moment.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) at_s: f64,
    pub(super) periods: u64,
    pub(super) throttled: u64,
    pub(super) throttled_usec: u64,
    pub(super) cpu_usage_usec: u64,
    pub(super) memory_bytes: u64,
}

/// The listening socket at one moment, by `ss`.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) at_s: f64,
    pub(super) depth: u32,
    pub(super) limit: u32,
}

/// The pod's network namespace at one moment.
#[derive(Debug)]
pub(super) struct Namespace {
    pub(super) listen_overflows: u64,
    pub(super) listen_drops: u64,
}

/// Everything that was read, in the order of time.
pub(super) struct Readings {
    pub(super) cgroup: Vec<Reading>,
    pub(super) queues: Vec<Queue>,
    pub(super) namespace: Vec<Namespace>,
}

/// Every 4 ms, with nothing but the shell's own commands: a program for each reading would take CPU time from the trial.
/// Ends when the cgroup is gone.
const CGROUP: &str = r#"
    stat=$(find /sys/fs/cgroup -path "*$1/cpu.stat" ! -path "*/unified/*" | head -1)
    usage=$(find /sys/fs/cgroup -path "*$1/cpuacct.usage" | head -1)
    memory=$(find /sys/fs/cgroup -path "*$1/memory.usage_in_bytes" -o -path "*$1/memory.current" | head -1)
    exec 9<> <(:)
    while :; do
        at=$EPOCHREALTIME; periods=; nanos=; usec=; cpu=; bytes=
        while read -r key value; do
            case $key in
                nr_periods) periods=$value ;;
                nr_throttled) throttled=$value ;;
                throttled_time) usec=$((value / 1000)) ;;
                throttled_usec) usec=$value ;;
                usage_usec) cpu=$value ;;
            esac
        done 2>/dev/null <"$stat"
        if [ -n "$usage" ]; then read -r nanos <"$usage" && cpu=$((nanos / 1000)); fi 2>/dev/null
        read -r bytes 2>/dev/null <"$memory"
        [ -n "$periods" ] && [ -n "$cpu" ] && [ -n "$bytes" ] || exit 0
        echo "$at $periods $throttled $usec $cpu $bytes"
        read -r -t 0.004 -u 9
    done
"#;

/// Some thirty times a second, in the namespace that the upstream owns; ends with the upstream.
const SOCKETS: &str = r#"
    exec 9<> <(:)
    while counters=$(grep '^TcpExt:' "/proc/$1/net/netstat" 2>/dev/null) && [ -n "$counters" ]; do
        at=$EPOCHREALTIME
        queue=$(nsenter --net --target "$1" ss -Hltn 'sport = :8443' 2>/dev/null)
        echo "queue $at $queue"
        set -- "$1" $counters
        pid=$1; shift
        half=$(($# / 2))
        names=("${@:1:half}"); values=("${@:half + 1}")
        for i in "${!names[@]}"; do
            case ${names[i]} in ListenOverflows) overflows=${values[i]} ;; ListenDrops) drops=${values[i]} ;; esac
        done
        echo "namespace $overflows $drops"
        set -- "$pid"
        read -r -t 0.02 -u 9
    done
"#;

fn docker(format: &str, container: &str) -> String {
    let output = Command::new("docker")
        .args(["inspect", "--format", format, container])
        .output()
        .expect("docker");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A loop that writes to a file: a pipe would fill up and stop it.
struct Loop {
    child: Child,
    written: NamedTempFile,
}

impl Loop {
    fn start(script: &str, argument: &str) -> Self {
        let written = NamedTempFile::new().expect("a temporary file");
        let child = Command::new("bash")
            .args(["-c", script, "bash", argument])
            .stdin(Stdio::null())
            .stdout(written.reopen().expect("the file again"))
            .spawn()
            .expect("bash");
        Self { child, written }
    }

    /// Its lines, as words, once what it reads is gone.
    fn end(&mut self) -> Vec<Vec<String>> {
        let deadline = Instant::now() + Duration::from_secs(20);
        while self.child.try_wait().expect("wait").is_none() {
            assert!(Instant::now() < deadline, "a reader does not end");
            std::thread::sleep(Duration::from_millis(10));
        }
        let text = fs_err::read_to_string(self.written.path()).expect("its lines");
        let words = |line: &str| line.split_whitespace().map(str::to_owned).collect();
        text.lines().map(words).collect()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Both loops at work.
pub(super) struct Readers {
    cgroup: Loop,
    sockets: Loop,
}

impl Readers {
    /// Of a proxy, in the namespace of an upstream.
    pub(super) fn start(proxy: &str, upstream: &str) -> Self {
        Self {
            cgroup: Loop::start(CGROUP, &docker("{{.Id}}", proxy)),
            sockets: Loop::start(SOCKETS, &docker("{{.State.Pid}}", upstream)),
        }
    }

    /// What they have read, after the pod is gone.
    pub(super) fn end(mut self) -> Readings {
        let cgroup = self.cgroup.end();
        let sockets = self.sockets.end();
        let of = |kind: &'static str| {
            let of_kind = move |line: &&Vec<String>| line[0] == kind;
            sockets.iter().filter(of_kind)
        };
        Readings {
            cgroup: cgroup.iter().map(|line| reading(line)).collect(),
            // No listener, no depth: before the proxy listens, and when it has ended.
            queues: of("queue")
                .filter(|l| l.len() > 4)
                .map(|l| queue(l))
                .collect(),
            namespace: of("namespace").map(|l| namespace(l)).collect(),
        }
    }
}

fn number<T: FromStr>(words: &[String], at: usize) -> T {
    let word = words.get(at).and_then(|word| word.parse().ok());
    word.unwrap_or_else(|| panic!("no number at {at} in {words:?}"))
}

fn reading(line: &[String]) -> Reading {
    Reading {
        at_s: number(line, 0),
        periods: number(line, 1),
        throttled: number(line, 2),
        throttled_usec: number(line, 3),
        cpu_usage_usec: number(line, 4),
        memory_bytes: number(line, 5),
    }
}

/// `queue TIME LISTEN DEPTH LIMIT …`
fn queue(line: &[String]) -> Queue {
    Queue {
        at_s: number(line, 1),
        depth: number(line, 3),
        limit: number(line, 4),
    }
}

fn namespace(line: &[String]) -> Namespace {
    Namespace {
        listen_overflows: number(line, 1),
        listen_drops: number(line, 2),
    }
}
