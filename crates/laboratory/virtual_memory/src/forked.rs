use crate::MemoryError;
use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid, pipe2, read, write};
use parking_lot::Mutex;
use std::os::fd::{AsFd, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// One fork at a time, so that no child inherits the pipe of another one.
static FORKING: Mutex<()> = Mutex::new(());

/// Says that this process is a forked one, which has a single thread and ends when it has answered.
#[derive(Debug)]
pub struct InChild(());

/// A forked process that answers one question, and ends. It has the memory of this process as it was at [`Forked::start`].
///
/// Dropping it ends the process, and so does the end of the thread that has started it.
#[derive(Debug)]
pub struct Forked {
    /// `None` once it is reaped.
    child: Option<Pid>,
    pipe: OwnedFd,
    answer: Vec<i64>,
}

impl Forked {
    /// Forks. In the forked process `compute` fills a copy of `answer`.
    ///
    /// Other threads of this process may hold locks at that moment, which nobody opens in the forked one. So `compute` must neither
    /// lock nor allocate. One that does may hang, until [`Forked::wait`] ends it.
    ///
    /// # Errors
    /// The system gives no pipe or no process.
    pub fn start(
        answer: Vec<i64>,
        compute: impl FnOnce(&InChild, &mut [i64]),
    ) -> Result<Forked, MemoryError> {
        let _one = FORKING.lock();
        let (pipe, end) = pipe2(OFlag::O_CLOEXEC).map_err(MemoryError::system("make a pipe"))?;
        let parent = getpid();
        // SAFETY: the child runs only `in_child`, whose contract is that of this function, and never returns.
        match unsafe { fork() }.map_err(MemoryError::system("fork"))? {
            ForkResult::Child => in_child(parent, &end, answer, compute),
            ForkResult::Parent { child } => Ok(Forked { child: Some(child), pipe, answer }),
        }
    }

    /// The answer. When this returns, however it does, the forked process is gone.
    ///
    /// # Errors
    /// [`MemoryError::Late`] after `limit`; [`MemoryError::Ended`] if the process ended before it had answered.
    pub fn wait(mut self, limit: Duration) -> Result<Vec<i64>, MemoryError> {
        let mut bytes = vec![0_u8; self.answer.len() * size_of::<i64>()];
        let began = Instant::now();
        let mut got = 0;
        while got < bytes.len() {
            let left = limit.saturating_sub(began.elapsed());
            if !self.can_be_read(left)? {
                if left.is_zero() {
                    return Err(MemoryError::Late { milliseconds: limit.as_millis() });
                }
                continue;
            }
            match read(&self.pipe, &mut bytes[got..]) {
                Ok(0) => return Err(MemoryError::Ended { how: self.reap(false) }),
                Ok(count) => got += count,
                Err(Errno::EINTR) => {}
                Err(error) => return Err(MemoryError::System { action: "read an answer", error }),
            }
        }
        self.reap(true);
        let words = bytes.chunks_exact(size_of::<i64>());
        for (to, from) in self.answer.iter_mut().zip(words) {
            *to = i64::from_ne_bytes(from.try_into().expect("chunks of eight bytes"));
        }
        Ok(std::mem::take(&mut self.answer))
    }

    /// The number of the process, while it is there.
    pub fn process(&self) -> Option<u32> {
        self.child.map(|child| child.as_raw() as u32)
    }

    fn can_be_read(&self, left: Duration) -> Result<bool, MemoryError> {
        // In steps, because a timeout has fewer bits than a duration; at least a millisecond, or the last one would be a busy loop.
        let step = left.clamp(Duration::from_millis(1), Duration::from_secs(1)).as_millis() as u16;
        let mut waited = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
        match poll(&mut waited, PollTimeout::from(step)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::EINTR) => Ok(false),
            Err(error) => Err(MemoryError::System { action: "wait for an answer", error }),
        }
    }

    /// Ends the process if it should still run, takes it off the kernel's list, and says how it ended.
    fn reap(&mut self, ends: bool) -> String {
        let Some(child) = self.child.take() else { return "it is gone already".to_string() };
        if ends {
            // It may have ended by itself meanwhile.
            let _ = kill(child, Signal::SIGKILL);
        }
        loop {
            match waitpid(child, None) {
                Err(Errno::EINTR) => {}
                Ok(WaitStatus::Exited(_, code)) => return format!("exit code {code}"),
                Ok(WaitStatus::Signaled(_, signal, _)) => return format!("signal {signal}"),
                Ok(_) => {}
                Err(error) => return error.to_string(),
            }
        }
    }
}

impl Drop for Forked {
    fn drop(&mut self) {
        self.reap(true);
    }
}

/// Everything that the forked process does.
fn in_child(
    parent: Pid,
    pipe: &OwnedFd,
    mut answer: Vec<i64>,
    compute: impl FnOnce(&InChild, &mut [i64]),
) -> ! {
    let exit = |code| -> ! {
        // SAFETY: it ends the process at once, without what the parent has registered for its own end.
        unsafe { libc::_exit(code) }
    };
    // When the thread that has forked ends, nobody waits for an answer any more.
    if nix::sys::prctl::set_pdeathsig(Signal::SIGKILL).is_err() || getppid() != parent {
        exit(3);
    }
    if catch_unwind(AssertUnwindSafe(|| compute(&InChild(()), &mut answer))).is_err() {
        exit(2);
    }
    for word in answer.chunks(64) {
        let mut bytes = [0_u8; 512];
        for (to, from) in bytes.chunks_exact_mut(size_of::<i64>()).zip(word) {
            to.copy_from_slice(&from.to_ne_bytes());
        }
        let mut left = &bytes[..size_of_val(word)];
        while !left.is_empty() {
            match write(pipe, left) {
                Ok(count) => left = &left[count..],
                Err(Errno::EINTR) => {}
                Err(_) => exit(4),
            }
        }
    }
    exit(0)
}
