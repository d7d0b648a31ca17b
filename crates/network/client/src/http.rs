//! The one way in which nodes and commands ask a gateway over HTTP: connections that stay open, over TLS or in plain text.

use crate::error::ClientError;
use crate::trust::{OtherKey, Trust};
use reqwest::{RequestBuilder, Response};
use std::error::Error;
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use types::{GatewayAddress, GatewayScheme};

const CONNECT_WITHIN: Duration = Duration::from_secs(5);
/// Gateways close connections that nobody has used for longer.
const KEPT_FOR: Duration = Duration::from_secs(60);
/// A node that answered in plain text, where nobody says how, is asked over TLS again after this time.
const PLAIN_FOR: Duration = Duration::from_secs(60);

/// Connections to one gateway.
#[derive(Clone)]
pub(crate) struct Http(Arc<Gateway>);

struct Gateway {
    /// As whoever asks has written it.
    address: String,
    place: String,
    tls: Option<reqwest::Client>,
    plain: Option<reqwest::Client>,
    /// It has proved its key once. Who stands between cannot have it asked in plain text from then on.
    has_spoken_tls: AtomicBool,
    plain_until: Mutex<Option<Instant>>,
}

/// How the last answer came.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spoken {
    /// Over TLS, from whom the trust allows.
    Tls,
    /// In plain text.
    Plain,
}

impl Http {
    /// `address`: `https://host:port`, `http://host:port`, or `host:port`. The last one means TLS where `trust` names somebody, but for a
    /// node key: who has one may be a node of before, and is asked in plain text if it knows no TLS. Where nobody is named it means plain text.
    pub(crate) fn new(address: &str, trust: &Trust) -> Result<Http, ClientError> {
        let GatewayAddress { scheme, place } = GatewayAddress::of(address);
        let (tls, plain) = match (scheme, trust) {
            (GatewayScheme::Tls, _) | (GatewayScheme::Either, Trust::Authorities(_)) => (true, false),
            (GatewayScheme::Plain, _) | (GatewayScheme::Either, Trust::System) => (false, true),
            (GatewayScheme::Either, Trust::NodeKey(_)) => (true, true),
        };
        let connection = |error| ClientError::Connection { url: address.to_string(), error };
        let tls = tls
            .then(|| {
                let config = trust.config().map_err(ClientError::Trust)?;
                builder().tls_backend_preconfigured(config).build().map_err(connection)
            })
            .transpose()?;
        // It speaks HTTP: a machine without certificates has nothing to say against that.
        let plain = plain.then(|| builder().tls_certs_only([]).build().map_err(connection)).transpose()?;
        Ok(Http(Arc::new(Gateway {
            address: address.trim_end_matches('/').to_string(),
            place: place.to_string(),
            tls,
            plain,
            has_spoken_tls: AtomicBool::new(false),
            plain_until: Mutex::default(),
        })))
    }

    /// The address, as it was written.
    pub(crate) fn address(&self) -> &str {
        &self.0.address
    }

    /// How it answers, as far as it has.
    pub(crate) fn spoken(&self) -> Spoken {
        match self.0.tls.is_none() || self.0.asks_plain() {
            true => Spoken::Plain,
            false => Spoken::Tls,
        }
    }

    /// Sends what `request` makes of a client and of the beginning of the URL: twice, where the node turns out to know no TLS.
    pub(crate) async fn send(
        &self,
        request: impl Fn(&reqwest::Client, &str) -> RequestBuilder,
    ) -> Result<Response, ClientError> {
        let Gateway { place, tls, plain, has_spoken_tls, plain_until, .. } = &*self.0;
        if let Some(tls) = tls.as_ref().filter(|_| !self.0.asks_plain()) {
            let error = match request(tls, &format!("https://{place}")).send().await {
                Ok(response) => {
                    has_spoken_tls.store(true, Ordering::Relaxed);
                    return Ok(response);
                }
                Err(error) => error,
            };
            if plain.is_none() || has_spoken_tls.load(Ordering::Relaxed) || !knows_no_tls(&error) {
                return Err(self.failed(error));
            }
            *plain_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + PLAIN_FOR);
        }
        let plain = plain.as_ref().expect("where it is not asked over TLS, it is asked so");
        request(plain, &format!("http://{place}")).send().await.map_err(|error| self.failed(error))
    }

    /// Why there is no answer.
    pub(crate) fn failed(&self, error: reqwest::Error) -> ClientError {
        let url = self.0.address.clone();
        let cause = causes(&error).find_map(|cause| cause.downcast_ref::<rustls::Error>().cloned());
        match cause {
            Some(rustls::Error::InvalidCertificate(reason)) => refused(url, &reason),
            Some(rustls::Error::InvalidMessage(_)) => ClientError::PlainText { url },
            Some(other) => ClientError::Tls { url, reason: other.to_string() },
            None => ClientError::Connection { url, error },
        }
    }
}

/// Why a certificate does not count.
fn refused(url: String, reason: &rustls::CertificateError) -> ClientError {
    let other = match reason {
        rustls::CertificateError::Other(other) => other.0.downcast_ref::<OtherKey>(),
        _ => None,
    };
    match other {
        Some(other) => ClientError::OtherKey { url, other: Box::new(other.clone()) },
        None => ClientError::Certificate { url, reason: reason.to_string() },
    }
}

impl Gateway {
    fn asks_plain(&self) -> bool {
        let until = *self.plain_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| Instant::now() < until)
    }
}

fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder()
        .connect_timeout(CONNECT_WITHIN)
        .pool_idle_timeout(KEPT_FOR)
        // Who answers is who was asked.
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
}

/// An error, what caused it, and so on.
fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    fn next<'a>(error: &&'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
        let error: &'a (dyn Error + 'static) = *error;
        // An error of the system hides the one that it was made of.
        match error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref) {
            Some(inner) => Some(inner),
            None => error.source(),
        }
    }
    std::iter::successors(Some(error), next)
}

/// What TLS has against whoever answered; nothing where something else went wrong.
pub fn tls_failure(error: &reqwest::Error) -> Option<String> {
    causes(error).find_map(|cause| cause.downcast_ref::<rustls::Error>()).map(ToString::to_string)
}

/// Whether somebody answered who speaks something else.
fn knows_no_tls(error: &reqwest::Error) -> bool {
    causes(error).any(|cause| {
        let is_strange = matches!(cause.downcast_ref(), Some(rustls::Error::InvalidMessage(_)));
        let ended = cause.downcast_ref().map(std::io::Error::kind);
        is_strange || error.is_connect() && ended == Some(ErrorKind::UnexpectedEof)
    })
}
