use crate::EngineBenchError;
use crate::postgres::PostgresError;
use std::path::{Path, PathBuf};

/// Why experiments cannot be run.
#[derive(Debug, thiserror::Error)]
pub enum LaboratoryError {
    /// The file of experiments, or a result, cannot be read or written.
    #[error("cannot {action} {path}: {error}")]
    File {
        /// `read`, `write`, `create`, `remove`.
        action: &'static str,
        /// Which file.
        path: PathBuf,
        /// What the system says.
        error: std::io::Error,
    },
    /// Not TOML, or a key that no experiment has.
    #[error("the file of experiments cannot be read; correct it here:\n{0}")]
    Malformed(String),
    /// A value of an experiment that makes no sense.
    #[error("experiment `{experiment}`: expected {expected}, found {found}; correct the file of experiments")]
    Experiment {
        /// Its id.
        experiment: String,
        /// What would be right.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A filter that is none.
    #[error("--only: expected {expected}, found `{found}`")]
    Only {
        /// What would be right.
        expected: String,
        /// What came.
        found: String,
    },
    /// An option that makes no sense.
    #[error("{option}: expected {expected}, found {found}")]
    Option {
        /// Which.
        option: &'static str,
        /// What would be right.
        expected: &'static str,
        /// What came.
        found: String,
    },
    /// A network that is measured does not go on.
    #[error("the network cannot be measured: {0}")]
    Network(String),
    /// The filters leave nothing.
    #[error(
        "expected at least one point to measure, found none that {command} runs and --only leaves; \
         leave a filter out, or look into docs/{file} for what there is"
    )]
    Nothing {
        /// Name of the command.
        command: &'static str,
        /// Where its experiments are.
        file: &'static str,
    },
    /// A workload's sum does not come to what the committed calls say.
    #[error("{point}: the invariant of the workload is broken, the protocol has lost or made up an update")]
    Invariant {
        /// Which point.
        point: String,
    },
    /// The engine could not be measured.
    #[error("{point}: {error}")]
    Engine {
        /// Which point.
        point: String,
        /// Why.
        error: EngineBenchError,
    },
    /// A system to compare with that cannot be had here.
    #[error("expected {expected}, found {found}")]
    Missing {
        /// What is needed.
        expected: String,
        /// What there is.
        found: String,
    },
    /// A system says no, or has ended.
    #[error("{system} does not answer {request}: {error}")]
    Answer {
        /// Which.
        system: &'static str,
        /// What it was asked.
        request: String,
        /// What it says.
        error: String,
    },
    /// A query takes longer than it may.
    #[error("not ended after {seconds} s")]
    Late {
        /// What it may take.
        seconds: f64,
    },
    /// PostgreSQL could not be measured.
    #[error(transparent)]
    Postgres(#[from] PostgresError),
}

impl LaboratoryError {
    /// From what the system says about a file.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> LaboratoryError {
        move |error| LaboratoryError::File { action, path: path.to_path_buf(), error }
    }

    pub(crate) fn option(
        option: &'static str,
        expected: &'static str,
        found: impl std::fmt::Display,
    ) -> LaboratoryError {
        LaboratoryError::Option { option, expected, found: found.to_string() }
    }
}
