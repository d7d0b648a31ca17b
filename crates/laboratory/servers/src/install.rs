//! Installs Debian's packages, without the servers that they would start.

use crate::ServerError;
use crate::error::system;
use crate::process::is_root;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// What a package's scripts ask before they start a server.
const POLICY: &str = "/usr/sbin/policy-rc.d";
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Installs a package.
pub(crate) fn install(what: &'static str, package: &str, how: &'static str) -> Result<(), ServerError> {
    let missing = |why: String| ServerError::Missing { what, why, how };
    if !is_root() {
        return Err(missing("only root may install it".to_string()));
    }
    let _one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let _policy = Policy::forbid()?;
    let apt = || {
        Command::new("apt-get")
            // Another test may be installing the same.
            .args([
                "-o",
                "DPkg::Lock::Timeout=300",
                "install",
                "-y",
                "-q",
                "--no-install-recommends",
                package,
            ])
            .env("DEBIAN_FRONTEND", "noninteractive")
            .output()
            .map_err(system("run apt-get"))
    };
    let mut output = apt()?;
    if !output.status.success() {
        let _ = Command::new("apt-get").arg("update").output();
        output = apt()?;
    }
    match output.status.success() {
        true => Ok(()),
        false => Err(missing(String::from_utf8_lossy(&output.stderr).trim().to_string())),
    }
}

/// No server is started while this lives.
struct Policy {
    is_ours: bool,
}

impl Policy {
    fn forbid() -> Result<Policy, ServerError> {
        let is_ours = !Path::new(POLICY).exists();
        if is_ours {
            fs::write(POLICY, "#!/bin/sh\nexit 101\n").map_err(system(format!("write {POLICY}")))?;
            fs::set_permissions(POLICY, fs::Permissions::from_mode(0o755))
                .map_err(system(format!("write {POLICY}")))?;
        }
        Ok(Policy { is_ours })
    }
}

impl Drop for Policy {
    fn drop(&mut self) {
        if self.is_ours {
            // What cannot be removed forbids servers that nobody has asked for.
            let _ = fs::remove_file(POLICY);
        }
    }
}
