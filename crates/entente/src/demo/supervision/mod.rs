//! Watches over the nodes while clients use them: says when one has ended, starts it again after a while, and says when it
//! has what the others have.

mod lifecycle;

pub(crate) use lifecycle::{Cause, Failure};

use super::nodes::{RunningNodes, last_lines};
use super::screen::Screen;
use crate::CommandError;
use client::{Client, Status};
use futures::future::join_all;
use indicatif::ProgressBar;
use lifecycle::{Condition, ENDS_MAX, Lifecycle, Standing};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// How often processes are looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// How often a node that catches up is asked how far it is.
const ASK_AGAIN: Duration = Duration::from_millis(250);
/// How often the nodes are asked for their height when there is no load that shows it.
const ASK_IDLE: Duration = Duration::from_secs(1);
/// How long a node may take to say how far it is.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);
/// A node is level with the others up to so many blocks below the highest.
const LEVEL_BLOCKS: u64 = 3;
/// A node that has not caught up by then has failed.
const CAUGHT_UP_WITHIN: Duration = Duration::from_secs(300);

/// The nodes of a demo under supervision, which ends when this is dropped.
pub(crate) struct Supervisor {
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    watched: Mutex<Watched>,
    clients: Vec<Client>,
    restart_after: Duration,
    screen: Screen,
    line: ProgressBar,
    /// There is no load, so that nobody else shows heights.
    idle: AtomicBool,
}

struct Watched {
    nodes: RunningNodes,
    lives: Vec<Lifecycle>,
    height: u64,
    /// Fewer nodes are level than decide.
    is_stuck: bool,
    /// The nodes were told to end, and are gone: there is nothing to look at any more.
    is_stopped: bool,
}

impl Supervisor {
    /// From now on, on the runtime of the caller; the nodes are healthy.
    pub(crate) fn start(
        nodes: RunningNodes,
        clients: Vec<Client>,
        restart_after: Duration,
        screen: Screen,
    ) -> Result<Supervisor, CommandError> {
        let lives = nodes.names().map(Lifecycle::new).collect();
        let watched = Watched { nodes, lives, height: 0, is_stuck: false, is_stopped: false };
        let line = screen.line("nodes")?;
        let idle = AtomicBool::new(false);
        let shared =
            Arc::new(Shared { watched: Mutex::new(watched), clients, restart_after, screen, line, idle });
        let task = tokio::spawn(watch(shared.clone()));
        Ok(Supervisor { shared, task })
    }

    /// How many are up, and what the others do.
    pub(crate) fn summary(&self) -> String {
        self.shared.watched().summary(Instant::now())
    }

    /// Name and process of every node.
    pub(crate) fn processes(&self) -> Vec<(String, Option<u32>)> {
        self.shared.watched().processes()
    }

    /// There is no load from now on: the line of the nodes shows their height.
    pub(crate) fn show_height(&self) {
        self.shared.idle.store(true, Ordering::Relaxed);
    }

    /// Ends a node at once (`kill -9`). It comes back like any other that ends.
    pub(crate) fn kill(&self, position: usize, cause: Cause) -> Result<(), CommandError> {
        let mut watched = self.shared.watched();
        let process = watched.nodes.process_id(position);
        watched.nodes.kill(position)?;
        if process.is_some() {
            self.shared.note_end(&mut watched, position, (process, "by signal 9".to_string()), cause);
        }
        Ok(())
    }

    /// Returns when every node has what the others have.
    ///
    /// # Errors
    /// One is not started again, or does not catch up.
    pub(crate) async fn wait_until_level(&self) -> Result<(), CommandError> {
        loop {
            if self.shared.watched().all_level()? {
                return Ok(());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Returns when so many nodes are given up that no quorum is left; says so.
    pub(crate) async fn no_quorum_left(&self) -> CommandError {
        loop {
            if let Some(error) = self.shared.watched().without_quorum() {
                return error.into();
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// Every end of a node since the start, by node and time.
    pub(crate) fn failures(&self) -> Vec<Failure> {
        self.shared.watched().lives.iter().flat_map(|life| life.failures().to_vec()).collect()
    }

    /// The last lines of each node's log, when something has failed.
    pub(crate) fn print_logs(&self) {
        self.shared.watched().nodes.print_logs();
    }

    /// Ends every node and waits for it.
    pub(crate) fn stop(self) {
        self.task.abort();
        self.shared.line.finish_and_clear();
        // A look that has begun goes on until it waits for something, and may wait for this lock.
        let mut watched = self.shared.watched();
        watched.is_stopped = true;
        watched.nodes.stop();
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch(shared: Arc<Shared>) {
    let mut asked = Instant::now();
    loop {
        tokio::time::sleep(LOOK_AGAIN).await;
        let due = match (shared.look(Instant::now()), shared.idle.load(Ordering::Relaxed)) {
            (true, _) => asked.elapsed() >= ASK_AGAIN,
            (false, idle) => idle && asked.elapsed() >= ASK_IDLE,
        };
        if due {
            asked = Instant::now();
            let answers =
                shared.clients.iter().map(|client| tokio::time::timeout(ANSWER_WITHIN, client.status()));
            let answers =
                join_all(answers).await.into_iter().map(|answer| answer.ok()?.ok()).collect::<Vec<_>>();
            shared.judge(&answers);
        }
        shared.show();
    }
}

impl Shared {
    fn watched(&self) -> MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes which nodes have ended and starts those that are due. True: one has to be asked how far it is.
    fn look(&self, now: Instant) -> bool {
        let mut watched = self.watched();
        if watched.is_stopped {
            return false;
        }
        for position in 0..watched.lives.len() {
            let process = watched.nodes.process_id(position);
            if let Some(how) = watched.nodes.ended(position) {
                self.note_end(&mut watched, position, (process, how), Cause::Outside);
            }
            if watched.lives[position].is_due(now) {
                self.start_again(&mut watched, position, now);
            }
        }
        watched.lives.iter().any(|life| matches!(life.condition(), Condition::CatchingUp { .. }))
    }

    fn note_end(
        &self,
        watched: &mut Watched,
        position: usize,
        (process, how): (Option<u32>, String),
        cause: Cause,
    ) {
        let process = process.map_or_else(String::new, |process| format!(" (process {process})"));
        let life = &mut watched.lives[position];
        let name = life.organisation().to_string();
        life.ended(Instant::now(), how.clone(), cause, self.restart_after);
        let what = match cause {
            Cause::Chaos => format!("--chaos killed {name}'s node{process}"),
            Cause::Leader => format!("--chaos killed {name}'s node{process} as its turn to lead came"),
            Cause::Outside => format!("{name}'s node{process} has ended {how}"),
        };
        let next = match life.condition() {
            Condition::GivenUp => watched.last_words(position),
            _ if self.restart_after.is_zero() => "It starts again.".to_string(),
            _ => format!("It starts again in {} s.", self.restart_after.as_secs()),
        };
        let consequence = watched.consequence();
        watched.is_stuck = watched.up() < watched.quorum();
        self.screen.say(format!("{what}: {consequence} {next}"));
    }

    fn start_again(&self, watched: &mut Watched, position: usize, now: Instant) {
        let name = watched.lives[position].organisation().to_string();
        match watched.nodes.restart(position) {
            Ok(()) => {
                watched.lives[position].started(now);
                let process = watched.nodes.process_id(position).unwrap_or_default();
                self.screen.say(format!("{name}'s node runs again (process {process}) and catches up."));
            }
            Err(error) => {
                self.note_end(watched, position, (None, format!("at its start: {error}")), Cause::Outside);
            }
        }
    }

    /// Holds the nodes' answers against one another.
    fn judge(&self, answers: &[Option<Status>]) {
        let now = Instant::now();
        let mut watched = self.watched();
        watched.height = answers.iter().flatten().map(|status| status.height).max().unwrap_or(watched.height);
        for position in 0..answers.len() {
            let standing = standing(answers, position);
            let life = &mut watched.lives[position];
            if !life.seen(now, &standing) {
                continue;
            }
            let (Standing::Level(height, digest), Some(failure)) = (standing, life.failures().last()) else {
                continue;
            };
            let (name, seconds) = (life.organisation().to_string(), failure.back_seconds.unwrap_or_default());
            let missed = failure.blocks_behind.unwrap_or_default();
            let digest: String = digest.chars().take(8).collect();
            let counts = watched.counts();
            let goes_on = match watched.is_stuck && watched.up() >= watched.quorum() {
                true => " The network goes on.",
                false => "",
            };
            watched.is_stuck = watched.up() < watched.quorum();
            self.screen.say(format!(
                "{name}'s node is back {seconds:.1} s after its start, {missed} blocks caught up: {counts}, \
                 the same state digest {digest}… at height {height}.{goes_on}"
            ));
        }
    }

    fn show(&self) {
        let watched = self.watched();
        let mut text = watched.summary(Instant::now());
        if self.idle.load(Ordering::Relaxed) && watched.height > 0 {
            text = format!("{text}  height {}", watched.height);
        }
        drop(watched);
        self.line.set_message(text);
        self.line.tick();
    }
}

impl Watched {
    /// Nodes that are level with the others.
    fn up(&self) -> usize {
        self.lives.iter().filter(|life| life.condition() == Condition::Level).count()
    }

    fn quorum(&self) -> usize {
        types::quorum(self.lives.len())
    }

    fn counts(&self) -> String {
        format!("{} of {} nodes", self.up(), self.lives.len())
    }

    fn processes(&self) -> Vec<(String, Option<u32>)> {
        let names = self.lives.iter().map(|life| life.organisation().to_string());
        names.enumerate().map(|(position, name)| (name, self.nodes.process_id(position))).collect()
    }

    /// What it means that so many nodes are left.
    fn consequence(&self) -> String {
        let (counts, quorum) = (self.counts(), self.quorum());
        match self.up() >= quorum {
            true => format!("{counts} go on, its clients ask the others."),
            false => format!("{counts} are fewer than a quorum of {quorum}, so the network waits."),
        }
    }

    fn summary(&self, now: Instant) -> String {
        let mut parts = vec![self.counts()];
        if self.up() < self.quorum() {
            parts.push(format!("waiting for a quorum of {}", self.quorum()));
        }
        for life in &self.lives {
            let name = life.organisation();
            parts.extend(match life.condition() {
                Condition::Level => None,
                Condition::Down { restart_at, .. } => {
                    let seconds = restart_at.saturating_duration_since(now).as_secs_f64().ceil();
                    Some(format!("{name} starts in {seconds} s"))
                }
                Condition::CatchingUp { behind: None, .. } => Some(format!("{name} starts")),
                Condition::CatchingUp { behind: Some(blocks), .. } => {
                    Some(format!("{name} is {blocks} blocks behind"))
                }
                Condition::GivenUp => Some(format!("{name} is not started again")),
            });
        }
        parts.join(", ")
    }

    /// Why a node is not started again, and where to read on.
    fn last_words(&self, position: usize) -> String {
        let ends = self.lives[position].failures().len();
        let log = self.nodes.log(position);
        let lines: String = last_lines(&log).iter().map(|line| format!("\n    {line}")).collect();
        format!(
            "It is not started again, because it has ended {ends} times, at last {ENDS_MAX} times without catching up. \
             Its log is {} and ends with:{lines}",
            log.display()
        )
    }

    fn all_level(&self) -> Result<bool, CommandError> {
        for (position, life) in self.lives.iter().enumerate() {
            match life.condition() {
                Condition::GivenUp => {
                    let name = life.organisation();
                    return Err(format!("{name}'s node is missing. {}", self.last_words(position)).into());
                }
                Condition::CatchingUp { since, .. } if since.elapsed() > CAUGHT_UP_WITHIN => {
                    let name = life.organisation();
                    return Err(format!("{name}'s node has not caught up within {CAUGHT_UP_WITHIN:?}").into());
                }
                _ => {}
            }
        }
        Ok(self.up() == self.lives.len())
    }

    /// An error where a quorum can never be up again.
    fn without_quorum(&self) -> Option<String> {
        let given_up = |life: &&Lifecycle| life.condition() == Condition::GivenUp;
        let gone: Vec<&str> = self.lives.iter().filter(given_up).map(Lifecycle::organisation).collect();
        (self.lives.len() - gone.len() < self.quorum()).then(|| {
            format!(
                "the nodes of {} end again and again; the others are fewer than a quorum of {}",
                gone.join(" and "),
                self.quorum()
            )
        })
    }
}

/// What the answer of the node at `position` says, held against that of the others' which is furthest.
fn standing(answers: &[Option<Status>], position: usize) -> Standing {
    let others = answers.iter().enumerate().filter(|(other, _)| *other != position);
    let furthest = others.filter_map(|(_, answer)| answer.as_ref()).max_by_key(|status| status.height);
    let (Some(own), Some(furthest)) = (&answers[position], furthest) else { return Standing::Unknown };
    if own.not_serving.is_some() {
        return Standing::Unknown;
    }
    let behind = furthest.height.saturating_sub(own.height);
    let there = |height| furthest.recent.iter().find(|at| at.height == height);
    let common = own.recent.iter().rev().find_map(|at| Some((at, there(at.height)?)));
    match common {
        Some((here, there)) if behind <= LEVEL_BLOCKS => match here.state_digest == there.state_digest {
            true => Standing::Level(here.height, here.state_digest.clone()),
            false => Standing::Differs(here.height),
        },
        _ => Standing::Behind(behind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use client::StatusAt;

    fn status(height: u64, digest: &str) -> Option<Status> {
        let recent = (height.saturating_sub(9)..=height)
            .map(|height| StatusAt { height, state_digest: format!("{digest} {height}") })
            .collect();
        Some(Status { height, certified_height: height, recent, ..Status::default() })
    }

    #[test]
    fn a_node_is_level_when_it_has_the_same_digest_at_one_of_the_newest_heights() {
        let node = |own: Option<Status>| standing(&[own, None, status(100, "a"), status(90, "a")], 0);
        assert_eq!(node(None), Standing::Unknown);
        assert_eq!(node(status(40, "a")), Standing::Behind(60));
        assert_eq!(node(status(96, "a")), Standing::Behind(4));
        assert_eq!(node(status(97, "a")), Standing::Level(97, "a 97".to_string()));
        assert_eq!(node(status(102, "a")), Standing::Level(100, "a 100".to_string()));
        assert_eq!(node(status(98, "b")), Standing::Differs(98));
        let mut silent = status(100, "a").expect("some");
        silent.not_serving = Some("it starts".to_string());
        assert_eq!(node(Some(silent)), Standing::Unknown);
        assert_eq!(standing(&[status(100, "a"), None, None, None], 0), Standing::Unknown, "it is alone");
    }
}
