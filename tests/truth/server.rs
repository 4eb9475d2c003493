//! Servers made by hand from threads, each with a known fault or delay.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection};
use sweep::agent::job::ClientIdentity;

use crate::job::SERVER_NAME;

/// A CA, and certificates of it for the server and the client.
pub struct Identity {
    pub ca_pem: String,
    pub server_pem: String,
    pub client: ClientIdentity,
    ca: CertificateDer<'static>,
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    pub fn new() -> Self {
        let ca_key = KeyPair::generate().unwrap();
        let mut ca_params = CertificateParams::new(Vec::new()).unwrap();
        ca_params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = ca_params.self_signed(&ca_key).unwrap();
        let issuer = Issuer::new(ca_params, ca_key);
        let issue = |name: &str| {
            let key = KeyPair::generate().unwrap();
            let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
            (params.signed_by(&key, &issuer).unwrap(), key)
        };
        let (server, server_key) = issue(SERVER_NAME);
        let (client, client_key) = issue("client.test");
        Self {
            ca_pem: ca.pem(),
            server_pem: server.pem(),
            client: ClientIdentity {
                cert_pem: client.pem(),
                key_pem: client_key.serialize_pem(),
            },
            ca: ca.der().clone(),
            chain: vec![server.der().clone()],
            key: PrivateKeyDer::try_from(server_key.serialize_der()).unwrap(),
        }
    }

    pub fn server_config(&self, alpn: &[u8], mutual: bool) -> ServerConfig {
        let builder = ServerConfig::builder_with_provider(Arc::new(
            rustls::crypto::aws_lc_rs::default_provider(),
        ))
        .with_safe_default_protocol_versions()
        .unwrap();
        let builder = if mutual {
            let mut roots = RootCertStore::empty();
            roots.add(self.ca.clone()).unwrap();
            let verifier = WebPkiClientVerifier::builder_with_provider(
                Arc::new(roots),
                Arc::new(rustls::crypto::aws_lc_rs::default_provider()),
            )
            .build()
            .unwrap();
            builder.with_client_cert_verifier(verifier)
        } else {
            builder.with_no_client_auth()
        };
        let mut config = builder
            .with_single_cert(self.chain.clone(), self.key.clone_key())
            .unwrap();
        config.alpn_protocols = vec![alpn.to_vec()];
        config
    }
}

/// Accepts in a thread until dropped; each connection gets a thread.
pub struct Server {
    pub address: SocketAddr,
    pub connections: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Server {
    pub fn start(handler: impl Fn(TcpStream, u64) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        Self::on(listener, handler)
    }

    pub fn on(
        listener: TcpListener,
        handler: impl Fn(TcpStream, u64) + Send + Sync + 'static,
    ) -> Self {
        let address = listener.local_addr().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let connections = Arc::new(AtomicU64::new(0));
        let (stopped, counted) = (stop.clone(), connections.clone());
        let handler = Arc::new(handler);
        thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    return;
                }
                let Ok(stream) = stream else { continue };
                let number = counted.fetch_add(1, Ordering::SeqCst);
                stream.set_nodelay(true).unwrap();
                stream
                    .set_read_timeout(Some(Duration::from_secs(60)))
                    .unwrap();
                let handler = handler.clone();
                thread::spawn(move || handler(stream, number));
            }
        });
        Self {
            address,
            connections,
            stop,
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
    }
}

/// Reads one request head (the tests send no bodies here); `false` at the end of the stream.
pub fn read_request(stream: &mut impl Read) -> bool {
    let mut head = Vec::new();
    let mut buffer = [0u8; 4096];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut buffer) {
            Ok(count) if count > 0 => head.extend_from_slice(&buffer[..count]),
            _ => return false,
        }
    }
    true
}

pub const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Answers every request on a stream after what `before` does, until the peer closes.
pub fn serve(mut stream: impl Read + Write, before: impl Fn()) {
    while read_request(&mut stream) {
        before();
        if stream.write_all(OK).and_then(|()| stream.flush()).is_err() {
            return;
        }
    }
}

/// HTTP/1.1 without TLS.
pub fn plain(before: impl Fn() + Send + Sync + 'static) -> Server {
    Server::start(move |stream, _| serve(stream, &before))
}

/// HTTP/1.1 over TLS.
pub fn over_tls(config: ServerConfig, before: impl Fn() + Send + Sync + 'static) -> Server {
    let config = Arc::new(config);
    Server::start(move |stream, _| {
        let connection = ServerConnection::new(config.clone()).unwrap();
        serve(rustls::StreamOwned::new(connection, stream), &before);
    })
}

/// Where a server is slow.
#[derive(Debug, Clone, Copy, Default)]
pub struct Delays {
    pub server_hello: Duration,
    pub finished: Duration,
    pub first_byte: Duration,
}

/// Accepts TLS by hand: the ServerHello record leaves after `server_hello`, the rest of the flight after `finished`.
pub fn accept_slowly(
    config: &Arc<ServerConfig>,
    mut stream: TcpStream,
    delays: Delays,
) -> std::io::Result<rustls::StreamOwned<ServerConnection, TcpStream>> {
    let mut connection = ServerConnection::new(config.clone()).unwrap();
    while !connection.wants_write() {
        if connection.read_tls(&mut stream)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        connection
            .process_new_packets()
            .map_err(std::io::Error::other)?;
    }
    let mut flight = Vec::new();
    while connection.wants_write() {
        connection.write_tls(&mut flight)?;
    }
    let server_hello = 5 + usize::from(u16::from_be_bytes([flight[3], flight[4]]));
    thread::sleep(delays.server_hello);
    stream.write_all(&flight[..server_hello])?;
    thread::sleep(delays.finished);
    stream.write_all(&flight[server_hello..])?;
    while connection.is_handshaking() {
        connection.complete_io(&mut stream)?;
    }
    Ok(rustls::StreamOwned::new(connection, stream))
}

/// HTTP/1.1 over TLS with delays by phase.
pub fn phased(config: ServerConfig, delays: Delays) -> Server {
    let config = Arc::new(config);
    Server::start(move |stream, _| {
        if let Ok(stream) = accept_slowly(&config, stream, delays) {
            serve(stream, || thread::sleep(delays.first_byte));
        }
    })
}
