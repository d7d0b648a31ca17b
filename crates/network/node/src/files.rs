//! Reading and writing the files of a node's folder, with errors that name them.

use crate::NodeError;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Who may read a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Its owner alone.
    Owner,
    /// Whoever the system lets.
    All,
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> NodeError {
    move |error| NodeError::File { action, path: path.to_path_buf(), error }
}

pub(crate) fn read(path: &Path) -> Result<String, NodeError> {
    std::fs::read_to_string(path).map_err(failed("read", path))
}

pub(crate) fn write(path: &Path, content: &str) -> Result<(), NodeError> {
    std::fs::write(path, content).map_err(failed("write", path))
}

/// Writes a file that its owner alone can read, and that must not be there yet.
pub(crate) fn write_secret(path: &Path, content: &str) -> Result<(), NodeError> {
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(content.as_bytes())).map_err(failed("write", path))
}

/// Writes a file in the place of the one that is there, if any: whoever ends meanwhile has the one or the other. Where a link is, the
/// file that it names is replaced: `node.toml` may stand in `/etc`.
pub(crate) fn replace(path: &Path, content: &str, readers: Readers) -> Result<(), NodeError> {
    let named = std::fs::canonicalize(path);
    let path = named.as_deref().unwrap_or(path);
    let mut name = path.file_name().unwrap_or_default().to_os_string();
    name.push(".unfinished");
    let unfinished = path.with_file_name(name);
    // What an earlier attempt left may be readable for others.
    remove(&unfinished)?;
    let mode = if readers == Readers::Owner { 0o600 } else { 0o666 };
    let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&unfinished);
    let written = file.and_then(|mut file| {
        file.write_all(content.as_bytes())?;
        file.sync_all()
    });
    written.and_then(|()| std::fs::rename(&unfinished, path)).map_err(failed("write", path))
}

/// Removes a file, if it is there.
pub(crate) fn remove(path: &Path) -> Result<(), NodeError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(failed("remove", path)(error)),
        _ => Ok(()),
    }
}

pub(crate) fn create(path: &Path) -> Result<(), NodeError> {
    std::fs::create_dir_all(path).map_err(failed("create", path))
}

/// Refuses a folder that has anything in it.
pub(crate) fn is_empty(path: &Path) -> Result<(), NodeError> {
    if path.read_dir().is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(NodeError::FolderNotEmpty(path.to_path_buf()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_where_a_link_names_it() {
        let place = tempfile::tempdir().expect("a temporary folder");
        let (etc, folder) = (place.path().join("etc"), place.path().join("node"));
        for folder in [&etc, &folder] {
            create(folder).expect("created");
        }
        let (file, link) = (etc.join("node.toml"), folder.join("node.toml"));
        write(&file, "before").expect("written");
        std::os::unix::fs::symlink(&file, &link).expect("linked");
        replace(&link, "after", Readers::All).expect("replaced");
        assert_eq!(read(&file).expect("readable"), "after");
        assert!(link.is_symlink(), "the link stays");
        replace(&folder.join("new"), "new", Readers::Owner).expect("written");
        assert_eq!(read(&folder.join("new")).expect("readable"), "new");
    }
}
