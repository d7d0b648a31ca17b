use std::fs;

/// Ticks of a second in /proc: fixed on Linux.
const TICKS_PER_SECOND: f64 = 100.0;

/// The machine for people: processor, cores, memory, system, who else runs.
pub(crate) fn describe() -> Vec<(&'static str, String)> {
    let field = |file: &str, name: &str| {
        let text = fs::read_to_string(file).unwrap_or_default();
        let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_once([':', '=']).map_or("unknown", |(_, value)| value.trim()).trim_matches('"').to_string()
    };
    let memory = field("/proc/meminfo", "MemTotal");
    let kilobytes: f64 = memory.split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0.0);
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').take(3).collect::<Vec<_>>().join(", ");
    let profile = if cfg!(debug_assertions) { "dev: figures say nothing about speed" } else { "release" };
    vec![
        ("Processor", field("/proc/cpuinfo", "model name")),
        ("Cores", cores().to_string()),
        ("Memory", format!("{:.0} GB", kilobytes / 1e6)),
        ("System", field("/etc/os-release", "PRETTY_NAME")),
        ("Load before the run (1, 5, 15 minutes)", load),
        ("Build", format!("entente {}, {profile}", env!("CARGO_PKG_VERSION"))),
    ]
}

/// What the machine has; `None` where the system does not tell.
pub(crate) fn memory_megabytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().ok()?;
    Some(kilobytes / 1024)
}

pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// CPU seconds that a process has used; `None` where the system does not tell.
pub fn process_seconds(process: &str) -> Option<f64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses may hold spaces; utime and stime are the 12th and 13th field behind it.
    let mut fields = text.rsplit_once(')')?.1.split_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<f64>().ok();
    Some((next()? + next()?) / TICKS_PER_SECOND)
}

/// CPU seconds that this thread has used; 0 where the system does not tell.
pub(crate) fn thread_seconds() -> f64 {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|nanoseconds| nanoseconds.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// Bytes that disks have read for this process, and those that it has written to files; 0 where the system does not tell.
pub(crate) fn read_and_written_bytes() -> (u64, u64) {
    let text = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let number = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|rest| rest.trim().parse().ok()).unwrap_or(0)
    };
    (number("read_bytes:"), number("write_bytes:"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_process_uses_processor_time() {
        let before = super::process_seconds("self").expect("Linux");
        let mut x = 1_u64;
        while super::process_seconds("self").expect("Linux") < before + 0.02 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(x >> 7);
        }
        assert!(super::describe().iter().all(|(_, value)| !value.is_empty()), "{x}");
    }
}
