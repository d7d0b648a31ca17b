//! What a run found, counted and listed.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A statement and what came of it.
#[derive(Serialize, Deserialize)]
pub struct Finding {
    /// Name of the regression file.
    pub file: String,
    /// Line in the file, from 1.
    pub line: usize,
    /// The statement.
    pub statement: String,
    /// Why the answers differ; nothing if they do not.
    pub reason: Option<String>,
    /// PostgreSQL's answer, where they differ.
    pub postgres: Option<String>,
    /// Entente's answer, where they differ.
    pub entente: Option<String>,
}

/// The table of all files, one line each and one for all.
pub fn table(findings: &[Finding]) -> String {
    let mut files: Vec<(&str, usize, usize)> = Vec::new();
    for finding in findings {
        if files.last().is_none_or(|(file, ..)| *file != finding.file) {
            files.push((&finding.file, 0, 0));
        }
        if let Some((_, statements, same)) = files.last_mut() {
            *statements += 1;
            *same += usize::from(finding.reason.is_none());
        }
    }
    let statements = files.iter().map(|(_, statements, _)| statements).sum();
    let same = files.iter().map(|(.., same)| same).sum();
    files.push(("all", statements, same));
    let mut text =
        "| file | statements | same | different | share |\n| --- | ---: | ---: | ---: | ---: |\n".to_string();
    for (file, statements, same) in files {
        let share = 100.0 * same as f64 / statements.max(1) as f64;
        text += &format!("| {file} | {statements} | {same} | {} | {share:.1} % |\n", statements - same);
    }
    text
}

/// The reasons, most frequent first, with the files they occur in.
pub fn reasons(findings: &[Finding]) -> String {
    let mut reasons: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    for finding in findings {
        if let Some(reason) = &finding.reason {
            *reasons.entry(reason).or_default().entry(&finding.file).or_default() += 1;
        }
    }
    let mut counted: Vec<(usize, &str, String)> = reasons
        .into_iter()
        .map(|(reason, files)| {
            let names: Vec<String> = files.iter().map(|(file, count)| format!("{file} {count}")).collect();
            (files.values().sum(), reason, names.join(", "))
        })
        .collect();
    counted.sort_by_key(|(count, reason, _)| (std::cmp::Reverse(*count), *reason));
    let mut text = "| statements | reason | files |\n| ---: | --- | --- |\n".to_string();
    for (count, reason, files) in counted {
        text += &format!("| {count} | {} | {files} |\n", reason.replace('|', "\\|"));
    }
    text
}

/// The statements whose reason contains `part`, with both answers.
pub fn shown(findings: &[Finding], part: &str) -> String {
    let mut text = String::new();
    for finding in findings {
        let (Some(reason), Some(postgres), Some(entente)) =
            (&finding.reason, &finding.postgres, &finding.entente)
        else {
            continue;
        };
        if reason.contains(part) {
            let Finding { file, line, statement, .. } = finding;
            text += &format!(
                "-- {file}:{line}: {reason}\n{statement};\n-- PostgreSQL: {postgres}\n-- Entente: {entente}\n\n"
            );
        }
    }
    text
}
