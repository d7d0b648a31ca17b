//! The templates of `to_char`, `to_date` and `to_timestamp`.

use types::SqlError;

/// A piece of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A field.
    Field {
        /// Which.
        field: Field,
        /// How its letters are written.
        case: Case,
        /// `FM`: without filling up.
        plain: bool,
        /// `TH` or `th` behind it.
        ordinal: Option<Case>,
    },
    /// What stands for itself.
    Literal(char),
    /// What stands for itself in quotes.
    Quoted(char),
}

/// How letters are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Case {
    Upper,
    Capital,
    Lower,
}

/// A field of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Hour12,
    Hour24,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    /// So many digits of the fraction of a second.
    Fraction(u8),
    SecondsOfDay,
    /// With points or without.
    HalfDay(bool),
    Era(bool),
    /// So many of its last digits; 4 is all.
    Year(u8),
    YearWithComma,
    IsoYear(u8),
    MonthName,
    MonthAbbreviation,
    Month,
    MonthRoman,
    DayName,
    DayAbbreviation,
    DayOfYear,
    IsoDayOfYear,
    Day,
    DayOfWeek,
    IsoDayOfWeek,
    WeekOfMonth,
    Week,
    IsoWeek,
    Century,
    Julian,
    Quarter,
    Zone,
    ZoneHour,
    ZoneMinute,
    ZoneOffset,
}

use Field as F;

/// Keywords in upper case; where several begin alike the longest comes first.
const KEYWORDS: &[(&str, Field)] = &[
    ("A.D.", F::Era(true)),
    ("A.M.", F::HalfDay(true)),
    ("AD", F::Era(false)),
    ("AM", F::HalfDay(false)),
    ("B.C.", F::Era(true)),
    ("BC", F::Era(false)),
    ("CC", F::Century),
    ("DAY", F::DayName),
    ("DDD", F::DayOfYear),
    ("DD", F::Day),
    ("DY", F::DayAbbreviation),
    ("D", F::DayOfWeek),
    ("FF1", F::Fraction(1)),
    ("FF2", F::Fraction(2)),
    ("FF3", F::Fraction(3)),
    ("FF4", F::Fraction(4)),
    ("FF5", F::Fraction(5)),
    ("FF6", F::Fraction(6)),
    ("HH24", F::Hour24),
    ("HH12", F::Hour12),
    ("HH", F::Hour12),
    ("IDDD", F::IsoDayOfYear),
    ("ID", F::IsoDayOfWeek),
    ("IW", F::IsoWeek),
    ("IYYY", F::IsoYear(4)),
    ("IYY", F::IsoYear(3)),
    ("IY", F::IsoYear(2)),
    ("I", F::IsoYear(1)),
    ("J", F::Julian),
    ("MI", F::Minute),
    ("MM", F::Month),
    ("MONTH", F::MonthName),
    ("MON", F::MonthAbbreviation),
    ("MS", F::Millisecond),
    ("OF", F::ZoneOffset),
    ("P.M.", F::HalfDay(true)),
    ("PM", F::HalfDay(false)),
    ("Q", F::Quarter),
    ("RM", F::MonthRoman),
    ("SSSSS", F::SecondsOfDay),
    ("SSSS", F::SecondsOfDay),
    ("SS", F::Second),
    ("TZH", F::ZoneHour),
    ("TZM", F::ZoneMinute),
    ("TZ", F::Zone),
    ("US", F::Microsecond),
    ("WW", F::Week),
    ("W", F::WeekOfMonth),
    ("Y,YYY", F::YearWithComma),
    ("YYYY", F::Year(4)),
    ("YYY", F::Year(3)),
    ("YY", F::Year(2)),
    ("Y", F::Year(1)),
];

/// Reads a template.
///
/// # Errors
/// Refuses `FX`, `TM` and `SP` by name.
pub(super) fn parse(template: &str) -> Result<Vec<Piece>, SqlError> {
    let mut pieces = Vec::new();
    let mut rest = template;
    let mut plain = false;
    while let Some(first) = rest.chars().next() {
        let begins =
            |prefix: &str| rest.get(..prefix.len()).is_some_and(|text| text.eq_ignore_ascii_case(prefix));
        if begins("FM") {
            (plain, rest) = (true, &rest[2..]);
            continue;
        }
        if begins("FX") || begins("TM") {
            let what = format_args!("{} in the template of a date or time", rest[..2].to_uppercase());
            return Err(SqlError::unsupported(what));
        }
        if let Some((keyword, field)) = KEYWORDS.iter().find(|(keyword, _)| begins(keyword)) {
            let written = &rest[..keyword.len()];
            rest = &rest[keyword.len()..];
            let ordinal = match rest.get(..2) {
                Some("TH") => Some(Case::Upper),
                Some("th") => Some(Case::Lower),
                _ => None,
            };
            if ordinal.is_some() {
                rest = &rest[2..];
            }
            if rest.get(..2).is_some_and(|text| text.eq_ignore_ascii_case("SP")) {
                return Err(SqlError::unsupported("SP in the template of a date or time"));
            }
            pieces.push(Piece::Field { field: *field, case: case_of(written), plain, ordinal });
            plain = false;
            continue;
        }
        rest = &rest[first.len_utf8()..];
        match first {
            '"' => {
                let mut characters = rest.chars();
                while let Some(next) = characters.next() {
                    match next {
                        '"' => break,
                        '\\' => pieces.extend(characters.next().map(Piece::Quoted)),
                        other => pieces.push(Piece::Quoted(other)),
                    }
                }
                rest = characters.as_str();
            }
            '\\' if rest.starts_with('"') => {
                pieces.push(Piece::Literal('"'));
                rest = &rest[1..];
            }
            other => pieces.push(Piece::Literal(other)),
        }
        plain = false;
    }
    Ok(pieces)
}

fn case_of(written: &str) -> Case {
    let mut letters = written.chars().filter(char::is_ascii_alphabetic);
    match (letters.next(), letters.next()) {
        (Some(first), _) if first.is_ascii_lowercase() => Case::Lower,
        (Some(_), Some(second)) if second.is_ascii_lowercase() => Case::Capital,
        _ => Case::Upper,
    }
}

impl Case {
    /// A word that is written with a capital in this case.
    pub fn of(self, word: &str) -> String {
        match self {
            Case::Upper => word.to_ascii_uppercase(),
            Case::Capital => word.to_string(),
            Case::Lower => word.to_ascii_lowercase(),
        }
    }
}

/// The months' names.
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// The days' names.
pub(super) const DAYS: [&str; 7] =
    ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
