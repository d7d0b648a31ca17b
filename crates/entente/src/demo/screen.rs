//! What a person sees: lines that stay, above lines that change.

use crate::CommandError;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};
use std::fmt::Display;

/// The terminal. Where standard error is none, lines that change are not shown.
#[derive(Clone, Default)]
pub(crate) struct Screen {
    lines: MultiProgress,
}

impl Screen {
    /// Prints a line that stays.
    pub(crate) fn say(&self, text: impl Display) {
        self.lines.suspend(|| println!("{text}"));
    }

    /// Whether nobody sees the lines that change.
    pub(crate) fn is_hidden(&self) -> bool {
        self.lines.is_hidden()
    }

    /// A line that changes, with a wheel that turns at each change. It is cut where the terminal ends.
    pub(crate) fn line(&self, name: &str) -> Result<ProgressBar, CommandError> {
        let style = ProgressStyle::with_template("{spinner} {prefix:10} {wide_msg}")?;
        Ok(self.lines.add(ProgressBar::new_spinner().with_style(style)).with_prefix(name.to_string()))
    }

    /// A bar that grows up to `length`.
    pub(crate) fn bar(&self, name: &str, length: u64) -> Result<ProgressBar, CommandError> {
        let style = ProgressStyle::with_template("  {prefix:10} {bar:40} {pos}/{len}  {per_sec}")?;
        Ok(self.lines.add(ProgressBar::new(length)).with_style(style).with_prefix(name.to_string()))
    }
}
