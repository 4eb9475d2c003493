use super::*;

fn read(source: Source, text: &str) -> Reading {
    let mut reading = Reading::default();
    source.apply(text, &mut reading);
    reading
}

#[test]
fn cpu_of_v1_is_in_nanoseconds() {
    let text =
        "nr_periods 11\nnr_throttled 10\nthrottled_time 777506878\nnr_bursts 0\nburst_time 0\n";
    let counters = read(Source::CpuStatV1, text).counters;
    assert_eq!(counters.nr_periods, Some(11));
    assert_eq!(counters.nr_throttled, Some(10));
    assert_eq!(counters.throttled_usec, Some(777_506));
    assert_eq!(counters.cpu_usage_usec, None);
    let usage = read(Source::CpuacctUsage, "1777506878\n").counters;
    assert_eq!(usage.cpu_usage_usec, Some(1_777_506));
}

#[test]
fn cpu_of_v2_without_the_controller_has_no_periods() {
    let with = "usage_usec 5000\nuser_usec 3000\nsystem_usec 2000\nnr_periods 7\nnr_throttled 3\nthrottled_usec 91\nnr_bursts 0\nburst_usec 0\n";
    let counters = read(Source::CpuStatV2, with).counters;
    assert_eq!(counters.cpu_usage_usec, Some(5000));
    assert_eq!(
        (counters.nr_periods, counters.nr_throttled),
        (Some(7), Some(3))
    );
    assert_eq!(counters.throttled_usec, Some(91));
    let without = read(Source::CpuStatV2, "usage_usec 5000\n").counters;
    assert_eq!(without.nr_periods, None);
}

#[test]
fn memory_of_v1_counts_the_whole_subtree() {
    let text = "cache 1\nrss 2\nhierarchical_memory_limit 33554432\ntotal_cache 1605632\ntotal_rss 61440\ntotal_swap 4096\n\
        total_workingset_refault_anon 3\ntotal_workingset_refault_file 4\ntotal_pgfault 1175\ntotal_pgmajfault 24\n";
    let Reading {
        counters, memory, ..
    } = read(Source::MemoryStatV1, text);
    assert_eq!(memory.file_bytes, Some(1_605_632));
    assert_eq!(memory.anon_bytes, Some(61_440));
    assert_eq!(memory.swap_bytes, Some(4096));
    assert_eq!(memory.sock_bytes, None);
    assert_eq!(counters.pgmajfault, Some(24));
    assert_eq!(counters.workingset_refault_anon, Some(3));
    assert_eq!(counters.workingset_refault_file, Some(4));
    assert_eq!(counters.pgscan, None, "v1 does not count it");
}

#[test]
fn limit_hits_of_v1_add_up_over_both_counters() {
    let mut reading = Reading::default();
    Source::Failcnt.apply("3\n", &mut reading);
    Source::Failcnt.apply("40\n", &mut reading);
    assert_eq!(reading.counters.memory_max_events, Some(43));
    Source::Failcnt.apply("nonsense", &mut reading);
    assert_eq!(reading.counters.memory_max_events, Some(43));
}

#[test]
fn no_hits_of_a_limit_without_swap_are_unknown_on_v1() {
    let stat = |memory: &str, both: &str| {
        let text = format!("hierarchical_memory_limit {memory}\nhierarchical_memsw_limit {both}\n");
        let mut reading = read(Source::MemoryStatV1, &text);
        Source::Failcnt.apply("0", &mut reading);
        reading.settle();
        reading.counters.memory_max_events
    };
    assert_eq!(stat("33554432", "33554432"), None);
    assert_eq!(stat("33554432", "50331648"), Some(0));
    assert_eq!(stat("9223372036854771712", "9223372036854771712"), Some(0));
}

#[test]
fn oom_kills_of_both_kernels() {
    let v1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n";
    assert_eq!(read(Source::OomControl, v1).counters.oom_kill, Some(1));
    let old = "oom_kill_disable 0\nunder_oom 0\n";
    assert_eq!(read(Source::OomControl, old).counters.oom_kill, None);
    let v2 = "low 0\nhigh 0\nmax 56\noom 2\noom_kill 1\noom_group_kill 0\n";
    let counters = read(Source::EventsV2, v2).counters;
    assert_eq!(counters.memory_max_events, Some(56));
    assert_eq!((counters.oom, counters.oom_kill), (Some(2), Some(1)));
}

#[test]
fn pressure_that_is_not_there_leaves_no_key() {
    let source = Source::Pressure("cpu_some", "cpu_full");
    let counters = read(source, "some avg10=0.00 avg60=0.00 avg300=0.00 total=9\n").counters;
    assert_eq!(counters.psi_usec.get("cpu_some"), Some(&9));
    assert_eq!(counters.psi_usec.get("cpu_full"), None);
    assert!(read(source, "").counters.psi_usec.is_empty());
}
