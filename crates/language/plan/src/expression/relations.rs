//! The columns that the expressions of a query may name: those of the relations in its FROM.

use crate::expression::{Expression, Kind};
use types::{ColumnOrigin, DataType, OutputColumn, SqlError, SqlState};

/// The relations of a FROM, under their names. Their columns stand side by side in one row.
#[derive(Clone, Debug, Default)]
pub struct Relations {
    /// In the order of FROM.
    pub relations: Vec<NamedRelation>,
    /// Columns that USING has made one of two.
    pub merged: Vec<Merged>,
    /// Names that joins have by `USING (…) AS name`.
    pub joins: Vec<NamedJoin>,
}

/// A join with a name, under which what its USING has merged is known.
#[derive(Clone, Debug)]
pub struct NamedJoin {
    name: String,
    columns: Vec<(String, Expression)>,
    /// The first relation of the join.
    entry: usize,
}

/// A relation of FROM.
#[derive(Clone, Debug)]
pub struct NamedRelation {
    /// Its name, or its alias.
    pub name: String,
    /// The table that the alias hides, where it is one.
    pub table: Option<String>,
    /// The schema that may stand before its name.
    pub schema: Option<String>,
    /// What it is in the catalog, where it is a table or view.
    pub catalogued: Option<Catalogued>,
    /// Names and types.
    pub columns: Vec<(String, DataType)>,
    /// Position of its first column in the row of all.
    pub first: usize,
    /// Columns that only their qualified names reach, because USING has merged them.
    pub hidden: Vec<usize>,
    /// An outer join gives NULLs where it has no row.
    pub may_be_missing: bool,
    /// The composite type of its rows.
    pub row_type: Option<DataType>,
    /// Behind the columns stands the row's key, which has no name.
    pub keyed: bool,
    /// Positions of columns of the type `record` whose fields are known, and the fields.
    pub records: Vec<(usize, Vec<OutputColumn>)>,
    /// Of a query: by column, what column of a table or view it gives; may be shorter.
    pub origins: Vec<Option<ColumnOrigin>>,
}

/// A table or view as the catalog has it, whatever a statement calls it.
#[derive(Clone, Debug)]
pub struct Catalogued {
    /// Its name.
    pub relation: String,
    /// Names of its columns.
    pub columns: Vec<String>,
    /// Positions of the columns of its primary key, which decide on the others; none where nothing is known to.
    pub primary_key: Vec<usize>,
}

/// A column that USING has made of two.
#[derive(Clone, Debug)]
pub struct Merged {
    /// Its name.
    pub name: String,
    /// Its value.
    pub expression: Expression,
    /// The first relation of the join that it belongs to.
    pub entry: usize,
}

/// Whether a column of this type is shown as one of it: expressions have all digits of a second, and the type below a domain.
pub(crate) fn is_of_type(output: &Expression, column: DataType) -> bool {
    matches!(column, DataType::Domain(_)) || output.data_type == column.unrounded()
}

impl Catalogued {
    fn origin(&self, column: usize) -> ColumnOrigin {
        ColumnOrigin { relation: self.relation.clone(), column }
    }
}

impl NamedRelation {
    fn column(&self, position: usize) -> Expression {
        Expression::column(self.first + position, self.columns[position].1)
    }

    fn named(&self, name: &str) -> Result<Option<usize>, SqlError> {
        let mut found = None;
        for (position, _) in self.columns.iter().enumerate().filter(|(_, (known, _))| known == name) {
            if found.replace(position).is_some() {
                return Err(ambiguous(name));
            }
        }
        Ok(found)
    }
}

fn ambiguous(name: &str) -> SqlError {
    SqlError::new(SqlState::AMBIGUOUS_COLUMN, format!("column reference \"{name}\" is ambiguous"))
}

impl Relations {
    /// Columns of the row of all.
    pub fn width(&self) -> usize {
        self.relations.last().map_or(0, |last| last.first + last.columns.len() + usize::from(last.keyed))
    }

    /// The relations from this one on.
    pub fn between(&self, entry: usize) -> Relations {
        let merged = self.merged.iter().filter(|merged| merged.entry >= entry);
        let merged = merged.map(|merged| Merged { entry: merged.entry - entry, ..merged.clone() });
        let joins = self.joins.iter().filter(|join| join.entry >= entry);
        let joins = joins.map(|join| NamedJoin { entry: join.entry - entry, ..join.clone() });
        Relations {
            relations: self.relations[entry..].to_vec(),
            merged: merged.collect(),
            joins: joins.collect(),
        }
    }

    /// The column of this name.
    ///
    /// # Errors
    /// `42702` where several have it.
    pub fn column(&self, name: &str) -> Result<Option<Expression>, SqlError> {
        self.column_between(name, 0, self.relations.len())
    }

    /// The column of this name among some of the relations.
    ///
    /// # Errors
    /// `42702` where several have it.
    pub fn column_between(
        &self,
        name: &str,
        entry: usize,
        end: usize,
    ) -> Result<Option<Expression>, SqlError> {
        let merged = self.merged.iter().filter(|merged| (entry..end).contains(&merged.entry));
        let mut found: Vec<Expression> =
            merged.filter(|merged| merged.name == name).map(|merged| merged.expression.clone()).collect();
        for relation in &self.relations[entry..end] {
            if let Some(position) = relation.named(name)?
                && !relation.hidden.contains(&position)
            {
                found.push(relation.column(position));
            }
        }
        match found.len() {
            0 | 1 => Ok(found.pop()),
            _ => Err(ambiguous(name)),
        }
    }

    /// The relation of this name.
    pub fn relation(&self, name: &str) -> Option<&NamedRelation> {
        self.relations.iter().find(|relation| relation.name == name)
    }

    /// Whether the relation of that name may be named with this schema in front.
    pub fn is_in_schema(&self, schema: &str, relation: &str) -> bool {
        self.relation(relation).is_some_and(|found| found.schema.as_deref() == Some(schema))
    }

    /// The column of this name in the relation of that name; `None` where there is no such relation.
    ///
    /// # Errors
    /// `42703` where the relation does not have it.
    pub fn qualified(&self, relation: &str, name: &str) -> Option<Result<Expression, SqlError>> {
        let Some(found) = self.relation(relation) else {
            let columns = self.columns_of_join(relation)?;
            let column = columns.into_iter().find(|(known, _)| known == name);
            return Some(column.map(|(_, column)| column).ok_or_else(|| {
                let message = format!("column {relation}.{name} does not exist");
                SqlError::new(SqlState::UNDEFINED_COLUMN, message)
            }));
        };
        Some(match found.named(name) {
            Ok(Some(position)) => Ok(found.column(position)),
            Ok(None) => {
                let message = format!("column {relation}.{name} does not exist");
                Err(SqlError::new(SqlState::UNDEFINED_COLUMN, message))
            }
            Err(error) => Err(error),
        })
    }

    /// Gives the join of the relations from `entry` on a name for these columns, which its USING has merged.
    ///
    /// # Errors
    /// `42712` where something has the name.
    pub fn name_join(&mut self, name: String, entry: usize, columns: &[String]) -> Result<(), SqlError> {
        if self.relation(&name).is_some() || self.joins.iter().any(|join| join.name == name) {
            let message = format!("table name \"{name}\" specified more than once");
            return Err(SqlError::new(SqlState(*b"42712"), message));
        }
        let merged = |column: &String| {
            let mut merged = self.merged.iter();
            let found = merged.find(|merged| merged.entry == entry && merged.name == *column)?;
            Some((column.clone(), found.expression.clone()))
        };
        let columns = columns.iter().filter_map(merged).collect();
        self.joins.push(NamedJoin { name, columns, entry });
        Ok(())
    }

    /// The columns of the join of this name.
    pub fn columns_of_join(&self, name: &str) -> Option<Vec<(String, Expression)>> {
        self.joins.iter().find(|join| join.name == name).map(|join| join.columns.clone())
    }

    /// Names that relations before and from `middle` on share: those of NATURAL.
    pub fn common_columns(&self, entry: usize, middle: usize) -> Vec<String> {
        let of = |range: std::ops::Range<usize>| {
            self.relations[range].iter().flat_map(|relation| relation.columns.iter().map(|(name, _)| name))
        };
        let mut common: Vec<String> = Vec::new();
        for name in of(entry..middle) {
            if !common.contains(name) && of(middle..self.relations.len()).any(|other| other == name) {
                common.push(name.clone());
            }
        }
        common
    }

    /// Lets only qualified names reach the columns of this name in the relations from `entry` on.
    pub fn hide(&mut self, name: &str, entry: usize) {
        for relation in &mut self.relations[entry..] {
            let hidden = relation.columns.iter().enumerate().filter(|(_, (known, _))| known == name);
            let hidden: Vec<usize> = hidden.map(|(position, _)| position).collect();
            relation.hidden.extend(hidden);
        }
    }

    /// What `*` stands for: what a join has merged comes before the rest of its columns.
    pub fn all(&self) -> Vec<(String, Expression)> {
        let mut all = Vec::new();
        for (entry, relation) in self.relations.iter().enumerate() {
            let merged = self.merged.iter().filter(|merged| merged.entry == entry);
            all.extend(merged.map(|merged| (merged.name.clone(), merged.expression.clone())));
            all.extend(relation.all(true));
        }
        all
    }

    /// The names of [`Relations::all`], qualified where USING has not merged columns.
    pub fn paths(&self) -> Vec<Vec<String>> {
        let mut paths = Vec::new();
        for (entry, relation) in self.relations.iter().enumerate() {
            let merged = self.merged.iter().filter(|merged| merged.entry == entry);
            paths.extend(merged.map(|merged| vec![merged.name.clone()]));
            paths.extend(relation.paths(true));
        }
        paths
    }

    /// The relation that a column of the row of all is of, and the column's position there.
    fn place_of(&self, ordinal: u16) -> Option<(&NamedRelation, usize)> {
        let ordinal = usize::from(ordinal);
        let stands_in = |relation: &&NamedRelation| {
            (relation.first..relation.first + relation.columns.len()).contains(&ordinal)
        };
        self.relations.iter().find(stands_in).map(|relation| (relation, ordinal - relation.first))
    }

    /// The table or view that a column of the row of all is of, and the column's name there.
    pub fn catalogued(&self, ordinal: u16) -> Option<(&str, &str)> {
        let (relation, position) = self.place_of(ordinal)?;
        let known = relation.catalogued.as_ref()?;
        Some((known.relation.as_str(), known.columns.get(position)?.as_str()))
    }

    /// By output, what column of a table or view it is. A cast to another length leaves the values of a column as they are,
    /// and is none.
    pub fn origins(&self, outputs: &[Expression]) -> Vec<Option<ColumnOrigin>> {
        outputs.iter().map(|output| self.origin(output)).collect()
    }

    fn origin(&self, output: &Expression) -> Option<ColumnOrigin> {
        let Kind::Column(ordinal) = output.kind else { return None };
        let (relation, column) = self.place_of(ordinal)?;
        if !is_of_type(output, relation.columns[column].1) {
            return None;
        }
        match &relation.catalogued {
            Some(known) => known.columns.get(column).map(|_| known.origin(column)),
            None => relation.origins.get(column).cloned().flatten(),
        }
    }

    /// Where the row of all has the primary key of the relation that this column is of; `None` where that has none.
    pub fn primary_key_beside(&self, ordinal: u16) -> Option<impl Iterator<Item = u16>> {
        let ordinal = usize::from(ordinal);
        let relation = self.relations.iter().rev().find(|relation| relation.first <= ordinal)?;
        let key = relation.catalogued.as_ref().map(|known| &known.primary_key)?;
        (!key.is_empty()).then(|| key.iter().map(|position| (relation.first + position) as u16))
    }

    /// The fields of a column of the row of all, where it is a record and they are known.
    pub fn fields_of(&self, ordinal: u16) -> Option<&[OutputColumn]> {
        let ordinal = usize::from(ordinal);
        let relation = self.relations.iter().rev().find(|relation| relation.first <= ordinal)?;
        let known = relation.records.iter().find(|(position, _)| *position == ordinal - relation.first)?;
        Some(&known.1)
    }

    /// The name of a column of the row of all, qualified.
    pub fn name_of(&self, ordinal: u16) -> Option<String> {
        let ordinal = usize::from(ordinal);
        let relation = self.relations.iter().rev().find(|relation| relation.first <= ordinal)?;
        Some(format!("{}.{}", relation.name, relation.columns.get(ordinal - relation.first)?.0))
    }
}

impl NamedRelation {
    /// The names of [`NamedRelation::all`].
    pub fn paths(&self, visible: bool) -> Vec<Vec<String>> {
        let names = self.all(visible).into_iter().map(|(column, _)| vec![self.name.clone(), column]);
        names.collect()
    }

    /// What `name.*` stands for; `visible`: without what USING has merged.
    pub fn all(&self, visible: bool) -> Vec<(String, Expression)> {
        let shown = (0..self.columns.len()).filter(|position| !visible || !self.hidden.contains(position));
        shown.map(|position| (self.columns[position].0.clone(), self.column(position))).collect()
    }
}
