//! Entente: a SQL database that organisations which do not trust one another run together.
//!
//! Commands parse their options here and say what came of them; the work is done by the crates.

mod commands;
mod demo;
mod model;
mod store;
mod terminal;

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use terminal::LogFormat;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A SQL database that organisations which do not trust one another run together.
#[derive(Parser)]
#[command(name = "entente", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(demo::DemoArguments),
    Agree(commands::agree::AgreeArguments),
    AcceptMembership(commands::governance::AcceptArguments),
    Approve(commands::governance::ApproveArguments),
    Backup(commands::backup::BackupArguments),
    Chainify(commands::chainify::ChainifyArguments),
    #[command(subcommand)]
    Charter(commands::charter::CharterCommand),
    ConvertStore(commands::convert_store::ConvertStoreArguments),
    Prune(commands::prune::PruneArguments),
    Doctor(commands::doctor::DoctorArguments),
    Export(commands::export::ExportArguments),
    Init(commands::init::InitArguments),
    Keys(commands::keys::KeysArguments),
    Node(commands::node::NodeArguments),
    Password(commands::password::PasswordArguments),
    Place(commands::place::PlaceArguments),
    Proposals(commands::governance::ProposalsArguments),
    Restore(commands::restore::RestoreArguments),
    #[command(subcommand)]
    RootKey(commands::keys::RootKeyCommand),
    Sql(commands::sql::SqlArguments),
    Status(commands::status::StatusArguments),
    Verify(commands::verify::VerifyArguments),
    #[command(subcommand)]
    Bench(commands::bench::BenchCommand),
}

impl Command {
    /// How the log of this command looks.
    fn log(&self) -> LogFormat {
        match self {
            Command::Node(arguments) => arguments.log,
            _ => LogFormat::default(),
        }
    }
}

/// What ends a command: a sentence for the person in front of it.
pub(crate) type CommandError = Box<dyn std::error::Error + Send + Sync>;

fn main() -> ExitCode {
    terminal::end_with_readers();
    let command = Arguments::parse().command;
    let log = command.log();
    terminal::start_log(log);
    let done = |()| ExitCode::SUCCESS;
    let result = match command {
        Command::Demo(arguments) => demo::run(&arguments).map(done),
        Command::Agree(arguments) => commands::agree::run(&arguments).map(done),
        Command::AcceptMembership(arguments) => commands::governance::accept(&arguments).map(done),
        Command::Approve(arguments) => commands::governance::approve(&arguments).map(done),
        Command::Backup(arguments) => commands::backup::run(&arguments).map(done),
        Command::Chainify(arguments) => commands::chainify::run(&arguments).map(done),
        Command::Charter(command) => commands::charter::run(&command).map(done),
        Command::ConvertStore(arguments) => commands::convert_store::run(&arguments).map(done),
        Command::Prune(arguments) => commands::prune::run(&arguments).map(done),
        Command::Doctor(arguments) => commands::doctor::run(&arguments),
        Command::Export(arguments) => commands::export::run(&arguments).map(done),
        Command::Init(arguments) => commands::init::run(&arguments).map(done),
        Command::Keys(arguments) => commands::keys::run(&arguments).map(done),
        Command::Node(arguments) => commands::node::run(&arguments),
        Command::Password(arguments) => commands::password::run(&arguments).map(done),
        Command::Place(arguments) => commands::place::run(&arguments).map(done),
        Command::Proposals(arguments) => commands::governance::proposals(&arguments).map(done),
        Command::Restore(arguments) => commands::restore::run(&arguments).map(done),
        Command::RootKey(command) => commands::keys::root_key(&command).map(done),
        Command::Sql(arguments) => commands::sql::run(&arguments).map(done),
        Command::Status(arguments) => commands::status::run(&arguments).map(done),
        Command::Verify(arguments) => commands::verify::run(&arguments).map(done),
        Command::Bench(command) => commands::bench::run(&command).map(done),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            match log {
                LogFormat::Text => eprintln!("entente: {error}"),
                LogFormat::Json => tracing::error!("{error}"),
            }
            ExitCode::FAILURE
        }
    }
}
