use std::time::Duration;

use super::*;
use crate::runtime::{ContainerSpec, Owner, Role, WaitOutcome};

#[tokio::test]
async fn what_is_not_an_engine_is_told_from_one() {
    let web = Script::start(&[("GET /version", 200, "{}")]);
    let error = web.connect().await.expect_err("no engine").to_string();
    assert!(error.contains("not a Docker engine"), "{error}");

    let old = Script::start(&[(
        "GET /version",
        200,
        r#"{"Version":"1.13","ApiVersion":"1.25"}"#,
    )]);
    let error = old.connect().await.expect_err("too old").to_string();
    assert!(
        error.contains("1.25") && error.contains("update the engine"),
        "{error}"
    );
}

#[tokio::test]
async fn podman_is_told_from_docker_and_refused_in_words() {
    let podman = r#"{"Version":"4.3.1","ApiVersion":"1.41","Components":[{"Name":"Podman Engine","Version":"4.3.1"},{"Name":"Conmon","Version":"2.1.6"}]}"#;
    let docker = r#"{"Version":"20.10.24","ApiVersion":"1.41","Components":[{"Name":"Engine","Version":"20.10.24"}]}"#;
    let unsupported = async |version| {
        let script = Script::start(&[("GET /version", 200, version), ("GET /info", 200, "{}")]);
        let engine = script.connect().await.expect("connected");
        engine.facts().await.expect("facts").unsupported()
    };
    let reason = unsupported(podman).await.expect("refused");
    assert!(
        reason.contains("Podman 4.3.1") && reason.contains("DOCKER_HOST"),
        "{reason}"
    );
    assert_eq!(unsupported(docker).await, None);
}

#[tokio::test]
async fn a_limit_that_create_drops_with_a_warning_is_passed_on() {
    let body =
        r#"{"Id":"abc","Warnings":["Your kernel does not support swap limit capabilities"]}"#;
    let script = Script::start(&[VERSION, ("POST /containers/create", 201, body)]);
    let engine = script.connect().await.expect("connected");
    let spec = ContainerSpec::new(Role::Proxy, "n".to_owned(), "image");
    let created = engine
        .create(&spec, &Owner::current("run"))
        .await
        .expect("created");
    assert_eq!(
        created.warnings,
        ["Your kernel does not support swap limit capabilities"]
    );
}

#[tokio::test]
async fn a_taken_name_is_an_error_and_nobodys_container_is_removed() {
    let body = r#"{"message":"Conflict. The container name \"/n\" is already in use by container \"def\"."}"#;
    let script = Script::start(&[VERSION, ("POST /containers/create", 409, body)]);
    let engine = script.connect().await.expect("connected");
    let spec = ContainerSpec::new(Role::Proxy, "n".to_owned(), "image");
    let error = engine
        .create(&spec, &Owner::current("run"))
        .await
        .expect_err("refused");
    assert_eq!(error.status(), Some(409));
    let text = error.to_string();
    assert!(
        text.contains("already in use") && text.contains("left alone"),
        "{error}"
    );
    assert!(!error.is_engine_trouble(), "asking again would not help");
}

#[tokio::test]
async fn a_pull_that_fails_in_mid_stream_says_what_the_registry_said() {
    let stream = "{\"status\":\"Pulling from library/x\"}\n\
                  {\"errorDetail\":{\"message\":\"toomanyrequests: rate limit\"},\"error\":\"toomanyrequests: rate limit\"}\n";
    let script = Script::start(&[VERSION, ("POST /images/create", 200, stream)]);
    let engine = script.connect().await.expect("connected");
    let error = engine
        .ensure_image("x:1")
        .await
        .expect_err("no image")
        .to_string();
    assert!(
        error.contains("toomanyrequests") && error.contains("sweep image import"),
        "{error}"
    );
}

#[tokio::test]
async fn a_full_disk_is_trouble_of_the_engine_in_its_own_words() {
    let body = r#"{"message":"write /var/lib/docker: no space left on device"}"#;
    let script = Script::start(&[VERSION, ("POST /containers/abc/start", 500, body)]);
    let engine = script.connect().await.expect("connected");
    let error = engine.start("abc").await.expect_err("refused");
    assert!(error.is_engine_trouble());
    assert!(
        error.to_string().contains("no space left on device")
            && error.to_string().contains("docker system df"),
        "{error}"
    );
    engine
        .remove("abc")
        .await
        .expect("a container that is gone already is removed");
}

/// With the clock paused, a wait for nothing takes no time: the deadlines are those of the program.
#[tokio::test(start_paused = true)]
async fn an_engine_that_does_not_answer_is_told_from_one_that_refuses() {
    let mute = Script::start(&[("GET /version", SILENT, "")]);
    let error = mute.connect().await.expect_err("no answer").to_string();
    assert!(
        error.contains("no answer within 30 s") && error.contains("is the engine running"),
        "{error}"
    );

    let slow = Script::start(&[VERSION, ("POST /containers/abc/start", SILENT, "")]);
    let engine = slow.connect().await.expect("connected");
    let error = engine.start("abc").await.expect_err("no answer");
    assert!(error.is_engine_trouble());
    assert!(
        error.to_string().contains("cannot start the container abc")
            && error.to_string().contains("within 2m"),
        "{error}"
    );
}

#[tokio::test]
async fn an_engine_that_dies_while_it_answers_is_trouble_and_no_answer() {
    let body = format!("{{\"Id\":\"abc\",{BREAKS}");
    let script = Script::start(&[VERSION, ("POST /containers/create", 201, &body)]);
    let engine = script.connect().await.expect("connected");
    let spec = ContainerSpec::new(Role::Proxy, "n".to_owned(), "image");
    let error = engine
        .create(&spec, &Owner::current("run"))
        .await
        .expect_err("half an answer");
    assert!(error.is_engine_trouble(), "{error}");
    assert!(
        error.to_string().contains("cannot create the container n"),
        "{error}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_pull_that_stalls_ends_with_what_else_can_be_done() {
    let body = format!("{{\"status\":\"Downloading\"}}\n{STALLS}");
    let script = Script::start(&[VERSION, ("POST /images/create", 200, &body)]);
    let engine = script.connect().await.expect("connected");
    let error = engine
        .ensure_image("x:1")
        .await
        .expect_err("no image")
        .to_string();
    assert!(
        error.contains("silent for 120 s") && error.contains("sweep image import"),
        "{error}"
    );
}

#[tokio::test]
async fn a_machine_without_a_registry_is_told_how_to_do_without() {
    let body = r#"{"message":"Get \"https://registry-1.docker.io/v2/\": dial tcp: lookup registry-1.docker.io: no such host"}"#;
    let script = Script::start(&[VERSION, ("POST /images/create", 500, body)]);
    let engine = script.connect().await.expect("connected");
    let error = engine
        .ensure_image("x:1")
        .await
        .expect_err("no image")
        .to_string();
    assert!(
        error.contains("no such host") && error.contains("sweep image import --name x:1"),
        "{error}"
    );
    let ended = Script::start(&[VERSION, ("POST /images/create", 200, "")]);
    let engine = ended.connect().await.expect("connected");
    let error = engine
        .ensure_image("x:1")
        .await
        .expect_err("still no image")
        .to_string();
    assert!(error.contains("without the image"), "{error}");
}

#[tokio::test]
async fn refusals_that_something_helps_against_say_what() {
    let rlimit = r#"{"message":"OCI runtime create failed: container_linux.go:380: starting container process caused: process_linux.go:545: container init caused: process_linux.go:508: setting rlimits for ready process caused: error setting rlimit type 7: operation not permitted: unknown"}"#;
    let gone = r#"{"message":"No such image: envoy:1"}"#;
    let script = Script::start(&[
        VERSION,
        ("POST /containers/abc/start", 500, rlimit),
        ("POST /containers/create", 404, gone),
    ]);
    let engine = script.connect().await.expect("connected");
    let error = engine.start("abc").await.expect_err("refused").to_string();
    assert!(
        error.contains("type 7") && error.contains("lower proxy.nofile"),
        "{error}"
    );
    let spec = ContainerSpec::new(Role::Proxy, "n".to_owned(), "envoy:1");
    let error = engine
        .create(&spec, &Owner::current("run"))
        .await
        .expect_err("refused")
        .to_string();
    assert!(error.contains("removed after the run had begun"), "{error}");
}

/// Engines lose exit events (moby#33820): then the answer ends without one, or never comes.
#[tokio::test(start_paused = true)]
async fn a_lost_exit_event_is_made_up_for_by_asking() {
    let exited = r#"{"Id":"abc","State":{"Status":"exited","ExitCode":3}}"#;
    let script = Script::start(&[
        VERSION,
        ("POST /containers/abc/wait", 200, ""),
        ("GET /containers/abc/json", 200, exited),
        ("POST /containers/def/wait", 200, STALLS),
    ]);
    let engine = script.connect().await.expect("connected");
    let deadline = Duration::from_secs(60);
    let lost = engine.wait("abc", deadline).await.expect("an answer");
    assert_eq!(lost, WaitOutcome::Exited(3));
    let silent = engine.wait("def", deadline).await.expect("no error");
    assert_eq!(silent, WaitOutcome::StillRunning);
}

#[tokio::test]
async fn a_removal_that_is_in_progress_is_waited_for_and_a_failed_one_is_told() {
    let busy = r#"{"message":"removal of container abc is already in progress"}"#;
    let driver = r#"{"message":"container def: driver \"overlay2\" failed to remove root filesystem: device or resource busy"}"#;
    // The container is gone by the time that it is looked for.
    let script = Script::start(&[
        VERSION,
        ("DELETE /containers/abc", 409, busy),
        ("DELETE /containers/def", 500, driver),
    ]);
    let engine = script.connect().await.expect("connected");
    engine.remove("abc").await.expect("removed by the other");
    let error = engine.remove("def").await.expect_err("stuck").to_string();
    assert!(
        error.contains("cannot remove the container def")
            && error.contains("device or resource busy"),
        "{error}"
    );
}
