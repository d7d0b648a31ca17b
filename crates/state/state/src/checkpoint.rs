use crate::{
    AfterImage, CheckpointHeader, FirstFailure, KeyRange, LiveContent, LiveRequest, LiveRequests, RowId,
    Snapshot, Store, StoreError, Stores, Version,
};
use borsh::{BorshDeserialize, BorshSerialize};
use crypto::{Digest, DigestWriter};
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::sync::Arc;
use types::{Catalog, ClientId, Key, Row, TableId, TransactionId, decode_exactly, encode, limits};

// The stream; integers are little-endian, everything in the one order that all nodes share:
//
//   bytes  what
//   8      MAGIC
//   4      FORMAT
//   32     digest of the ledger's charter
//   8      height
//   32     state digest
//   32     digest of the outcome header
//   4 + n  catalog: length, canonical encoding
//          per table with rows, by id, and per unique index the keys that are taken:
//   1 + 4    TABLE, id
//            per row, by key:
//   1 + 2 + 4 + n    ROW, length of the key, length of the row, key, canonical encoding of the row
//   1 + 8  END, number of rows in all tables
//   8      number of live ids
//   100 n  per live id, by expiry height and then in the order of the ledger: its canonical encoding
//   32     SHA-256 of everything before

const MAGIC: [u8; 8] = *b"ENTENTE\x1a";
const FORMAT: u32 = 2;
const TABLE: u8 = 1;
const ROW: u8 = 2;
const END: u8 = 0;
/// Bytes that are gathered before they are written and hashed, and rows before they are loaded.
const PIECE_BYTES: usize = 64 * 1024;
const PIECE_ROWS: usize = 4096;

/// A state as a checkpoint holds it.
pub struct Checkpoint {
    /// Where the state stands.
    pub header: CheckpointHeader,
    /// The tables, at [`Version::after_block`] of the height.
    pub state: Arc<dyn Store>,
    /// The transaction ids that are live.
    pub live: LiveRequests,
}

/// Why a checkpoint cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The stream ended or failed.
    #[error("the checkpoint cannot be read: {0}; use an older one")]
    Read(#[from] io::Error),
    /// The store that it is read into cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Something else.
    #[error(
        "expected a checkpoint of format {FORMAT}, found {found}; use the version of Entente that wrote it"
    )]
    Format {
        /// What it is.
        found: String,
    },
    /// Made by something that is no node, or damaged.
    #[error("the checkpoint is damaged: expected {expected}, found {found}; use an older one")]
    Damaged {
        /// What should stand there.
        expected: &'static str,
        /// What does.
        found: String,
    },
}

fn damaged(expected: &'static str, found: impl Into<String>) -> CheckpointError {
    CheckpointError::Damaged { expected, found: found.into() }
}

/// Writes state and live ids at one height, piece by piece; the same bytes on every node.
///
/// # Errors
/// What `sink` returns; what the snapshot does where it cannot be read.
pub fn write_checkpoint(
    header: &CheckpointHeader,
    snapshot: &dyn Snapshot,
    live: &LiveContent,
    sink: impl Write,
) -> io::Result<()> {
    let mut stream = Stream::new(sink);
    stream.piece.extend_from_slice(&MAGIC);
    stream.piece.extend_from_slice(&FORMAT.to_le_bytes());
    header.serialize(&mut stream.piece)?;
    write_content(snapshot, &mut stream)?;
    stream.piece.extend_from_slice(&(live.len() as u64).to_le_bytes());
    for request in live.iter() {
        request_fields(&request).serialize(&mut stream.piece)?;
        stream.flush_full_piece()?;
    }
    stream.finish()
}

/// Digest of the whole content of a snapshot: catalog and rows as a checkpoint has them. Equal states have equal
/// digests, whatever led to them.
///
/// # Errors
/// Rows cannot be read.
pub fn content_digest(snapshot: &dyn Snapshot) -> io::Result<Digest> {
    let mut stream = Stream::new(io::sink());
    let written = write_content(snapshot, &mut stream).and_then(|()| stream.flush_piece());
    written?;
    Ok(stream.digest.finish())
}

fn write_content(snapshot: &dyn Snapshot, stream: &mut Stream<impl Write>) -> io::Result<()> {
    let catalog = encode(&**snapshot.catalog());
    stream.piece.extend_from_slice(&length(catalog.len())?.to_le_bytes());
    stream.piece.extend_from_slice(&catalog);
    let mut tables: Vec<TableId> =
        snapshot.catalog().row_tables().filter(|table| !table.is_index()).collect();
    tables.sort_unstable();
    let mut rows = 0u64;
    for table in tables {
        let (mut result, mut first) = (Ok(()), true);
        snapshot
            .scan(table, &KeyRange::ALL, false, &mut |key, row| {
                if std::mem::take(&mut first) {
                    stream.piece.push(TABLE);
                    stream.piece.extend_from_slice(&table.0.to_le_bytes());
                }
                rows += 1;
                result = stream.write_row(key, row);
                if result.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })
            .map_err(io::Error::other)?;
        result?;
    }
    stream.piece.push(END);
    stream.piece.extend_from_slice(&rows.to_le_bytes());
    Ok(())
}

fn length(length: usize) -> io::Result<u32> {
    u32::try_from(length)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "more than 4 GiB in one piece"))
}

type RequestFields = (ClientId, TransactionId, u64, u32, u64);

fn request_fields(request: &LiveRequest) -> RequestFields {
    (request.client, request.id, request.height, request.index, request.expires_at)
}

/// Hashes what it writes, both in pieces.
struct Stream<W> {
    sink: W,
    digest: DigestWriter,
    piece: Vec<u8>,
}

impl<W: Write> Stream<W> {
    fn new(sink: W) -> Stream<W> {
        Stream { sink, digest: DigestWriter::default(), piece: Vec::with_capacity(PIECE_BYTES + 1024) }
    }

    fn write_row(&mut self, key: &Key, row: &Row) -> io::Result<()> {
        let key = key.as_bytes();
        let key_length =
            u16::try_from(key.len()).map_err(|_| io::Error::other("a key longer than KEY_BYTES_MAX"))?;
        self.piece.push(ROW);
        self.piece.extend_from_slice(&key_length.to_le_bytes());
        let row_length = self.piece.len();
        self.piece.extend_from_slice(&[0; 4]);
        self.piece.extend_from_slice(key);
        let start = self.piece.len();
        row.serialize(&mut self.piece)?;
        let written = length(self.piece.len() - start)?;
        self.piece[row_length..row_length + 4].copy_from_slice(&written.to_le_bytes());
        self.flush_full_piece()
    }

    fn flush_full_piece(&mut self) -> io::Result<()> {
        if self.piece.len() >= PIECE_BYTES { self.flush_piece() } else { Ok(()) }
    }

    fn flush_piece(&mut self) -> io::Result<()> {
        self.digest.write_all(&self.piece)?;
        self.sink.write_all(&self.piece)?;
        self.piece.clear();
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        self.flush_piece()?;
        self.sink.write_all(&self.digest.finish().0)?;
        self.sink.flush()
    }
}

/// Reads what [`write_checkpoint`] wrote into a store that `stores` makes, up to the end of the stream, which it checks. Memory
/// grows with what has been read, never with what the stream claims.
///
/// # Errors
/// [`CheckpointError`]: every stream that differs in a byte from one that was written.
pub fn read_checkpoint(source: impl Read, stores: &dyn Stores) -> Result<Checkpoint, CheckpointError> {
    let mut source = Source::new(source);
    let (header, catalog) = read_begin(&mut source)?;
    let mut filling = stores.begin(Version::after_block(header.height), catalog.clone())?;
    let (mut rows, failure): (Vec<AfterImage>, _) = (Vec::new(), FirstFailure::default());
    let read = read_tables(&mut source, &catalog, &mut |image| {
        rows.push(image);
        if rows.len() == PIECE_ROWS {
            if failure.get().is_none() {
                failure.keep(filling.add(&rows));
            }
            rows.clear();
        }
    });
    // Before what is wrong with the stream: no other checkpoint would help.
    failure.check(())?;
    read?;
    filling.add(&rows)?;
    let live = read_live_requests(&mut source, header.height)?;
    source.check_end()?;
    Ok(Checkpoint { header, state: filling.finish()?, live })
}

/// What stands in front of the rows.
fn read_begin(source: &mut Source<impl Read>) -> Result<(CheckpointHeader, Arc<Catalog>), CheckpointError> {
    let magic: [u8; 8] = source.array()?;
    if magic != MAGIC {
        return Err(CheckpointError::Format { found: format!("the bytes {magic:02x?}") });
    }
    let format = u32::from_le_bytes(source.array()?);
    if format != FORMAT {
        return Err(CheckpointError::Format { found: format!("format {format}") });
    }
    let header: CheckpointHeader = source.value()?;
    if header.height >= 1 << 48 {
        return Err(damaged("a height below 2^48", header.height.to_string()));
    }
    let catalog_bytes = source.bytes_with_length()?;
    let catalog: Catalog = decode_exactly(&catalog_bytes)
        .map_err(|error| damaged("the canonical encoding of a catalog", error.to_string()))?;
    Ok((header, Arc::new(catalog)))
}

/// Visits every row.
fn read_tables(
    source: &mut Source<impl Read>,
    catalog: &Catalog,
    visit: &mut dyn FnMut(AfterImage),
) -> Result<(), CheckpointError> {
    // Rows of the keys that a unique index has taken have no columns.
    let mut columns: BTreeMap<TableId, usize> = catalog.row_tables().map(|table| (table, 0)).collect();
    columns.extend(catalog.tables.values().map(|table| (table.id, table.columns.len())));
    columns.extend(catalog.kept_besides_tables());
    columns.retain(|table, _| !table.is_index());
    let (mut loaded, mut last): (u64, Option<RowId>) = (0, None);
    // The table that rows belong to, and its number of columns.
    let mut table: Option<(TableId, usize)> = None;
    loop {
        match u8::from_le_bytes(source.array()?) {
            TABLE => {
                let id = TableId(u32::from_le_bytes(source.array()?));
                if table.is_some_and(|(before, _)| before >= id) {
                    return Err(damaged("tables by id", format!("table {}", id.0)));
                }
                let columns =
                    columns.get(&id).ok_or_else(|| damaged("a table of the catalog", id.0.to_string()))?;
                table = Some((id, *columns));
            }
            ROW => {
                let (table, columns) = table.ok_or_else(|| damaged("a table", "a row"))?;
                let image = source.row(table, columns)?;
                if last.as_ref().is_some_and(|last| *last >= image.row) {
                    return Err(damaged("rows by key", format!("{:?}", image.row)));
                }
                last = Some(image.row.clone());
                loaded += 1;
                visit(image);
            }
            END => break,
            other => return Err(damaged("a table, a row or the end of the rows", format!("byte {other}"))),
        }
    }
    let claimed = u64::from_le_bytes(source.array()?);
    if claimed == loaded {
        Ok(())
    } else {
        Err(damaged("the number of rows", format!("{claimed}, not {loaded}")))
    }
}

fn read_live_requests(source: &mut Source<impl Read>, height: u64) -> Result<LiveRequests, CheckpointError> {
    let mut live = LiveRequests::at(height);
    let count = u64::from_le_bytes(source.array()?);
    live.reserve(count as usize);
    let mut last = None;
    for _ in 0..count {
        let (client, id, height, index, expires_at): RequestFields = source.value()?;
        let place = Some((expires_at, height, index));
        if last >= place {
            return Err(damaged("live ids by expiry and position", format!("{place:?}")));
        }
        last = place;
        let request = LiveRequest { client, id, height, index, expires_at };
        live.restore(&request).map_err(|found| damaged("live ids", found))?;
    }
    Ok(live)
}

/// Gathers small reads before it hashes them.
#[derive(Default)]
struct Hashed {
    digest: DigestWriter,
    waiting: Vec<u8>,
}

impl Hashed {
    fn update(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= PIECE_BYTES {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.digest.write_all(&self.waiting).expect("hashing cannot fail");
        self.waiting.clear();
    }
}

/// Hashes what it reads.
struct Source<R> {
    inner: io::BufReader<R>,
    digest: Hashed,
}

impl<R: Read> Source<R> {
    fn new(inner: R) -> Source<R> {
        let inner = io::BufReader::with_capacity(PIECE_BYTES, inner);
        Source { inner, digest: Hashed::default() }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], CheckpointError> {
        let mut bytes = [0; N];
        self.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// A value of fixed length, or one that decodes without trust in lengths.
    fn value<T: BorshDeserialize>(&mut self) -> Result<T, CheckpointError> {
        Ok(T::deserialize_reader(self)?)
    }

    fn bytes_with_length(&mut self) -> Result<Vec<u8>, CheckpointError> {
        let length = u32::from_le_bytes(self.array()?);
        let mut bytes = Vec::new();
        self.bytes(u64::from(length), &mut bytes)?;
        Ok(bytes)
    }

    /// Grows the buffer as bytes arrive.
    fn bytes(&mut self, length: u64, buffer: &mut Vec<u8>) -> Result<(), CheckpointError> {
        let read = (&mut self.inner).take(length).read_to_end(buffer)?;
        self.digest.update(&buffer[buffer.len() - read..]);
        if read as u64 == length { Ok(()) } else { Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()) }
    }

    fn row(&mut self, table: TableId, columns: usize) -> Result<AfterImage, CheckpointError> {
        let [k0, k1, r0, r1, r2, r3] = self.array()?;
        let key_length = usize::from(u16::from_le_bytes([k0, k1]));
        let row_length = u32::from_le_bytes([r0, r1, r2, r3]);
        if key_length > limits::KEY_BYTES_MAX {
            return Err(damaged("a key within KEY_BYTES_MAX", format!("{key_length} bytes")));
        }
        let length = key_length as u64 + u64::from(row_length);
        let mut bytes = Vec::new();
        self.bytes(length, &mut bytes)?;
        let (key, row) = bytes.split_at(key_length);
        let row: Row = decode_exactly(row)
            .map_err(|error| damaged("the canonical encoding of a row", error.to_string()))?;
        if row.len() != columns {
            return Err(damaged(
                "one value per column",
                format!("{} values for {columns} columns", row.len()),
            ));
        }
        Ok(AfterImage { row: RowId { table, key: Key::from_bytes(key) }, value: Some(row) })
    }

    pub(crate) fn check_end(mut self) -> Result<(), CheckpointError> {
        self.digest.flush();
        let computed = self.digest.digest.clone().finish();
        let stored = Digest(self.array()?);
        if stored != computed {
            return Err(damaged("the digest of the stream", stored.to_string()));
        }
        match self.inner.read(&mut [0])? {
            0 => Ok(()),
            _ => Err(damaged("the end of the stream", "more bytes")),
        }
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.digest.update(&buffer[..read]);
        Ok(read)
    }
}
