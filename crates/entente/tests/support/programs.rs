//! Runs other programs, and gets their packages through their own clients, once per target folder.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Runs a command to its end; what it printed.
pub fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let [out, errors] =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{command:?}: {}\n{out}\n{errors}", output.status);
    out
}

/// A folder `name` for packages that come with `program`, which `install` fills the first time; `None` where they cannot be had, without a network
/// for example, and may be left out.
pub fn packages(name: &str, program: &str, install: impl FnOnce(&Path) -> Vec<Command>) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages").join(name);
    let done = folder.join("installed");
    std::fs::create_dir_all(folder.parent().expect("a folder of folders")).expect("a folder");
    // Other tests ask for the same at the same time: one of them installs, and the others wait.
    let lock = std::fs::File::create(folder.with_extension("lock")).expect("a file for the lock");
    lock.lock().expect("locked");
    if !done.exists() {
        // Half an installation of a run that was stopped.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        for mut command in install(&folder) {
            let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
            if !output.status.success() {
                let said = String::from_utf8_lossy(&output.stderr);
                let reason = format!("its packages cannot be had: {command:?}: {said}");
                test_machine::leave_out(program, &reason);
                return None;
            }
        }
        std::fs::write(done, "").expect("written");
    }
    Some(folder)
}

pub fn command(program: impl AsRef<std::ffi::OsStr>, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments);
    command
}
