//! The thread that makes the index files of finished segments, so that appending never waits for them.

use crate::disk::Disk;
use crate::segment::Segment;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

enum Job {
    Finish(Arc<Segment>),
    /// Answers when everything before it is done.
    Report(mpsc::SyncSender<()>),
}

/// Handle of the thread; dropping it ends the thread after the segment it is at.
pub(crate) struct Indexer {
    /// Holds at most one job per segment, which is its bound; the jobs own nothing that is not in memory anyway.
    jobs: Option<mpsc::Sender<Job>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Indexer {
    pub(crate) fn start(disk: Disk) -> std::io::Result<Indexer> {
        let (jobs, queue) = mpsc::channel();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = thread::Builder::new().name("ledger-indexer".into()).spawn(move || {
            for job in queue {
                match job {
                    _ if stopped.load(Ordering::Relaxed) => break,
                    // A failure costs memory or time, nothing else: the map stays, or the file is made again when the
                    // ledger is opened next. What is wrong with the disk, the writer will say.
                    Job::Finish(segment) => drop(segment.finish_indexes(&disk)),
                    Job::Report(done) => drop(done.send(())),
                }
            }
        })?;
        Ok(Indexer { jobs: Some(jobs), stop, thread: Some(thread) })
    }

    fn send(&self, job: Job) {
        // A thread that has panicked takes no jobs; lookups then work from memory.
        let _ = self.jobs.as_ref().map(|jobs| jobs.send(job));
    }

    pub(crate) fn finish(&self, segment: Arc<Segment>) {
        self.send(Job::Finish(segment));
    }

    /// Hears, or is disconnected, when all segments handed over so far have their files.
    pub(crate) fn report(&self) -> mpsc::Receiver<()> {
        let (done, answer) = mpsc::sync_channel(1);
        self.send(Job::Report(done));
        answer
    }
}

impl Drop for Indexer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // It ended by itself or by a panic that the panic hook has reported.
            let _ = thread.join();
        }
    }
}
