use crate::CommandError;
use crate::model::{PipelineArguments, TopicArguments};
use crate::store::StoreArguments;
use clap::{Args, Subcommand};
use crypto::PublicKey;
use node::founding::{KeysOptions, make_keys, make_root, sign_card};
use std::net::SocketAddr;
use std::path::PathBuf;
use types::{MemberCard, fingerprint};

/// Make an organisation's keys and its node's folder, on its own machine, and the card that the others get.
///
/// The folder lacks the charter, in which all members' cards come together (docs/founding.md).
///
/// Example: entente keys --dir node --network clearing --name bank_a --listen 0.0.0.0:7000 --postgres 0.0.0.0:7100
///            --http 0.0.0.0:7200 --public-address entente.bank-a.example
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct KeysArguments {
    /// Folder to write into; must be empty or not exist
    #[arg(long)]
    dir: PathBuf,
    /// Name of the network that is founded or joined; the card is good for no other
    #[arg(long)]
    network: String,
    /// Name of the organisation
    #[arg(long)]
    name: String,
    /// Where its node listens for the other nodes
    #[arg(long)]
    listen: SocketAddr,
    /// Where its node listens for Postgres clients
    #[arg(long)]
    postgres: SocketAddr,
    /// Where its node listens for HTTP
    #[arg(long)]
    http: SocketAddr,
    /// Host name or address under which others reach this machine; can be given again. The first stands in the card, all in the
    /// certificate for Postgres clients [default: those of --listen and --postgres]
    #[arg(long, value_name = "HOST")]
    public_address: Vec<String>,
    /// The public root key, where the secret one is kept elsewhere, as `entente root-key make` has printed it [default: it is
    /// made in the folder]
    #[arg(long, value_name = "PUBLIC_KEY")]
    root_key: Option<PublicKey>,
    #[command(flatten)]
    topic: TopicArguments,
    #[command(flatten)]
    scheduling: PipelineArguments,
    #[command(flatten)]
    store: StoreArguments,
    /// Threads of its node's execution
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=256))]
    threads: u64,
}

pub(crate) fn run(arguments: &KeysArguments) -> Result<(), CommandError> {
    let options = KeysOptions {
        public: arguments.public_address.clone(),
        root_key: arguments.root_key,
        pipeline: arguments.scheduling.pipeline(),
        store: arguments.store.choice(),
        kafka: arguments.topic.config()?,
        ..KeysOptions::new(
            &arguments.network,
            &arguments.name,
            [arguments.listen, arguments.postgres, arguments.http],
            arguments.threads as usize,
        )
    };
    let card = make_keys(&arguments.dir, &options)?;
    show(&card);
    let folder = arguments.dir.display();
    match arguments.root_key {
        None => println!("The card for the others: {folder}/card.toml"),
        Some(_) => println!(
            "Have {folder}/card.toml signed where the root key is (entente root-key sign), and put the card that it writes into \
             its place"
        ),
    }
    let host = card.address.rsplit_once(':').map_or("", |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    println!("Postgres clients make sure that they talk to this node with its certificate:");
    println!(
        "  psql \"host={host} port={} sslmode=verify-full sslrootcert={folder}/tls.crt user={} dbname=entente\"",
        arguments.postgres.port(),
        card.name
    );
    Ok(())
}

/// A card in lines for people.
fn show(card: &MemberCard) {
    println!("{} for the network {}", card.name, card.network);
    println!("root key {}", fingerprint(&card.root_key.0));
    println!("node key {}", fingerprint(&card.node_key.0));
    println!("nodes reach it at {}, HTTP at {}", card.address, card.gateway);
}

/// Keep an organisation's root key on a machine that has nothing else.
#[derive(Subcommand)]
pub(crate) enum RootKeyCommand {
    Make(MakeArguments),
    Sign(SignArguments),
}

/// Make a root key in a folder of its own, and print the public one for `entente keys --root-key`.
///
/// Example: entente root-key make --dir vault
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct MakeArguments {
    /// Folder to write into; must be empty or not exist
    #[arg(long)]
    dir: PathBuf,
}

/// Sign the card of this organisation's node, and keep it beside the root key.
///
/// Example: entente root-key sign --dir vault card.toml
#[derive(Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct SignArguments {
    /// Folder with the root key
    #[arg(long)]
    dir: PathBuf,
    /// Sign it although this root key has signed another card: the node's keys are lost, and these take their place
    #[arg(long)]
    replace: bool,
    /// The card, as `entente keys --root-key` has written it
    card: PathBuf,
}

pub(crate) fn root_key(command: &RootKeyCommand) -> Result<(), CommandError> {
    match command {
        RootKeyCommand::Make(arguments) => {
            let key = make_root(&arguments.dir)?;
            println!("{key}");
        }
        RootKeyCommand::Sign(arguments) => {
            let card = sign_card(&arguments.dir, &arguments.card, arguments.replace)?;
            show(&card);
            println!(
                "The signed card: {}/card.toml; bring it into the node's folder, in the place of the one there",
                arguments.dir.display()
            );
        }
    }
    Ok(())
}
