//! Messages from clients. They are decoded here and not by `pgwire`, whose decoders (0.42) allow messages of a
//! gigabyte and panic on bodies that end early; everything that goes back is encoded by `pgwire`.
//!
//! ```text
//! startup   length i32 (itself included) · code i32 (196608 + minor, or SSL, GSS, cancel) · body
//! message   type u8 · length i32 (itself included) · body
//! ```

use bytes::{Buf, Bytes};

/// Code of a request for TLS.
pub(super) const SSL_REQUEST: i32 = 80_877_103;
/// Code of a request for GSS encryption.
pub(super) const GSS_REQUEST: i32 = 80_877_104;
/// Code of a request to cancel.
pub(super) const CANCEL_REQUEST: i32 = 80_877_102;

/// What a connection starts with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Startup {
    /// Asks for TLS.
    Ssl,
    /// Asks for GSS encryption.
    Gss,
    /// Wants the query of another session cancelled.
    Cancel { process: i32, secret: i32 },
    /// Starts a session.
    Session { minor: u16, parameters: Vec<(String, String)> },
}

/// What is described or closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// A prepared statement.
    Statement,
    /// A portal.
    Portal,
}

/// A message of a started session.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Message {
    Query(String),
    Parse {
        name: String,
        sql: String,
        types: Vec<u32>,
    },
    Bind {
        portal: String,
        statement: String,
        formats: Vec<i16>,
        values: Vec<Option<Bytes>>,
        results: Vec<i16>,
    },
    Describe {
        target: Target,
        name: String,
    },
    Execute {
        portal: String,
        rows_max: usize,
    },
    Close {
        target: Target,
        name: String,
    },
    Flush,
    Sync,
    FunctionCall,
    CopyData(Bytes),
    CopyDone,
    CopyFail(String),
    Terminate,
}

/// Why bytes are no message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Malformed {
    /// The protocol is violated; the connection ends.
    Violation(String),
    /// A string is not UTF-8; the session goes on.
    Encoding {
        /// Whether the message was a Query, which is answered at once; the others wait for Sync.
        query: bool,
        /// What is wrong.
        message: String,
    },
}

/// Reads a body from the front.
struct Body {
    rest: Bytes,
    kind: char,
}

impl Body {
    fn need(&self, bytes: usize) -> Result<(), Malformed> {
        if self.rest.len() < bytes {
            let (kind, found) = (self.kind, self.rest.len());
            return Err(Malformed::Violation(format!(
                "message '{kind}' ends early: {bytes} more bytes expected, {found} found"
            )));
        }
        Ok(())
    }

    fn u8(&mut self) -> Result<u8, Malformed> {
        self.need(1)?;
        Ok(self.rest.get_u8())
    }

    fn i16(&mut self) -> Result<i16, Malformed> {
        self.need(2)?;
        Ok(self.rest.get_i16())
    }

    fn i32(&mut self) -> Result<i32, Malformed> {
        self.need(4)?;
        Ok(self.rest.get_i32())
    }

    fn text(&mut self) -> Result<String, Malformed> {
        let Some(length) = self.rest.iter().position(|byte| *byte == 0) else {
            return Err(Malformed::Violation(format!(
                "message '{}' holds a string without an end",
                self.kind
            )));
        };
        let bytes = self.rest.split_to(length);
        self.rest.advance(1);
        String::from_utf8(bytes.to_vec()).map_err(|error| {
            let at = error.utf8_error().valid_up_to();
            let byte = bytes.get(at).copied().unwrap_or_default();
            let message = format!("invalid byte sequence for encoding \"UTF8\": 0x{byte:02x}");
            Malformed::Encoding { query: self.kind == 'Q', message }
        })
    }

    /// A list with its count in front; the count is believed only as far as the body goes.
    fn list<T>(&mut self, item: impl Fn(&mut Body) -> Result<T, Malformed>) -> Result<Vec<T>, Malformed> {
        let count = self.i16()? as u16;
        (0..count).map(|_| item(self)).collect()
    }

    fn value(&mut self) -> Result<Option<Bytes>, Malformed> {
        match self.i32()? {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length)
                    .map_err(|_| Malformed::Violation(format!("a parameter has the length {length}")))?;
                self.need(length)?;
                Ok(Some(self.rest.split_to(length)))
            }
        }
    }

    fn target(&mut self) -> Result<Target, Malformed> {
        match self.u8()? {
            b'S' => Ok(Target::Statement),
            b'P' => Ok(Target::Portal),
            other => Err(Malformed::Violation(format!(
                "expected 'S' or 'P' in message '{}', found {other}",
                self.kind
            ))),
        }
    }

    fn finish<T>(self, value: T) -> Result<T, Malformed> {
        match self.rest.len() {
            0 => Ok(value),
            more => Err(Malformed::Violation(format!("message '{}' has {more} bytes too many", self.kind))),
        }
    }
}

/// Reads the body that follows the length of a first message.
pub(super) fn decode_startup(body: Bytes) -> Result<Startup, Malformed> {
    let mut body = Body { rest: body, kind: '0' };
    let code = body.i32()?;
    match code {
        SSL_REQUEST => body.finish(Startup::Ssl),
        GSS_REQUEST => body.finish(Startup::Gss),
        CANCEL_REQUEST => {
            let (process, secret) = (body.i32()?, body.i32()?);
            body.finish(Startup::Cancel { process, secret })
        }
        version if version >> 16 == 3 => {
            let mut parameters = Vec::new();
            loop {
                let name = body.text()?;
                if name.is_empty() {
                    break;
                }
                parameters.push((name, body.text()?));
            }
            body.finish(Startup::Session { minor: (version & 0xffff) as u16, parameters })
        }
        version => Err(Malformed::Violation(format!(
            "unsupported frontend protocol {}.{}: expected 3.0; this port speaks the Postgres protocol",
            (version as u32) >> 16,
            version & 0xffff
        ))),
    }
}

/// Reads the first answer of SASL: the mechanism that the client has chosen, and its first words.
pub(super) fn decode_sasl(body: Bytes) -> Result<(String, Bytes), Malformed> {
    let mut body = Body { rest: body, kind: 'p' };
    let mechanism = body.text()?;
    let data = body.value()?.unwrap_or_default();
    body.finish((mechanism, data))
}

/// Reads the body of a message of the type `kind`.
pub(super) fn decode(kind: u8, body: Bytes) -> Result<Message, Malformed> {
    let mut body = Body { rest: body, kind: char::from(kind) };
    let message = match kind {
        b'Q' => Message::Query(body.text()?),
        b'P' => Message::Parse {
            name: body.text()?,
            sql: body.text()?,
            types: body.list(|b| b.i32().map(|oid| oid as u32))?,
        },
        b'B' => Message::Bind {
            portal: body.text()?,
            statement: body.text()?,
            formats: body.list(Body::i16)?,
            values: body.list(Body::value)?,
            results: body.list(Body::i16)?,
        },
        b'D' => Message::Describe { target: body.target()?, name: body.text()? },
        b'C' => Message::Close { target: body.target()?, name: body.text()? },
        b'E' => {
            Message::Execute { portal: body.text()?, rows_max: usize::try_from(body.i32()?).unwrap_or(0) }
        }
        b'H' => Message::Flush,
        b'S' => Message::Sync,
        b'X' => Message::Terminate,
        b'c' => Message::CopyDone,
        b'd' => Message::CopyData(std::mem::take(&mut body.rest)),
        b'f' => Message::CopyFail(body.text()?),
        b'F' => {
            body.rest.clear();
            Message::FunctionCall
        }
        other => return Err(Malformed::Violation(format!("invalid frontend message type {other}"))),
    };
    body.finish(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_end_early_or_late_are_refused_without_a_panic() {
        let whole: &[(u8, &[u8])] = &[
            (b'Q', b"select 1\0"),
            (b'P', b"s\0select $1\0\0\x01\0\0\0\x17"),
            (b'B', b"\0s\0\0\x01\0\x01\0\x01\0\0\0\x04\0\0\0\x2a\0\x01\0\x01"),
            (b'D', b"Ss\0"),
            (b'E', b"\0\0\0\0\x05"),
            (b'C', b"Pp\0"),
            (b'f', b"reason\0"),
        ];
        for (kind, bytes) in whole {
            decode(*kind, Bytes::from_static(bytes)).expect("a whole message");
            for length in 0..bytes.len() {
                let cut = decode(*kind, Bytes::from_static(&bytes[..length]));
                assert!(matches!(cut, Err(Malformed::Violation(_))), "{} {length}", char::from(*kind));
            }
            let longer = [bytes, b"x".as_slice()].concat();
            assert!(decode(*kind, longer.into()).is_err(), "{}", char::from(*kind));
        }
        assert!(decode(b'!', Bytes::new()).is_err());
        assert!(matches!(
            decode(b'Q', Bytes::from_static(b"\xff\0")),
            Err(Malformed::Encoding { query: true, .. })
        ));
        // A length and a count that promise more than follows.
        assert!(decode(b'B', Bytes::from_static(b"\0\0\0\0\xff\xff")).is_err());
        assert!(decode(b'B', Bytes::from_static(b"\0\0\0\0\0\x01\x7f\xff\xff\xff\0")).is_err());
    }

    #[test]
    fn first_answers_of_sasl_are_read_whole_or_refused() {
        let whole = b"SCRAM-SHA-256\0\0\0\0\x07n,,n=,r";
        let (mechanism, data) = decode_sasl(Bytes::from_static(whole)).expect("a whole message");
        assert_eq!((mechanism.as_str(), &data[..]), ("SCRAM-SHA-256", b"n,,n=,r".as_slice()));
        for length in 0..whole.len() {
            assert!(decode_sasl(Bytes::from_static(&whole[..length])).is_err(), "{length}");
        }
        let nothing = decode_sasl(Bytes::from_static(b"m\0\xff\xff\xff\xff")).expect("no data");
        assert!(nothing.1.is_empty());
        assert!(decode_sasl(Bytes::from_static(b"m\0\x7f\xff\xff\xff")).is_err());
    }

    #[test]
    fn startup_packets_are_told_apart() {
        let packet = |code: i32, rest: &[u8]| Bytes::from([&code.to_be_bytes(), rest].concat());
        assert_eq!(decode_startup(packet(SSL_REQUEST, b"")), Ok(Startup::Ssl));
        let cancel = decode_startup(packet(CANCEL_REQUEST, &[0, 0, 0, 7, 0, 0, 0, 9]));
        assert_eq!(cancel, Ok(Startup::Cancel { process: 7, secret: 9 }));
        let parameters = vec![("user".to_string(), "ada".to_string())];
        let session = decode_startup(packet(196_608, b"user\0ada\0\0"));
        assert_eq!(session, Ok(Startup::Session { minor: 0, parameters }));
        assert!(decode_startup(packet(196_608, b"user\0ada\0")).is_err());
        assert!(decode_startup(packet(131_072, b"\0")).is_err());
        assert!(decode_startup(Bytes::from_static(b"GET")).is_err());
    }
}
