//! The independent readers: three shell loops, and what they wrote.

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

/// The accept queue at one moment.
#[derive(Debug)]
pub(super) struct Depth {
    pub(super) at_s: f64,
    pub(super) depth: u32,
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
    pub(super) depths: Vec<Depth>,
    /// The accept queue and its limit, by `ss`.
    pub(super) queues: Vec<(u32, u32)>,
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

/// The listener's accept queue every 3 ms, as `/proc/net/tcp` shows it (the receive queue of a listening socket): a queue
/// comes and goes between two looks of `ss`. Ends with the upstream, to which the namespace belongs.
const DEPTHS: &str = r#"
    exec 9<> <(:)
    while :; do
        at=$EPOCHREALTIME; alive=; depth=
        while read -r _ local _ state queues _; do
            alive=1
            case $local:$state in *:20FB:0A) depth=$((16#${queues#*:})); break ;; esac
        done 2>/dev/null <"/proc/$1/net/tcp"
        [ -n "$alive" ] || exit 0
        [ -z "$depth" ] || echo "depth $at $depth"
        read -r -t 0.003 -u 9
    done
"#;

/// The same by `ss`, and the namespace's counters, some thirty times a second.
const SOCKETS: &str = r#"
    exec 9<> <(:)
    while :; do
        names=; overflows=
        queue=$(ss -Hltn 'sport = :8443' 2>/dev/null)
        echo "queue $queue"
        while read -r kind words; do
            [ "$kind" = TcpExt: ] || continue
            if [ -z "$names" ]; then names=$words; continue; fi
            set -- "$1" $words
            for name in $names; do
                case $name in ListenOverflows) overflows=$2 ;; ListenDrops) drops=$2 ;; esac
                pid=$1; shift 2; set -- "$pid" "$@"
            done
        done 2>/dev/null <"/proc/$1/net/netstat"
        [ -n "$overflows" ] || exit 0
        echo "namespace $overflows $drops"
        read -r -t 0.03 -u 9
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
    /// Before everything else that wants a CPU, where that may be had: a reader that comes late has seen nothing.
    fn start(enter: &[&str], script: &str, argument: &str) -> Self {
        let written = NamedTempFile::new().expect("a temporary file");
        let child = Command::new("nice")
            .args(["-n", "-15"])
            .args(enter)
            .args(["bash", "-c", script, "bash", argument])
            .stdin(Stdio::null())
            .stdout(written.reopen().expect("the file again"))
            .spawn()
            .expect("nice");
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

/// All loops at work.
pub(super) struct Readers {
    cgroup: Loop,
    depths: Loop,
    sockets: Loop,
}

impl Readers {
    /// Of a proxy, in the namespace of an upstream.
    pub(super) fn start(proxy: &str, upstream: &str) -> Self {
        let pid = docker("{{.State.Pid}}", upstream);
        let enter = ["nsenter", "--net", "--target", &pid];
        Self {
            cgroup: Loop::start(&[], CGROUP, &docker("{{.Id}}", proxy)),
            depths: Loop::start(&[], DEPTHS, &pid),
            sockets: Loop::start(&enter, SOCKETS, &pid),
        }
    }

    /// What they have read, after the pod is gone.
    pub(super) fn end(mut self) -> Readings {
        let cgroup = self.cgroup.end();
        let depths = self.depths.end();
        let sockets = self.sockets.end();
        let of = |kind: &'static str| {
            let of_kind = move |line: &&Vec<String>| line[0] == kind;
            sockets.iter().filter(of_kind)
        };
        Readings {
            cgroup: cgroup.iter().map(|line| reading(line)).collect(),
            depths: depths.iter().map(|line| depth(line)).collect(),
            // No listener, no queue: before the proxy listens, and when it has ended.
            queues: of("queue")
                .filter(|l| l.len() > 3)
                .map(|l| (number(l, 2), number(l, 3)))
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

/// `depth TIME DEPTH`
fn depth(line: &[String]) -> Depth {
    Depth {
        at_s: number(line, 1),
        depth: number(line, 2),
    }
}

fn namespace(line: &[String]) -> Namespace {
    Namespace {
        listen_overflows: number(line, 1),
        listen_drops: number(line, 2),
    }
}
