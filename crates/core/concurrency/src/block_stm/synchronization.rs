//! Locks and atomics of this protocol: in unit tests those of `shuttle`, which then decides at each of them which thread
//! goes on, so that tests run through thousands of schedules. Unit tests must therefore call what is here from inside
//! a `shuttle` run; integration tests and everybody else have the real ones.

#[cfg(not(test))]
pub(super) use parking_lot::{Mutex, RwLock};
#[cfg(not(test))]
pub(super) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Gives way to other threads when there is nothing to do.
#[cfg(not(test))]
pub(super) fn pause() {
    std::thread::yield_now();
}

#[cfg(test)]
pub(super) use modelled::{Mutex, RwLock};
#[cfg(test)]
pub(super) use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

#[cfg(test)]
pub(super) fn pause() {
    shuttle::thread::yield_now();
}

/// `shuttle`'s locks with the interface of `parking_lot`.
#[cfg(test)]
mod modelled {
    use shuttle::sync::{MutexGuard, RwLockReadGuard, RwLockWriteGuard};

    #[derive(Default)]
    pub(in super::super) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(in super::super) fn new(value: T) -> Mutex<T> {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        pub(in super::super) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("no thread panics while it holds a lock")
        }

        pub(in super::super) fn into_inner(self) -> T {
            self.0.into_inner().expect("no thread panics while it holds a lock")
        }
    }

    #[derive(Default)]
    pub(in super::super) struct RwLock<T>(shuttle::sync::RwLock<T>);

    impl<T> RwLock<T> {
        pub(in super::super) fn read(&self) -> RwLockReadGuard<'_, T> {
            self.0.read().expect("no thread panics while it holds a lock")
        }

        pub(in super::super) fn write(&self) -> RwLockWriteGuard<'_, T> {
            self.0.write().expect("no thread panics while it holds a lock")
        }

        pub(in super::super) fn into_inner(self) -> T {
            self.0.into_inner().expect("no thread panics while it holds a lock")
        }
    }
}
