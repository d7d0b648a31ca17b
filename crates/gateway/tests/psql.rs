//! The real psql against a gateway in front of a database in memory: its backslash commands, the history, the session.
//! Left out where psql is not installed.

mod fake;

use fake::{Fake, serve};
use std::process::{Command, Stdio};
use std::sync::Arc;

/// What psql prints for `commands`, each given with `-c`.
fn psql(port: u16, commands: &[&str]) -> Option<String> {
    let mut psql = Command::new("psql");
    psql.args(["-X", "-q", "-P", "pager=off", "-h", "127.0.0.1", "-U", "ada", "-p", &port.to_string(), "-d", "any"]);
    psql.env("PGCONNECT_TIMEOUT", "10").env("LC_ALL", "C.UTF-8").stdin(Stdio::null());
    commands.iter().for_each(|command| {
        psql.args(["-c", command]);
    });
    let output = psql.output().ok()?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    Some(format!("{out}{err}"))
}

/// Runs each command and compares what psql prints, without regard to trailing spaces.
async fn check(cases: Vec<(&'static str, &'static str)>) {
    let fake = Arc::new(Fake::default());
    let (port, _) = serve(fake).await;
    let commands: Vec<&'static str> = cases.iter().map(|(command, _)| *command).collect();
    let outputs: Vec<Option<String>> =
        tokio::task::spawn_blocking(move || commands.iter().map(|command| psql(port, &[command])).collect())
            .await
            .expect("no panic");
    for ((command, expected), output) in cases.iter().zip(outputs) {
        let Some(output) = output else {
            eprintln!("psql is not installed: not tested");
            return;
        };
        let plain = |text: &str| text.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n");
        assert_eq!(plain(&output), plain(expected), "{command}\n{output}");
    }
}
