//! The node's ports: free while it is stopped, its own while it runs.

use super::finding::Findings;
use super::subject::Subject;
use std::fs;
use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener};

const PORTS: &str = "ports";
/// How the system writes that somebody listens.
const LISTENING: &str = "0A";

pub(super) fn check(subject: &Subject, findings: &mut Findings) {
    let Ok(config) = &subject.config else { return };
    let ports = [
        ("listen", config.listen, "other members"),
        ("postgres", config.postgres, "Postgres clients"),
        ("http", config.http, "HTTP"),
    ];
    for (setting, address, purpose) in ports {
        match TcpListener::bind(address) {
            Ok(_) if subject.is_running() => findings.problem(
                PORTS,
                format!("nobody listens on {address} for {purpose}, and the node runs"),
                format!("the node was started with another `{setting}`, or has just begun: start it again, or look again"),
            ),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::AddrInUse => in_use(subject, setting, address, findings),
            Err(error) => findings.problem(
                PORTS,
                format!("cannot listen on {address} for {purpose}: {error}"),
                format!("set `{setting}` in node.toml to an address of this machine and a port that the node may have"),
            ),
        }
    }
    if findings.is_well(PORTS) {
        let shown = ports.map(|(_, address, _)| address.to_string()).join(", ");
        let whose = if subject.is_running() { "are this node's" } else { "are free" };
        findings.ok(PORTS, format!("{shown} {whose}"));
    }
}

fn in_use(subject: &Subject, setting: &str, address: SocketAddr, findings: &mut Findings) {
    let holder = holder_of(address.port());
    let shown = match &holder {
        Some((process, name)) => format!("process {process} ({name})"),
        None => "a process that this user cannot see".to_string(),
    };
    let advice = format!("stop that process, or set `{setting}` in node.toml to another port");
    match (subject.is_running(), subject.process(), holder) {
        (false, ..) => {
            findings.problem(
                PORTS,
                format!("{address} is in use by {shown}, and the node is stopped"),
                advice,
            );
        }
        (true, Some(own), Some((process, _))) if own != process => {
            findings.problem(
                PORTS,
                format!("{address} is in use by {shown}, and the node is process {own}"),
                advice,
            );
        }
        // Whose it is who cannot be seen is not known, and a node that does not get its ports does not run.
        _ => {}
    }
}

/// Number and name of the process that listens on a port, where the system tells this user.
fn holder_of(port: u16) -> Option<(u32, String)> {
    let tables =
        ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    let lines = tables.iter().flat_map(|table| table.lines());
    let sockets: Vec<String> =
        lines.filter_map(|line| socket_of(line, port)).map(|inode| format!("socket:[{inode}]")).collect();
    let processes = fs::read_dir("/proc").ok()?.flatten();
    for process in processes {
        let Some(number) = process.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let Ok(files) = fs::read_dir(process.path().join("fd")) else { continue };
        let has = files.flatten().any(|file| {
            fs::read_link(file.path())
                .is_ok_and(|to| sockets.iter().any(|socket| to.as_os_str() == socket.as_str()))
        });
        if has {
            let name = fs::read_to_string(process.path().join("comm")).unwrap_or_default();
            return Some((number, name.trim().to_string()));
        }
    }
    None
}

/// The inode of the socket that a line of `/proc/net/tcp` is about, if it listens on this port.
fn socket_of(line: &str, port: u16) -> Option<&str> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (_, own) = fields.get(1)?.rsplit_once(':')?;
    let listens = u16::from_str_radix(own, 16) == Ok(port) && *fields.get(3)? == LISTENING;
    listens.then(|| fields.get(9).copied()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_is_found() {
        let line = "   0: 0100007F:1B58 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4242 1 0 100 0 0 10 0";
        assert_eq!(socket_of(line, 7_000), Some("4242"));
        assert_eq!(socket_of(line, 7_001), None);
        assert_eq!(socket_of(&line.replace(" 0A ", " 01 "), 7_000), None, "a connection");
        assert_eq!(socket_of("  sl  local_address rem_address   st", 7_000), None);
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let (process, _) = holder_of(port).expect("this process");
        assert_eq!(process, std::process::id());
    }
}
