//! Before a node starts: whether a process with its key runs already where the charter says that the node is. A folder that was
//! copied to another machine does not become a second voter so, as long as the first one can be asked.

use crate::NodeError;
use crate::ask::Asked;
use client::NodeKey;
use crypto::SecretKey;
use std::time::Duration;
use types::Charter;

/// Who does not answer within this time is taken for not there.
const PATIENCE: Duration = Duration::from_secs(2);

/// Refuses to go on where another process has the key. This process must not listen yet.
///
/// # Errors
/// [`NodeError::RunsElsewhere`].
pub(crate) async fn refuse(charter: &Charter, node_key: &SecretKey) -> Result<(), NodeError> {
    let key = node_key.public_key();
    let Some((position, whom)) =
        charter.member(&key).and_then(|position| Some((position, NodeKey::of(charter, position)?)))
    else {
        return Ok(());
    };
    let member = &charter.organisations[position];
    // Who answers and has another key is not a twin.
    let Ok(asked) = Asked::new(&member.gateway, whom) else { return Ok(()) };
    match tokio::time::timeout(PATIENCE, asked.presence()).await {
        Ok(Ok(answer)) if answer.node_key == key => {
            Err(NodeError::RunsElsewhere { gateway: member.gateway.clone() })
        }
        // Nobody, somebody else, or nobody who can be reached from here.
        _ => Ok(()),
    }
}
