use super::*;

fn end(state: &str, exit_code: Option<i64>) -> ContainerEnd {
    ContainerEnd {
        id: "x".to_owned(),
        state: Some(state.to_owned()),
        exit_code,
        oom_killed: Some(false),
        error: None,
        log_tail: None,
    }
}

fn refused(status: u16, message: &str) -> EngineError {
    EngineError::Refused {
        operation: "start the container",
        subject: "abc".to_owned(),
        status,
        message: message.to_owned(),
    }
}

fn kind(failure: Option<TrialFailure>) -> Option<FailureKind> {
    failure.map(|f| f.kind)
}

#[test]
fn a_proxy_that_somebody_takes_away_is_no_finding_at_any_moment_of_it() {
    let ends = |proxy| Ends {
        has_proxy: true,
        proxy,
        upstream: Some(end("running", None)),
    };
    for gone in [
        None,
        Some(end("removing", Some(137))),
        Some(end("dead", Some(137))),
    ] {
        let failure = of_ends(&ends(gone)).expect("spoiled");
        assert_eq!(failure.kind, FailureKind::Engine);
        assert!(
            failure.reason.contains("the proxy's container was removed"),
            "{failure:?}"
        );
    }
    // Killed and still there: what it died of is judged.
    assert_eq!(kind(of_ends(&ends(Some(end("exited", Some(137)))))), None);
    let direct = Ends {
        has_proxy: false,
        proxy: None,
        upstream: Some(end("running", None)),
    };
    assert_eq!(kind(of_ends(&direct)), None);
}

#[test]
fn without_its_upstream_a_trial_is_spoiled() {
    let ends = |upstream| Ends {
        has_proxy: true,
        proxy: Some(end("running", None)),
        upstream,
    };
    let gone = of_ends(&ends(None)).expect("spoiled");
    assert_eq!(gone.kind, FailureKind::Harness);
    assert!(gone.reason.contains("the upstream's container was removed"));
    let ended = of_ends(&ends(Some(end("exited", Some(1))))).expect("spoiled");
    assert!(ended.reason.contains("exit code 1"), "{ended:?}");
}

#[test]
fn only_what_the_engine_calls_impossible_is_held_against_the_proxy() {
    let no_program = refused(400, "exec: \"envoi\": executable file not found in $PATH");
    let of = |error: &EngineError| TrialFailure::start(error, None).kind;
    assert_eq!(of(&no_program), FailureKind::StartFailed);
    assert_eq!(
        of(&refused(404, "No such container: abc")),
        FailureKind::Engine
    );
    assert_eq!(
        of(&refused(
            500,
            "error setting rlimit type 7: operation not permitted"
        )),
        FailureKind::Engine
    );
    let taken = refused(409, "Conflict. The container name is already in use");
    assert_eq!(
        TrialFailure::create(Role::Proxy, &taken).kind,
        FailureKind::Engine
    );
    let bad = refused(400, "invalid sysctl");
    assert_eq!(
        TrialFailure::create(Role::Proxy, &bad).kind,
        FailureKind::StartFailed
    );
    assert_eq!(
        TrialFailure::create(Role::Agent, &bad).kind,
        FailureKind::Engine,
        "the harness's own containers are nothing that a proxy did"
    );
}
