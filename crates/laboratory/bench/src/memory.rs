/// The most resident memory that this process has had, in bytes; 0 where the system does not tell.
pub fn peak_memory_bytes() -> u64 {
    peak_memory_bytes_of(std::process::id())
}

/// The same of a process that runs; 0 where it does not.
pub fn peak_memory_bytes_of(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes = line.and_then(|rest| rest.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}

/// From here on [`peak_memory_bytes`] is about what comes; where the system does not let it, about all that was.
pub(crate) fn forget_peak_memory() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

#[cfg(test)]
mod tests {
    #[test]
    fn this_process_has_used_memory() {
        assert!(super::peak_memory_bytes() > 100_000);
    }
}
