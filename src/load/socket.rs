//! Client sockets: non-blocking connects that do not run out of ports, and what their errors mean.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{self, AddressFamily, SocketFlags, SocketType, ipproto, sockopt};

use super::report::ErrorClass;

/// Source addresses 127.0.0.1 … that are used towards a loopback target, one after the other, as each runs out of
/// ports: about 28,000 connections each.
const LOOPBACK_SOURCES: u8 = 16;

/// Opens connections to one target.
#[derive(Debug)]
pub(crate) struct Dialer {
    target: SocketAddr,
    /// Last byte of the source address 127.0.0.x; 1 leaves the choice to the kernel.
    source: u8,
}

impl Dialer {
    pub(crate) fn new(target: SocketAddr) -> Self {
        Self { target, source: 1 }
    }

    /// Starts a connect. The socket is non-blocking, without Nagle's delay, and closes by reset, so that no port is kept
    /// in TIME_WAIT.
    pub(crate) fn dial(&mut self) -> Result<OwnedFd, ErrorClass> {
        let mut tried = 0;
        loop {
            match self.try_dial() {
                Ok(socket) => return Ok(socket),
                Err(Errno::ADDRNOTAVAIL) if self.is_loopback() && tried < LOOPBACK_SOURCES => {
                    tried += 1;
                    self.source = self.source % LOOPBACK_SOURCES + 1;
                }
                Err(errno) => return Err(connect_error(errno)),
            }
        }
    }

    fn is_loopback(&self) -> bool {
        matches!(self.target.ip(), IpAddr::V4(ip) if ip.is_loopback())
    }

    fn try_dial(&self) -> Result<OwnedFd, Errno> {
        let family = match self.target {
            SocketAddr::V4(_) => AddressFamily::INET,
            SocketAddr::V6(_) => AddressFamily::INET6,
        };
        let socket = net::socket_with(
            family,
            SocketType::STREAM,
            SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
            Some(ipproto::TCP),
        )?;
        sockopt::set_tcp_nodelay(&socket, true)?;
        sockopt::set_socket_linger(&socket, Some(Duration::ZERO))?;
        if self.source > 1 {
            tcp::bind_address_no_port(&socket)?;
            let source = SocketAddrV4::new(Ipv4Addr::new(127, 0, 0, self.source), 0);
            net::bind(&socket, &source)?;
        }
        match net::connect(&socket, &self.target) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(socket),
            Err(errno) => Err(errno),
        }
    }
}

/// The result of a connect, once the socket is writable.
pub(crate) fn connected(socket: impl AsFd) -> Result<(), ErrorClass> {
    match sockopt::socket_error(socket) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(errno)) | Err(errno) => Err(connect_error(errno)),
    }
}

/// Whether a socket is connected, where `TCP_INFO` does not tell.
pub(crate) fn has_peer(socket: impl AsFd) -> bool {
    net::getpeername(socket).is_ok()
}

/// What `TCP_INFO` says of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TcpInfo {
    pub(crate) established: bool,
    /// Retransmitted segments so far; right after a connect these are SYNs.
    pub(crate) retransmissions: u32,
}

/// `None` where the kernel does not tell.
pub(crate) fn tcp_info(socket: impl AsFd) -> Option<TcpInfo> {
    tcp::info(socket.as_fd())
}

fn connect_error(errno: Errno) -> ErrorClass {
    match errno {
        Errno::CONNREFUSED => ErrorClass::ConnectRefused,
        Errno::TIMEDOUT => ErrorClass::ConnectTimeout,
        Errno::ADDRNOTAVAIL => ErrorClass::PortExhausted,
        Errno::MFILE | Errno::NFILE => ErrorClass::DescriptorsExhausted,
        Errno::CONNRESET | Errno::PIPE => ErrorClass::Reset,
        _ => ErrorClass::Connect,
    }
}

/// The class of an error while a connection is in use.
pub(crate) fn transfer_error(errno: Errno) -> ErrorClass {
    match errno {
        Errno::TIMEDOUT => ErrorClass::Timeout,
        _ => ErrorClass::Reset,
    }
}

/// Raises the soft limit of open files to the hard one. Running out later is counted, so failure here is not an error.
pub(crate) fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        limit.current = limit.maximum;
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// The two socket options that rustix does not have.
mod tcp {
    use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

    use rustix::io::Errno;

    /// The port is chosen at connect, by the whole four-tuple, not at bind.
    pub(super) fn bind_address_no_port(socket: impl AsFd) -> Result<(), Errno> {
        let on: libc::c_int = 1;
        // SAFETY: the pointer and length describe a live c_int, and the descriptor is borrowed for the call.
        let result = unsafe {
            libc::setsockopt(
                socket.as_fd().as_raw_fd(),
                libc::IPPROTO_IP,
                libc::IP_BIND_ADDRESS_NO_PORT,
                (&raw const on).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        };
        if result == 0 {
            Ok(())
        } else {
            Err(std::io::Error::last_os_error()
                .raw_os_error()
                .map_or(Errno::INVAL, Errno::from_raw_os_error))
        }
    }

    const TCP_ESTABLISHED: u8 = 1;

    pub(super) fn info(socket: BorrowedFd<'_>) -> Option<super::TcpInfo> {
        // SAFETY: tcp_info is plain old data, for which zeroes are valid.
        let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
        // SAFETY: the kernel writes at most `length` bytes into `info`, and the descriptor is borrowed for the call.
        let result = unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                (&raw mut info).cast(),
                &raw mut length,
            )
        };
        let end = std::mem::offset_of!(libc::tcp_info, tcpi_total_retrans) + size_of::<u32>();
        (result == 0 && length as usize >= end).then_some(super::TcpInfo {
            established: info.tcpi_state == TCP_ESTABLISHED,
            retransmissions: info.tcpi_total_retrans,
        })
    }
}
