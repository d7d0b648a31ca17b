use super::chart::{Chart, escaped};
use super::table::Table;
use std::fmt::Write;

const STYLE: &str = include_str!("style.css");

/// The whole report as one page that needs nothing else.
pub(crate) struct Page {
    /// Which command made it.
    pub(crate) command: &'static str,
    /// Names and values at the top: the machine, how it was measured.
    pub(crate) conditions: Vec<(&'static str, String)>,
    /// How to read the charts.
    pub(crate) reading: &'static str,
    pub(crate) sections: Vec<Section>,
    /// HTML behind the sections, with its id and title for the way there.
    pub(crate) appendix: Option<(&'static str, &'static str, String)>,
}

/// An experiment.
pub(crate) struct Section {
    pub(crate) id: String,
    /// Paper and number, or what it is called.
    pub(crate) name: String,
    pub(crate) title: String,
    /// Parameters, and what to know when reading the result.
    pub(crate) text: String,
    /// Name and colour of each series.
    pub(crate) legend: Vec<(String, &'static str)>,
    /// Whether charts show what the paper prints.
    pub(crate) published: bool,
    pub(crate) charts: Vec<Chart>,
    pub(crate) table: Table,
}

impl Page {
    pub(super) fn html(&self) -> String {
        let mut page = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <title>Entente laboratory: {command}</title><style>{STYLE}</style></head><body><main>\
             <header><h1>Entente laboratory <span>{command}</span></h1><dl>",
            command = self.command
        );
        for (name, value) in &self.conditions {
            let _ = write!(page, "<div><dt>{name}</dt><dd>{}</dd></div>", escaped(value));
        }
        let _ = write!(page, "</dl><p>{}</p></header><nav>", escaped(self.reading));
        for section in &self.sections {
            let _ = write!(page, "<a href=\"#{}\">{}</a>", escaped(&section.id), escaped(&section.name));
        }
        if let Some((id, title, _)) = &self.appendix {
            let _ = write!(page, "<a href=\"#{id}\">{title}</a>");
        }
        page += "</nav>";
        self.sections.iter().for_each(|section| section.write(&mut page));
        if let Some((_, _, html)) = &self.appendix {
            page += html;
        }
        page += "</main></body></html>\n";
        page
    }
}

impl Section {
    fn write(&self, page: &mut String) {
        let _ = write!(
            page,
            "<section id=\"{}\"><h2><span>{}</span> {}</h2><p>{}</p><div class=\"legend\">",
            escaped(&self.id),
            escaped(&self.name),
            escaped(&self.title),
            escaped(&self.text)
        );
        for (series, color) in &self.legend {
            let _ = write!(page, "<span><i style=\"background:{color}\"></i>{}</span>", escaped(series));
        }
        if self.published {
            *page += "<span><i class=\"published\"></i>the paper</span>";
        }
        *page += "</div><div class=\"charts\">";
        for chart in &self.charts {
            let _ = write!(page, "<figure>{}</figure>", chart.svg());
        }
        *page += "</div><details><summary>All figures</summary><div class=\"scroll\">";
        self.table.write_html(page);
        *page += "</div></details></section>";
    }
}

impl Table {
    fn write_html(&self, page: &mut String) {
        *page += "<table><tr>";
        for column in &self.columns {
            let _ = write!(page, "<th>{}</th>", escaped(column));
        }
        *page += "</tr>";
        for row in &self.rows {
            *page += "<tr>";
            for cell in row {
                let _ = write!(page, "<td>{}</td>", escaped(cell));
            }
            *page += "</tr>";
        }
        *page += "</table>";
    }
}
