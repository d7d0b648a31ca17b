use crate::CommandError;
use clap::Args;
use node::{NodeFolder, PASSWORDS_FILE, PasswordVerifier, Passwords};
use std::io::{BufRead, IsTerminal};
use std::path::PathBuf;

/// Set the password that a user of this node's Postgres port must know; it is asked for, or read from standard input.
///
/// It counts from the next login on, and stays in the node's folder: no other organisation gets to see it.
///
/// Example: entente password --dir clearing/org1 --user org1
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct PasswordArguments {
    /// The node's folder, as `entente init` wrote it
    #[arg(long)]
    dir: PathBuf,
    /// Whose password
    #[arg(long)]
    user: String,
    /// Take the password away
    #[arg(long)]
    remove: bool,
}

pub(crate) fn run(arguments: &PasswordArguments) -> Result<(), CommandError> {
    let (folder, user) = (NodeFolder::open(&arguments.dir)?, &arguments.user);
    let passwords = Passwords::open(&folder.path.join(PASSWORDS_FILE))?;
    if arguments.remove {
        if !passwords.has(user)? {
            return Err(format!("{user} has no password").into());
        }
        passwords.set(user, None)?;
        println!("{user} has no password any more");
        return Ok(());
    }
    let password = if std::io::stdin().is_terminal() {
        let password = rpassword::prompt_password(format!("New password of {user}: "))?;
        if rpassword::prompt_password("Once more: ")? != password {
            return Err("the two are not the same; nothing was changed".into());
        }
        password
    } else {
        std::io::stdin().lock().lines().next().transpose()?.unwrap_or_default()
    };
    passwords.set(user, Some(PasswordVerifier::of_password(&password)?))?;
    println!("{user} has a password");
    Ok(())
}
