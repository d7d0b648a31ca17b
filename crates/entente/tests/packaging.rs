//! What operators install: the Debian package with its unit, the image, and the manifests for four organisations. All are made of the
//! program under test, and tried as far as that goes without systemd as the first process, an engine of containers, and a cluster.

mod support;

use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::ENTENTE;
use support::programs::{command, packages, run};

/// Exposure that `systemd-analyze security` may find, of 10.
const EXPOSURE_MAX: f64 = 2.0;
/// Where the node's folder is, in the package as in the image.
const NODE: &str = "/var/lib/entente/node";

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging")
}

fn text(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The program understands these arguments: what stands before `--help` is read first.
fn understands(arguments: &[&str]) {
    run(Command::new(ENTENTE).args(arguments).arg("--help"));
}

/// What `systemd-analyze` finds in a unit of this text.
fn exposure(unit: &str) -> f64 {
    let place = tempfile::tempdir().expect("a temporary folder");
    let path = place.path().join("entente.service");
    fs::write(&path, unit).expect("written");
    let said = run(command("systemd-analyze", &["security", "--offline=true", "--no-pager"]).arg(&path));
    let level = said.lines().find_map(|line| line.split("entente.service: ").nth(1));
    level.and_then(|rest| rest.split(' ').next()?.parse().ok()).unwrap_or_else(|| panic!("no level: {said}"))
}

#[test]
fn the_unit_is_hardened() {
    if !test_machine::required("systemd-analyze") {
        return;
    }
    let unit = text(packaging().join("systemd/entente.service"));
    let level = exposure(&unit);
    assert!(level < EXPOSURE_MAX, "exposure {level}");
    let open = unit.lines().filter(|line| !line.starts_with("Protect") && !line.starts_with("Capability"));
    let level = exposure(&open.collect::<Vec<_>>().join("\n"));
    assert!(level > EXPOSURE_MAX, "nothing is found where much is open: {level}");
}

#[test]
fn the_unit_starts_what_the_program_knows_and_has_no_unknown_setting() {
    if !test_machine::required("systemd-analyze") {
        return;
    }
    let unit = text(packaging().join("systemd/entente.service"));
    let start =
        unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/entente ")).expect("there");
    understands(&start.replace(" $ENTENTE_NODE_OPTIONS", "").split(' ').collect::<Vec<_>>());
    let environment = text(packaging().join("systemd/environment"));
    let options = environment.lines().find_map(|line| line.strip_prefix("#ENTENTE_NODE_OPTIONS="));
    let options: Vec<&str> = options.expect("an example").split(' ').collect();
    understands(&[&["node", "--dir", NODE], &options[..]].concat());

    let place = tempfile::tempdir().expect("a temporary folder");
    let verified = |unit: &str| {
        let path = place.path().join("entente.service");
        fs::write(&path, unit.replace("/usr/bin/entente", ENTENTE)).expect("written");
        let mut verify = command("systemd-analyze", &["verify", "--man=no"]);
        let output = verify.arg(&path).output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        said.lines().filter(|line| line.contains("entente.service")).map(String::from).collect::<Vec<_>>()
    };
    assert_eq!(verified(&unit), Vec::<String>::new());
    let misspelt = verified(&unit.replace("RestartSec=", "RestratSec="));
    assert!(misspelt.iter().any(|line| line.contains("RestratSec")), "{misspelt:?}");
}

/// A folder into which packages are installed as into a machine, by nobody in particular.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Machine {
        let place = tempfile::tempdir().expect("a temporary folder");
        let database = place.path().join("var/lib/dpkg");
        for folder in ["updates", "info", "triggers"] {
            fs::create_dir_all(database.join(folder)).expect("created");
        }
        for file in ["status", "available"] {
            fs::write(database.join(file), "").expect("written");
        }
        Machine(place)
    }

    fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn dpkg(&self, arguments: &[&str]) -> String {
        // Its scripts find the folder in DPKG_ROOT. Owners are kept for as long as one command runs.
        let mut dpkg = command("fakeroot", &["dpkg", "--no-triggers", "--force-not-root", "--force-depends"]);
        dpkg.arg("--force-script-chrootless").arg(format!("--root={}", self.0.path().display()));
        run(dpkg.args(arguments))
    }
}

fn build_package(to: &Path) -> PathBuf {
    let mut build = Command::new(packaging().join("deb/build.sh"));
    // A program for tests is large, and nobody keeps this package.
    build.arg(ENTENTE).arg(to).env("COMPRESSION", "none").env("SOURCE_DATE_EPOCH", "1700000000");
    PathBuf::from(run(&mut build).trim())
}

fn same_bytes(one: &Path, other: &Path) -> bool {
    fs::metadata(one).expect("there").len() > 1_000_000
        && Command::new("cmp").arg(one).arg(other).status().expect("cmp runs").success()
}

#[test]
fn the_debian_package_installs_upgrades_and_never_takes_a_ledger_away() {
    if !["dpkg-deb", "fakeroot", "systemd-analyze"].into_iter().all(test_machine::required) {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary folder");
    let package = build_package(&place.path().join("one"));
    assert!(
        same_bytes(&package, &build_package(&place.path().join("two"))),
        "another build is another package"
    );
    for line in run(Command::new("dpkg-deb").arg("--contents").arg(&package)).lines() {
        assert!(line.contains(" root/root "), "{line}");
        let mode = line.split(' ').next().expect("a mode");
        assert!(["drwxr-xr-x", "-rwxr-xr-x", "-rw-r--r--"].contains(&mode), "{line}");
    }

    let machine = Machine::new();
    let package = package.to_string_lossy().into_owned();
    machine.dpkg(&["--install", &package]);
    let said = run(Command::new(machine.path("usr/bin/entente")).arg("--version"));
    assert!(said.starts_with("entente "), "{said}");
    let users = text(machine.path("etc/passwd"));
    assert!(users.contains(":Entente node:/var/lib/entente:/usr/sbin/nologin"), "{users}");
    for file in ["usr/lib/systemd/system/entente.service", "usr/share/entente/prometheus/alerts.yaml"] {
        assert!(machine.path(file).exists(), "{file}");
    }
    assert!(machine.path("usr/share/doc/entente/operating.md.gz").exists());
    let manual = run(Command::new("zcat").arg(machine.path("usr/share/man/man1/entente.1.gz")));
    let commands: Vec<&str> = manual.lines().filter_map(|line| line.strip_prefix(".B entente ")).collect();
    assert!(commands.len() >= 6, "{commands:?}");
    commands.into_iter().filter(|command| !command.contains('-')).for_each(|command| understands(&[command]));

    // What an operator has, and has changed.
    let kept =
        ["var/lib/entente/node/node.key", "var/lib/entente/node/ledger/blocks", "etc/entente/node.toml"];
    for file in kept {
        fs::create_dir_all(machine.path(file).parent().expect("a folder")).expect("created");
        fs::write(machine.path(file), "mine").expect("written");
    }
    let environment = machine.path("etc/entente/environment");
    fs::write(&environment, "RUST_LOG=info\n").expect("written");
    machine.dpkg(&["--install", &package]);
    assert_eq!(text(&environment), "RUST_LOG=info\n", "an upgrade keeps what was changed");
    machine.dpkg(&["--remove", "entente"]);
    assert!(!machine.path("usr/bin/entente").exists() && environment.exists());
    let said = machine.dpkg(&["--purge", "entente"]);
    assert!(said.contains("/var/lib/entente stays"), "{said}");
    assert!(!environment.exists());
    for file in kept {
        assert_eq!(text(machine.path(file)), "mine", "{file}");
    }
}

/// An image, unpacked.
struct Image {
    config: Value,
    /// The files that it has.
    root: PathBuf,
}

fn build_image(program: &Path, to: &Path, arguments: &[&str]) -> std::process::Output {
    let mut build = Command::new("python3");
    build.arg(packaging().join("image/build.py")).args(arguments).arg(program).arg(to);
    build.output().expect("python3 runs")
}

/// The image of the program under test, with every digest and size in it checked.
fn image(place: &Path) -> Image {
    let output = build_image(Path::new(ENTENTE), place, &["--dynamic"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let (archive, digest) = said.trim().split_once('\n').expect("two lines");
    let (layout, root) = (place.join("layout"), place.join("root"));
    for folder in [&layout, &root] {
        fs::create_dir_all(folder).expect("created");
    }
    run(Command::new("tar").arg("-xf").arg(archive).arg("-C").arg(&layout));
    let json = |path: &Path| serde_json::from_str::<Value>(&text(path)).expect("JSON");
    // The file that a descriptor means.
    let blob = |descriptor: &Value| {
        let digest = descriptor["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:"));
        let path = layout.join("blobs/sha256").join(digest.expect("a digest"));
        assert!(run(Command::new("sha256sum").arg(&path)).starts_with(digest.expect("a digest")));
        assert_eq!(descriptor["size"], path.metadata().expect("it is there").len(), "{descriptor}");
        path
    };
    assert_eq!(json(&layout.join("oci-layout"))["imageLayoutVersion"], "1.0.0");
    let index = json(&layout.join("index.json"));
    assert_eq!(index["manifests"][0]["digest"], digest);
    let manifest = json(&blob(&index["manifests"][0]));
    let (config_path, layer) = (blob(&manifest["config"]), blob(&manifest["layers"][0]));
    let config = json(&config_path);
    assert_eq!(
        config["rootfs"]["diff_ids"][0], manifest["layers"][0]["digest"],
        "the layer is not compressed"
    );
    // What older versions of Docker read.
    let listed = &json(&layout.join("manifest.json"))[0];
    assert_eq!(layout.join(listed["Config"].as_str().expect("a path")), config_path);
    assert_eq!(layout.join(listed["Layers"][0].as_str().expect("a path")), layer);
    run(Command::new("tar").arg("-xf").arg(layer).arg("-C").arg(&root).arg("--no-same-owner"));
    Image { config: config["config"].clone(), root }
}

fn strings(value: &Value) -> Vec<&str> {
    value.as_array().expect("a list").iter().map(|one| one.as_str().expect("a text")).collect()
}

#[test]
fn the_image_is_whole_runs_as_nobody_special_and_is_the_same_each_time() {
    if !test_machine::required("python3") {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary folder");
    let Image { config, root } = image(&place.path().join("one"));
    image(&place.path().join("two"));
    let archive = |which: &str| place.path().join(which).join("entente-image.tar");
    assert!(same_bytes(&archive("one"), &archive("two")), "another build is another image");
    let said = run(Command::new(root.join("usr/bin/entente")).env_clear().arg("--version"));
    assert_eq!(said.trim(), format!("entente {}", env!("CARGO_PKG_VERSION")));
    let user = config["User"].as_str().expect("a user").split(':').next().expect("a number");
    assert!(user.parse::<u32>().is_ok_and(|user| user > 0), "{user}");
    assert!(text(root.join("etc/passwd")).contains(&format!("entente:x:{user}:")));
    assert_eq!(strings(&config["Entrypoint"]), ["/usr/bin/entente"]);
    understands(&strings(&config["Cmd"]));
    assert!(root.join(NODE.trim_start_matches('/')).is_dir());
}

#[test]
fn only_a_program_that_needs_no_loader_becomes_an_image() {
    if !["python3", "cc"].into_iter().all(test_machine::required) {
        return;
    }
    let place = tempfile::tempdir().expect("a temporary folder");
    let refused = build_image(Path::new(ENTENTE), place.path(), &[]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("build it with `make dist`"), "{said}");
    let (source, program) = (place.path().join("entente.c"), place.path().join("entente"));
    fs::write(&source, "#include <stdio.h>\nint main(void) { puts(\"entente 9.9.9\"); }\n").expect("written");
    run(Command::new("cc").arg("-static").arg("-o").arg(&program).arg(source));
    let taken = build_image(&program, place.path(), &[]);
    assert!(taken.status.success(), "{}", String::from_utf8_lossy(&taken.stderr));
    fs::write(&program, "#!/bin/sh\n").expect("written");
    let refused = build_image(&program, place.path(), &[]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("expected a program for a 64-bit Linux"));
}

/// The manifests, each held against its schema; `None` where what reads them cannot be had and may be left out.
fn manifests() -> Option<Value> {
    if !test_machine::required("python3") {
        return None;
    }
    let folder = packages("manifests", "python3", |folder| {
        let mut venv = command("python3", &["-m", "venv"]);
        venv.arg(folder);
        let install = ["install", "--quiet", "--disable-pip-version-check"];
        let mut schemas = command(folder.join("bin/pip"), &install);
        schemas.arg("kubernetes-validate==1.37.0");
        // Its schema is all that is needed of it.
        let mut compose = command(folder.join("bin/pip"), &install);
        compose.args(["--no-deps", "docker-compose==1.29.2"]);
        vec![venv, schemas, compose]
    })?;
    let python = folder.join("bin/python");
    let find = "import importlib.util as u; print(u.find_spec('compose').submodule_search_locations[0])";
    let compose = run(Command::new(&python).args(["-c", find]));
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/packaging/manifests.py");
    let mut check = Command::new(&python);
    check.arg(script).arg(packaging()).arg(Path::new(compose.trim()).join("config/compose_spec.json"));
    Some(serde_json::from_str(&run(&mut check)).expect("JSON"))
}

/// The names of files that are put into the node's folder, of mounts with these paths.
fn mounted<'a>(targets: impl Iterator<Item = &'a str>) -> BTreeSet<String> {
    let files = targets.filter_map(|target| target.strip_prefix(NODE)?.strip_prefix('/'));
    files.map(String::from).collect()
}

/// The files that a service of the compose file puts into the node's folder.
fn mounted_by_compose(service: &Value) -> BTreeSet<String> {
    let lists = ["configs", "secrets"].map(|list| service[list].as_array().expect("a list"));
    mounted(lists.into_iter().flatten().map(|one| one["target"].as_str().expect("a path")))
}

#[test]
fn manifests_hold_four_organisations_apart_and_say_what_the_image_says() {
    let Some(manifests) = manifests() else { return };
    let place = tempfile::tempdir().expect("a temporary folder");
    let config = image(place.path()).config;
    let ports: BTreeSet<u64> = config["ExposedPorts"].as_object().expect("ports").keys().map(port).collect();
    assert_eq!(ports, BTreeSet::from([7000, 7100, 7200]));

    let compose = &manifests["compose"];
    let services = compose["services"].as_object().expect("services");
    assert_eq!(services.keys().collect::<Vec<_>>(), ["org1", "org2", "org3", "org4"]);
    let mut used = BTreeSet::new();
    for (name, service) in services {
        assert_eq!(strings(&service["command"]), strings(&config["Cmd"]));
        assert_eq!(strings(&service["volumes"]), [format!("{name}:{NODE}")]);
        assert_eq!(strings(&service["networks"]), ["members", name.as_str()]);
        for published in strings(&service["ports"]) {
            assert!(published.starts_with("127.0.0.1:") && used.insert(published), "{published}");
            assert!(ports.contains(&port(published.rsplit(':').next().expect("a port"))), "{published}");
        }
        for list in ["configs", "secrets"] {
            for one in service[list].as_array().expect("a list") {
                let source = one["source"].as_str().expect("a name");
                let file = compose[list][source]["file"].as_str().expect("a file");
                let target = one["target"].as_str().expect("a path").rsplit('/').next().expect("a name");
                assert!(file.ends_with(&format!("/{name}/{target}")), "{name}: {file}");
            }
        }
    }
    let health = strings(&services["org1"]["healthcheck"]["test"]);
    assert_eq!(health[..2], ["CMD", "/usr/bin/entente"]);
    understands(&health[2..]);

    let first = text(packaging().join("kubernetes/org1.yaml"));
    for other in ["org2", "org3", "org4"] {
        let found = text(packaging().join(format!("kubernetes/{other}.yaml")));
        assert_eq!(found, first.replace("org1", other), "{other}.yaml differs in more than the name");
    }
    let pod = &manifests["org1"].as_array().and_then(|all| all.last()).expect("a document")["spec"]["template"]
        ["spec"];
    let container = &pod["containers"][0];
    assert_eq!(strings(&container["args"]), strings(&config["Cmd"]));
    assert_eq!(container["image"], format!("entente:{}", env!("CARGO_PKG_VERSION")));
    assert!(
        compose["services"]["org1"]["image"].as_str().is_some_and(|name| name.contains(&container_image()))
    );
    let listed = container["ports"].as_array().expect("ports").iter();
    assert_eq!(
        listed.map(|one| one["containerPort"].as_u64().expect("a port")).collect::<BTreeSet<_>>(),
        ports
    );
    let user = pod["securityContext"]["runAsUser"].as_u64().expect("a user");
    assert_eq!(config["User"], format!("{user}:{user}"));
    // Plain text is for the machine itself.
    for probe in ["startupProbe", "readinessProbe"] {
        assert_eq!(container[probe]["httpGet"]["scheme"], "HTTPS", "{probe}");
    }
    let mounts = container["volumeMounts"].as_array().expect("mounts").iter();
    let mounts = mounted(mounts.map(|mount| mount["mountPath"].as_str().expect("a path")));
    assert_eq!(mounts, mounted_by_compose(&services["org1"]), "one network, founded once, fits both");
}

/// Of `7000/tcp`, `7000`.
fn port(text: impl AsRef<str>) -> u64 {
    text.as_ref().trim_end_matches("/tcp").parse().expect("a port")
}

fn container_image() -> String {
    format!("entente:{}", env!("CARGO_PKG_VERSION"))
}

/// Nodes that run until they are dropped.
struct Nodes(Vec<Child>);

impl Drop for Nodes {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// What a node answers over TLS to whoever looks at no certificate, as probes of Kubernetes do: the status and the text.
async fn ask(host: &str, path: &str) -> Option<(u16, String)> {
    let client = reqwest::Client::builder().tls_danger_accept_invalid_certs(true).build().expect("a client");
    let response = client.get(format!("https://{host}:7200{path}")).send().await.ok()?;
    Some((response.status().as_u16(), response.text().await.ok()?))
}

/// Four hosts of this machine that no other test uses: the ports of manifests are always the same.
fn hosts() -> [String; 4] {
    let (id, mut next) = (std::process::id(), 0..4);
    [(); 4].map(|()| format!("127.{}.{}.{}", 64 + id / 256 % 64, id % 256, 11 + next.next().expect("four")))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trial_network_runs_from_what_the_manifests_mount_and_logs_objects() {
    let Some(manifests) = tokio::task::block_in_place(manifests) else { return };
    let (place, hosts) = (tempfile::tempdir().expect("a temporary folder"), hosts());
    let mut found = Command::new(packaging().join("found-trial.sh"));
    run(found.arg(ENTENTE).arg(place.path().join("trial")).args(&hosts));
    let mut nodes = Nodes(Vec::new());
    for (at, host) in hosts.iter().enumerate() {
        let name = format!("org{}", at + 1);
        // As in a container: an empty volume, and the files that are mounted into it.
        let folder = place.path().join(&name);
        fs::create_dir(&folder).expect("created");
        let service = &manifests["compose"]["services"][&name];
        for file in mounted_by_compose(service) {
            fs::copy(place.path().join("trial").join(&name).join(&file), folder.join(&file))
                .expect("founded");
        }
        let log = fs::File::create(place.path().join(format!("{name}.log"))).expect("created");
        let arguments = strings(&service["command"]);
        let arguments =
            arguments.into_iter().map(|one| if one == NODE { folder.as_os_str() } else { one.as_ref() });
        let mut start = Command::new(ENTENTE);
        start.args(arguments).env_remove("RUST_LOG").stdout(log.try_clone().expect("a handle")).stderr(log);
        let socket = UnixDatagram::bind(place.path().join(format!("{name}.notify"))).expect("bound");
        socket.set_read_timeout(Some(Duration::from_secs(60))).expect("set");
        start.env("NOTIFY_SOCKET", place.path().join(format!("{name}.notify"))).stdin(Stdio::null());
        nodes.0.push(start.spawn().expect("it starts"));
        // What systemd waits for.
        let mut heard = [0; 64];
        let length = tokio::task::block_in_place(|| socket.recv(&mut heard)).expect("the node tells");
        assert_eq!(&heard[..length], b"READY=1\n");
        assert!(ask(host, "/status").await.is_some(), "{name} is up and answers");
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    for host in &hosts {
        while ask(host, "/health").await != Some((200, "ok\n".to_string())) {
            assert!(Instant::now() < deadline, "{host} does not serve");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }
    let addresses: Vec<String> = hosts.iter().map(|host| format!("{host}:7200")).collect();
    let serving = |ports: &[String]| {
        let mut status = Command::new(ENTENTE);
        status.args(["status", "--serving"]).args(ports).output().expect("it runs").status.success()
    };
    assert!(serving(&addresses));
    assert!(!serving(&[addresses[0].clone(), "127.0.0.1:1".to_string()]), "one does not answer");

    // The first one is told to stop, as a unit is.
    run(Command::new("kill").args(["-TERM", &nodes.0[0].id().to_string()]));
    assert!(nodes.0[0].wait().expect("it ends").success());
    let log = text(place.path().join("org1.log"));
    let events: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let up = events.iter().find(|event| event["message"] == "the node is up").expect("it says so");
    assert_eq!((&up["level"], &up["organisation"]), (&"INFO".into(), &"org1".into()), "{up}");
    assert_eq!((&up["target"], &up["height"]), (&"entente::commands::node".into(), &0.into()), "{up}");
    let time = up["timestamp"].as_str().expect("a time");
    assert!(time.len() == "2026-01-01T00:00:00.000000Z".len() && time.ends_with('Z'), "{time}");
}

#[test]
fn a_node_that_cannot_start_says_so_in_the_format_that_was_asked_for() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let said = |log: &str| {
        let mut node = Command::new(ENTENTE);
        node.args(["node", "--log", log, "--dir"]).arg(place.path()).env_remove("RUST_LOG");
        let output = node.output().expect("it runs");
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let event: Value = serde_json::from_str(&said("json")).expect("one object");
    assert_eq!(event["level"], "ERROR");
    assert!(event["message"].as_str().is_some_and(|message| message.contains("charter.toml")), "{event}");
    assert!(said("text").starts_with("entente: "));
    assert!(said("yaml").contains("possible values: text, json"));
}
