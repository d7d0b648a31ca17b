//! All parts of the ceremony on one machine.

use super::install::{write_charter, write_identities};
use super::keys::{KeysOptions, MemberKeys, write_node};
use crate::files::is_empty;
use crate::{NodeError, StoreChoice};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use types::{Charter, CharterSignature, Credentials, FoundingError, Identity, MemberCard, Pipeline};

/// What a new network is to be.
#[derive(Clone, Debug)]
pub struct NetworkOptions {
    /// How many organisations.
    pub organisations: usize,
    /// First of the ports on loopback; organisation number `i` (from 0) listens on `port_base + i` for nodes,
    /// `port_base + 100 + i` for Postgres clients and `port_base + 200 + i` for HTTP.
    pub port_base: u16,
    /// Threads of each node's core.
    pub threads: usize,
    /// How each node schedules validation.
    pub pipeline: Pipeline,
    /// Where each node keeps the state.
    pub store: StoreChoice,
    /// Charter to start from; members and signatures are filled in.
    pub charter: Charter,
}

/// A new network on one machine, as `entente init` and `entente demo` write it.
pub struct Network {
    /// The signed charter.
    pub charter: Charter,
    /// Folders of the nodes, in charter order.
    pub folders: Vec<PathBuf>,
    /// One client per organisation, whose key the organisation vouches for; also in `client.toml` of its folder.
    pub clients: Vec<Identity>,
}

impl Network {
    /// Makes keys, charter and node folders `org1`, `org2`, … under `path`.
    ///
    /// # Errors
    /// The folder is not empty, the options make no sense, or a file cannot be written.
    pub fn create(path: &Path, options: &NetworkOptions) -> Result<Network, NodeError> {
        let members = options.organisations;
        let last_port = usize::from(options.port_base) + 200 + members;
        if members == 0 || members > 100 || last_port > usize::from(u16::MAX) {
            let reason = format!(
                "expected 1 to 100 organisations and ports below 65536, found {members} organisations from port {}",
                options.port_base
            );
            return Err(NodeError::Options(reason));
        }
        options.store.check()?;
        is_empty(path)?;
        let port = |offset: usize, member: usize| {
            SocketAddr::from(([127, 0, 0, 1], options.port_base + (offset + member) as u16))
        };
        let of_member = |member: usize| KeysOptions {
            pipeline: options.pipeline,
            store: options.store,
            ..KeysOptions::new(
                &options.charter.name,
                &format!("org{}", member + 1),
                [port(0, member), port(100, member), port(200, member)],
                options.threads,
            )
        };
        let members = (0..members).map(of_member).collect::<Vec<_>>();
        let made = members.iter().map(MemberKeys::make).collect::<Result<Vec<_>, _>>()?;
        let (keys, cards): (Vec<MemberKeys>, Vec<MemberCard>) = made.into_iter().unzip();
        let charter = signed_by_all(&options.charter, &keys, &cards).map_err(|error| refused(path, error))?;
        let (ledger, mut folders, mut clients) = (charter.ledger(), Vec::new(), Vec::new());
        for (position, ((keys, card), options)) in keys.into_iter().zip(&cards).zip(&members).enumerate() {
            let folder = path.join(&card.name);
            let hosts = [card.name.as_str(), "localhost", "127.0.0.1"].map(str::to_string);
            write_node(&folder, &card.name, &hosts, &options.config(), &keys)?;
            let credentials = Credentials::issue(card, keys.root(), ledger, position as u16);
            let credentials = credentials.of(card, &ledger).map_err(|error| refused(path, error))?;
            clients.push(write_identities(&folder, ledger, keys, credentials)?);
            write_charter(&folder, &charter)?;
            folders.push(folder);
        }
        Ok(Network { charter, folders, clients })
    }
}

/// What members of cards have all signed.
fn signed_by_all(
    parameters: &Charter,
    keys: &[MemberKeys],
    cards: &[MemberCard],
) -> Result<Charter, FoundingError> {
    let mut charter = parameters.clone().of_cards(cards)?;
    for (keys, card) in keys.iter().zip(cards) {
        let signature = CharterSignature::new(&charter, &card.name, keys.root());
        charter.add_signature(&signature)?;
    }
    charter.check()?;
    Ok(charter)
}

/// What makes a charter useless is said as of the file that it would have been.
fn refused(path: &Path, error: FoundingError) -> NodeError {
    let path = path.join("charter.toml");
    match error {
        FoundingError::Charter(error) => NodeError::Charter { path, error },
        error => NodeError::Founding { path, error },
    }
}
