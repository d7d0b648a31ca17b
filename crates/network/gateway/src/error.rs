use std::net::SocketAddr;

/// Why the gateway cannot start or go on.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// Somebody else listens there.
    #[error(
        "the address {address} for {purpose} is in use; stop the program that listens there (`ss -ltnp sport = :{port}` \
         names it) or choose another port for {purpose}",
        port = address.port()
    )]
    AddressInUse {
        /// The address.
        address: SocketAddr,
        /// What it is for, for example `the Postgres protocol`.
        purpose: &'static str,
    },
    /// The address cannot be listened on.
    #[error(
        "cannot listen on {address} for {purpose}: {source}; expected an address of this machine and a free port"
    )]
    Bind {
        /// The address.
        address: SocketAddr,
        /// What it is for.
        purpose: &'static str,
        /// The operating system's reason.
        source: std::io::Error,
    },
    /// A listener stopped working.
    #[error("the listener for {purpose} failed: {source}; start the node again")]
    Listener {
        /// What it is for.
        purpose: &'static str,
        /// The operating system's reason.
        source: std::io::Error,
    },
}

/// Listens on `address`. `purpose` is for the error: `the Postgres protocol`, `HTTP`.
///
/// # Errors
/// [`GatewayError::AddressInUse`] or [`GatewayError::Bind`], with the address and what to do.
pub async fn bind(
    address: SocketAddr,
    purpose: &'static str,
) -> Result<tokio::net::TcpListener, GatewayError> {
    tokio::net::TcpListener::bind(address).await.map_err(|source| match source.kind() {
        std::io::ErrorKind::AddrInUse => GatewayError::AddressInUse { address, purpose },
        _ => GatewayError::Bind { address, purpose, source },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn busy_port_is_named_with_what_to_do() {
        let first = bind(([127, 0, 0, 1], 0).into(), "HTTP").await.expect("a free port");
        let address = first.local_addr().expect("bound");
        let error = bind(address, "the Postgres protocol").await.expect_err("in use").to_string();
        assert!(
            error.contains(&format!("127.0.0.1:{}", address.port())) && error.contains("choose another port")
        );
    }
}
