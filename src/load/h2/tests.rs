#![allow(clippy::unwrap_used)]
use super::*;

fn template(body: usize) -> RequestTemplate {
    RequestTemplate {
        method: "GET".into(),
        path: "/".into(),
        authority: "a.test".into(),
        headers: Vec::new(),
        body,
    }
}

struct Fixture {
    connection: Connection,
    request: Request,
    signals: Vec<Signal>,
}

impl Fixture {
    fn new(body: usize, settings: &[(u16, u32)]) -> Self {
        let mut fixture = Self {
            connection: Connection::new(10),
            request: Request::new(&template(body), true),
            signals: Vec::new(),
        };
        assert!(fixture.connection.out.starts_with(PREFACE));
        assert!(!fixture.connection.has_room());
        fixture.connection.out.clear();
        let payload: Vec<u8> = settings
            .iter()
            .flat_map(|(key, value)| [&key.to_be_bytes()[..], &value.to_be_bytes()[..]].concat())
            .collect();
        fixture.frame(frame::SETTINGS, 0, 0, &payload).unwrap();
        assert!(fixture.connection.has_settings());
        fixture
    }

    fn frame(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Result<(), H2Error> {
        let mut bytes = Vec::new();
        frame::put(&mut bytes, kind, flags, stream, payload);
        self.connection
            .feed(&bytes, &self.request, 99, &mut self.signals)
    }

    fn begin(&mut self, sent: u64) {
        let request = InFlight {
            intended: sent,
            sent,
        };
        self.connection.begin(&self.request, request);
    }

    /// Frames sent since the last look: kind, flags, stream, length.
    fn sent(&mut self) -> Vec<(u8, u8, u32, usize)> {
        let mut frames = Vec::new();
        let mut out = &std::mem::take(&mut self.connection.out)[..];
        while let Some(head) = out.first_chunk::<{ frame::HEAD }>() {
            let head = Head::parse(head);
            frames.push((head.kind, head.flags, head.stream, head.length));
            out = &out[frame::HEAD + head.length..];
        }
        frames
    }
}

const BOTH: u8 = frame::END_HEADERS | frame::END_STREAM;

#[test]
fn answers_come_back_to_their_requests() {
    let mut f = Fixture::new(0, &[(SETTINGS_MAX_CONCURRENT_STREAMS, 2)]);
    assert_eq!(f.sent(), [(frame::SETTINGS, frame::ACK, 0, 0)]);
    f.begin(1);
    f.begin(2);
    assert!(!f.connection.has_room(), "the server allows two streams");
    let sent = f.sent();
    assert_eq!((sent[0].0, sent[0].1, sent[0].2), (frame::HEADERS, BOTH, 1));
    assert!(
        sent[1].3 < sent[0].3,
        "the second request refers to the first"
    );
    f.frame(frame::HEADERS, frame::END_HEADERS, 3, &[0x88])
        .unwrap();
    f.frame(frame::DATA, 0, 3, b"abc").unwrap();
    f.frame(frame::HEADERS, BOTH, 1, b"\x48\x03503").unwrap();
    f.frame(frame::DATA, frame::END_STREAM, 3, b"").unwrap();
    let answered = |sent, status| Signal::Answered {
        request: InFlight {
            intended: sent,
            sent,
        },
        status,
        now: 99,
    };
    assert_eq!(
        f.signals,
        [Signal::FirstByte, answered(1, 503), answered(2, 200)]
    );
    assert!(f.connection.has_room());
}

#[test]
fn interim_answers_trailers_and_continuations_are_understood() {
    let mut f = Fixture::new(0, &[]);
    f.begin(1);
    f.frame(frame::HEADERS, frame::END_HEADERS, 1, b"\x48\x03103")
        .unwrap();
    f.frame(frame::HEADERS, 0, 1, b"\x48").unwrap();
    f.frame(frame::CONTINUATION, 0, 1, b"\x03").unwrap();
    f.frame(frame::CONTINUATION, frame::END_HEADERS, 1, b"404")
        .unwrap();
    f.frame(frame::HEADERS, BOTH, 1, b"\x00\x01a\x01b").unwrap();
    assert!(matches!(f.signals[1], Signal::Answered { status: 404, .. }));
}

#[test]
fn what_breaks_the_protocol_is_refused() {
    let mut connection = Connection::new(1);
    let request = Request::new(&template(0), false);
    let mut bytes = Vec::new();
    frame::put(&mut bytes, frame::PING, 0, 0, &[0; 8]);
    let early = connection.feed(&bytes, &request, 0, &mut Vec::new());
    assert_eq!(early, Err(H2Error::Frame(frame::PING)));
    let fresh = || {
        let mut f = Fixture::new(0, &[]);
        f.begin(1);
        f
    };
    let mut f = fresh();
    assert_eq!(f.frame(frame::DATA, 0, 1, b"x"), Err(H2Error::NoStatus));
    let mut f = fresh();
    assert_eq!(
        f.frame(frame::CONTINUATION, 0, 1, b"x"),
        Err(H2Error::Frame(frame::CONTINUATION))
    );
    let mut f = fresh();
    assert_eq!(
        f.frame(frame::PUSH_PROMISE, 0, 1, b"x"),
        Err(H2Error::Frame(frame::PUSH_PROMISE))
    );
    let mut f = fresh();
    assert!(matches!(
        f.frame(frame::HEADERS, BOTH, 1, &[0xbe]),
        Err(H2Error::Hpack(_))
    ));
}

#[test]
fn a_goaway_returns_what_was_not_processed() {
    let mut f = Fixture::new(0, &[]);
    f.begin(1);
    f.begin(2);
    f.frame(frame::GOAWAY, 0, 0, &[0, 0, 0, 1, 0, 0, 0, 0])
        .unwrap();
    assert!(matches!(
        f.signals[..],
        [Signal::Unprocessed {
            request: InFlight { intended: 2, .. }
        }]
    ));
    assert!(f.connection.is_leaving() && !f.connection.has_room());
    assert_eq!(f.connection.open(), 1);
}

#[test]
fn resets_and_timeouts_end_one_request() {
    let mut f = Fixture::new(0, &[]);
    for sent in 1..=3 {
        f.begin(sent);
    }
    f.sent();
    f.frame(frame::RST_STREAM, 0, 3, &[0, 0, 0, 2]).unwrap();
    f.connection.cancel(1, &mut f.signals);
    let failed = |sent, class| Signal::Failed {
        request: InFlight {
            intended: sent,
            sent,
        },
        class,
    };
    assert_eq!(
        f.signals,
        [failed(2, ErrorClass::Reset), failed(1, ErrorClass::Timeout)]
    );
    assert_eq!(f.sent(), [(frame::RST_STREAM, 0, 1, 4)]);
    assert_eq!(f.connection.oldest_sent(), Some(3));
}

#[test]
fn bodies_keep_to_the_servers_windows() {
    let mut f = Fixture::new(100_000, &[(SETTINGS_INITIAL_WINDOW_SIZE, 20_000)]);
    f.begin(1);
    let data: usize = f
        .sent()
        .iter()
        .filter(|frame| frame.0 == frame::DATA)
        .map(|frame| frame.3)
        .sum();
    assert_eq!(data, 20_000);
    f.frame(frame::WINDOW_UPDATE, 0, 1, &1_000_000u32.to_be_bytes())
        .unwrap();
    let sent = f.sent();
    assert!(sent.iter().all(|frame| frame.3 <= DEFAULT_MAX_FRAME));
    assert_eq!(
        sent.iter().map(|frame| frame.3).sum::<usize>(),
        65_535 - 20_000
    );
    f.frame(frame::WINDOW_UPDATE, 0, 0, &1_000_000u32.to_be_bytes())
        .unwrap();
    let sent = f.sent();
    assert_eq!(
        sent.iter().map(|frame| frame.3).sum::<usize>(),
        100_000 - 65_535
    );
    assert_eq!(sent.last().unwrap().1, frame::END_STREAM);
}

#[test]
fn pings_are_answered_and_small_tables_respected() {
    let mut f = Fixture::new(0, &[(SETTINGS_HEADER_TABLE_SIZE, 0)]);
    f.sent();
    f.frame(frame::PING, 0, 0, b"12345678").unwrap();
    assert_eq!(f.sent(), [(frame::PING, frame::ACK, 0, 8)]);
    f.begin(1);
    assert_eq!(
        f.connection.out[frame::HEAD],
        0x20,
        "the table's new size is acknowledged"
    );
    let first = f.sent()[0].3;
    f.begin(2);
    assert_eq!(f.sent()[0].3, first - 1);
}
