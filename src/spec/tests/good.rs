//! What a right matrix becomes.

use super::*;
use crate::plan;
use crate::spec::settings::{LoadMode, PageCache, Protocol, ProxyKind, TlsVersion};
use crate::units::{Bytes, Micros, MilliCpus};

fn texts(matrix: &Matrix, factor: &str) -> Vec<String> {
    let factor = matrix.factors.iter().find(|f| f.name == factor).unwrap();
    factor
        .levels
        .iter()
        .map(|level| level.text.clone())
        .collect()
}

#[test]
fn an_empty_matrix_has_every_default() {
    let matrix = right("");
    assert_eq!(matrix.name, "matrix");
    assert_eq!((matrix.seed, matrix.repetitions), (1, 3));
    assert_eq!(matrix.base, defaults::settings());
    assert!(matrix.factors.is_empty() && matrix.controls.is_empty());
}

#[test]
fn levels_are_canonical_and_in_the_order_of_the_file() {
    let matrix = right(
        "[matrix]\nswap = [\"0\", \"256MiB\"]\ncpu = [0.25, \"1.0\", \"max\"]\nmemory = [67108864, \"64M\"]\n\
         \"load.rate\" = [500, 2e3]\ntls.version = [1.2, \"1.3\"]\nwarmup = [\"500ms\"]",
    );
    let names: Vec<&str> = matrix.factors.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "swap",
            "cpu",
            "memory",
            "load.rate",
            "tls.version",
            "warmup"
        ]
    );
    assert_eq!(texts(&matrix, "cpu"), ["250m", "1", "max"]);
    assert_eq!(texts(&matrix, "memory"), ["64Mi", "64M"]);
    assert_eq!(texts(&matrix, "swap"), ["0", "256Mi"]);
    assert_eq!(texts(&matrix, "load.rate"), ["500", "2000"]);
    assert_eq!(texts(&matrix, "tls.version"), ["1.2", "1.3"]);
    assert_eq!(texts(&matrix, "warmup"), ["500ms"]);
}

#[test]
fn a_level_wins_over_the_base() {
    let matrix =
        right("[matrix]\n\"load.rate\" = [500]\n[load]\nrate = 2000\nusers = 1\nmode = \"open\"");
    let plan = plan::build(&matrix);
    let settings = matrix.settings(plan.cells.first().unwrap());
    assert_eq!(settings.load.rate.0, 500.0);
    assert_eq!(matrix.base.load.rate.0, 2000.0);
}

#[test]
fn every_section_is_read() {
    let matrix = right(
        r#"
        name = "all"
        seed = 7
        repetitions = 6
        warmup = "1s"
        duration = "10s"
        controls = ["unlimited", "direct"]
        [limits]
        cpu = "500m"
        cpu_period = "10ms"
        memory = "64Mi"
        swap = "16Mi"
        [proxy]
        kind = "custom"
        image = "registry.example:5000/my/proxy@sha256:0123"
        workers = 2
        nofile = 4096
        page_cache = "cold"
        backlog = 64
        command = ["/bin/proxy", "-c", "/etc/p.conf"]
        port = 9443
        admin_port = "none"
        ready_path = "/ready?x=1"
        config = "envoy.yaml"
        files."/etc/p.conf" = "other.yaml"
        files."/etc/q.conf" = { text = "inline" }
        [upstream]
        delay = "1ms"
        delay_distribution = "bimodal"
        delay_high = "50ms"
        delay_high_share = 0.01
        body = "4Ki"
        [load]
        mode = "closed"
        users = 10
        connections = 10
        requests_per_connection = 100
        streams = 10
        handshake_rate = 0
        protocol = "h2"
        method = "POST"
        path = "/echo?a=b"
        headers = { x-route = "b", Accept = "*/*" }
        body = "1k"
        timeout = "2s"
        connect_timeout = "20s"
        threads = 2
        [tls]
        version = "1.2"
        certificate = "rsa-2048"
        key_exchange = "p256"
        resumption = true
        mutual = true
        verify = "pin"
        [placement]
        proxy = 0
        upstream = "1"
        agent = "1,2-3"
        "#,
    );
    assert_eq!(matrix.controls, [Control::Direct, Control::Unlimited]);
    let s = &matrix.base;
    assert_eq!(s.limits.cpu, Some(MilliCpus(500)));
    assert_eq!(s.limits.cpu_period, Micros::from_millis(10));
    assert_eq!(s.limits.memory, Some(Bytes(64 << 20)));
    assert_eq!(s.limits.swap, Bytes(16 << 20));
    assert_eq!(s.proxy.kind, ProxyKind::Custom);
    assert_eq!(s.proxy.page_cache, PageCache::Cold);
    assert_eq!(s.proxy.admin_port, None);
    assert_eq!(s.proxy.config.as_deref(), Some("static_resources: {}"));
    assert_eq!(s.proxy.files.get("/etc/p.conf").unwrap(), "admin: {}");
    assert_eq!(s.proxy.files.get("/etc/q.conf").unwrap(), "inline");
    assert_eq!(s.proxy.command.len(), 3);
    assert_eq!(s.load.mode, LoadMode::Closed);
    assert_eq!(s.load.protocol, Protocol::H2);
    assert_eq!(s.load.requests_per_connection, Some(100));
    assert_eq!(s.load.headers.get("accept").unwrap(), "*/*");
    assert_eq!(s.tls.version, TlsVersion::V1_2);
    assert_eq!(s.placement.agent.list(), Some("1-3"));
    assert_eq!(s.placement.proxy.list(), Some("0"));
    assert_eq!(s.upstream.delay_high_share, 0.01);
    assert!(
        matrix.warnings.is_empty(),
        "{}",
        matrix.render_warnings(false)
    );
}

#[test]
fn what_depends_on_the_kind_follows_it() {
    let matrix = right("[matrix]\n\"proxy.kind\" = [\"envoy\", \"nginx\", \"haproxy\"]");
    let plan = plan::build(&matrix);
    let images: Vec<String> = plan
        .cells
        .iter()
        .map(|cell| matrix.settings(cell).proxy.image)
        .collect();
    assert_eq!(
        images,
        ["envoyproxy/envoy:v1.40-latest", "nginx:1.28", "haproxy:3.2"]
    );
    let custom = right("[proxy]\nkind = \"custom\"\nimage = \"x\"");
    assert_eq!(custom.base.proxy.admin_port, None);
    let given = right("[proxy]\nkind = \"custom\"\nimage = \"x\"\nadmin_port = 9901");
    assert_eq!(given.base.proxy.admin_port, Some(9901));
}

#[test]
fn overrides_take_toml_values_or_plain_text() {
    let matrix = right_with(
        "name = \"a\"\n[matrix]\ncpu = [\"1\"]\n\"load.streams\" = [1]\n[load]\nrate = 1",
        &[
            "load.rate=500",
            "matrix.cpu=[\"100m\", 0.2]",
            "matrix.load.streams=[1, 2]",
            "load.protocol=h2",
            "warmup = 2s",
            "matrix.limits.memory=['64Mi']",
            "name=b",
            "load.path=/x?y=z",
        ],
    );
    assert_eq!(matrix.base.load.rate.0, 500.0);
    assert_eq!(texts(&matrix, "cpu"), ["100m", "200m"]);
    assert_eq!(texts(&matrix, "load.streams"), ["1", "2"]);
    assert_eq!(texts(&matrix, "memory"), ["64Mi"]);
    assert_eq!(matrix.base.warmup, Micros::from_secs(2));
    assert_eq!(matrix.name, "b");
    assert_eq!(matrix.base.load.path, "/x?y=z");
}

#[test]
fn a_short_name_and_its_path_are_one_factor() {
    let matrix = right_with("[matrix]\ncpu = [\"1\"]", &["matrix.limits.cpu=[\"2\"]"]);
    assert_eq!(texts(&matrix, "cpu"), ["2"]);
    assert_eq!(matrix.factors.len(), 1);
}

#[test]
fn the_hash_is_of_the_meaning() {
    let hash = |text: &str| right(text).hash();
    let one = hash("[matrix]\ncpu = [\"250m\"]\n[load]\nrate = 1000\nusers = 64");
    assert_eq!(one.len(), 64);
    assert_eq!(
        one,
        hash("# comment\nname = \"other\"\nload = {}\nmatrix.limits.cpu = [0.25]")
    );
    assert_ne!(one, hash("[matrix]\ncpu = [\"251m\"]"));
    assert_ne!(one, hash("seed = 2\n[matrix]\ncpu = [\"250m\"]"));
    assert_ne!(one, hash("repetitions = 4\n[matrix]\ncpu = [\"250m\"]"));
    assert_ne!(
        one,
        hash("controls = [\"direct\"]\n[matrix]\ncpu = [\"250m\"]")
    );
    assert_ne!(one, hash("warmup = \"6s\"\n[matrix]\ncpu = [\"250m\"]"));
}

#[test]
fn the_hash_covers_the_text_of_files() {
    let text = "[matrix]\n\"proxy.config\" = [\"a\", \"built-in\"]";
    let hash = |content: &str| {
        let content = content.to_owned();
        parse("m.toml", text, &[], &mut |_| Ok(content.clone()))
            .unwrap()
            .hash()
    };
    assert_eq!(hash("x"), hash("x"));
    assert_ne!(hash("x"), hash("y"));
}

#[test]
fn the_ready_matrices_are_right() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("matrix");
    let page = fs_err::read_to_string(folder.with_file_name("docs").join("matrix.md")).unwrap();
    let mut seen = Vec::new();
    for entry in fs_err::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ext| ext != "toml") {
            continue;
        }
        let matrix = load(&path, &[]).unwrap_or_else(|error| panic!("{error}"));
        let name = matrix.name.clone();
        assert!(
            matrix.warnings.is_empty(),
            "{name}: {}",
            matrix.render_warnings(false)
        );
        assert_eq!(path.file_stem().unwrap().to_str(), Some(name.as_str()));
        let plan = plan::build(&matrix);
        let minutes = plan.estimate.0.div_ceil(60_000_000);
        // The table of the page says what the plan says.
        let row = page
            .lines()
            .find(|line| line.contains(&format!("`matrix/{name}.toml`")) && line.starts_with('|'))
            .unwrap_or_else(|| panic!("docs/matrix.md lacks {name}"));
        let ends = [
            format!("| {} | {minutes} minutes |", plan.trials.len()),
            format!("| {} | {} minutes |", plan.trials.len(), minutes - 1),
        ];
        assert!(
            ends.iter().any(|end| row.ends_with(end.as_str())),
            "{row}: {ends:?}"
        );
        seen.push((name, plan));
    }
    let of = |name: &str| &seen.iter().find(|(n, _)| n == name).unwrap().1;
    assert_eq!(of("quick").trials.len(), 12);
    assert!(of("quick").estimate < Micros::from_secs(150));
    assert_eq!(of("article").cells.len(), 34);
    assert_eq!(of("article").trials.len(), 102);
}

#[test]
fn an_engine_that_is_too_small_is_told_with_the_place() {
    let matrix = right(
        "[matrix]\ncpu = [\"1\", \"2\", \"2500m\", 4]\n[placement]\nproxy = \"0-1\"\nagent = \"2\"",
    );
    assert!(matrix.check_engine(8.0).is_ok());
    let errors = matrix.check_engine(2.0).unwrap_err();
    insta::assert_snapshot!(errors.to_string(), @r#"
    matrix.toml:2:18: cpu 2500m is above the 2 CPUs of the engine's machine; give at most "2", or run on a larger machine
    matrix.toml:2:27: cpu 4 is above the 2 CPUs of the engine's machine; give at most "2", or run on a larger machine
    matrix.toml:5:9: placement.agent names CPU 2, but the engine's machine has 2 CPUs; give CPUs below 2, counted from 0
    "#);
}
