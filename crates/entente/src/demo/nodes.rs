//! The node processes of a network on this machine: started, watched, killed, stopped with this program.

use super::screen::Screen;
use crate::CommandError;
use client::Client;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use node::{NodeConfig, NodeFolder};
use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use types::Identity;

/// How long nodes may take until all answer.
const HEALTHY_WITHIN: Duration = Duration::from_secs(60);
/// Lines of a node's log that are shown when something fails.
const LOG_LINES: usize = 20;

/// The processes, in charter order. Each holds the reading end of our pipe and ends when it closes, so that no node
/// survives this program, however it ends. Each is in a process group of its own, so that Ctrl-C reaches this program only.
pub(crate) struct RunningNodes {
    /// What runs as a node.
    program: PathBuf,
    nodes: Vec<RunningNode>,
    /// Nodes that hold schemas for one of these.
    holders: Vec<Child>,
}

struct RunningNode {
    /// Name of its organisation.
    name: String,
    /// Nothing while the node is down.
    process: Option<Child>,
    folder: PathBuf,
    config: NodeConfig,
}

impl RunningNode {
    fn new(program: &Path, folder: &Path) -> Result<RunningNode, CommandError> {
        let opened = NodeFolder::open(folder)?;
        let name = opened.organisation_name().to_string();
        let mut node =
            RunningNode { name, process: None, folder: folder.to_path_buf(), config: opened.config };
        node.start(program)?;
        Ok(node)
    }

    /// What it logs goes behind what it has logged before.
    fn start(&mut self, program: &Path) -> Result<(), CommandError> {
        let log = File::options().create(true).append(true).open(self.log())?;
        let process = spawn(program, &self.folder, log)?;
        self.process = Some(process);
        Ok(())
    }

    fn log(&self) -> PathBuf {
        self.folder.join("node.log")
    }
}

/// Starts a node, which ends with this program.
fn spawn(program: &Path, folder: &Path, log: File) -> Result<Child, CommandError> {
    let process = Command::new(program)
        .args(["node", "--stop-with-input", "--dir"])
        .arg(folder)
        .stdin(Stdio::piped())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0)
        .spawn();
    Ok(process.map_err(|error| format!("cannot start {}: {error}", program.display()))?)
}

impl RunningNodes {
    /// This program runs as nodes, or `program`, which may be another build of it.
    pub(crate) fn start(folders: &[PathBuf], program: Option<&Path>) -> Result<RunningNodes, CommandError> {
        let program = program.map_or_else(std::env::current_exe, |program| Ok(program.to_path_buf()))?;
        let mut running = RunningNodes { program, nodes: Vec::new(), holders: Vec::new() };
        // Where one does not start, dropping `running` ends the others.
        running.start_more(folders)?;
        Ok(running)
    }

    /// Starts more nodes.
    pub(crate) fn start_more(&mut self, folders: &[PathBuf]) -> Result<(), CommandError> {
        for folder in folders {
            self.nodes.push(RunningNode::new(&self.program, folder)?);
        }
        Ok(())
    }

    /// Starts a node that holds schemas for one of these.
    pub(crate) fn start_holder(&mut self, folder: &Path) -> Result<(), CommandError> {
        let log = File::options().create(true).append(true).open(folder.join("node.log"))?;
        self.holders.push(spawn(&self.program, folder, log)?);
        Ok(())
    }

    /// Ends such a node and starts it again.
    pub(crate) fn restart_holder(&mut self, position: usize, folder: &Path) -> Result<(), CommandError> {
        self.holders[position].kill()?;
        self.holders[position].wait()?;
        let log = File::options().create(true).append(true).open(folder.join("node.log"))?;
        self.holders[position] = spawn(&self.program, folder, log)?;
        Ok(())
    }

    /// Stops a node in good order, as its operator does, and waits until it has ended.
    pub(crate) fn interrupt(&mut self, position: usize) -> Result<(), CommandError> {
        if let Some(mut process) = self.nodes[position].process.take() {
            // Waiting closes its input, at whose end it would end at once.
            let input = process.stdin.take();
            kill(Pid::from_raw(process.id() as i32), Signal::SIGINT)?;
            process.wait()?;
            drop(input);
        }
        Ok(())
    }

    /// The processes of nodes that hold schemas, in the order in which they were started.
    pub(crate) fn holder_ids(&self) -> impl Iterator<Item = u32> + '_ {
        self.holders.iter().map(Child::id)
    }

    /// Ends a node at once, as a power cut would (`kill -9`), and waits until it is gone.
    pub(crate) fn kill(&mut self, position: usize) -> Result<(), CommandError> {
        if let Some(mut process) = self.nodes[position].process.take() {
            process.kill()?;
            process.wait()?;
        }
        Ok(())
    }

    /// How a node has ended by itself, or by somebody else, since this was asked last; in words that follow "has ended".
    pub(crate) fn ended(&mut self, position: usize) -> Option<String> {
        let node = &mut self.nodes[position];
        let how = match node.process.as_mut()?.try_wait() {
            Ok(None) => return None,
            Ok(Some(status)) => ending(status),
            Err(error) => format!("and the system does not tell how: {error}"),
        };
        node.process = None;
        Some(how)
    }

    /// Starts a node that has ended.
    pub(crate) fn restart(&mut self, position: usize) -> Result<(), CommandError> {
        self.kill(position)?;
        self.nodes[position].start(&self.program)
    }

    /// Names of the organisations, in charter order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|node| node.name.as_str())
    }

    /// Where a node writes what it does.
    pub(crate) fn log(&self, position: usize) -> PathBuf {
        self.nodes[position].log()
    }

    /// The process of a node; nothing while it is down.
    pub(crate) fn process_id(&self, position: usize) -> Option<u32> {
        self.nodes[position].process.as_ref().map(Child::id)
    }

    /// A client per gateway.
    pub(crate) fn clients(&self, identities: &[Identity]) -> Result<Vec<Client>, CommandError> {
        let gateways = self.nodes.iter().zip(identities);
        let clients = gateways
            .map(|(node, identity)| Client::new(&format!("http://{}", node.config.http), identity.clone()));
        Ok(clients.collect::<Result<_, _>>()?)
    }

    pub(crate) fn postgres_addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(|node| node.config.postgres).collect()
    }

    /// Waits until every node serves and the network has ordered its first block.
    pub(crate) async fn wait_until_healthy(
        &mut self,
        clients: &[Client],
        screen: &Screen,
    ) -> Result<(), CommandError> {
        let start = Instant::now();
        let spinner = screen.line("nodes")?;
        spinner.set_message("waiting until all are up");
        for client in clients {
            loop {
                self.check_alive()?;
                spinner.tick();
                let last = match client.status().await {
                    Ok(status) if status.not_serving.is_none() && status.height > 0 => break,
                    Ok(status) => status.not_serving.unwrap_or_else(|| "it has no block yet".to_string()),
                    Err(error) => error.to_string(),
                };
                if start.elapsed() > HEALTHY_WITHIN {
                    let url = client.url();
                    return Err(format!("{url} is not healthy after {HEALTHY_WITHIN:?}: {last}").into());
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        spinner.finish_and_clear();
        screen.say(format!("{} nodes are up after {:.1} s", self.nodes.len(), start.elapsed().as_secs_f64()));
        Ok(())
    }

    /// An error if a node has ended that was not killed.
    pub(crate) fn check_alive(&mut self) -> Result<(), CommandError> {
        for node in &mut self.nodes {
            let Some(process) = &mut node.process else { continue };
            if let Some(status) = process.try_wait()? {
                return Err(format!("the node of {} has ended ({status})", node.folder.display()).into());
            }
        }
        Ok(())
    }

    /// The last lines of each node's log, when something has failed.
    pub(crate) fn print_logs(&self) {
        for node in &self.nodes {
            let path = node.log();
            eprintln!("--- {}", path.display());
            last_lines(&path).iter().for_each(|line| eprintln!("{line}"));
        }
    }

    /// Ends every node and waits for it.
    pub(crate) fn stop(&mut self) {
        let mut processes: Vec<Child> = self.nodes.drain(..).filter_map(|node| node.process).collect();
        processes.append(&mut self.holders);
        for process in &mut processes {
            drop(process.stdin.take());
        }
        for mut process in processes {
            // It ends by itself as its input has ended; an error here says that it has ended already.
            let _ = process.wait();
        }
    }
}

impl Drop for RunningNodes {
    fn drop(&mut self) {
        self.stop();
    }
}

/// How a process has ended, in words that follow "has ended".
fn ending(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("by signal {signal}"),
        (None, Some(code)) => format!("with exit code {code}"),
        (None, None) => status.to_string(),
    }
}

/// The end of a log.
pub(crate) fn last_lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].iter().map(|line| line.to_string()).collect()
}
