//! Where a node answers HTTP, as charters, cards and commands write it.

/// What a client offers in TLS (ALPN) that wants to see a certificate of the node key, and not the one that the company has chosen for
/// everybody else.
pub const NODE_KEY_ALPN: &[u8] = b"entente-node-key/1";

/// How HTTP is spoken at an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum GatewayScheme {
    /// `https://`: over TLS, and never in plain text.
    Tls,
    /// `http://`: in plain text.
    Plain,
    /// Nothing is said, as in charters of programs that had no TLS there: whichever the node answers.
    Either,
}

/// `https://host:port`, `http://host:port` or `host:port`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GatewayAddress<'a> {
    /// What stands in front.
    pub scheme: GatewayScheme,
    /// `host:port`.
    pub place: &'a str,
}

impl<'a> GatewayAddress<'a> {
    /// Takes an address apart; whether there is such a place, nobody looks.
    pub fn of(text: &'a str) -> GatewayAddress<'a> {
        let schemes = [("https://", GatewayScheme::Tls), ("http://", GatewayScheme::Plain)];
        let found = schemes.into_iter().find_map(|(name, scheme)| Some((text.strip_prefix(name)?, scheme)));
        let (place, scheme) = found.unwrap_or((text, GatewayScheme::Either));
        GatewayAddress { scheme, place: place.trim_end_matches('/') }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_says_how_it_is_spoken_to() {
        let of = |text| {
            let GatewayAddress { scheme, place } = GatewayAddress::of(text);
            (scheme, place)
        };
        assert_eq!(of("https://a.example:7200"), (GatewayScheme::Tls, "a.example:7200"));
        assert_eq!(of("http://127.0.0.1:7200/"), (GatewayScheme::Plain, "127.0.0.1:7200"));
        assert_eq!(of("[::1]:7200"), (GatewayScheme::Either, "[::1]:7200"));
        assert_eq!(of(""), (GatewayScheme::Either, ""));
    }
}
