use crate::hash::KeyHasher;
use crypto::{Digest, PublicKey, Sha256Batch, sha256};
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use types::{ClientId, RejectReason, RequestId, TransactionId};

const BLOCK_DOMAIN: &[u8] = b"entente admitted requests 2\0";
/// Bytes of positions and ids that are hashed as one message: as many as fit into the lanes of [`Sha256Batch`].
const ADMITTED_PIECE: usize = 13 * 36;

/// Places that are reserved at most before there is something to put there, 8 bytes each.
const RESERVED_MAX: usize = 1 << 20;

/// A transaction whose id has not expired.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LiveRequest {
    /// Which client, which request.
    pub client: ClientId,
    /// What the client used the request for.
    pub id: TransactionId,
    /// Height of its block.
    pub height: u64,
    /// Its position in the block.
    pub index: u32,
    /// The last height at which it could stand: so long it is remembered.
    pub expires_at: u64,
}

/// The transaction ids that have not expired: a request of a client stands once in the ledger until it expires.
///
/// Fed in the order of the ledger; what it answers depends on that order alone. It is part of the state: its digest
/// per block goes into the state digest, its content into checkpoints.
///
/// **Memory.** About 85 bytes per live id, and about 50 per client key that has one: a record of 60 bytes in the list of
/// its expiry height (lists grow by a quarter) and 8 bytes in a hash table. There are at most as many ids as blocks can
/// hold transactions within the charter's `expiry_blocks_max`; at 5,000 transactions per second that expire after 200
/// s a million ids and 85 MB. Clients that choose a near expiry keep it small.
#[derive(Clone)]
pub struct LiveRequests {
    hasher: KeyHasher,
    /// The block that is being admitted.
    height: u64,
    content: LiveContent,
    places: HashTable<RecordPosition>,
    numbers: HashTable<u32>,
    /// Numbers of clients without live ids.
    free: Vec<u32>,
    /// Position and id of what the block has admitted, one behind the other.
    admitted: Vec<u8>,
    /// What was admitted and nobody has taken, in the order of the ledger.
    fresh: VecDeque<LiveRequest>,
}

/// The live ids at one height, unchanged while a checkpoint is written. Shares its lists with [`LiveRequests`], which
/// copies a list only where it adds to it meanwhile.
#[derive(Clone, Default)]
pub struct LiveContent {
    /// In the order of the ledger, by expiry height.
    lists: BTreeMap<u64, Arc<Vec<Record>>>,
    /// Key and number of live ids, by client number.
    clients: Vec<(PublicKey, u32)>,
    count: usize,
}

#[derive(Clone, Copy)]
struct Record {
    request: RequestId,
    id: TransactionId,
    client: u32,
    index: u32,
    /// Blocks from its own to its expiry.
    ahead: u32,
}

/// Where a record lies. Live expiry heights are less than 2³² apart, so their lower half names them.
#[derive(Clone, Copy)]
struct RecordPosition {
    expires_at_low: u32,
    position: u32,
}

impl LiveRequests {
    /// Nothing is live before the first block.
    pub fn new() -> LiveRequests {
        LiveRequests::at(0)
    }

    /// Nothing is live after the block at `height`.
    pub fn at(height: u64) -> LiveRequests {
        LiveRequests {
            hasher: KeyHasher::new(),
            height,
            content: LiveContent::default(),
            places: HashTable::new(),
            numbers: HashTable::new(),
            free: Vec::new(),
            admitted: Vec::new(),
            fresh: VecDeque::new(),
        }
    }

    /// These are live after the block at `height`, in the order of [`LiveContent::iter`].
    ///
    /// # Errors
    /// They cannot be: what is wrong with them.
    pub fn restored(height: u64, requests: &[LiveRequest]) -> Result<LiveRequests, &'static str> {
        let mut live = LiveRequests::at(height);
        live.reserve(requests.len());
        requests.iter().try_for_each(|request| live.restore(request))?;
        Ok(live)
    }

    /// Starts the block at `height`: forgets what has expired before it.
    ///
    /// # Panics
    /// Where `height` is not above the last one: a mistake of the caller.
    pub fn begin_block(&mut self, height: u64) {
        assert!(height > self.height, "block {height} follows block {}", self.height);
        self.height = height;
        self.admitted.clear();
        let live = self.content.lists.split_off(&height);
        let expired = std::mem::replace(&mut self.content.lists, live);
        for (expires_at, list) in expired {
            for (position, record) in list.iter().enumerate() {
                self.forget(
                    RecordPosition { expires_at_low: expires_at as u32, position: position as u32 },
                    record,
                );
            }
        }
        if self.places.len() < self.places.capacity() / 4 {
            self.shrink();
        }
    }

    /// Admits the transaction at `index` of the block, which follows those admitted before.
    ///
    /// # Errors
    /// It has expired, or its expiry is more than 2³² − 1 blocks ahead (the charter's limit, far smaller, is the caller's to
    /// check); or the client has used the request before, for the same transaction or for another one.
    pub fn admit(
        &mut self,
        client: ClientId,
        id: TransactionId,
        index: u32,
        expires_at: u64,
    ) -> Result<(), RejectReason> {
        let height = self.height;
        let ahead = expires_at.checked_sub(height).and_then(|ahead| u32::try_from(ahead).ok());
        let Some(ahead) = ahead else { return Err(RejectReason::Expired { height, expires_at }) };
        if let Some(first) = self.lookup(&client) {
            let LiveRequest { height, index, .. } = first;
            return Err(if first.id == id {
                RejectReason::Duplicate { height, index }
            } else {
                RejectReason::RequestReused { height, index }
            });
        }
        self.insert(&client, id, index, expires_at, ahead);
        self.fresh.push_back(LiveRequest { client, id, height, index, expires_at });
        self.admitted.extend_from_slice(&index.to_le_bytes());
        self.admitted.extend_from_slice(&id.0.0);
        Ok(())
    }

    /// Takes what blocks up to this height have admitted since it was taken last, for who writes it down. The blocks behind it may
    /// have been admitted too.
    pub fn take_admitted(&mut self, height: u64) -> Vec<LiveRequest> {
        let behind = self.fresh.partition_point(|request| request.height <= height);
        self.fresh.drain(..behind).collect()
    }

    /// The live transaction with this request of this client.
    pub fn lookup(&self, client: &ClientId) -> Option<LiveRequest> {
        let hash = request_hash(&self.hasher, &client.key, &client.request);
        self.places
            .find(hash, |place| {
                let record = self.content.record(self.height, *place).1;
                record.request == client.request
                    && self.content.clients[record.client as usize].0 == client.key
            })
            .map(|place| {
                let (expires_at, record) = self.content.record(self.height, *place);
                self.content.request(expires_at, record)
            })
    }

    /// Digest of the ids that the block has admitted, in its order, with their positions: the hash over the hashes of
    /// thirteen of them each. An id covers client, request
    /// and expiry.
    pub fn block_digest(&self) -> Digest {
        let mut pieces = Sha256Batch::new();
        self.admitted.chunks(ADMITTED_PIECE).for_each(|piece| pieces.push(&[piece]));
        let pieces = pieces.finish();
        let pieces: Vec<&[u8]> =
            std::iter::once(BLOCK_DOMAIN).chain(pieces.iter().map(|piece| &piece.0[..])).collect();
        sha256(&pieces)
    }

    /// The block that is being admitted, or was last.
    pub fn height(&self) -> u64 {
        self.height
    }

    /// How many ids are live.
    pub fn len(&self) -> usize {
        self.content.count
    }

    /// True where no id is live.
    pub fn is_empty(&self) -> bool {
        self.content.count == 0
    }

    /// What a checkpoint at this height holds. Cheap: copies one entry per client and per expiry height.
    pub fn content(&self) -> LiveContent {
        self.content.clone()
    }

    /// Makes room for so many requests that are to be restored, as somebody says who may be wrong.
    pub(crate) fn reserve(&mut self, count: usize) {
        let (hasher, content, height) = (&self.hasher, &self.content, self.height);
        self.places
            .reserve(count.min(RESERVED_MAX), |place| content.hash(hasher, content.record(height, *place).1));
    }

    /// Takes a request over from a checkpoint, in the order of [`LiveContent::iter`].
    pub(crate) fn restore(&mut self, request: &LiveRequest) -> Result<(), &'static str> {
        if request.height > self.height || request.expires_at < self.height {
            return Err("a live transaction that has not stood yet, or has expired");
        }
        let ahead =
            u32::try_from(request.expires_at - request.height).map_err(|_| "a distant expiry height")?;
        if self.lookup(&request.client).is_some() {
            return Err("the same request of a client twice");
        }
        self.insert(&request.client, request.id, request.index, request.expires_at, ahead);
        Ok(())
    }

    fn insert(&mut self, client: &ClientId, id: TransactionId, index: u32, expires_at: u64, ahead: u32) {
        let number = self.client_number(&client.key);
        let list = Arc::make_mut(self.content.lists.entry(expires_at).or_default());
        if list.len() == list.capacity() {
            list.reserve_exact(list.len() / 4 + 4);
        }
        let position = u32::try_from(list.len()).expect("fewer than 2^32 ids expire at one height");
        list.push(Record { request: client.request, id, client: number, index, ahead });
        self.content.count += 1;
        let hash = request_hash(&self.hasher, &client.key, &client.request);
        let place = RecordPosition { expires_at_low: expires_at as u32, position };
        let (hasher, content, height) = (&self.hasher, &self.content, self.height);
        self.places
            .insert_unique(hash, place, |place| content.hash(hasher, content.record(height, *place).1));
    }

    fn client_number(&mut self, key: &PublicKey) -> u32 {
        let (hasher, clients) = (&self.hasher, &mut self.content.clients);
        let hash = hasher.hash(&key.0);
        let known = |number: &u32| clients[*number as usize].0 == *key;
        let number =
            match self.numbers.entry(hash, known, |number| hasher.hash(&clients[*number as usize].0.0)) {
                Entry::Occupied(entry) => *entry.get(),
                Entry::Vacant(entry) => {
                    let number = self.free.pop().unwrap_or(clients.len() as u32);
                    entry.insert(number);
                    if number as usize == clients.len() {
                        clients.push((*key, 0));
                    } else {
                        clients[number as usize] = (*key, 0);
                    }
                    number
                }
            };
        clients[number as usize].1 += 1;
        number
    }

    fn forget(&mut self, expired: RecordPosition, record: &Record) {
        self.content.count -= 1;
        let same = |place: &RecordPosition| {
            place.position == expired.position && place.expires_at_low == expired.expires_at_low
        };
        if let Ok(entry) = self.places.find_entry(self.content.hash(&self.hasher, record), same) {
            entry.remove();
        }
        let (key, live) = &mut self.content.clients[record.client as usize];
        *live -= 1;
        if *live == 0 {
            if let Ok(entry) =
                self.numbers.find_entry(self.hasher.hash(&key.0), |number| *number == record.client)
            {
                entry.remove();
            }
            self.free.push(record.client);
        }
    }

    /// Gives memory back after a busy time.
    fn shrink(&mut self) {
        let (hasher, content, height) = (&self.hasher, &self.content, self.height);
        self.places
            .shrink_to(2 * self.places.len(), |place| content.hash(hasher, content.record(height, *place).1));
    }
}

impl Default for LiveRequests {
    fn default() -> LiveRequests {
        LiveRequests::new()
    }
}

impl LiveContent {
    /// How many ids are live.
    pub fn len(&self) -> usize {
        self.count
    }

    /// True where no id is live.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Every live id, by expiry height, then in the order of the ledger: the same on every node.
    pub fn iter(&self) -> impl Iterator<Item = LiveRequest> + '_ {
        self.lists.iter().flat_map(move |(expires_at, list)| {
            list.iter().map(move |record| self.request(*expires_at, record))
        })
    }

    fn record(&self, height: u64, place: RecordPosition) -> (u64, &Record) {
        let expires_at = height + u64::from(place.expires_at_low.wrapping_sub(height as u32));
        let list = self.lists.get(&expires_at).expect("a place names a live list");
        (expires_at, &list[place.position as usize])
    }

    fn request(&self, expires_at: u64, record: &Record) -> LiveRequest {
        LiveRequest {
            client: ClientId { key: self.clients[record.client as usize].0, request: record.request },
            id: record.id,
            height: expires_at - u64::from(record.ahead),
            index: record.index,
            expires_at,
        }
    }

    fn hash(&self, hasher: &KeyHasher, record: &Record) -> u64 {
        request_hash(hasher, &self.clients[record.client as usize].0, &record.request)
    }
}

fn request_hash(hasher: &KeyHasher, key: &PublicKey, request: &RequestId) -> u64 {
    let mut bytes = [0; 48];
    bytes[..32].copy_from_slice(&key.0);
    bytes[32..].copy_from_slice(&request.0);
    hasher.hash(&bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn client(key: u8, request: u8) -> ClientId {
        ClientId { key: PublicKey([key; 32]), request: RequestId([request; 16]) }
    }

    fn id(number: u8) -> TransactionId {
        TransactionId(Digest([number; 32]))
    }

    #[test]
    fn a_request_stands_once_until_it_expires() {
        let mut live = LiveRequests::new();
        live.begin_block(5);
        assert_eq!(live.admit(client(1, 1), id(1), 0, 7), Ok(()));
        assert_eq!(
            live.admit(client(1, 1), id(1), 1, 7),
            Err(RejectReason::Duplicate { height: 5, index: 0 })
        );
        live.begin_block(7);
        assert_eq!(
            live.admit(client(1, 1), id(2), 3, 9),
            Err(RejectReason::RequestReused { height: 5, index: 0 })
        );
        assert_eq!(live.admit(client(2, 1), id(2), 3, 9), Ok(()), "requests are the client's own");
        assert_eq!(live.take_admitted(6).len(), 1, "that of block 5");
        live.begin_block(8);
        assert_eq!(live.take_admitted(8).iter().map(|one| one.height).collect::<Vec<_>>(), [7]);
        assert_eq!(live.lookup(&client(1, 1)), None);
        assert_eq!(live.len(), 1);
        assert_eq!(live.admit(client(1, 1), id(1), 0, 8), Ok(()));
        let expired = RejectReason::Expired { height: 8, expires_at: 7 };
        assert_eq!(live.admit(client(1, 2), id(1), 0, 7), Err(expired));
        let distant = 8 + (1 << 32);
        assert!(live.admit(client(1, 2), id(1), 0, distant).is_err());
        assert_eq!(live.admit(client(1, 2), id(1), 0, distant - 1), Ok(()));
    }

    #[test]
    fn a_block_is_digested_by_ids_and_their_order() {
        let digest = |ids: &[(u8, u32)]| {
            let mut live = LiveRequests::new();
            live.begin_block(1);
            for (number, index) in ids {
                live.admit(client(*number, 1), id(*number), *index, 9).unwrap();
            }
            let rejected = live.admit(client(ids[0].0, 1), id(9), 9, 9);
            assert!(rejected.is_err(), "what is not admitted does not count");
            live.block_digest()
        };
        let digests = [
            digest(&[(1, 0), (2, 1)]),
            digest(&[(2, 0), (1, 1)]),
            digest(&[(1, 0), (2, 2)]),
            digest(&[(1, 0)]),
        ];
        assert_eq!(digests.iter().collect::<std::collections::BTreeSet<_>>().len(), 4);
        assert_eq!(digests[0], digest(&[(1, 0), (2, 1)]));
    }

    #[test]
    fn a_checkpoint_content_does_not_change() {
        let mut live = LiveRequests::new();
        live.begin_block(1);
        live.admit(client(1, 1), id(1), 0, 3).unwrap();
        let content = live.content();
        live.admit(client(1, 2), id(2), 1, 3).unwrap();
        live.begin_block(4);
        live.begin_block(5);
        live.admit(client(2, 3), id(3), 0, 6).unwrap();
        assert_eq!(content.iter().map(|request| request.id).collect::<Vec<_>>(), [id(1)]);
        assert_eq!(content.iter().next().unwrap().client, client(1, 1));
        assert_eq!(live.content().iter().map(|request| request.id).collect::<Vec<_>>(), [id(3)]);
    }

    proptest! {
        #[test]
        fn it_answers_as_a_plain_map_would(
            blocks in prop::collection::vec(prop::collection::vec((0u8..6, 0u8..4, 0u8..3, 0u64..5), 0..20), 1..20),
        ) {
            let mut live = LiveRequests::new();
            let mut model: BTreeMap<ClientId, LiveRequest> = BTreeMap::new();
            for (height, block) in (1u64 << 32..).map(|height| height - 3).zip(blocks) {
                live.begin_block(height);
                model.retain(|_, request| request.expires_at >= height);
                for (index, (key, request, number, ahead)) in block.into_iter().enumerate() {
                    let (client, id, index) = (client(key, request), id(number), index as u32);
                    let admitted = live.admit(client, id, index, height + ahead);
                    match model.get(&client) {
                        None => {
                            prop_assert_eq!(admitted, Ok(()));
                            model.insert(client, LiveRequest { client, id, height, index, expires_at: height + ahead });
                        }
                        Some(first) if first.id == id => prop_assert_eq!(
                            admitted, Err(RejectReason::Duplicate { height: first.height, index: first.index })),
                        Some(first) => prop_assert_eq!(
                            admitted, Err(RejectReason::RequestReused { height: first.height, index: first.index })),
                    }
                }
                prop_assert_eq!(live.len(), model.len());
                let mut expected: Vec<LiveRequest> = model.values().copied().collect();
                expected.sort_by_key(|request| (request.expires_at, request.height, request.index));
                prop_assert_eq!(live.content().iter().collect::<Vec<_>>(), expected);
                for (client, request) in &model {
                    prop_assert_eq!(live.lookup(client), Some(*request));
                }
            }
        }
    }
}
