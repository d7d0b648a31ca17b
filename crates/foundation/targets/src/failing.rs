//! A store in memory whose writes fail when they are told to, for tests of whoever writes into targets.

use async_trait::async_trait;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use std::io::{Error as IoError, ErrorKind};
use std::sync::atomic::{AtomicI64, Ordering};

/// What a store does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Writing fails, and nothing is written.
    Refused,
    /// There is no room.
    NoRoom,
    /// Writing fails, and part of the file is there all the same: what some file systems over a network do.
    Torn,
    /// It is written, and the answer gets lost.
    AnswerLost,
}

/// A store in memory whose writes fail behind some that do not.
#[derive(Debug)]
pub struct FailingStore {
    /// What has been written.
    pub inner: InMemory,
    /// Writes until one fails; below zero all do.
    writes_left: AtomicI64,
    fault: Fault,
}

impl FailingStore {
    /// Nothing fails yet.
    pub fn new(fault: Fault) -> FailingStore {
        FailingStore { inner: InMemory::new(), writes_left: AtomicI64::new(i64::MAX), fault }
    }

    /// So many more writes succeed.
    pub fn fail_after(&self, writes: i64) {
        self.writes_left.store(writes, Ordering::SeqCst);
    }

    /// Nothing fails any more.
    pub fn heal(&self) {
        self.fail_after(i64::MAX);
    }
}

impl std::fmt::Display for FailingStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "a store that fails")
    }
}

#[async_trait]
impl ObjectStore for FailingStore {
    async fn put_opts(&self, path: &Path, content: PutPayload, options: PutOptions) -> Result<PutResult> {
        if self.writes_left.fetch_sub(1, Ordering::SeqCst) > 0 {
            return self.inner.put_opts(path, content, options).await;
        }
        let kind = match self.fault {
            Fault::NoRoom => ErrorKind::StorageFull,
            _ => ErrorKind::ConnectionReset,
        };
        match self.fault {
            // Never a name that a reader trusts: no object store tears an object.
            Fault::Torn => {
                let half: Vec<u8> =
                    content.iter().flatten().copied().take(content.content_length() / 2).collect();
                let torn = Path::from(format!("{path}#1"));
                self.inner.put_opts(&torn, half.into(), PutOptions::default()).await?;
            }
            Fault::AnswerLost => drop(self.inner.put_opts(path, content, options).await?),
            Fault::Refused | Fault::NoRoom => {}
        }
        Err(object_store::Error::Generic { store: "failing", source: Box::new(IoError::from(kind)) })
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(path, options).await
    }

    fn delete_stream(&self, paths: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
