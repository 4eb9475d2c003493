//! When the phases of a new connection ended. Pure.

/// Moments of one connection, nanoseconds; each is set once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Start of connect.
    pub started: u64,
    /// Connected; the ClientHello goes out at once.
    pub connected: Option<u64>,
    /// First record of the server.
    pub server_hello: Option<u64>,
    /// Handshake finished at the client.
    pub finished: Option<u64>,
    /// HTTP/2: the server's SETTINGS.
    pub settings: Option<u64>,
    /// First byte of the response.
    pub first_byte: Option<u64>,
}

/// Lengths of the phases, microseconds. Those that the protocol does not have are `None`; the others add up to `total`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Phases {
    /// Start of connect → connected.
    pub tcp: u64,
    /// → first record of the server.
    pub server_hello: Option<u64>,
    /// → finished.
    pub finished: Option<u64>,
    /// → the server's SETTINGS.
    pub settings: Option<u64>,
    /// → first byte of the response.
    pub first_byte: u64,
    /// Start of connect → first byte of the response.
    pub total: u64,
}

impl Timeline {
    /// A connection that begins now.
    #[must_use]
    pub fn start(now: u64) -> Self {
        Self {
            started: now,
            ..Self::default()
        }
    }

    /// The phases of a connection that got its first byte; `None` before.
    ///
    /// Moments are rounded to microseconds since the start *before* they are subtracted, so that the phases add up
    /// exactly. A phase cannot end before the one before it: SETTINGS that came along with the server's Finished took 0.
    #[must_use]
    pub fn phases(&self) -> Option<Phases> {
        let mut last = 0;
        let mut phase = |moment: u64| {
            let now = (moment.saturating_sub(self.started) / 1_000).max(last);
            let length = now - last;
            last = now;
            length
        };
        let connected = self.connected?;
        let first_byte = self.first_byte?;
        let tcp = phase(connected);
        let server_hello = self.server_hello.map(&mut phase);
        let finished = self.finished.map(&mut phase);
        let settings = self.settings.map(&mut phase);
        let first_byte = phase(first_byte);
        Some(Phases {
            tcp,
            server_hello,
            finished,
            settings,
            first_byte,
            total: last,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn phases_add_up(
            started in 0u64..1_000_000_000,
            steps in prop::array::uniform5(0u64..200_000_000),
            tls: bool,
            h2: bool,
        ) {
            let mut now = started;
            let mut step = |i: usize| { now += steps[i]; Some(now) };
            let mut timeline = Timeline::start(started);
            timeline.connected = step(0);
            if tls {
                timeline.server_hello = step(1);
                timeline.finished = step(2);
            }
            if h2 {
                timeline.settings = step(3);
            }
            prop_assert_eq!(timeline.phases(), None);
            timeline.first_byte = step(4);
            let phases = timeline.phases().expect("has its first byte");
            let sum = phases.tcp
                + phases.server_hello.unwrap_or(0)
                + phases.finished.unwrap_or(0)
                + phases.settings.unwrap_or(0)
                + phases.first_byte;
            prop_assert_eq!(sum, phases.total);
            prop_assert_eq!(phases.total, (now - started) / 1_000);
            prop_assert_eq!(phases.settings.is_some(), h2);
        }
    }

    #[test]
    fn settings_that_came_early_take_no_time() {
        let timeline = Timeline {
            started: 1_000_000,
            connected: Some(1_010_000),
            server_hello: Some(1_030_000),
            finished: Some(1_060_000),
            settings: Some(1_050_000),
            first_byte: Some(1_100_000),
        };
        let phases = timeline.phases().expect("has its first byte");
        assert_eq!(
            (
                phases.finished,
                phases.settings,
                phases.first_byte,
                phases.total
            ),
            (Some(30), Some(0), 40, 100)
        );
    }
}
