//! Whether client and proxy spoke TLS as asked: resumed and full handshakes must not be mixed unknown to the reader.

use super::Findings;
use crate::record::derived;
use crate::record::trial::{Control, TrialRecord};
use crate::spec::settings::{Tls, TlsVersion};

pub(super) fn check(trial: &TrialRecord, tls: &Tls, findings: &mut Findings) {
    let Some(load) = derived::load(trial).filter(|_| trial.control != Some(Control::Direct)) else {
        return;
    };
    let handshake = &load.handshake;
    if !tls.resumption && handshake.resumed > 0 {
        findings.reason(format!(
            "handshakes: {} of {} resumed a session, though resumption is off",
            handshake.resumed,
            handshake.resumed + handshake.full
        ));
    }
    if tls.resumption && handshake.resumed == 0 && handshake.full > 0 {
        findings.reason(format!(
            "handshakes: none of {} resumed a session, though resumption is on",
            handshake.full
        ));
    }
    let wanted = match tls.version {
        TlsVersion::V1_2 => "TLSv1_2",
        TlsVersion::V1_3 => "TLSv1_3",
    };
    let others = load
        .negotiated
        .iter()
        .filter(|(n, count)| !n.starts_with(wanted) && **count > 0);
    for (negotiated, count) in others {
        findings.reason(format!(
            "handshakes: {count} negotiated {negotiated}, {wanted} asked"
        ));
    }
}
