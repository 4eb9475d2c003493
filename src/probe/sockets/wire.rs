//! The messages of sock_diag as bytes: `linux/netlink.h`, `linux/sock_diag.h`, `linux/inet_diag.h`.

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const NLM_F_REQUEST: u16 = 0x1;
const NLM_F_DUMP: u16 = 0x300;
const IPPROTO_TCP: u8 = 6;
const HEADER: usize = 16;
const REQUEST: usize = HEADER + 56;
/// `struct inet_diag_msg`.
const MESSAGE: usize = 72;

/// Address family of a dump.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    V4,
    V6,
}

/// TCP states that we ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    Established,
    SynReceived,
    CloseWait,
    Listen,
}

impl State {
    fn number(self) -> u8 {
        match self {
            Self::Established => 1,
            Self::SynReceived => 3,
            Self::CloseWait => 8,
            Self::Listen => 10,
        }
    }

    fn from_number(number: u8) -> Option<Self> {
        [
            Self::Established,
            Self::SynReceived,
            Self::CloseWait,
            Self::Listen,
        ]
        .into_iter()
        .find(|state| state.number() == number)
    }

    /// Half-open connections are kept in a state of their own (12) which the kernel shows as `SYN_RECV`.
    fn mask(self) -> u32 {
        let own = 1 << self.number();
        if self == Self::SynReceived {
            own | 1 << 12
        } else {
            own
        }
    }
}

/// What a dump says of one socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Socket {
    pub(crate) state: Option<State>,
    /// A listener's accept queue, or unread bytes.
    pub(crate) receive_queue: u32,
    /// A listener's limit, or unacknowledged bytes.
    pub(crate) send_queue: u32,
    /// 0 for one that no process has accepted.
    pub(crate) inode: u32,
}

/// A part of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Socket(Socket),
    Done,
    /// `errno`.
    Error(i32),
}

/// `SOCK_DIAG_BY_FAMILY` dump of TCP sockets with this local port. The kernel filters by the port itself.
pub(crate) fn dump_request(
    family: Family,
    states: &[State],
    port: u16,
    sequence: u32,
) -> [u8; REQUEST] {
    let mut bytes = [0; REQUEST];
    let mask = states.iter().fold(0, |mask, state| mask | state.mask());
    let family = match family {
        Family::V4 => 2,
        Family::V6 => 10,
    };
    bytes[0..4].copy_from_slice(&(REQUEST as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    bytes[8..12].copy_from_slice(&sequence.to_ne_bytes());
    bytes[16] = family;
    bytes[17] = IPPROTO_TCP;
    bytes[20..24].copy_from_slice(&u32::to_ne_bytes(mask));
    bytes[24..26].copy_from_slice(&port.to_be_bytes());
    bytes
}

/// Splits a datagram; messages of other requests (an earlier one that was given up) and unknown ones are skipped.
pub(crate) fn parts(bytes: &[u8], sequence: u32) -> impl Iterator<Item = Part> + '_ {
    messages(bytes).filter_map(move |(kind, its_sequence, body)| {
        if its_sequence != sequence {
            return None;
        }
        match kind {
            NLMSG_DONE => Some(Part::Done),
            NLMSG_ERROR => match i32::from_ne_bytes(body.first_chunk().copied()?) {
                0 => Some(Part::Done),
                code => Some(Part::Error(code.saturating_neg())),
            },
            SOCK_DIAG_BY_FAMILY => parse_socket(body).map(Part::Socket),
            _ => None,
        }
    })
}

fn messages(mut bytes: &[u8]) -> impl Iterator<Item = (u16, u32, &[u8])> {
    std::iter::from_fn(move || {
        let length = u32::from_ne_bytes(bytes.get(0..4)?.try_into().ok()?) as usize;
        let kind = u16::from_ne_bytes(bytes.get(4..6)?.try_into().ok()?);
        let sequence = u32::from_ne_bytes(bytes.get(8..12)?.try_into().ok()?);
        let body = bytes.get(HEADER..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, sequence, body))
    })
}

fn parse_socket(body: &[u8]) -> Option<Socket> {
    let message: &[u8; MESSAGE] = body.first_chunk()?;
    let number = |at: usize| {
        let [a, b, c, d] = [
            message[at],
            message[at + 1],
            message[at + 2],
            message[at + 3],
        ];
        u32::from_ne_bytes([a, b, c, d])
    };
    Some(Socket {
        state: State::from_number(message[1]),
        receive_queue: number(56),
        send_queue: number(60),
        inode: number(68),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend((HEADER as u32 + body.len() as u32).to_ne_bytes());
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 2]);
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    fn socket(state: u8, receive: u32, send: u32, inode: u32) -> Vec<u8> {
        let mut body = vec![0; MESSAGE];
        body[1] = state;
        body[56..60].copy_from_slice(&receive.to_ne_bytes());
        body[60..64].copy_from_slice(&send.to_ne_bytes());
        body[68..72].copy_from_slice(&inode.to_ne_bytes());
        body
    }

    #[test]
    fn splits_a_datagram() {
        let mut bytes = message(SOCK_DIAG_BY_FAMILY, 7, &socket(10, 65, 64, 99));
        bytes.extend(message(SOCK_DIAG_BY_FAMILY, 6, &socket(10, 1, 1, 1)));
        // Attributes after the fixed part are not looked at.
        let mut with_attributes = socket(1, 5, 0, 0);
        with_attributes.extend([5, 0, 8, 0, 3]);
        bytes.extend(message(SOCK_DIAG_BY_FAMILY, 7, &with_attributes));
        bytes.extend(message(NLMSG_DONE, 7, &[0; 4]));
        let found: Vec<_> = parts(&bytes, 7).collect();
        let listener = Socket {
            state: Some(State::Listen),
            receive_queue: 65,
            send_queue: 64,
            inode: 99,
        };
        let waiting = Socket {
            state: Some(State::Established),
            receive_queue: 5,
            send_queue: 0,
            inode: 0,
        };
        assert_eq!(
            found,
            [Part::Socket(listener), Part::Socket(waiting), Part::Done]
        );
    }

    #[test]
    fn an_error_carries_its_errno() {
        let bytes = message(NLMSG_ERROR, 1, &(-2_i32).to_ne_bytes());
        assert_eq!(parts(&bytes, 1).collect::<Vec<_>>(), [Part::Error(2)]);
    }

    #[test]
    fn a_request_asks_for_one_port() {
        let bytes = dump_request(Family::V4, &[State::SynReceived], 8443, 3);
        assert_eq!(bytes.len(), 72);
        assert_eq!(bytes[24..26], [0x20, 0xfb]);
        assert_eq!(bytes[20..24], (1_u32 << 3 | 1 << 12).to_ne_bytes());
    }

    proptest::proptest! {
        #[test]
        fn no_datagram_panics_or_loops(bytes in proptest::collection::vec(0_u8.., 0..300)) {
            let _ = parts(&bytes, 0).count();
        }

        #[test]
        fn a_cut_datagram_does_not_panic(cut in 0_usize..200) {
            let mut bytes = message(SOCK_DIAG_BY_FAMILY, 7, &socket(10, 65, 64, 99));
            bytes.extend(message(NLMSG_DONE, 7, &[0; 4]));
            bytes.truncate(cut);
            let _ = parts(&bytes, 7).count();
        }
    }
}
