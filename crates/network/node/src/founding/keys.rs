use super::{CARD_FILE, NODE_KEY_FILE, ROOT_KEY_FILE};
use crate::access::own_certificate;
use crate::files::{create, is_empty, write, write_secret};
use crate::{KafkaConfig, NodeConfig, NodeError, StoreChoice};
use crypto::{PublicKey, SecretKey, Signature};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use types::{MemberCard, Pipeline};

/// For whom keys and a node's folder are made.
#[derive(Clone, Debug)]
pub struct KeysOptions {
    /// Name of the network that the card is for.
    pub network: String,
    /// Name of the organisation.
    pub name: String,
    /// Where its node listens for nodes, for Postgres clients and for HTTP.
    pub listen: [SocketAddr; 3],
    /// Host names and addresses under which others reach the machine, the one of the card first; none: those of `listen`.
    pub public: Vec<String>,
    /// The public root key, where the secret one is kept elsewhere; `None`: it is made in the folder.
    pub root_key: Option<PublicKey>,
    /// Threads of the node's core.
    pub threads: usize,
    /// How the node schedules validation.
    pub pipeline: Pipeline,
    /// Where the node keeps the state.
    pub store: StoreChoice,
    /// Where the topic is that orders, in networks of which one does.
    pub kafka: Option<KafkaConfig>,
}

impl KeysOptions {
    /// Under its own addresses, with the root key in the folder, and everything else as where nothing is said.
    pub fn new(network: &str, name: &str, listen: [SocketAddr; 3], threads: usize) -> KeysOptions {
        KeysOptions {
            network: network.to_string(),
            name: name.to_string(),
            listen,
            public: Vec::new(),
            root_key: None,
            threads,
            pipeline: Pipeline::default(),
            store: StoreChoice::default(),
            kafka: None,
        }
    }

    pub(super) fn config(&self) -> NodeConfig {
        NodeConfig {
            pipeline: self.pipeline,
            store: self.store.kind,
            memory_megabytes: self.store.memory_megabytes,
            kafka: self.kafka.clone(),
            ..NodeConfig::new(self.listen, self.threads)
        }
    }

    /// `host:port` where others reach what listens there.
    fn reached_at(&self, listens: SocketAddr) -> Result<String, NodeError> {
        let Some(host) = self.public.first() else {
            if listens.ip().is_unspecified() {
                return Err(NodeError::Options(format!(
                    "{listens} is every address of this machine: expected --public-address with the host name or the address \
                     under which the others reach it"
                )));
            }
            return Ok(listens.to_string());
        };
        Ok(match host.parse::<IpAddr>() {
            Ok(ip) => SocketAddr::new(ip, listens.port()).to_string(),
            Err(_) => format!("{host}:{}", listens.port()),
        })
    }

    /// Host names and addresses for the certificate that clients of Postgres and HTTP see.
    fn hosts(&self) -> Result<Vec<String>, NodeError> {
        let mut hosts = self.public.clone();
        let [listen, postgres, http] = self.listen.map(|address| address.ip());
        hosts
            .extend([postgres, http, listen].iter().filter(|ip| !ip.is_unspecified()).map(IpAddr::to_string));
        hosts.extend(["localhost".to_string(), "127.0.0.1".to_string()]);
        let mut known = Vec::new();
        for host in hosts {
            let is_name = host.chars().all(|one| one.is_ascii_alphanumeric() || "-._".contains(one));
            if host.is_empty() || !is_name && host.parse::<IpAddr>().is_err() {
                return Err(NodeError::Options(format!(
                    "--public-address: expected a host name or an address, without a port; found `{host}`"
                )));
            }
            if !known.contains(&host) {
                known.push(host);
            }
        }
        Ok(known)
    }
}

/// The secret keys of an organisation.
pub(super) struct MemberKeys {
    /// `None`: it is kept elsewhere.
    pub(super) root: Option<SecretKey>,
    pub(super) node: SecretKey,
    pub(super) session: SecretKey,
    pub(super) client: SecretKey,
}

impl MemberKeys {
    /// The root key of keys that were made with one.
    pub(super) fn root(&self) -> &SecretKey {
        self.root.as_ref().expect("it was made with the others")
    }

    /// New keys, and the card that goes with them.
    pub(super) fn make(options: &KeysOptions) -> Result<(MemberKeys, MemberCard), NodeError> {
        let [listen, _, http] = options.listen;
        let keys = MemberKeys {
            root: options.root_key.is_none().then(SecretKey::generate),
            node: SecretKey::generate(),
            session: SecretKey::generate(),
            client: SecretKey::generate(),
        };
        let made = keys.root.as_ref().map(SecretKey::public_key);
        let card = MemberCard {
            network: options.network.clone(),
            name: options.name.clone(),
            root_key: options.root_key.or(made).expect("it is given or was made"),
            node_key: keys.node.public_key(),
            session_key: keys.session.public_key(),
            client_key: keys.client.public_key(),
            address: options.reached_at(listen)?,
            gateway: format!("https://{}", options.reached_at(http)?),
            node_signature: Signature([0; 64]),
            root_signature: Signature([0; 64]),
        };
        card.check_values().map_err(|error| NodeError::Options(error.to_string()))?;
        let card = card.signed_by_node(&keys.node);
        let card = match &keys.root {
            Some(root) => card.signed_by_root(root),
            None => card,
        };
        Ok((keys, card))
    }
}

/// Writes the files of a node's folder that need no charter. Clients find the node under these host names.
pub(super) fn write_node(
    folder: &Path,
    name: &str,
    hosts: &[String],
    config: &NodeConfig,
    keys: &MemberKeys,
) -> Result<(), NodeError> {
    create(folder)?;
    write(&folder.join("node.toml"), &toml::to_string(config).expect("plain fields"))?;
    let (certificate, key) = own_certificate(name, hosts);
    write(&folder.join("tls.crt"), &certificate)?;
    write_secret(&folder.join("tls.key"), &key)?;
    if let Some(root) = &keys.root {
        write_secret(&folder.join(ROOT_KEY_FILE), &root.to_hex())?;
    }
    write_secret(&folder.join(NODE_KEY_FILE), &keys.node.to_hex())
}

/// Makes an organisation's keys and its node's folder, which lacks the charter alone. Gives the card for the others; without the
/// root key in the folder it still needs that key's signature ([`super::sign_card`]).
///
/// # Errors
/// The folder is not empty, a name or an address cannot be, or a file cannot be written.
pub fn make_keys(folder: &Path, options: &KeysOptions) -> Result<MemberCard, NodeError> {
    options.store.check()?;
    is_empty(folder)?;
    let hosts = options.hosts()?;
    let (keys, card) = MemberKeys::make(options)?;
    write_node(folder, &options.name, &hosts, &options.config(), &keys)?;
    write_secret(&folder.join("session.key"), &keys.session.to_hex())?;
    write_secret(&folder.join("client.key"), &keys.client.to_hex())?;
    write(&folder.join(CARD_FILE), &card.to_toml())?;
    Ok(card)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(listen: &str, public: &[&str]) -> KeysOptions {
        let listen = [7000, 7100, 7200].map(|port| format!("{listen}:{port}").parse().expect("an address"));
        let public = public.iter().map(|host| host.to_string()).collect();
        KeysOptions { public, ..KeysOptions::new("clearing", "bank_a", listen, 1) }
    }

    #[test]
    fn a_card_says_where_others_reach_the_node() {
        let addresses = |options: &KeysOptions| {
            let (_, card) = MemberKeys::make(options)?;
            Ok::<_, NodeError>([card.address, card.gateway])
        };
        let own = addresses(&options("127.0.0.1", &[])).expect("loopback");
        assert_eq!(own, ["127.0.0.1:7000", "https://127.0.0.1:7200"]);
        let named = addresses(&options("0.0.0.0", &["a.example.org", "10.0.0.1"])).expect("a name");
        assert_eq!(named, ["a.example.org:7000", "https://a.example.org:7200"]);
        assert_eq!(addresses(&options("[::]", &["fe80::1"])).expect("numbers")[0], "[fe80::1]:7000");
        let error = addresses(&options("0.0.0.0", &[])).expect_err("nowhere").to_string();
        assert!(error.contains("--public-address"), "{error}");
    }

    #[test]
    fn the_certificate_names_every_host_once() {
        let hosts = options("10.0.0.1", &["a.example.org", "10.0.0.1"]).hosts().expect("hosts");
        assert_eq!(hosts, ["a.example.org", "10.0.0.1", "localhost", "127.0.0.1"]);
        assert_eq!(options("0.0.0.0", &["a"]).hosts().expect("hosts"), ["a", "localhost", "127.0.0.1"]);
        for wrong in ["a.example.org:7000", "", "ä.example.org", "a b"] {
            let error = options("127.0.0.1", &[wrong]).hosts().expect_err(wrong).to_string();
            assert!(error.contains("without a port"), "{error}");
        }
    }
}
