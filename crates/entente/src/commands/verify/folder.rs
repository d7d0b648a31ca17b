use crate::CommandError;
use std::path::{Path, PathBuf};
use types::Charter;

/// Where blocks and charter are.
pub(super) struct LedgerFolder {
    pub(super) charter: Charter,
    pub(super) blocks: PathBuf,
}

impl LedgerFolder {
    /// `path`: a node's folder or its folder of blocks. `charter`: where the charter is, if not there or beside it.
    pub(super) fn find(path: &Path, charter: Option<&Path>) -> Result<LedgerFolder, CommandError> {
        let inside = path.join("ledger");
        let blocks = if inside.is_dir() { inside } else { path.to_path_buf() };
        if !blocks.is_dir() {
            return Err(
                format!("{} is no folder; name a node's folder or its `ledger`", path.display()).into()
            );
        }
        let charter = match charter {
            Some(charter) => charter.to_path_buf(),
            None => {
                let whole = blocks.canonicalize()?;
                let beside = [Some(whole.as_path()), whole.parent()].into_iter().flatten();
                beside.map(|folder| folder.join("charter.toml")).find(|file| file.is_file()).ok_or_else(
                    || {
                        format!(
                            "there is no charter.toml in {} or beside it; name it with --charter",
                            path.display()
                        )
                    },
                )?
            }
        };
        Ok(LedgerFolder { charter: read_charter(&charter)?, blocks })
    }
}

/// Reads a charter and checks it whole.
pub(in crate::commands) fn read_charter(path: &Path) -> Result<Charter, CommandError> {
    let text =
        std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    Charter::from_toml(&text).map_err(|error| format!("{}: {error}", path.display()).into())
}
