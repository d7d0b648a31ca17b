//! How long texts may become.

use types::{SqlError, SqlState};

pub(crate) fn check_length(bytes: usize) -> Result<(), SqlError> {
    if bytes > types::text_bytes_max() {
        let message = format!(
            "the text would have {bytes} bytes, the limit is {} (TEXT_BYTES_MAX)",
            types::text_bytes_max()
        );
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    Ok(())
}
