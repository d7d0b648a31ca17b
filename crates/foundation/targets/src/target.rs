//! A folder on a disk, or a prefix in a bucket.

use crate::TargetError;
use bytes::Bytes;
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload, parse_url_opts};
use std::path::PathBuf;
use std::sync::Arc;
use url::Url;

/// Addresses of object stores. In those of the last ones the path is the key, as in the first ones.
const SCHEMES: [&str; 8] = ["s3", "s3a", "gs", "az", "abfs", "abfss", "adl", "file"];
/// What settings of object stores are called in the environment.
const SETTINGS: [&str; 3] = ["AWS_", "AZURE_", "GOOGLE_"];

/// Where something is kept outside of a node's folder.
#[derive(Clone)]
pub struct Target {
    store: Arc<dyn ObjectStore>,
    /// Where it begins in the store.
    root: Path,
    url: Url,
    /// The folder, where it is one on a disk.
    folder: Option<PathBuf>,
}

impl Target {
    /// `to`: a folder, or the address of an object store, whose keys and regions come from the environment as usual
    /// (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT` and so on).
    ///
    /// # Errors
    /// [`TargetError::Address`].
    pub fn open(to: &str) -> Result<Target, TargetError> {
        let failed = |what: String| TargetError::Address { found: to.to_string(), what };
        if !to.contains("://") {
            return Target::folder(to.into());
        }
        let url = Url::parse(to).map_err(|error| failed(error.to_string()))?;
        if !SCHEMES.contains(&url.scheme()) {
            return Err(failed(format!("{}:// is not known", url.scheme())));
        }
        if url.scheme() == "file" {
            let path = url.to_file_path();
            return Target::folder(path.map_err(|()| failed("it is no path of a file".to_string()))?);
        }
        let known = |name: &str| SETTINGS.iter().any(|setting| name.starts_with(setting));
        let settings = std::env::vars()
            .filter(|(name, _)| known(name))
            .map(|(name, value)| (name.to_lowercase(), value));
        let (store, root) = parse_url_opts(&url, settings).map_err(|error| failed(error.to_string()))?;
        Ok(Target { store: store.into(), root, url, folder: None })
    }

    /// A folder, which need not be there.
    fn folder(path: PathBuf) -> Result<Target, TargetError> {
        let failed = |what: String| TargetError::Address { found: path.display().to_string(), what };
        let absolute = std::path::absolute(&path).map_err(|error| failed(error.to_string()))?;
        if absolute.exists() && !absolute.is_dir() {
            return Err(failed("it is no folder".to_string()));
        }
        let url = Url::from_directory_path(&absolute);
        let url = url.map_err(|()| failed("it is no path of a folder".to_string()))?;
        let root = Path::from_absolute_path(&absolute).map_err(|error| failed(error.to_string()))?;
        let store = LocalFileSystem::new().with_automatic_cleanup(true);
        Ok(Target { store: Arc::new(store), root, url, folder: Some(absolute) })
    }

    /// A part of a store that the caller has made: for tests, and stores that this crate does not know.
    ///
    /// # Errors
    /// [`TargetError::Address`].
    pub fn in_store(store: Arc<dyn ObjectStore>, root: &str) -> Result<Target, TargetError> {
        let failed = |what: String| TargetError::Address { found: root.to_string(), what };
        let path = Path::parse(root).map_err(|error| failed(error.to_string()))?;
        let url = Url::parse(&format!("memory:///{path}")).map_err(|error| failed(error.to_string()))?;
        Ok(Target { store, root: path, url, folder: None })
    }

    /// The address, for people.
    pub fn address(&self) -> String {
        match &self.folder {
            Some(folder) => folder.display().to_string(),
            None => self.url.to_string(),
        }
    }

    /// The key of a file: names that come from the store are encoded as it needs them already.
    pub fn path(&self, relative: &str) -> Path {
        let key = format!("{}/{relative}", self.root);
        let key = key.trim_start_matches('/');
        Path::parse(key).unwrap_or_else(|_| Path::from(key))
    }

    /// The store that it is in.
    pub fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// Its address.
    pub fn url(&self) -> &Url {
        &self.url
    }

    fn failed(&self, action: &'static str, path: &str, error: &dyn std::fmt::Display) -> TargetError {
        TargetError::Storage {
            action,
            path: path.to_string(),
            target: self.address(),
            what: error.to_string(),
        }
    }

    /// A file's content; `None`: it is not there.
    ///
    /// # Errors
    /// [`TargetError::Storage`].
    pub async fn read(&self, path: &str) -> Result<Option<Bytes>, TargetError> {
        let found = match self.store.get(&self.path(path)).await {
            Err(object_store::Error::NotFound { .. }) => return Ok(None),
            found => found.map_err(|error| self.failed("read", path, &error))?,
        };
        found.bytes().await.map(Some).map_err(|error| self.failed("read", path, &error))
    }

    /// How many bytes a file has; `None`: it is not there.
    ///
    /// # Errors
    /// [`TargetError::Storage`].
    pub async fn size(&self, path: &str) -> Result<Option<u64>, TargetError> {
        match self.store.head(&self.path(path)).await {
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(self.failed("read", path, &error)),
            Ok(found) => Ok(Some(found.size)),
        }
    }

    /// Writes a file, whole or not at all. On a disk it is flushed.
    ///
    /// # Errors
    /// [`TargetError::Storage`].
    pub async fn write(&self, path: &str, content: Vec<u8>) -> Result<(), TargetError> {
        self.put(path, content, PutMode::Overwrite).await.map(drop)
    }

    /// The same where there is none of this name. False: there is.
    ///
    /// # Errors
    /// [`TargetError::Storage`].
    pub async fn create(&self, path: &str, content: Vec<u8>) -> Result<bool, TargetError> {
        self.put(path, content, PutMode::Create).await
    }

    async fn put(&self, path: &str, content: Vec<u8>, mode: PutMode) -> Result<bool, TargetError> {
        let options = PutOptions { mode, ..PutOptions::default() };
        match self.store.put_opts(&self.path(path), PutPayload::from(content), options).await {
            Ok(_) => self.flush(path).map(|()| true),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
            Err(error) => Err(self.failed("write", path, &error)),
        }
    }

    /// Makes a file survive a loss of power: an object store does that by itself.
    ///
    /// # Errors
    /// [`TargetError::Storage`].
    pub fn flush(&self, path: &str) -> Result<(), TargetError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let file = folder.join(path);
        let flushed = |path: &std::path::Path| std::fs::File::open(path)?.sync_all();
        let done = flushed(&file).and_then(|()| file.parent().map_or(Ok(()), flushed));
        done.map_err(|error| self.failed("flush", path, &error))
    }

    /// Removes a file, if it is there.
    ///
    /// # Errors
    /// [`TargetError::Storage`].
    pub async fn remove(&self, path: &str) -> Result<(), TargetError> {
        match self.store.delete(&self.path(path)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed("remove", path, &error)),
        }
    }

    /// Names of the files in a folder, with those that were being written when somebody fell.
    ///
    /// # Errors
    /// [`TargetError::Storage`].
    pub async fn list(&self, folder: &str) -> Result<Vec<String>, TargetError> {
        if let Some(root) = &self.folder {
            return match std::fs::read_dir(root.join(folder)) {
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
                Err(error) => Err(self.failed("list", folder, &error)),
                Ok(entries) => {
                    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
                    Ok(names.collect())
                }
            };
        }
        let prefix = self.path(folder);
        let found = self.store.list_with_delimiter(Some(&prefix)).await;
        let found = found.map_err(|error| self.failed("list", folder, &error))?.objects;
        Ok(found.iter().filter_map(|meta| meta.location.filename().map(String::from)).collect())
    }

    /// Removes a file of this name, which may be one that was being written.
    ///
    /// # Errors
    /// [`TargetError::Storage`].
    pub async fn remove_left(&self, folder: &str, name: &str) -> Result<(), TargetError> {
        match &self.folder {
            None => self.remove(&format!("{folder}/{name}")).await,
            Some(root) => match std::fs::remove_file(root.join(folder).join(name)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(self.failed("remove", name, &error))
                }
                _ => Ok(()),
            },
        }
    }
}
