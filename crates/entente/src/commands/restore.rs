use super::governance::{new_address, replacement};
use super::verify::{read_charter, with_bar};
use crate::CommandError;
use backup::{Keys, Owner, Place, Restoration, RestoreOptions, restore};
use bench::grouped;
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Instant;
use targets::Target;
use types::{Charter, Organisation, fingerprint};

/// Make a node's folder of a backup, on a machine that has nothing else, and say what to do next.
///
/// Everything is checked while it is copied, as by `entente verify --backup`. The folder gets new keys, because votes are in no
/// backup and a node that forgets its votes could vote twice. The organisation's root key vouches for them, and the members
/// put the new node key into the charter (docs/backup.md).
///
/// Example: entente restore --from /srv/backup/org4 --dir org4 --root-key vault
/// Example: entente restore --from s3://backups/clearing/org4 --dir org4 --keys new-keys
/// Example: entente restore --from /srv/backup/org4 --dir copy --read-only
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct RestoreArguments {
    /// Where the backup is: a folder, or the address of an object store
    #[arg(long, value_name = "TARGET")]
    from: String,
    /// Folder to write into; must be empty or not exist
    #[arg(long)]
    dir: PathBuf,
    /// The backup with this number; the two newest can be restored [default: the newest]
    #[arg(long)]
    number: Option<u64>,
    /// The ledger's charter, where you have it: a backup of another ledger is refused
    #[arg(long, value_name = "FILE")]
    charter: Option<PathBuf>,
    /// Folder of `entente keys` with the new keys, and with node.toml for other addresses [default: made for the old addresses]
    #[arg(long, value_name = "DIR")]
    keys: Option<PathBuf>,
    /// Folder with the organisation's root.key, which vouches for the new keys [default: it does so later, where it is]
    #[arg(long, value_name = "DIR")]
    root_key: Option<PathBuf>,
    /// Leave the state of the backup away: the node executes all blocks again, and has the history of all rows then
    #[arg(long)]
    replay: bool,
    /// Without keys, for `entente verify --replay` alone
    #[arg(long, conflicts_with_all = ["keys", "root_key", "replay"])]
    read_only: bool,
}

pub(crate) fn run(arguments: &RestoreArguments) -> Result<(), CommandError> {
    let start = Instant::now();
    let place = Place::new(Target::open(&arguments.from)?)?;
    let options = RestoreOptions {
        number: arguments.number,
        charter: arguments.charter.as_deref().map(read_charter).transpose()?,
        keys: match &arguments.keys {
            _ if arguments.read_only => Keys::Nobodys,
            Some(keys) => Keys::Of(keys.clone()),
            None => Keys::New,
        },
        root: arguments.root_key.clone(),
        replays: arguments.replay,
    };
    let restored = with_bar(|progress| restore(&place, &arguments.dir, &options, progress))?;
    let (checked, folder) = (&restored.checked, arguments.dir.display());
    println!("ledger {}", fingerprint(&checked.charter.ledger().0));
    println!(
        "backup {}: heights {} to {} with {} transactions are right, and are in {folder} now; outcomes are certified up to height \
         {}; {:.1} s",
        checked.manifest.number,
        grouped(checked.manifest.first_height),
        grouped(checked.manifest.height),
        grouped(checked.transactions),
        grouped(checked.certified_height),
        start.elapsed().as_secs_f64()
    );
    if arguments.charter.is_none() {
        println!(
            "Compare the groups behind `ledger` with another member: they say that the backup is of your ledger"
        );
    }
    match &restored.owner {
        None => println!("It has no keys; what its blocks came to: entente verify --replay {folder}"),
        Some(owner) => next_steps(&restored, owner, &arguments.dir)?,
    }
    Ok(())
}

/// What brings the node back into the network, step by step.
fn next_steps(restored: &Restoration, owner: &Owner, dir: &Path) -> Result<(), CommandError> {
    let (folder, newest) = (dir.display(), restored.checked.charters.newest().charter.clone());
    match restored.state {
        Some(height) => println!("The node begins with the state of height {}", grouped(height)),
        None => println!("The node executes all blocks when it starts"),
    }
    println!("Its node key is new: {}", owner.organisation.node_key);
    for file in &restored.lacking {
        println!("node.toml names {}, which no backup has: put it into {folder}", file.display());
    }
    println!("Passwords of roles are in no backup: `entente password` sets them again");
    println!("\nWhat to do next:");
    let mut steps = Vec::new();
    match &owner.member {
        Some(member) => {
            if !owner.is_vouched_for {
                steps.push(vouching(member, owner.position, dir));
            }
            steps.push(format!(
                "Start the node: entente node --dir {folder}\n   It answers queries. It votes for nothing, because no charter names its \
                 key; the key that it had before never votes again."
            ));
            steps.push(proposing(member, owner, &newest)?);
        }
        None => steps.push(joining(owner, &restored.checked.manifest.organisation, dir)),
    }
    let blocks = u64::from(newest.outcome_lag_blocks) + 10;
    steps.push(format!(
        "When that is decided, the node fetches what it missed, and votes {blocks} blocks later (entente status). The first backup \
         of {folder} goes on in the target that you have."
    ));
    for (step, number) in steps.iter().zip(1..) {
        println!("{number}. {step}");
    }
    Ok(())
}

fn vouching(member: &Organisation, position: u16, dir: &Path) -> String {
    let folder = dir.display();
    format!(
        "Have the root key of {} vouch for the new keys. Where it is, in a folder `vault` with root.key, with {folder}/card.toml and \
         {folder}/charter.toml:\n     entente root-key sign --replace --dir vault card.toml\n     entente accept-membership --replace-key --dir vault \
         --charter charter.toml --position {position}\n   Bring vault/card.toml and vault/credentials.toml into {folder}, then:\n     entente \
         charter install --dir {folder} {folder}/charter.toml\n   If the root key is lost too, the others can only remove {} and admit you under \
         another name (docs/backup.md).",
        member.name, member.name
    )
}

fn proposing(member: &Organisation, owner: &Owner, newest: &Charter) -> Result<String, CommandError> {
    let own = &owner.organisation;
    let mut statements = vec![replacement(own.name.clone(), own.node_key)];
    if (&own.address, &own.gateway) != (&member.address, &member.gateway) {
        statements.push(new_address(own));
    }
    Ok(format!(
        "An administrator of another member proposes:\n     {};\n   It needs {} (governance = {}); the others approve with `entente \
         approve NUMBER`. Tell them on another way than by mail that the key is yours.",
        statements.join(";\n     "),
        newest.governance_policy()?,
        newest.governance
    ))
}

fn joining(owner: &Owner, before: &str, dir: &Path) -> String {
    let folder = dir.display();
    format!(
        "{} is a new member, and {before} stays one until the others remove it. Print the statement that admits it:\n     entente \
         accept-membership --dir {folder} --charter {folder}/charter.toml --position {}\n   A member proposes that, and `SELECT \
         entente.remove_organisation('{before}')`; then start the node: entente node --dir {folder}",
        owner.organisation.name, owner.position
    )
}
