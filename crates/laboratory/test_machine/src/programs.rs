//! Programs that tests need beside the compiler: psql, pgbench, the runtimes of drivers.
//!
//! A test that passes where its program is missing has tested nothing and says so to nobody. So it fails, with the name of what
//! is missing. Whoever cannot install that names it in `ENTENTE_TESTS_WITHOUT`, and the tests that need it are left out, each
//! with a line that the test runner shows:
//!
//! ```sh
//! make test                                    # installs what is missing, where it may
//! ENTENTE_TESTS_WITHOUT=java,mvn make test     # leaves out what needs Java
//! ```
//!
//! A test begins with what it needs:
//!
//! ```
//! fn psql_lists_tables() {
//!     if !test_machine::required("psql") {
//!         return;
//!     }
//! }
//! ```

use std::io::Write as _;
use std::path::Path;

/// The environment variable that names the programs whose tests may be left out, with commas between them.
pub const VARIABLE: &str = "ENTENTE_TESTS_WITHOUT";

/// Whether a program is on this machine. False: it is not, and may be left out; the test ends.
///
/// # Panics
/// It is not, and nobody has allowed to leave it out.
#[must_use]
pub fn required(program: &str) -> bool {
    if !is_in_path(program) {
        leave_out(program, "it is not on this machine");
        return false;
    }
    true
}

/// Says that a test which needs this program is left out, for this reason. The test ends then.
///
/// # Panics
/// Nobody has allowed to leave it out.
pub fn leave_out(program: &str, reason: &str) {
    let allowed = std::env::var(VARIABLE).unwrap_or_default();
    let test = std::thread::current().name().unwrap_or("a test").to_string();
    match verdict(program, reason, &allowed) {
        Ok(line) => {
            // The test runner keeps what macros print of a test that passes, and not this. An error: nobody reads it.
            let _ = writeln!(std::io::stderr(), "NOT TESTED: {test}: {line}");
        }
        Err(message) => panic!("{message}"),
    }
}

/// The line that says what is left out, or why the test fails.
fn verdict(program: &str, reason: &str, allowed: &str) -> Result<String, String> {
    match allowed.split(',').any(|name| name.trim() == program) {
        true => Ok(format!("left out, as {VARIABLE} names {program}: {reason}")),
        false => Err(format!(
            "this test needs {program}: {reason}. `make test` installs what is missing, as root on Debian; \
             to leave out the tests that need it: {VARIABLE}={program}"
        )),
    }
}

fn is_in_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| is_program(&folder.join(program)))
}

fn is_program(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_missing_fails_its_test_unless_that_is_allowed() {
        let reason = "it is not on this machine";
        for allowed in ["", "java", "psqlx", "java,mvn"] {
            let message = verdict("psql", reason, allowed).expect_err(allowed);
            assert!(
                message.contains("needs psql: it is not") && message.contains("ENTENTE_TESTS_WITHOUT=psql")
            );
        }
        for allowed in ["psql", "java, psql", "psql,java"] {
            assert!(verdict("psql", reason, allowed).is_ok(), "{allowed}");
        }
    }

    #[test]
    fn programs_are_looked_for_where_the_shell_looks() {
        assert!(is_in_path("sh") && required("sh"));
        assert!(!is_in_path("no-program-has-this-name"));
        assert!(!is_program(Path::new("/")), "a folder is no program");
        assert!(!is_program(Path::new("/etc/passwd")), "it cannot be run");
    }

    #[test]
    #[should_panic(expected = "this test needs no-program-has-this-name")]
    fn what_is_missing_is_said() {
        let _ = required("no-program-has-this-name");
    }
}
