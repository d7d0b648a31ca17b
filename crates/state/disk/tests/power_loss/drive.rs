//! A disk as a model: what stands in files and folders, and what of it is there for good.
//!
//! It promises what POSIX does and no more. A flush of a file keeps its content; a flush of a folder keeps its names, also those
//! of files and folders that are new, and nothing of what is in them. What was not flushed may survive a loss of power or not,
//! each change for itself, a later one without an earlier one; only a name that goes over to another one does both at once.

use crate::records::Record;
use rand::RngExt;
use rand::rngs::StdRng;
use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The number of a file or folder, whatever names it has.
type Node = usize;

const ROOT: Node = 0;
/// What is written at once, or not.
const SECTORS: [usize; 2] = [512, 4_096];

/// Flushes that the disk does not make.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Forgets {
    Nothing,
    FlushesOfFiles,
    FlushesOfFolders,
}

#[derive(Clone)]
enum Content {
    File(File),
    Folder(Folder),
}

#[derive(Clone, Default)]
struct File {
    kept: Vec<u8>,
    /// Behind that, with the numbers of the changes.
    changes: Vec<(u64, Change)>,
}

#[derive(Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Cut(usize),
}

#[derive(Clone, Default)]
struct Folder {
    kept: BTreeMap<String, Node>,
    changes: Vec<(u64, Naming)>,
    now: BTreeMap<String, Node>,
}

#[derive(Clone, Debug)]
enum Naming {
    Comes(String, Node),
    Goes(String),
    Moves(String, String, Node),
}

/// What a loss of power took away.
#[derive(Clone, Default, Debug)]
pub struct Taken {
    /// Files that lost all that was not flushed.
    pub lost: u64,
    /// Files of which a part is there.
    pub torn: u64,
    /// Files in which later sectors are there and earlier ones are not.
    pub scrambled: u64,
    /// Names that had come.
    pub come: u64,
    /// Names that had gone, and are there again.
    pub gone: u64,
    /// Names that had gone over to others.
    pub moved: u64,
    /// Folders where a later change survived and an earlier one did not.
    pub reordered: u64,
    /// All of that, for people.
    pub told: Vec<String>,
}

impl Taken {
    pub fn is_nothing(&self) -> bool {
        self.told.is_empty()
    }

    pub fn add(&mut self, other: &Taken) {
        self.lost += other.lost;
        self.torn += other.torn;
        self.scrambled += other.scrambled;
        self.come += other.come;
        self.gone += other.gone;
        self.moved += other.moved;
        self.reordered += other.reordered;
    }
}

impl File {
    fn now(&self) -> Vec<u8> {
        let mut bytes = self.kept.clone();
        self.changes.iter().for_each(|(_, change)| change.apply(&mut bytes));
        bytes
    }

    /// What is there when the power comes back.
    fn after_power_loss(&self, random: &mut StdRng, name: &str, taken: &mut Taken) -> Vec<u8> {
        let now = self.now();
        let common = self.kept.iter().zip(&now).take_while(|(kept, now)| kept == now).count();
        if now == self.kept || random.random_bool(0.2) {
            return now;
        }
        let (kept, written) = (self.kept.len(), now.len());
        let told = format!("{name}: {kept} bytes kept, {written} written");
        match random.random_range(0..3) {
            1 if written > common + 1 => {
                let length = random.random_range(common + 1..written);
                taken.torn += 1;
                taken.told.push(format!("{told}, torn at {length}"));
                let rest = self.kept.get(length..).unwrap_or_default();
                [&now[..length], rest].concat()
            }
            2 if written > common + 1 => {
                let sector = SECTORS[random.random_range(0..SECTORS.len())];
                let mut before = self.kept.clone();
                before.resize(written, 0);
                let mut is_hole = false;
                let mut mixed = now;
                for at in (common / sector * sector..written).step_by(sector) {
                    let end = (at + sector).min(written);
                    if random.random_bool(0.5) {
                        mixed[at..end].copy_from_slice(&before[at..end]);
                        is_hole = true;
                    }
                }
                taken.scrambled += u64::from(is_hole);
                taken.told.extend(is_hole.then(|| format!("{told}, without some sectors of {sector}")));
                mixed
            }
            _ => {
                taken.lost += 1;
                taken.told.push(format!("{told}, lost"));
                self.kept.clone()
            }
        }
    }
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Change::Write(at, written) => {
                bytes.resize(bytes.len().max(at + written.len()), 0);
                bytes[*at..at + written.len()].copy_from_slice(written);
            }
            Change::Cut(length) => bytes.resize(*length, 0),
        }
    }
}

impl Naming {
    fn apply(&self, names: &mut BTreeMap<String, Node>) {
        match self {
            Naming::Comes(name, node) => {
                names.insert(name.clone(), *node);
            }
            Naming::Goes(name) => {
                names.remove(name);
            }
            Naming::Moves(from, to, node) => {
                if names.get(from) == Some(node) {
                    names.remove(from);
                }
                names.insert(to.clone(), *node);
            }
        }
    }
}

impl Folder {
    /// Which names are there when the power comes back.
    fn after_power_loss(&self, random: &mut StdRng, path: &str, taken: &mut Taken) -> BTreeMap<String, Node> {
        let count = self.changes.len();
        let survives: Vec<bool> = match random.random_range(0..4) {
            0 => vec![false; count],
            1 => {
                let first = random.random_range(0..=count);
                (0..count).map(|change| change < first).collect()
            }
            _ => (0..count).map(|_| random.random_bool(0.5)).collect(),
        };
        taken.reordered += u64::from(!survives.is_sorted_by(|earlier, later| *earlier || !later));
        let mut names = self.kept.clone();
        for ((_, change), survives) in self.changes.iter().zip(survives) {
            if survives {
                change.apply(&mut names);
                continue;
            }
            match change {
                Naming::Comes(..) => taken.come += 1,
                Naming::Goes(..) => taken.gone += 1,
                Naming::Moves(..) => taken.moved += 1,
            }
            taken.told.push(format!("/{path}: not {change:?}"));
        }
        names
    }
}

/// A disk, and what a program has done to it.
#[derive(Clone)]
pub struct Drive {
    nodes: Vec<Content>,
    /// Of files as they are where the program runs.
    inodes: BTreeMap<u64, Node>,
    /// Flushes that have begun, with the number of the first change that they do not keep.
    flushes: BTreeMap<u64, (Node, u64)>,
    changes: u64,
    forgets: Forgets,
}

impl Drive {
    /// An empty one.
    pub fn new(forgets: Forgets) -> Drive {
        Drive {
            nodes: vec![Content::Folder(Folder::default())],
            inodes: BTreeMap::new(),
            flushes: BTreeMap::new(),
            changes: 0,
            forgets,
        }
    }

    /// What is in a folder, all of it there for good.
    pub fn of_folder(folder: &Path, forgets: Forgets) -> Drive {
        let mut drive = Drive::new(forgets);
        drive.read(ROOT, folder);
        drive
    }

    fn read(&mut self, at: Node, folder: &Path) {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let entry = entry.expect("an entry");
            let name = entry.file_name().into_string().expect("names are text");
            let status = entry.metadata().expect("it is there");
            let known = self.inodes.get(&status.ino()).copied().filter(|_| status.is_file());
            let node = known.unwrap_or_else(|| {
                let node = self.nodes.len();
                if status.is_dir() {
                    self.nodes.push(Content::Folder(Folder::default()));
                    self.read(node, &entry.path());
                } else {
                    let kept = std::fs::read(entry.path()).expect("it is there");
                    self.nodes.push(Content::File(File { kept, changes: Vec::new() }));
                    self.inodes.insert(status.ino(), node);
                }
                node
            });
            let names = self.folder(at);
            names.kept.insert(name.clone(), node);
            names.now.insert(name, node);
        }
    }

    fn folder(&mut self, node: Node) -> &mut Folder {
        match &mut self.nodes[node] {
            Content::Folder(folder) => folder,
            Content::File(_) => panic!("a file has no names"),
        }
    }

    fn node(&self, path: &str) -> Node {
        path.split('/').filter(|name| !name.is_empty()).fold(ROOT, |at, name| match &self.nodes[at] {
            Content::Folder(folder) => *folder.now.get(name).expect(path),
            Content::File(_) => panic!("{path}: a file has no names"),
        })
    }

    fn rename(&mut self, path: &str, naming: impl FnOnce(String) -> Naming) {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let (folder, change) = (self.node(folder), self.changes);
        let (naming, folder) = (naming(name.to_string()), self.folder(folder));
        naming.apply(&mut folder.now);
        folder.changes.push((change, naming));
    }

    fn change(&mut self, inode: u64, change: Change) {
        let node = *self.inodes.get(&inode).expect("its creation was recorded");
        match &mut self.nodes[node] {
            Content::File(file) => file.changes.push((self.changes, change)),
            Content::Folder(_) => panic!("a folder is not written"),
        }
    }

    fn come(&mut self, path: &str, content: Content) -> Node {
        let node = self.nodes.len();
        self.nodes.push(content);
        self.rename(path, |name| Naming::Comes(name, node));
        node
    }

    /// Does what the program has done.
    pub fn apply(&mut self, record: &Record) {
        self.changes += 1;
        match record {
            Record::Begun | Record::Said { .. } => {}
            Record::Created { path, inode } => {
                let node = self.come(path, Content::File(File::default()));
                self.inodes.insert(*inode, node);
            }
            Record::Written { inode, at, bytes } => {
                self.change(*inode, Change::Write(*at as usize, bytes.clone()));
            }
            Record::Cut { inode, length } => self.change(*inode, Change::Cut(*length as usize)),
            Record::Moved { from, to } => {
                let (node, folder) =
                    (self.node(from), |path: &str| path.rfind('/').map(|end| path[..end].to_string()));
                assert_eq!(folder(from), folder(to), "a name that goes to another folder is not known here");
                let before = from.rsplit('/').next().expect("a name").to_string();
                self.rename(to, |name| Naming::Moves(before, name, node));
            }
            Record::Linked { from, to } => {
                let node = self.node(from);
                self.rename(to, |name| Naming::Comes(name, node));
            }
            Record::Folder { path } => {
                self.come(path, Content::Folder(Folder::default()));
            }
            Record::Removed { path } => self.rename(path, Naming::Goes),
            Record::FlushesFile { flush, inode } => {
                let node = *self.inodes.get(inode).expect("its creation was recorded");
                self.flushes.insert(*flush, (node, self.changes));
            }
            Record::FlushesFolder { flush, path } => {
                self.flushes.insert(*flush, (self.node(path), self.changes));
            }
            Record::Flushed { flush } => {
                let (node, before) = self.flushes.remove(flush).expect("it has begun");
                self.flush(node, before);
            }
        }
    }

    /// The program has ended: its flushes do not.
    pub fn end(&mut self) {
        self.flushes.clear();
    }

    fn flush(&mut self, node: Node, before: u64) {
        match &mut self.nodes[node] {
            Content::File(file) if self.forgets != Forgets::FlushesOfFiles => {
                let count = file.changes.partition_point(|(change, _)| *change < before);
                file.changes.drain(..count).for_each(|(_, change)| change.apply(&mut file.kept));
            }
            Content::Folder(folder) if self.forgets != Forgets::FlushesOfFolders => {
                let count = folder.changes.partition_point(|(change, _)| *change < before);
                folder.changes.drain(..count).for_each(|(_, naming)| naming.apply(&mut folder.kept));
            }
            _ => {}
        }
    }

    /// The disk as it is when the power comes back, and what was taken away.
    pub fn after_power_loss(&self, random: &mut StdRng) -> (Drive, Taken) {
        let (mut after, mut taken) = (Drive::new(self.forgets), Taken::default());
        self.survive((ROOT, ""), (&mut after, ROOT), &mut BTreeMap::new(), random, &mut taken);
        (after, taken)
    }

    fn survive(
        &self,
        (from, path): (Node, &str),
        (after, to): (&mut Drive, Node),
        known: &mut BTreeMap<Node, Node>,
        random: &mut StdRng,
        taken: &mut Taken,
    ) {
        let Content::Folder(folder) = &self.nodes[from] else { panic!("a file has no names") };
        for (name, node) in folder.after_power_loss(random, path, taken) {
            let path = format!("{path}/{name}");
            let copy = known.get(&node).copied().unwrap_or(after.nodes.len());
            if copy == after.nodes.len() {
                known.insert(node, copy);
                match &self.nodes[node] {
                    Content::File(file) => {
                        let kept = file.after_power_loss(random, &path, taken);
                        after.nodes.push(Content::File(File { kept, changes: Vec::new() }));
                    }
                    Content::Folder(_) => {
                        after.nodes.push(Content::Folder(Folder::default()));
                        self.survive((node, &path), (after, copy), known, random, taken);
                    }
                }
            }
            let names = after.folder(to);
            names.kept.insert(name.clone(), copy);
            names.now.insert(name, copy);
        }
    }

    /// Writes what is there now into an empty folder. Files with several names have them there too.
    pub fn write_to(&self, folder: &Path) {
        let mut written = BTreeMap::new();
        self.visit(ROOT, folder, &mut |path, node| match &self.nodes[node] {
            Content::Folder(_) => std::fs::create_dir(path).expect("there is room"),
            Content::File(file) => match written.get(&node) {
                Some(first) => std::fs::hard_link(first, path).expect("there is room"),
                None => {
                    std::fs::write(path, file.now()).expect("there is room");
                    written.insert(node, path.to_path_buf());
                }
            },
        });
    }

    /// Learns the numbers of the files, which are in a folder as they are here. Gives what is another one there.
    pub fn compare_with(&mut self, folder: &Path) -> Vec<String> {
        let (mut inodes, mut wrong) = (BTreeMap::new(), Vec::new());
        let mut count = 0;
        self.visit(ROOT, folder, &mut |path, node| {
            count += 1;
            match &self.nodes[node] {
                Content::Folder(_) => {
                    wrong.extend((!path.is_dir()).then(|| format!("{}: no folder", path.display())))
                }
                Content::File(file) => match (std::fs::read(path), std::fs::metadata(path)) {
                    (Ok(bytes), Ok(status)) if bytes == file.now() => {
                        if *inodes.entry(status.ino()).or_insert(node) != node {
                            wrong.push(format!("{}: another file", path.display()));
                        }
                    }
                    (found, _) => {
                        let found = found.map_or(0, |bytes| bytes.len());
                        wrong.push(format!("{}: {found} bytes, not {}", path.display(), file.now().len()));
                    }
                },
            }
        });
        let there = names(folder);
        wrong.extend((there != count).then(|| format!("{there} names, not {count}")));
        self.inodes = inodes;
        wrong
    }

    fn visit(&self, at: Node, folder: &Path, visit: &mut impl FnMut(&Path, Node)) {
        let Content::Folder(names) = &self.nodes[at] else { return };
        for (name, node) in &names.now {
            let path = folder.join(name);
            visit(&path, *node);
            self.visit(*node, &path, visit);
        }
    }
}

/// How many names are below a folder.
fn names(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
    entries.map(|path| 1 + if path.is_dir() { names(&path) } else { 0 }).sum()
}
