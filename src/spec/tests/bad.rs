//! What a wrong matrix is told.

use super::*;

/// The plain lines of a wrong matrix.
fn told(text: &str) -> String {
    wrong(text).to_string()
}

fn told_of_sets(text: &str, overrides: &[&str]) -> String {
    parsed(text, overrides).unwrap_err().to_string()
}

#[test]
fn all_faults_at_once_with_line_and_column() {
    let text = r#"name = "../evil"
repetitions = 0
durations = "30s"
warmup = "0s"

[matrix]
cpu = ["0.001", "250m", 0.25, "0.2505"]
memory = ["5Mi", "64m"]
swap = ["-1"]
load = [1]
"proxy.workers" = []
"load.rates" = [1]

[proxy]
workers = 0
concurrency = 2

[load]
rate = 0
connections = [1, 2]
path = "x"
headers = { "X-A" = "a\r\nb", host = "x" }
"#;
    insta::assert_snapshot!(told(text), @r##"
    matrix.toml:1:8: name "../evil" does not begin with a letter or digit; give letters, digits, ".", "_" and "-", at most 64, beginning with a letter or digit
    matrix.toml:2:15: repetitions 0 is zero; give a whole number, 1 to 10000
    matrix.toml:3:1: unknown key "durations"; did you mean "duration"?
    matrix.toml:4:10: warmup "0s" is zero; give a duration, 1ms to 24h
    matrix.toml:7:8: level "0.001" of "cpu" is below 10m (0.01 CPU), which kernels refuse; give a Kubernetes quantity or a number of CPUs in steps of 1m, 10m to 8192 (such as "250m" or 0.25), or "max" for no limit
    matrix.toml:7:25: level 0.25 of "cpu" equals "250m"; remove one of them
    matrix.toml:7:31: level "0.2505" of "cpu" is finer than 1m; give a Kubernetes quantity or a number of CPUs in steps of 1m, 10m to 8192 (such as "250m" or 0.25), or "max" for no limit
    matrix.toml:8:11: level "5Mi" of "memory" is below 6Mi; give a Kubernetes quantity or bytes, 6Mi to 1Pi (such as "64Mi"), or "max" for no limit
    matrix.toml:8:18: level "64m" of "memory" has the ambiguous unit "m" ("m" is thousandths to Kubernetes and MiB to Docker); give a Kubernetes quantity or bytes, 6Mi to 1Pi (such as "64Mi"), or "max" for no limit
    matrix.toml:9:9: level "-1" of "swap" is negative; give a Kubernetes quantity or bytes, 0 to 1Pi (such as "256Mi")
    matrix.toml:10:1: factor "load" names a table; name one of its keys: load.mode, load.rate, load.arrivals, load.users, load.connections, load.requests_per_connection, load.streams, load.handshake_rate, load.protocol, load.method, load.path, load.body, load.timeout, load.connect_timeout, load.max_pacing_lag, load.threads, load.wait
    matrix.toml:11:19: factor "proxy.workers" has no levels; give at least one, or remove the factor
    matrix.toml:12:1: unknown factor "load.rates"; did you mean "load.rate"?
    matrix.toml:15:11: proxy.workers 0 is zero; give a whole number, 1 to 1024
    matrix.toml:16:1: unknown key "concurrency" in [proxy]; did you mean "workers"?
    matrix.toml:19:8: load.rate 0 is zero; give a number of requests per second, 0.01 to 10000000
    matrix.toml:20:15: load.connections is an array; give a whole number, 1 to 100000, or make it a factor: [matrix] "load.connections" = […]
    matrix.toml:21:8: load.path "x" does not begin with "/"; give a path that begins with "/", of visible ASCII without "#", at most 8192 bytes
    matrix.toml:22:21: the value of header x-a holds '\r'; give a string of visible ASCII and spaces
    matrix.toml:22:31: header "host" is set by the generator itself; give a name of letters, digits and "-" that HTTP itself does not need
    "##);
}

#[test]
fn rendering_underlines_the_place() {
    let errors = wrong("[matrix]\ncpu = [\"250m\", \"0.001\"]\n\n[load]\nrat = 5\n");
    insta::assert_snapshot!(errors.render(false), @r#"
     × level "0.001" of "cpu" is below 10m (0.01 CPU), which kernels refuse
      ╭─[matrix.toml:2:16]
    1 │ [matrix]
    2 │ cpu = ["250m", "0.001"]
      ·                ───────
    3 │ 
      ╰────
     help: give a Kubernetes quantity or a number of CPUs in steps of 1m, 10m to 8192 (such as "250m" or 0.25), or "max"
           for no limit

     × unknown key "rat" in [load]
      ╭─[matrix.toml:5:1]
    4 │ [load]
    5 │ rat = 5
      · ───
      ╰────
     help: did you mean "rate"?
    "#);
    assert!(errors.render(true).contains("\u{1b}["));
    assert!(!errors.render(false).contains('\u{1b}'));
}

#[test]
fn syntax_errors() {
    insta::assert_snapshot!(told("name = \n[matrix\ncpu = [250m]\nrate = 5\nrate = 6"), @r"
    matrix.toml:1:8: not valid TOML: string values must be quoted, expected literal string; correct the syntax
    matrix.toml:2:8: not valid TOML: unclosed table, expected `]`; correct the syntax
    ");
}

#[test]
fn one_missing_bracket_is_one_error() {
    insta::assert_snapshot!(told("[matrix]\ncpu = [\"250m\"\nmemory = [\"64Mi\"]\nswap = [\"0\"]\n\n[load]\nrate = 100\nrat = 5\n"), @"matrix.toml:3:1: not valid TOML: missing comma between array elements, expected `,`; correct the syntax");
    // What is wrong by itself is told too, and what comes before.
    insta::assert_snapshot!(told("repetitions = 0\n[matrix]\ncpu = [\"250m\"\nmemory = [\"64Mi\"]\n\n[load]\nrate = 100\npath = /\n"), @r"
    matrix.toml:1:15: repetitions 0 is zero; give a whole number, 1 to 10000
    matrix.toml:4:1: not valid TOML: missing comma between array elements, expected `,`; correct the syntax
    matrix.toml:8:8: not valid TOML: string values must be quoted, expected literal string; correct the syntax
    ");
    insta::assert_snapshot!(told("[matrix]\ncpu = [\n  \"250m\",\n  1m,\n  \"500m\"\n]\nmemory = [\"64Mi]\n"), @r"
    matrix.toml:4:3: not valid TOML: string values must be quoted, expected literal string; correct the syntax
    matrix.toml:7:17: not valid TOML: unclosed array, expected `]`; correct the syntax
    ");
    insta::assert_snapshot!(told("[load]\nheaders = { a = \"b\"\nrate = 5\n[tls]\nversion = \"1.2\"\n"), @"matrix.toml:3:1: not valid TOML: missing comma between key-value pairs, expected `,`; correct the syntax");
}

#[test]
fn wrong_types() {
    insta::assert_snapshot!(
        told("matrix = 1\nload = [1]\nname = 5\nseed = -1\nwarmup = 5\nduration = 1979-05-27\ncontrols = [\"none\", \"direct\", \"direct\", 1]\n[tls]\nresumption = \"yes\"\n[proxy]\nport = 8080\nkind = \"squid\"\ncommand = \"x\""),
        @r#"
    matrix.toml:1:10: matrix is a whole number, not a table; begin it with [matrix], and give each factor an array of levels
    matrix.toml:2:8: load is an array, not a table; begin it with [load]
    matrix.toml:3:8: name 5 is a whole number; give letters, digits, ".", "_" and "-", at most 64, beginning with a letter or digit
    matrix.toml:4:8: seed -1 is below 0; give a whole number, 0 to 9223372036854775807
    matrix.toml:5:10: warmup 5 has no unit; give a duration, 1ms to 24h
    matrix.toml:6:12: duration 1979-05-27 is a date; give a duration, 100ms to 24h
    matrix.toml:7:13: "none" is not a control; give an array of "direct" and "unlimited", each at most once
    matrix.toml:7:31: this control is given twice; remove one of them
    matrix.toml:7:41: 1 is not a control; give an array of "direct" and "unlimited", each at most once
    matrix.toml:9:14: tls.resumption "yes" is a string; give true or false
    matrix.toml:11:8: proxy.port 8080 is a port of the upstream, in the same network namespace; give a port, 1 to 65535, but not 8080 or 8081, which are the upstream's
    matrix.toml:12:8: proxy.kind "squid" is not one of the choices; give "envoy", "nginx", "haproxy" or "custom"
    matrix.toml:13:11: proxy.command is a string; give an array of strings without NUL, at most 1000
    "#
    );
}

#[test]
fn factors_that_are_none() {
    insta::assert_snapshot!(
        told("[matrix]\ncpu = \"1\"\nload = { rate = [1], rate2 = [2] }\nlimits.cpu = [\"2\"]\nmatrix = [1]\n\"load.headers\" = [1]\nname = [\"a\"]\ntls = {}\nmemory = [[\"64Mi\"], {}]"),
        @r#"
    matrix.toml:2:7: factor "cpu" is a string, not an array of levels; write ["1"], or set limits.cpu outside [matrix]
    matrix.toml:3:22: unknown factor "load.rate2"; did you mean "load.rate"?
    matrix.toml:5:1: factor "matrix" names a table; name a scalar key
    matrix.toml:6:1: "load.headers" cannot be a factor; set it outside [matrix]
    matrix.toml:7:1: "name" cannot be a factor; set it outside [matrix]
    matrix.toml:8:1: factor "tls" names a table; name one of its keys: tls.version, tls.certificate, tls.key_exchange, tls.resumption, tls.mutual, tls.verify
    matrix.toml:9:11: a level of "memory" is an array; give a Kubernetes quantity or bytes, 6Mi to 1Pi (such as "64Mi"), or "max" for no limit
    matrix.toml:9:21: a level of "memory" is a table; give a Kubernetes quantity or bytes, 6Mi to 1Pi (such as "64Mi"), or "max" for no limit
    "#
    );
}

#[test]
fn combinations_that_cannot_be() {
    insta::assert_snapshot!(
        told("[matrix]\nmemory = [\"64Mi\", \"max\"]\nswap = [\"0\", \"1Mi\", \"2Mi\"]\ncpu = [\"10m\", \"1\"]\n\"load.streams\" = [1, 10]\n\"upstream.delay\" = [\"1ms\", \"10ms\"]\n\"tls.version\" = [\"1.2\", \"1.3\"]\n\n[limits]\ncpu_period = \"50ms\"\n[proxy]\nadmin_port = 8443\ncommand = [\"x\"]\n[upstream]\ndelay_distribution = \"uniform\"\ndelay_high = \"5ms\"\n[tls]\nkey_exchange = \"x25519mlkem768\""),
        @r#"
    matrix.toml:3:14: swap 1Mi without a memory limit; give a memory limit, or swap 0: swap is a limit on top of memory
    matrix.toml:3:21: swap 2Mi without a memory limit; give a memory limit, or swap 0: swap is a limit on top of memory
    matrix.toml:5:22: 10 streams on an HTTP/1.1 connection; give load.protocol "h2", or load.streams 1
    matrix.toml:10:14: cpu 10m of a period of 50ms is a quota of 500us, below the kernel's least, 1ms; give a period of at least 100ms with this cpu, or more cpu
    matrix.toml:12:14: proxy.admin_port and proxy.port are both 8443; give different ports
    matrix.toml:13:11: proxy.command is only for a custom proxy; give proxy.kind "custom", or remove it; proxy.config changes the others
    matrix.toml:16:14: upstream.delay_high 5ms is below upstream.delay 10ms; give an upstream.delay_high that is not below upstream.delay
    matrix.toml:18:16: x25519mlkem768 does not exist in TLS 1.2; give tls.version "1.3", or another tls.key_exchange
    "#
    );
}

#[test]
fn files_of_windows_are_read_like_others() {
    let errors = wrong("\u{feff}seeds = 1\r\n[matrix]\r\ncpu = [\"250m\"]\r\n");
    insta::assert_snapshot!(errors.render(false), @r#"
     × unknown key "seeds"
      ╭─[matrix.toml:1:1]
    1 │ seeds = 1 
      · ─────
    2 │ [matrix] 
      ╰────
     help: did you mean "seed"?
    "#);
    let matrix = right("\u{feff}seed = 5\r\n[matrix]\r\ncpu = [\"250m\"]\r\n");
    assert_eq!(matrix.seed, 5);
}

#[test]
fn a_custom_proxy_needs_an_image() {
    insta::assert_snapshot!(told("[proxy]\nkind = \"custom\""), @"matrix.toml:2:8: a custom proxy has no default image; give proxy.image");
}

#[test]
fn factors_without_effect() {
    insta::assert_snapshot!(
        told("[matrix]\n\"load.users\" = [1, 2]\n\"limits.cpu_period\" = [\"10ms\", \"100ms\"]\n\"upstream.delay_high_share\" = [0.1]"),
        @r#"
    matrix.toml:2:1: factor "load.users" has no effect: only a closed loop has users (load.mode = "closed"); remove it: its levels would be the same trial again
    matrix.toml:3:1: factor "limits.cpu_period" has no effect: no cell has a CPU limit; remove it: its levels would be the same trial again
    matrix.toml:4:1: factor "upstream.delay_high_share" has no effect: upstream.delay_distribution is not "bimodal"; remove it: its levels would be the same trial again
    "#
    );
    // In a matrix of both modes each has its effect.
    right("[matrix]\n\"load.users\" = [1, 2]\n\"load.mode\" = [\"open\", \"closed\"]");
}

#[test]
fn no_request_in_the_window() {
    insta::assert_snapshot!(told("duration = \"1s\"\n[load]\nrate = 0.5"), @"matrix.toml:3:8: load.rate 0.5 sends no request in a window of 1s; give a higher rate or a longer duration");
}

#[test]
fn warnings_do_not_refuse() {
    let matrix = right("[load]\nusers = 5\nconnections = 300\n[proxy]\nnofile = 128");
    insta::assert_snapshot!(matrix.render_warnings(false), @r#"
     ⚠ load.users has no effect: only a closed loop has users (load.mode = "closed")
      ╭─[matrix.toml:2:9]
    1 │ [load]
    2 │ users = 5
      ·         ─
    3 │ connections = 300
      ╰────
     help: remove it

     ⚠ 300 connections and proxy.nofile 128: the proxy will run out of file descriptors
      ╭─[matrix.toml:5:10]
    4 │ [proxy]
    5 │ nofile = 128
      ·          ───
      ╰────
     help: give a higher proxy.nofile, unless that is what you want to see
    "#);
}

#[test]
fn placements_that_disturb() {
    let matrix = right(
        "[matrix]\ncpu = [\"1\", \"2\"]\n[placement]\nproxy = \"0\"\nupstream = \"1\"\nagent = \"0-1\"",
    );
    let warnings: Vec<String> = matrix.warnings.iter().map(SpecError::to_string).collect();
    insta::assert_snapshot!(warnings.join("\n"), @r#"
    matrix.toml:2:13: cpu 2 is more than placement.proxy "0" can give; give less cpu, or more CPUs
    matrix.toml:6:9: placement.agent and placement.proxy share CPU 0; give them different CPUs, unless the machine has too few
    "#);
}

#[test]
fn overrides_are_placed_by_their_text() {
    insta::assert_snapshot!(
        told_of_sets(
            "[matrix]\n\"load.rate\" = [1]",
            &["load.rate=5", "load.rat=5", "warmup=soon", "matrix.cpu=[0.001]", "matrix.cpus=[1]", "load.rate", "x=[1", "=4"]
        ),
        @r#"
    --set load.rate=5: load.rate is a factor, whose levels decide; set the factor instead: --set 'matrix.load.rate=[…]'
    --set load.rat=5: unknown key "rat" in [load]; did you mean "rate"?
    --set warmup=soon: warmup "soon" is not a quantity; give a duration, 1ms to 24h
    --set matrix.cpu=[0.001]: level 0.001 of "cpu" is below 10m (0.01 CPU), which kernels refuse; give a Kubernetes quantity or a number of CPUs in steps of 1m, 10m to 8192 (such as "250m" or 0.25), or "max" for no limit
    --set matrix.cpus=[1]: unknown factor "cpus"; did you mean "cpu"?
    --set load.rate: --set has no "="; give KEY=VALUE, such as load.rate=500
    --set x=[1: the value of --set is not valid TOML: unclosed array, expected `]`; correct the value, and quote it for the shell
    --set =4: --set has no valid key before its "="; give the path of a key, such as load.rate=500
    "#
    );
}

#[test]
fn too_many_trials() {
    insta::assert_snapshot!(told("repetitions = 10000\ncontrols = [\"direct\"]\n[matrix]\n\"load.users\" = [1,2,3,4,5,6,7,8,9,10,11]\n\"load.mode\" = [\"open\", \"closed\"]"), @"matrix.toml:3:2: the matrix makes 440000 trials (44 cells with controls, 10000 repetitions), above the limit of 100000; remove levels or repetitions, or split the matrix");
}

#[test]
fn files_that_cannot_be_read() {
    insta::assert_snapshot!(
        told("[proxy]\nkind = \"custom\"\nimage = \"x\"\nconfig = \"nothing.yaml\"\n[proxy.files]\n\"/etc/x\" = \"gone\"\nrelative = \"envoy.yaml\"\n\"/a\" = { txt = \"\" }\n\"/b/../c\" = \"envoy.yaml\""),
        @r#"
    matrix.toml:4:10: proxy.config "nothing.yaml" cannot be read: no such file; give the path of a text file (relative to the matrix), or "built-in"
    matrix.toml:6:12: the text for "/etc/x" cannot be read from gone: no such file; give the path of a local text file (relative to the matrix), or { text = "…" }
    matrix.toml:7:1: the path "relative" is not absolute; give the absolute path of a file in the container
    matrix.toml:8:8: the text for "/a" is a table with other keys than "text"; give the path of a local text file (relative to the matrix), or { text = "…" }
    matrix.toml:9:1: the path "/b/../c" is not the plain path of a file; give the absolute path of a file in the container
    "#
    );
}

#[test]
fn a_missing_matrix_says_so() {
    let error = load(Path::new("/nowhere/matrix.toml"), &[]).unwrap_err();
    insta::assert_snapshot!(error.to_string(), @"cannot read the matrix /nowhere/matrix.toml: no such file; give the path of a matrix, such as matrix/quick.toml");
    let error = load(Path::new("/"), &[]).unwrap_err();
    insta::assert_snapshot!(error.to_string(), @"cannot read the matrix /: it is a directory; give the path of a matrix, such as matrix/quick.toml");
}
