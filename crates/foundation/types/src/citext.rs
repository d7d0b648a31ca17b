//! Values of type `citext`: texts whose large and small letters are the same to comparisons, as PostgreSQL's extension of that name has
//! them.

use crate::ExecutionVersion;
use crate::unknown_types::check_known;
use borsh::BorshDeserialize;
use std::io;
use std::sync::Arc;

/// What the encoding begins with as a value.
const TAG: u8 = 33;

/// The text, as it was written.
pub(crate) fn read_citext<R: io::Read>(reader: &mut R) -> io::Result<Arc<str>> {
    check_known(TAG, ExecutionVersion::V16)?;
    Arc::<str>::deserialize_reader(reader)
}

/// What comparisons look at: ASCII letters small, as in the C collation.
pub(crate) fn folded(text: &str) -> impl Iterator<Item = u8> + '_ {
    text.bytes().map(|byte| byte.to_ascii_lowercase())
}
