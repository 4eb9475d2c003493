//! TCP counters of this process's network namespace, which is the pod's.

use super::FsRoot;
use super::file::KeptFile;
use super::report::Counters;
use super::text::net_counter;

/// `/proc/self/net/netstat` and `snmp`, kept open.
#[derive(Debug)]
pub(crate) struct NetFiles {
    netstat: KeptFile,
    snmp: KeptFile,
}

impl NetFiles {
    pub(crate) fn new(root: &FsRoot) -> Self {
        Self {
            netstat: KeptFile::new(root.proc.join("self/net/netstat")),
            snmp: KeptFile::new(root.proc.join("self/net/snmp")),
        }
    }

    pub(crate) fn read_into(&mut self, counters: &mut Counters, buffer: &mut Vec<u8>) {
        if let Some(text) = self.netstat.read(buffer) {
            let extended = |name| net_counter(text, "TcpExt", name);
            counters.listen_overflows = extended("ListenOverflows");
            counters.listen_drops = extended("ListenDrops");
            counters.tcp_timeouts = extended("TCPTimeouts");
        }
        if let Some(text) = self.snmp.read(buffer) {
            counters.retrans_segs = net_counter(text, "Tcp", "RetransSegs");
        }
    }
}
