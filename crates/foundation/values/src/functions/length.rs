//! How long texts may become.

use types::{SqlError, SqlState, limits};

pub(super) fn check_length(bytes: usize) -> Result<(), SqlError> {
    if bytes > limits::TEXT_BYTES_MAX {
        let message = format!(
            "the text would have {bytes} bytes, the limit is {} (TEXT_BYTES_MAX)",
            limits::TEXT_BYTES_MAX
        );
        return Err(SqlError::new(SqlState::PROGRAM_LIMIT_EXCEEDED, message));
    }
    Ok(())
}
