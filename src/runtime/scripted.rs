//! A scripted engine on a unix socket, for the faults that a real one will not produce on demand.

use std::collections::BTreeMap;
use std::convert::Infallible;

use bytes::Bytes;
use http_body_util::Full;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tempfile::TempDir;

use super::{ContainerSpec, Engine, EngineAddress, EngineError, Owner, Role};

/// Answers by `METHOD /path`: status and body. Anything else is 404, as the engine says it.
struct Script {
    folder: TempDir,
}

impl Script {
    fn start(answers: &[(&str, u16, &str)]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = tokio::net::UnixListener::bind(folder.path().join("sock")).expect("bind");
        let answers: BTreeMap<String, (u16, String)> = answers
            .iter()
            .map(|(path, status, body)| ((*path).to_owned(), (*status, (*body).to_owned())))
            .collect();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let answers = answers.clone();
                tokio::spawn(async move {
                    let serve = service_fn(move |request: Request<_>| {
                        let answer = answer(&answers, &request);
                        async move { Ok::<_, Infallible>(answer) }
                    });
                    let connection = hyper::server::conn::http1::Builder::new();
                    let _ = connection
                        .serve_connection(TokioIo::new(stream), serve)
                        .await;
                });
            }
        });
        Self { folder }
    }

    async fn connect(&self) -> Result<Engine, EngineError> {
        Engine::connect_to(EngineAddress {
            url: format!("unix://{}", self.folder.path().join("sock").display()),
            source: "test".to_owned(),
        })
        .await
    }
}

fn answer(
    answers: &BTreeMap<String, (u16, String)>,
    request: &Request<hyper::body::Incoming>,
) -> Response<Full<Bytes>> {
    let path = format!("{} {}", request.method(), request.uri().path());
    let (status, body) = answers
        .get(&path)
        .cloned()
        .unwrap_or_else(|| (404, r#"{"message":"page not found"}"#.to_owned()));
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() = hyper::StatusCode::from_u16(status).expect("a status");
    response.headers_mut().insert(
        hyper::header::CONTENT_TYPE,
        hyper::header::HeaderValue::from_static("application/json"),
    );
    response
}

const VERSION: (&str, u16, &str) = (
    "GET /version",
    200,
    r#"{"Version":"20.10.24","ApiVersion":"1.41"}"#,
);

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
    assert!(error.to_string().contains("already in use"), "{error}");
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
        error.to_string().contains("no space left on device"),
        "{error}"
    );
    engine
        .remove("abc")
        .await
        .expect("a container that is gone already is removed");
}
