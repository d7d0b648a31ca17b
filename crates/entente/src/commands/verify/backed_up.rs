use crate::CommandError;
use backup::{Checked, Place, check};
use bench::grouped;
use std::time::Instant;
use targets::Target;
use types::{Charter, fingerprint};

/// Checks a backup whole and says what it has.
pub(super) fn verify(
    target: &str,
    number: Option<u64>,
    charter: Option<&Charter>,
) -> Result<(), CommandError> {
    let start = Instant::now();
    let place = Place::new(Target::open(target)?)?;
    let checked = super::with_bar(|progress| check(&place, number, charter, progress))?;
    let Checked { manifest, transactions, certified_height, strangers, .. } = &checked;
    println!("ledger {}", fingerprint(&checked.charter.ledger().0));
    println!(
        "backup {} of the node of {}: heights {} to {} with {} transactions are whole and right; {:.1} s",
        manifest.number,
        manifest.organisation,
        grouped(manifest.first_height),
        grouped(manifest.height),
        grouped(*transactions),
        start.elapsed().as_secs_f64()
    );
    println!("outcomes are certified up to height {}", grouped(*certified_height));
    match &manifest.state {
        Some(state) => {
            println!("the state of height {} is the one that a quorum has certified", grouped(state.height))
        }
        None => println!("there is no state: a restored node executes all blocks"),
    }
    for stranger in strangers {
        println!(
            "{stranger} is in no manifest: a backup that did not come to its end has left it, or somebody has put it there"
        );
    }
    Ok(())
}
