//! What the recorder (`recorder.c`) has written down, in order.
//!
//! A record is a line, and bytes behind it where it says how many: `written` and `said`. Paths stand below the recorder's folder,
//! which is `/`; files have the numbers of their inodes.

/// One change of the files, or what is said of it.
#[derive(Debug)]
pub enum Record {
    /// A change follows, or has failed.
    Begun,
    Created {
        path: String,
        inode: u64,
    },
    Written {
        inode: u64,
        at: u64,
        bytes: Vec<u8>,
    },
    Cut {
        inode: u64,
        length: u64,
    },
    /// What was changed before is on the disk once this flush has ended.
    FlushesFile {
        flush: u64,
        inode: u64,
    },
    FlushesFolder {
        flush: u64,
        path: String,
    },
    Flushed {
        flush: u64,
    },
    Moved {
        from: String,
        to: String,
    },
    Linked {
        from: String,
        to: String,
    },
    Folder {
        path: String,
    },
    /// A name has gone, that of a file or of a folder.
    Removed {
        path: String,
    },
    /// The program says this from now on.
    Said {
        text: String,
    },
}

/// All records of a log. One that the end of the program has cut is left out.
pub fn read(mut log: &[u8]) -> Vec<Record> {
    let mut records = Vec::new();
    while let Some(end) = log.iter().position(|byte| *byte == b'\n') {
        let line = std::str::from_utf8(&log[..end]).expect("paths are text");
        log = &log[end + 1..];
        let words: Vec<&str> = line.split(' ').collect();
        let number = |word: usize| words[word].parse::<u64>().expect(line);
        let path = |word: usize| words[word].to_string();
        let mut bytes = |length: u64| log.split_off(..length as usize).map(<[u8]>::to_vec);
        records.push(match words[0] {
            "?" => Record::Begun,
            "created" => Record::Created { path: path(1), inode: number(2) },
            "written" => match bytes(number(3)) {
                Some(bytes) => Record::Written { inode: number(1), at: number(2), bytes },
                None => break,
            },
            "cut" => Record::Cut { inode: number(1), length: number(2) },
            "flushes-file" => Record::FlushesFile { flush: number(1), inode: number(2) },
            "flushes-folder" => Record::FlushesFolder { flush: number(1), path: path(2) },
            "flushed" => Record::Flushed { flush: number(1) },
            "moved" => Record::Moved { from: path(1), to: path(2) },
            "linked" => Record::Linked { from: path(1), to: path(2) },
            "folder" => Record::Folder { path: path(1) },
            "removed" => Record::Removed { path: path(1) },
            "said" => match bytes(number(1)) {
                Some(text) => Record::Said { text: String::from_utf8_lossy(&text).into_owned() },
                None => break,
            },
            _ => panic!("no record: {line}"),
        });
    }
    records
}
