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

    fn host(files: &[(&str, &str)]) -> (tempfile::TempDir, FsRoot) {
        let folder = tempfile::tempdir().expect("temporary folder");
        for (path, text) in files {
            let path = folder.path().join(path);
            fs_err::create_dir_all(path.parent().expect("a parent")).expect("directory");
            fs_err::write(path, text).expect("file");
        }
        let sys = folder.path().to_owned();
        let root = FsRoot {
            sys,
            ..FsRoot::default()
        };
        (folder, root)
    }

    #[test]
    fn a_laptop_on_and_off_its_battery() {
        let supplies = |mains, status| {
            let (_folder, root) = host(&[
                ("class/power_supply/AC/type", "Mains\n"),
                ("class/power_supply/AC/online", mains),
                ("class/power_supply/BAT0/type", "Battery\n"),
                ("class/power_supply/BAT0/status", status),
                ("class/power_supply/mouse/type", "Battery\n"),
                ("class/power_supply/mouse/scope", "Device\n"),
                ("class/power_supply/mouse/status", "Discharging\n"),
            ]);
            on_battery(&root)
        };
        assert_eq!(supplies("1\n", "Charging\n"), Some(false));
        assert_eq!(supplies("0\n", "Discharging\n"), Some(true));
        assert_eq!(supplies("1\n", "Discharging\n"), Some(false));
    }

    #[test]
    fn no_supply_listed_is_unknown() {
        let (_folder, root) = host(&[("class/power_supply/mouse/scope", "Device")]);
        assert_eq!(on_battery(&root), None);
    }

    #[test]
    fn heat_adds_up_over_cpus() {
        let (_folder, root) = host(&[
            (
                "devices/system/cpu/cpu0/thermal_throttle/core_throttle_count",
                "3\n",
            ),
            (
                "devices/system/cpu/cpu1/thermal_throttle/core_throttle_count",
                "4\n",
            ),
            ("devices/system/cpu/online", "0-1\n"),
        ]);
        assert_eq!(thermal_throttle_events(&root), Some(7));
        let (_folder, without) = host(&[("devices/system/cpu/online", "0\n")]);
        assert_eq!(thermal_throttle_events(&without), None);
    }
}
