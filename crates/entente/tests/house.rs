//! The shape of the source: crates import downwards, files form few circles, functions fit on a screen.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemUse, UseTree, Visibility};

/// A function that is longer does not fit on a screen.
const FUNCTION_LINES_MAX: usize = 80;
/// What was one crate, `sql`, had 143 of 204 files in circles; its successors may have a third of that.
const FILES_IN_CIRCLES_MAX: usize = 47;
/// The crates that it became.
const SUCCESSORS_OF_SQL: [&str; 5] = ["syntax", "plan", "execute", "plpgsql", "sql"];
/// The groups of `crates/`, each of which imports only from those before it.
const GROUPS: [&str; 8] =
    ["foundation", "state", "language", "core", "network", "analytics", "laboratory", "entente"];
/// Imports of a crate of a later group, with the reason.
const UPWARDS: [(&str, &str, &str); 1] =
    [("audit", "ordering", "checking a block offline needs the verifier of ordering's certificates")];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Every file below a folder whose name ends so, in order.
fn files(folder: &Path, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            found.extend(files(&path, end));
        } else if path.to_string_lossy().ends_with(end) {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn parsed(path: &Path) -> syn::File {
    let text = fs::read_to_string(path).expect("a readable file");
    syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Finds functions that are too long.
struct Functions {
    too_long: Vec<String>,
    path: PathBuf,
}

impl Functions {
    fn look(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let (begin, end) = (signature.fn_token.span.start(), block.brace_token.span.close().end());
        let lines = end.line - begin.line + 1;
        if lines > FUNCTION_LINES_MAX {
            self.too_long.push(format!("{} lines: {} in {}", lines, signature.ident, self.path.display()));
        }
    }
}

impl<'ast> Visit<'ast> for Functions {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.look(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        self.look(&function.sig, &function.block);
        visit::visit_impl_item_fn(self, function);
    }

    fn visit_trait_item_fn(&mut self, function: &'ast syn::TraitItemFn) {
        if let Some(block) = &function.default {
            self.look(&function.sig, block);
        }
    }
}

#[test]
fn no_function_is_longer_than_a_screen() {
    let mut functions = Functions { too_long: Vec::new(), path: PathBuf::new() };
    for path in files(&crates(), ".rs") {
        let file = parsed(&path);
        functions.path = path;
        functions.visit_file(&file);
    }
    assert!(
        functions.too_long.is_empty(),
        "functions of more than {FUNCTION_LINES_MAX} lines: {:#?}",
        functions.too_long
    );
}

#[test]
fn crates_import_from_their_own_group_and_those_before_it() {
    let manifests = files(&crates(), "Cargo.toml");
    let group = |manifest: &PathBuf| {
        let below = manifest.strip_prefix(crates()).expect("it lies there");
        let name = below.iter().next().expect("a folder").to_string_lossy().into_owned();
        GROUPS
            .iter()
            .position(|known| **known == name)
            .unwrap_or_else(|| panic!("{name} is no group of crates"))
    };
    let name = |manifest: &PathBuf| {
        manifest.parent().and_then(Path::file_name).expect("a folder").to_string_lossy().into_owned()
    };
    let groups: BTreeMap<String, usize> =
        manifests.iter().map(|manifest| (name(manifest), group(manifest))).collect();
    let mut upwards = BTreeSet::new();
    for manifest in &manifests {
        let text = fs::read_to_string(manifest).expect("a readable manifest");
        let mut section = "";
        for line in text.lines() {
            if line.starts_with('[') {
                section = line;
            }
            let imported = line.split(['.', ' ', '=']).next().unwrap_or_default();
            if section == "[dependencies]"
                && groups.get(imported).is_some_and(|of| *of > groups[&name(manifest)])
            {
                upwards.insert((name(manifest), imported.to_string()));
            }
        }
    }
    let known = UPWARDS.iter().map(|(from, to, _)| (from.to_string(), to.to_string())).collect();
    assert_eq!(upwards, known, "each import of a later group has a reason");
}

/// A module that has a file: its names from the root of its crate.
type Module = Vec<String>;

/// The files of a crate and what they import of one another.
struct Imports {
    modules: BTreeMap<Module, syn::File>,
    /// What a module offers under a name that stands elsewhere.
    offered: BTreeMap<(Module, String), Vec<String>>,
}

/// Names of paths that a file has, but for those of its tests.
#[derive(Default)]
struct Paths {
    /// Of `pub use`.
    offered: Vec<Vec<String>>,
    used: Vec<Vec<String>>,
}

fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}

fn leaves(tree: &UseTree, before: &[String], found: &mut Vec<Vec<String>>) {
    let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
    match tree {
        UseTree::Path(path) => leaves(&path.tree, &with(&path.ident), found),
        UseTree::Name(name) => found.push(with(&name.ident)),
        UseTree::Rename(name) => found.push(with(&name.ident)),
        UseTree::Glob(_) => found.push(before.to_vec()),
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, before, found)),
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast Item) {
        let tested = matches!(item, Item::Mod(module) if is_of_tests(&module.attrs));
        if !tested {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let offers = !matches!(item.vis, Visibility::Inherited);
        leaves(&item.tree, &[], if offers { &mut self.offered } else { &mut self.used });
    }

    /// `pub(super)` names who sees it, and imports nothing.
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.used.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        visit::visit_path(self, path);
    }
}

impl Imports {
    fn of(source: &Path) -> Imports {
        let mut modules = BTreeMap::new();
        for path in files(source, ".rs") {
            let below = path.strip_prefix(source).expect("it lies there").with_extension("");
            let mut module: Module = below.iter().map(|name| name.to_string_lossy().into_owned()).collect();
            module.pop_if(|name| name == "mod" || name == "lib");
            modules.insert(module, parsed(&path));
        }
        let mut imports = Imports { modules, offered: BTreeMap::new() };
        for module in imports.modules.keys() {
            for path in imports.paths(module).offered {
                let Some(path) = imports.path_from_root(module, &path) else { continue };
                let Some(name) = path.last().cloned() else { continue };
                imports.offered.insert((module.clone(), name), path);
            }
        }
        imports
    }

    fn paths(&self, module: &Module) -> Paths {
        let mut paths = Paths::default();
        paths.visit_file(&self.modules[module]);
        paths
    }

    /// The path from the crate's root; `None` where it leads out of the crate.
    fn path_from_root(&self, module: &Module, path: &[String]) -> Option<Vec<String>> {
        let ups = path.iter().take_while(|name| *name == "super").count();
        match path.first()?.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some([module, &path[1..]].concat()),
            "super" => Some([&module[..module.len().checked_sub(ups)?], &path[ups..]].concat()),
            first => {
                let below = [module.as_slice(), &[first.to_string()]].concat();
                self.modules.contains_key(&below).then(|| [module, path].concat())
            }
        }
    }

    /// The file in which the name that a path ends with stands.
    fn file_of(&self, mut path: Vec<String>) -> Module {
        // As often as a name may be offered on.
        for _ in 0..6 {
            let file = (0..=path.len()).rev().map(|end| path[..end].to_vec());
            let file = file.into_iter().find(|module| self.modules.contains_key(module)).unwrap_or_default();
            let Some(name) = path.get(file.len()) else { return file };
            match self.offered.get(&(file.clone(), name.clone())) {
                Some(elsewhere) if !elsewhere.starts_with(&path) => {
                    path = [elsewhere.as_slice(), &path[file.len() + 1..]].concat();
                }
                _ => return file,
            }
        }
        Module::new()
    }

    /// Files that import themselves over others.
    fn in_circles(&self) -> Vec<String> {
        let imported = |module: &Module| -> BTreeSet<Module> {
            let used = self.paths(module).used;
            let inside = used.iter().filter_map(|path| self.path_from_root(module, path));
            inside.map(|path| self.file_of(path)).filter(|other| other != module).collect()
        };
        let imports: BTreeMap<&Module, BTreeSet<Module>> =
            self.modules.keys().map(|module| (module, imported(module))).collect();
        let reaches_itself = |module: &&Module| {
            let (mut reached, mut waiting) = (BTreeSet::new(), imports[*module].iter().collect::<Vec<_>>());
            while let Some(next) = waiting.pop() {
                if reached.insert(next) {
                    waiting.extend(&imports[next]);
                }
            }
            reached.contains(*module)
        };
        self.modules.keys().filter(reaches_itself).map(|module| module.join("::")).collect()
    }
}

#[test]
fn few_files_of_sql_import_one_another_in_circles() {
    let language = crates().join("language");
    let circles: BTreeMap<&str, Vec<String>> = SUCCESSORS_OF_SQL
        .into_iter()
        .map(|name| (name, Imports::of(&language.join(name).join("src")).in_circles()))
        .collect();
    let count: usize = circles.values().map(Vec::len).sum();
    assert!(
        count <= FILES_IN_CIRCLES_MAX,
        "{count} files in circles, at most {FILES_IN_CIRCLES_MAX}: {circles:#?}"
    );
}
