//! Who has to agree to a change of the catalog, and what a change must keep to whoever agrees.

use crate::session::place::Place;
use std::collections::BTreeSet;
use std::sync::Arc;
use types::{
    Catalog, Charter, ExecutionModel, Given, Grantee, Index, Policy, Roles, SqlError, SqlState, TableId,
};

/// Whether others have to agree to the change of a catalog.
pub(crate) fn needs_consent(before: &Catalog, after: &Catalog, place: &Place<'_>) -> bool {
    let organisation = place.principal.organisation;
    !before.governance.is_agreed(place.context.height, &|position| position == organisation)
        && !is_own_affair(before, after, organisation)
}

/// Whether a change is about the organisation's own roles alone and what these may do: they can do nothing that its
/// administrator could not. CHECKPOINT, which changes nothing for anybody, is too. So is REFRESH: the rows follow from those of tables,
/// which nobody else is asked about either.
fn is_own_affair(before: &Catalog, after: &Catalog, organisation: u16) -> bool {
    let rest = Catalog {
        version: before.version,
        roles: before.roles.clone(),
        checkpoint: before.checkpoint,
        ..after.clone()
    };
    if rest != *before && apart_from_refreshes(&rest) != apart_from_refreshes(before) {
        return false;
    }
    let (old, new) = (&before.roles, &after.roles);
    let is_own = |name: &str| {
        let of = |roles: &Roles| roles.by_name.get(name).is_none_or(|role| role.organisation == organisation);
        of(old) && of(new)
    };
    let names: BTreeSet<&String> = old.by_name.keys().chain(new.by_name.keys()).collect();
    let mut changed = names.into_iter().filter(|name| old.by_name.get(*name) != new.by_name.get(*name));
    if !changed.all(|name| is_own(name)) {
        return false;
    }
    old.grants.keys().chain(new.grants.keys()).all(|object| {
        let (old, new) = (old.granted(object), new.granted(object));
        let all: BTreeSet<&Given> = old.iter().chain(new.iter()).map(|(given, _)| given).collect();
        all.into_iter().all(|given| match &given.grantee {
            Grantee::Role(name) if is_own(name) => true,
            _ => old.get(given) == new.get(given),
        })
    })
}

/// A catalog without what REFRESH changes of materialized views, and their indexes by names in the place of numbers.
fn apart_from_refreshes(catalog: &Catalog) -> (Catalog, Vec<(String, Vec<Index>)>) {
    let mut rest = Catalog { next_table: 0, ..catalog.clone() };
    let mut indexes = Vec::new();
    for table in rest.tables.values_mut().filter(|table| table.materialized.is_some()) {
        let table = Arc::make_mut(table);
        let mut own = rest.indexes.remove(&table.id).unwrap_or_default();
        own.iter_mut().for_each(|index| index.number = 0);
        indexes.push((table.name.clone(), own));
        table.id = TableId(0);
        if let Some(materialized) = &mut table.materialized {
            Arc::make_mut(materialized).is_populated = true;
        }
    }
    (rest, indexes)
}

/// What a change of the schema must be wherever it is made: policies name members, and in a transaction block it needs
/// nobody else's consent, because its client has been told that it is made.
///
/// # Errors
/// `22023` for a policy; `55000` where others have to agree.
pub(crate) fn check_change(place: &Place<'_>, after: &Catalog) -> Result<(), SqlError> {
    if let Some(charter) = after.governance.charter_at(place.context.height) {
        check_policies(after, charter)?;
    }
    let before = place.snapshot.catalog();
    if place.session.is_some() && needs_consent(before, after, place) {
        return Err(needs_others(before, place, "a schema change in a transaction block").hint(
            "Send the statements outside of a block, alone or as one script: they become a proposal.",
        ));
    }
    Ok(())
}

pub(crate) fn needs_others(before: &Catalog, place: &Place<'_>, what: &str) -> SqlError {
    let own = BTreeSet::from([place.principal.organisation]);
    let missing = before.governance.missing(place.context.height, &own);
    let message = format!("{what} cannot wait for the consent of {missing}");
    SqlError::new(SqlState::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
}

/// Whether the endorsement policies of a catalog name members, where they count.
///
/// # Errors
/// `22023` says which does not.
pub(crate) fn check_policies(catalog: &Catalog, charter: &Charter) -> Result<(), SqlError> {
    if charter.execution == ExecutionModel::OrderExecute {
        return Ok(());
    }
    let members: Vec<&str> = charter.members().map(|(_, one)| one.name.as_str()).collect();
    let procedures =
        catalog.procedures.iter().filter_map(|(key, one)| Some((key, one.endorsement.as_ref()?)));
    let tables = catalog.tables.values().filter_map(|one| Some((&one.name, one.endorsement.as_ref()?)));
    for (name, text) in procedures.chain(tables) {
        Policy::parse(text).and_then(|policy| policy.check(&members)).map_err(|error| {
            let message = format!("the endorsement policy of \"{name}\" cannot be: {error}");
            SqlError::new(SqlState::INVALID_PARAMETER_VALUE, message)
        })?;
    }
    Ok(())
}
