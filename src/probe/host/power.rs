//! Heat and battery.

use crate::probe::FsRoot;
use crate::probe::text::single;

/// Thermal throttling events of all CPUs since boot (x86); `None` where the kernel does not count them.
pub(super) fn thermal_throttle_events(root: &FsRoot) -> Option<u64> {
    let cpus = fs_err::read_dir(root.sys.join("devices/system/cpu")).ok()?;
    cpus.filter_map(Result::ok)
        .filter_map(|cpu| {
            let counter = cpu.path().join("thermal_throttle/core_throttle_count");
            single(&fs_err::read_to_string(counter).ok()?)
        })
        .reduce(u64::saturating_add)
}

/// Whether the machine runs from its battery; `None` where no power supply is listed (desktops, servers, virtual machines).
pub(super) fn on_battery(root: &FsRoot) -> Option<bool> {
    let supplies = fs_err::read_dir(root.sys.join("class/power_supply")).ok()?;
    let mut answer = None;
    for supply in supplies.filter_map(Result::ok) {
        let read = |name: &str| {
            let text = fs_err::read_to_string(supply.path().join(name)).ok()?;
            Some(text.trim().to_owned())
        };
        // A mouse's battery is not the machine's.
        if read("scope").as_deref() == Some("Device") {
            continue;
        }
        match read("type").as_deref() {
            Some("Battery") => match read("status").as_deref() {
                Some("Discharging") => answer = answer.or(Some(true)),
                Some(_) => answer = answer.or(Some(false)),
                None => {}
            },
            Some("Mains" | "USB") if read("online").as_deref() == Some("1") => return Some(false),
            _ => {}
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::fixture::Tree;

    #[test]
    fn a_laptop_on_and_off_its_battery() {
        let supplies = |mains, status| {
            let tree = Tree::with(&[
                ("sys/class/power_supply/AC/type", "Mains\n"),
                ("sys/class/power_supply/AC/online", mains),
                ("sys/class/power_supply/BAT0/type", "Battery\n"),
                ("sys/class/power_supply/BAT0/status", status),
                ("sys/class/power_supply/mouse/type", "Battery\n"),
                ("sys/class/power_supply/mouse/scope", "Device\n"),
                ("sys/class/power_supply/mouse/status", "Discharging\n"),
            ]);
            on_battery(&tree.root)
        };
        assert_eq!(supplies("1\n", "Charging\n"), Some(false));
        assert_eq!(supplies("0\n", "Discharging\n"), Some(true));
        assert_eq!(supplies("1\n", "Discharging\n"), Some(false));
    }

    #[test]
    fn no_supply_listed_is_unknown() {
        let tree = Tree::with(&[("sys/class/power_supply/mouse/scope", "Device")]);
        assert_eq!(on_battery(&tree.root), None);
    }

    #[test]
    fn heat_adds_up_over_cpus() {
        let tree = Tree::with(&[
            (
                "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
                "3\n",
            ),
            (
                "sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count",
                "4\n",
            ),
            ("sys/devices/system/cpu/online", "0-1\n"),
        ]);
        assert_eq!(thermal_throttle_events(&tree.root), Some(7));
        let without = Tree::with(&[("sys/devices/system/cpu/online", "0\n")]);
        assert_eq!(thermal_throttle_events(&without.root), None);
    }
}
