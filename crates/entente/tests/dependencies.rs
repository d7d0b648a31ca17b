//! What the program is made of: where dependencies come from, under which licences, and which must not be there. Needs no
//! network.

use serde_json::Value;
use std::process::Command;

/// Licences that a dependency may be under; of several to choose from, one suffices.
const LICENCES: [&str; 9] = [
    "Apache-2.0",
    "MIT",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "ISC",
    "Zlib",
    "Unicode-3.0",
    "CC0-1.0",
    "Unlicense",
];

/// Dependencies under another licence, each with the reason why that is all right.
const EXCEPTIONS: [(&str, &str, &str); 6] = [
    ("x509-certificate", "MPL-2.0", "used as it is; the licence asks for the source of changes to it only"),
    ("option-ext", "MPL-2.0", "likewise; deltalake-core finds folders with it"),
    (
        "webpki-roots",
        "CDLA-Permissive-2.0",
        "a list of authorities, which crate mysql brings; data under it may be used freely",
    ),
    ("webpki", "", "its file LICENSE is that of ISC; crate mysql checks names of servers with it"),
    ("varint-rs", "0BSD", "asks for nothing"),
    (
        "xxhash-rust",
        "BSL-1.0",
        "the Boost licence asks for its text beside the source, and for nothing in a program",
    ),
];

/// What must not come in, with what is there for it.
const BANNED: [(&str, &str); 7] = [
    ("openssl-sys", "rustls speaks TLS, so that the program needs no library beside it"),
    ("openssl", "rustls"),
    ("native-tls", "rustls"),
    ("datafusion", "our own plans are run: its physical operators are enough"),
    ("datafusion-optimizer", "a plan means what our binder and our rules say"),
    ("git2", "nothing in a node reads repositories"),
    ("rocksdb", "state and ledger have formats of their own"),
];

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

fn packages() -> Vec<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--locked"])
        .args(["--filter-platform", "x86_64-unknown-linux-gnu"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut metadata: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let Value::Array(packages) = metadata["packages"].take() else { panic!("no list of packages") };
    packages
}

fn text<'a>(package: &'a Value, field: &str) -> &'a str {
    package[field].as_str().unwrap_or_default()
}

/// Whether a licence expression leaves a choice that is allowed.
fn is_allowed(licence: &str) -> bool {
    // Old packages write `MIT/Apache-2.0`.
    let expression = spdx::Expression::parse_mode(licence, spdx::ParseMode::LAX);
    expression.is_ok_and(|expression| {
        expression
            .evaluate(|requirement| requirement.license.id().is_some_and(|id| LICENCES.contains(&id.name)))
    })
}

#[test]
fn dependencies_come_from_the_registry_under_licences_that_fit() {
    let mut wrong = Vec::new();
    for package in packages() {
        let (name, version) = (text(&package, "name"), text(&package, "version"));
        let Some(source) = package["source"].as_str() else { continue };
        if source != REGISTRY {
            wrong.push(format!("{name} {version} comes from {source}"));
        }
        let licence = text(&package, "license");
        let excepted = EXCEPTIONS.iter().any(|(excepted, under, _)| (*excepted, *under) == (name, licence));
        if !excepted && !is_allowed(licence) {
            wrong.push(format!("{name} {version} is under {licence:?}"));
        }
        if let Some((_, instead)) = BANNED.iter().find(|(banned, _)| *banned == name) {
            wrong.push(format!("{name} {version} must not be there: {instead}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn what_is_not_allowed_is_found() {
    assert!(is_allowed("MIT OR GPL-3.0-only") && is_allowed("MIT/Apache-2.0"));
    for licence in ["", "GPL-3.0-only", "MIT AND AGPL-3.0-only", "SSPL-1.0", "see LICENSE"] {
        assert!(!is_allowed(licence), "{licence}");
    }
}
