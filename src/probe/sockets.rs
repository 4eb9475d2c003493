//! The queues of a listening port, by sock_diag (`man 7 sock_diag`): needs no privilege, and shows a listener's limit, which
//! `/proc/net/tcp` does not.

mod wire;

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
    sockopt,
};
use wire::{Family, Part, State};

use super::report::Queues;

/// The kernel answers from memory; this only bounds a fault.
const RECEIVE_TIMEOUT: Duration = Duration::from_millis(500);
/// The kernel fills at most this much in one datagram of a dump.
const BUFFER: usize = 64 * 1024;

/// A netlink socket that asks for the TCP sockets of one local port.
#[derive(Debug)]
pub(crate) struct SockDiag {
    socket: OwnedFd,
    buffer: Vec<u8>,
    sequence: u32,
    port: u16,
    /// Families in which the port has a listener, by the last look.
    families: Vec<Family>,
}

impl SockDiag {
    pub(crate) fn open(port: u16) -> io::Result<Self> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        )?;
        sockopt::set_socket_timeout(&socket, sockopt::Timeout::Recv, Some(RECEIVE_TIMEOUT))?;
        Ok(Self {
            socket,
            buffer: vec![0; BUFFER],
            sequence: 0,
            port,
            families: Vec::new(),
        })
    }

    /// Depth and limit of every listening socket on the port: tens of microseconds, whatever the number of connections.
    ///
    /// Only with `all`, or when none was found before, does it look for listeners in families that had none.
    pub(crate) fn listeners(&mut self, all: bool) -> io::Result<Queues> {
        let mut queues = Queues::default();
        let mut families = Vec::new();
        for family in [Family::V4, Family::V6] {
            if !all && !self.families.is_empty() && !self.families.contains(&family) {
                continue;
            }
            self.dump(family, &[State::Listen], |socket| {
                queues.accept.push(socket.receive_queue);
                queues.accept_limit.push(socket.send_queue);
                if !families.contains(&family) {
                    families.push(family);
                }
            })?;
        }
        self.families = families;
        Ok(queues)
    }

    /// Adds what the port's connections tell: a walk over the kernel's whole connection table, in proportion to its size.
    ///
    /// A connection of a dual-stack listener is in the listener's family, so only families with a listener are walked.
    pub(crate) fn connections(&mut self, queues: &mut Queues) -> io::Result<()> {
        let (mut half_open, mut established, mut unread, mut unread_bytes) = (0, 0, 0, 0);
        let wanted = [State::SynReceived, State::Established, State::CloseWait];
        for family in self.families.clone() {
            self.dump(family, &wanted, |socket| match socket.state {
                Some(State::SynReceived) => half_open += 1,
                Some(state @ (State::Established | State::CloseWait)) => {
                    established += u64::from(state == State::Established);
                    // A socket without an inode has not been accepted: it waits in the accept queue, and is counted there.
                    if socket.inode != 0 && socket.receive_queue > 0 {
                        unread += 1;
                        unread_bytes += u64::from(socket.receive_queue);
                    }
                }
                _ => {}
            })?;
        }
        queues.half_open = Some(half_open);
        queues.established = Some(established);
        queues.unread = Some(unread);
        queues.unread_bytes = Some(unread_bytes);
        Ok(())
    }

    fn dump(
        &mut self,
        family: Family,
        states: &[State],
        mut each: impl FnMut(&wire::Socket),
    ) -> io::Result<()> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = wire::dump_request(family, states, self.port, self.sequence);
        send(&self.socket, &request, SendFlags::empty())?;
        loop {
            let (length, _) = recv(&self.socket, &mut self.buffer[..], RecvFlags::empty())?;
            for part in wire::parts(&self.buffer[..length], self.sequence) {
                match part {
                    Part::Socket(socket) => each(&socket),
                    Part::Done => return Ok(()),
                    Part::Error(code) => return Err(io::Error::from_raw_os_error(code)),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
    use std::time::Instant;

    use rustix::net::listen;

    use super::*;

    fn until(what: &str, mut condition: impl FnMut() -> bool) {
        let deadline = Instant::now() + Duration::from_secs(10);
        while !condition() {
            assert!(Instant::now() < deadline, "{what}: not within 10 s");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn listener(address: SocketAddr, backlog: i32) -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind(address).unwrap();
        // A second listen() changes the backlog of the first.
        listen(&listener, backlog).unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    fn loopback4() -> SocketAddr {
        (Ipv4Addr::LOCALHOST, 0).into()
    }

    #[test]
    fn depth_and_limit_of_a_listener_that_does_not_accept() {
        let (listener, address) = listener(loopback4(), 4);
        let mut diag = SockDiag::open(address.port()).unwrap();
        assert_eq!(diag.listeners(true).unwrap().accept, [0]);
        let mut clients: Vec<_> = (0..3)
            .map(|_| TcpStream::connect(address).unwrap())
            .collect();
        until("three wait", || diag.listeners(true).unwrap().accept == [3]);
        // The kernel admits one more than the backlog.
        for _ in 0..12 {
            let timeout = Duration::from_millis(100);
            clients.extend(TcpStream::connect_timeout(&address, timeout));
        }
        let queues = diag.listeners(true).unwrap();
        assert_eq!((queues.accept, queues.accept_limit), (vec![5], vec![4]));
        drop(clients);
        drop(listener);
        assert_eq!(diag.listeners(true).unwrap(), Queues::default());
    }

    #[test]
    fn every_socket_of_a_shared_port_is_told_apart() {
        use rustix::net::sockopt::set_socket_reuseport;
        let open = |port| {
            let socket =
                rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
            set_socket_reuseport(&socket, true).unwrap();
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            rustix::net::bind(&socket, &address).unwrap();
            listen(&socket, 7).unwrap();
            TcpListener::from(socket)
        };
        let first = open(0);
        let port = first.local_addr().unwrap().port();
        let _second = open(port);
        let mut diag = SockDiag::open(port).unwrap();
        let _clients: Vec<_> = (0..6)
            .map(|_| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap())
            .collect();
        until("six wait in both", || {
            let queues = diag.listeners(true).unwrap();
            queues.accept.len() == 2 && queues.accept.iter().sum::<u32>() == 6
        });
        assert_eq!(diag.listeners(true).unwrap().accept_limit, [7, 7]);
    }

    #[test]
    fn unread_requests_of_accepted_connections_only() {
        let (listener, address) = listener(loopback4(), 16);
        let mut diag = SockDiag::open(address.port()).unwrap();
        let mut accepted = TcpStream::connect(address).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        let mut waiting = TcpStream::connect(address).unwrap();
        accepted.write_all(b"12345").unwrap();
        waiting.write_all(b"123").unwrap();
        let mut look = || {
            let mut queues = diag.listeners(true).unwrap();
            diag.connections(&mut queues).unwrap();
            queues
        };
        until("one unread", || look().unread_bytes == Some(5));
        let queues = look();
        assert_eq!(queues.accept, [1]);
        assert_eq!(queues.established, Some(2));
        assert_eq!((queues.half_open, queues.unread), (Some(0), Some(1)));
        server.read_exact(&mut [0; 5]).unwrap();
        assert_eq!(look().unread, Some(0));
    }

    #[test]
    fn connections_that_fill_several_datagrams() {
        const MANY: usize = 350;
        let (listener, address) = listener(loopback4(), 1024);
        let pairs: Vec<_> = (0..MANY)
            .map(|_| {
                let mut client = TcpStream::connect(address).unwrap();
                client.write_all(b"12").unwrap();
                (client, listener.accept().unwrap())
            })
            .collect();
        let mut diag = SockDiag::open(address.port()).unwrap();
        until("all unread", || {
            let mut queues = diag.listeners(true).unwrap();
            diag.connections(&mut queues).unwrap();
            assert_eq!(queues.established, Some(MANY as u64));
            queues.unread == Some(MANY as u64) && queues.unread_bytes == Some(2 * MANY as u64)
        });
        drop(pairs);
    }

    #[test]
    fn a_dual_stack_listener_counts_its_ipv4_connections() {
        let socket = rustix::net::socket(AddressFamily::INET6, SocketType::STREAM, None).unwrap();
        rustix::net::sockopt::set_ipv6_v6only(&socket, false).unwrap();
        rustix::net::bind(&socket, &SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0))).unwrap();
        listen(&socket, 9).unwrap();
        let listener = TcpListener::from(socket);
        let port = listener.local_addr().unwrap().port();
        let mut client = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
        let _server = listener.accept().unwrap();
        client.write_all(b"1234567").unwrap();
        let mut diag = SockDiag::open(port).unwrap();
        until("seven unread", || {
            let mut queues = diag.listeners(true).unwrap();
            diag.connections(&mut queues).unwrap();
            queues.unread_bytes == Some(7)
        });
        assert_eq!(diag.listeners(true).unwrap().accept_limit, [9]);
    }
}
