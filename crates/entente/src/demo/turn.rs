//! Who leads, or whose turn to lead comes next, read from who proposed the newest blocks.

use super::prepare::{explain, first_column};
use crate::CommandError;
use std::time::{Duration, Instant};
use tokio_postgres::Client;

/// How often the newest block is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// Returns when all `nodes` take part and the newest block is of the node before that of `organisation`.
///
/// # Errors
/// Not all nodes take part within this time, or the session broke.
pub(crate) async fn await_turn(
    session: &Client,
    (organisation, nodes): (&str, usize),
    within: Duration,
) -> Result<(), CommandError> {
    let start = Instant::now();
    // In so many blocks every node that takes part has proposed one.
    let recent_blocks = 2 * nodes;
    let statement = format!("SELECT proposer FROM entente.blocks ORDER BY height DESC LIMIT {recent_blocks}");
    loop {
        let rows = session.simple_query(&statement).await.map_err(|error| explain(&statement, &error))?;
        let recent: Vec<String> = rows.iter().filter_map(first_column).collect();
        if is_turn_of(organisation, nodes, &recent) {
            return Ok(());
        }
        if start.elapsed() > within {
            return Err(format!(
                "expected blocks of all {nodes} nodes within {within:?}; the newest are of {}",
                recent.join(", ")
            )
            .into());
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Who has proposed the newest block: who leads, where leaders do not take turns.
///
/// # Errors
/// The session broke, or there is no block.
pub(crate) async fn leader(session: &Client) -> Result<String, CommandError> {
    let statement = "SELECT proposer FROM entente.blocks ORDER BY height DESC LIMIT 1";
    let rows = session.simple_query(statement).await.map_err(|error| explain(statement, &error))?;
    Ok(rows.iter().find_map(first_column).ok_or("expected a block, and who proposed it")?)
}

/// Whether `name` leads next, by the proposers of the newest blocks, the newest first: all have proposed, and the last time
/// it was after the one that has proposed now.
fn is_turn_of(name: &str, nodes: usize, recent: &[String]) -> bool {
    let all = recent.iter().collect::<std::collections::BTreeSet<_>>().len() == nodes;
    let own = recent.iter().position(|proposer| proposer == name);
    all && own.is_some_and(|own| own > 0 && recent.get(own + 1) == recent.first())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_comes_after_the_same_node_as_before() {
        let is_turn_of =
            |name, names: &str| is_turn_of(name, 4, &names.chars().map(String::from).collect::<Vec<_>>());
        // The newest first: d follows c.
        assert!(is_turn_of("d", "cbadcbad"));
        assert!(!is_turn_of("d", "badcbadc"), "c comes before it");
        assert!(!is_turn_of("c", "cbadcbad"), "it has just had its turn");
        assert!(!is_turn_of("d", "cbacbacb"), "d does not take part");
        assert!(!is_turn_of("d", ""));
    }
}
