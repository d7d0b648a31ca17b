//! The node processes of a demo: started, watched, stopped with it.

use crate::CommandError;
use client::Client;
use indicatif::ProgressBar;
use node::{NodeConfig, NodeFolder};
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use types::Identity;

/// How long nodes may take until all answer.
const HEALTHY_WITHIN: Duration = Duration::from_secs(60);
/// Lines of a node's log that are shown when something fails.
const LOG_LINES: usize = 20;

/// The processes, in charter order. Each holds the reading end of our pipe and ends when it closes, so that no node
/// survives this program, however it ends.
pub(crate) struct RunningNodes {
    nodes: Vec<RunningNode>,
}

struct RunningNode {
    process: Child,
    folder: PathBuf,
    config: NodeConfig,
}

impl RunningNodes {
    pub(crate) fn start(folders: &[PathBuf]) -> Result<RunningNodes, CommandError> {
        let program = std::env::current_exe()?;
        let mut running = RunningNodes { nodes: Vec::new() };
        for folder in folders {
            let config = NodeFolder::open(folder)?.config;
            let log = File::create(folder.join("node.log"))?;
            let process = Command::new(&program)
                .args(["node", "--stop-with-input", "--dir"])
                .arg(folder)
                .stdin(Stdio::piped())
                .stdout(log.try_clone()?)
                .stderr(log)
                .spawn();
            match process {
                Ok(process) => running.nodes.push(RunningNode { process, folder: folder.clone(), config }),
                Err(error) => {
                    running.stop();
                    return Err(format!("cannot start {}: {error}", program.display()).into());
                }
            }
        }
        Ok(running)
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
    pub(crate) async fn wait_until_healthy(&mut self, clients: &[Client]) -> Result<(), CommandError> {
        let start = Instant::now();
        let spinner = ProgressBar::new_spinner().with_message("waiting for the nodes");
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
        println!("{} nodes are up after {:.1} s", self.nodes.len(), start.elapsed().as_secs_f64());
        Ok(())
    }

    /// An error if a node has ended.
    pub(crate) fn check_alive(&mut self) -> Result<(), CommandError> {
        for node in &mut self.nodes {
            if let Some(status) = node.process.try_wait()? {
                return Err(format!("the node of {} has ended ({status})", node.folder.display()).into());
            }
        }
        Ok(())
    }

    /// The last lines of each node's log, when something has failed.
    pub(crate) fn print_logs(&self) {
        for node in &self.nodes {
            let path = node.folder.join("node.log");
            eprintln!("--- {}", path.display());
            last_lines(&path).iter().for_each(|line| eprintln!("{line}"));
        }
    }

    /// Ends every node and waits for it.
    pub(crate) fn stop(&mut self) {
        for node in &mut self.nodes {
            drop(node.process.stdin.take());
        }
        for mut node in self.nodes.drain(..) {
            // It ends by itself as its input has ended; an error here says that it has ended already.
            let _ = node.process.wait();
        }
    }
}

impl Drop for RunningNodes {
    fn drop(&mut self) {
        self.stop();
    }
}

fn last_lines(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LOG_LINES)..].iter().map(|line| line.to_string()).collect()
}
