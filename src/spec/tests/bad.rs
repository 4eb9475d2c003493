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
    insta::assert_snapshot!(told(text), @"");
}

#[test]
fn rendering_underlines_the_place() {
    let errors = wrong("[matrix]\ncpu = [\"250m\", \"0.001\"]\n\n[load]\nrat = 5\n");
    insta::assert_snapshot!(errors.render(false), @"");
    assert!(errors.render(true).contains("\u{1b}["));
    assert!(!errors.render(false).contains('\u{1b}'));
}

#[test]
fn syntax_errors() {
    insta::assert_snapshot!(told("name = \n[matrix\ncpu = [250m]\nrate = 5\nrate = 6"), @"");
}

#[test]
fn wrong_types() {
    insta::assert_snapshot!(
        told("matrix = 1\nload = [1]\nname = 5\nseed = -1\nwarmup = 5\nduration = 1979-05-27\ncontrols = [\"none\", \"direct\", \"direct\", 1]\n[tls]\nresumption = \"yes\"\n[proxy]\nport = 8080\nkind = \"squid\"\ncommand = \"x\""),
        @""
    );
}

#[test]
fn factors_that_are_none() {
    insta::assert_snapshot!(
        told("[matrix]\ncpu = \"1\"\nload = { rate = [1], rate2 = [2] }\nlimits.cpu = [\"2\"]\nmatrix = [1]\n\"load.headers\" = [1]\nname = [\"a\"]\ntls = {}\nmemory = [[\"64Mi\"], {}]"),
        @""
    );
}

#[test]
fn combinations_that_cannot_be() {
    insta::assert_snapshot!(
        told("[matrix]\nmemory = [\"64Mi\", \"max\"]\nswap = [\"0\", \"1Mi\", \"2Mi\"]\ncpu = [\"10m\", \"1\"]\n\"load.streams\" = [1, 10]\n\"upstream.delay\" = [\"1ms\", \"10ms\"]\n\"tls.version\" = [\"1.2\", \"1.3\"]\n\n[limits]\ncpu_period = \"50ms\"\n[proxy]\nadmin_port = 8443\ncommand = [\"x\"]\n[upstream]\ndelay_distribution = \"uniform\"\ndelay_high = \"5ms\"\n[tls]\nkey_exchange = \"x25519mlkem768\""),
        @""
    );
}

#[test]
fn a_custom_proxy_needs_an_image() {
    insta::assert_snapshot!(told("[proxy]\nkind = \"custom\""), @"");
}

#[test]
fn factors_without_effect() {
    insta::assert_snapshot!(
        told("[matrix]\n\"load.users\" = [1, 2]\n\"limits.cpu_period\" = [\"10ms\", \"100ms\"]\n\"upstream.delay_high_share\" = [0.1]"),
        @""
    );
    // In a matrix of both modes each has its effect.
    right("[matrix]\n\"load.users\" = [1, 2]\n\"load.mode\" = [\"open\", \"closed\"]");
}

#[test]
fn no_request_in_the_window() {
    insta::assert_snapshot!(told("duration = \"1s\"\n[load]\nrate = 0.5"), @"");
}

#[test]
fn warnings_do_not_refuse() {
    let matrix = right("[load]\nusers = 5\nconnections = 300\n[proxy]\nnofile = 128");
    insta::assert_snapshot!(matrix.render_warnings(false), @"");
}

#[test]
fn overrides_are_placed_by_their_text() {
    insta::assert_snapshot!(
        told_of_sets(
            "[matrix]\n\"load.rate\" = [1]",
            &["load.rate=5", "load.rat=5", "warmup=soon", "matrix.cpu=[0.001]", "matrix.cpus=[1]", "load.rate", "x=[1", "=4"]
        ),
        @""
    );
}

#[test]
fn too_many_trials() {
    insta::assert_snapshot!(told("repetitions = 10000\ncontrols = [\"direct\"]\n[matrix]\n\"load.users\" = [1,2,3,4,5,6,7,8,9,10,11]\n\"load.mode\" = [\"open\", \"closed\"]"), @"");
}

#[test]
fn files_that_cannot_be_read() {
    insta::assert_snapshot!(
        told("[proxy]\nkind = \"custom\"\nimage = \"x\"\nconfig = \"nothing.yaml\"\n[proxy.files]\n\"/etc/x\" = \"gone\"\nrelative = \"envoy.yaml\"\n\"/a\" = { txt = \"\" }\n\"/b/../c\" = \"envoy.yaml\""),
        @""
    );
}

#[test]
fn a_missing_matrix_says_so() {
    let error = load(Path::new("/nowhere/matrix.toml"), &[]).unwrap_err();
    insta::assert_snapshot!(error.to_string(), @"");
    let error = load(Path::new("/"), &[]).unwrap_err();
    insta::assert_snapshot!(error.to_string(), @"");
}
