// SPDX-License-Identifier: BSD-3-Clause
//! Waits for events: a file descriptor that is ready, or a time.

use std::io;
use std::os::fd::AsFd;

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use nix::time::{clock_gettime, ClockId as Clock};

/// Events taken at once.
const EVENTS: usize = 32;
/// A sleep that is no longer than this costs more than it saves: to set a timer, to sleep and to wake up, ns.
const NAP_NS: u64 = 10_000;
/// Key of the timer among the events.
const TIMER: u64 = u64::MAX;

/// The monotonic clock, ns.
///
/// # Panics
/// When the machine has none.
#[must_use]
pub fn now_ns() -> u64 {
    let now = clock_gettime(Clock::CLOCK_MONOTONIC).expect("every Linux has a monotonic clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// The processor time that the calling thread has had, ns.
///
/// # Panics
/// When the machine does not count it.
#[must_use]
pub fn thread_ns() -> u64 {
    let had = clock_gettime(Clock::CLOCK_THREAD_CPUTIME_ID).expect("every Linux counts this");
    had.tv_sec() as u64 * 1_000_000_000 + had.tv_nsec() as u64
}

/// The events to wait for, and a timer.
pub struct Poll {
    epoll: Epoll,
    timer: TimerFd,
    /// When the timer expires, ns.
    armed_ns: Option<u64>,
    events: [EpollEvent; EVENTS],
}

impl Poll {
    /// Waits for no descriptor yet.
    ///
    /// # Errors
    /// Those of the system.
    pub fn new() -> io::Result<Poll> {
        let epoll = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, flags)?;
        // Edge-triggered: epoll reports each expiry once, so the timer need be neither read nor disarmed.
        let once = EpollFlags::EPOLLIN | EpollFlags::EPOLLET;
        epoll.add(&timer, EpollEvent::new(once, TIMER))?;
        Ok(Poll {
            epoll,
            timer,
            armed_ns: None,
            events: [EpollEvent::empty(); EVENTS],
        })
    }

    /// Waits for something to read from `fd`, too, under a key below `u64::MAX`.
    ///
    /// # Errors
    /// Those of the system.
    pub fn add(&self, fd: impl AsFd, key: u64) -> io::Result<()> {
        Ok(self
            .epoll
            .add(fd, EpollEvent::new(EpollFlags::EPOLLIN, key))?)
    }

    /// Sets whether `fd`, added before, is waited for to be readable and writable.
    ///
    /// # Errors
    /// Those of the system.
    pub fn interest(&self, fd: impl AsFd, key: u64, read: bool, write: bool) -> io::Result<()> {
        let mut flags = EpollFlags::empty();
        flags.set(EpollFlags::EPOLLIN, read);
        flags.set(EpollFlags::EPOLLOUT, write);
        Ok(self.epoll.modify(fd, &mut EpollEvent::new(flags, key))?)
    }

    /// Stops waiting for `fd`.
    ///
    /// # Errors
    /// Those of the system.
    pub fn remove(&self, fd: impl AsFd) -> io::Result<()> {
        Ok(self.epoll.delete(fd)?)
    }

    /// Waits until an event, or until `alarm_ns` on the monotonic clock; puts the keys of the events into `happened`. It may
    /// return a little earlier, and then nothing has happened.
    ///
    /// # Errors
    /// Those of the system.
    pub fn wait(&mut self, alarm_ns: Option<u64>, happened: &mut Vec<u64>) -> io::Result<()> {
        happened.clear();
        let naps = alarm_ns.is_some_and(|ns| ns <= now_ns() + NAP_NS);
        if let Some(ns) = alarm_ns.filter(|_| !naps) {
            self.arm(ns)?;
        }
        let timeout = if naps {
            EpollTimeout::ZERO
        } else {
            EpollTimeout::NONE
        };
        let count = match self.epoll.wait(&mut self.events, timeout) {
            Ok(count) => count,
            Err(nix::errno::Errno::EINTR) => 0,
            Err(error) => return Err(error.into()),
        };
        for event in &self.events[..count] {
            if event.data() == TIMER {
                self.armed_ns = None;
            } else {
                happened.push(event.data());
            }
        }
        Ok(())
    }

    /// Sets the timer, unless it expires earlier: to set it is expensive, and alarms mostly become later.
    fn arm(&mut self, alarm_ns: u64) -> io::Result<()> {
        if self.armed_ns.is_some_and(|armed_ns| armed_ns <= alarm_ns) {
            return Ok(());
        }
        let at = TimeSpec::new(
            (alarm_ns / 1_000_000_000) as i64,
            (alarm_ns % 1_000_000_000) as i64,
        );
        let flags = TimerSetTimeFlags::TFD_TIMER_ABSTIME;
        self.timer.set(Expiration::OneShot(at), flags)?;
        self.armed_ns = Some(alarm_ns);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn alarms_and_data_wake() {
        let mut poll = Poll::new().unwrap();
        let (mut here, mut there) = UnixStream::pair().unwrap();
        poll.add(&here, 7).unwrap();
        let mut happened = Vec::new();

        let alarm_ns = now_ns() + 1_000_000;
        poll.wait(Some(alarm_ns), &mut happened).unwrap();
        assert!(now_ns() >= alarm_ns && happened.is_empty());
        // A timer that was set for an earlier alarm wakes, too; then the later one is set.
        let (early_ns, late_ns) = (now_ns() + 1_000_000, now_ns() + 5_000_000);
        there.write_all(b"x").unwrap();
        poll.wait(Some(early_ns), &mut happened).unwrap();
        assert_eq!(happened, [7]);
        here.read_exact(&mut [0]).unwrap();
        poll.wait(Some(late_ns), &mut happened).unwrap();
        assert!(now_ns() >= early_ns && happened.is_empty());
        poll.wait(Some(late_ns), &mut happened).unwrap();
        assert!(now_ns() >= late_ns && happened.is_empty());
        // An alarm that has gone off does not wake again.
        let mut writes = there.try_clone().unwrap();
        let writer = thread::spawn(move || {
            thread::sleep(Duration::from_millis(5));
            writes.write_all(b"x").unwrap();
        });
        poll.wait(None, &mut happened).unwrap();
        assert_eq!(happened, [7]);
        writer.join().unwrap();
        here.read_exact(&mut [0]).unwrap();
        // An alarm in the past fires at once, and again at the next wait.
        poll.wait(Some(alarm_ns), &mut happened).unwrap();
        poll.wait(Some(0), &mut happened).unwrap();
        assert!(happened.is_empty());

        there.write_all(b"x").unwrap();
        poll.wait(None, &mut happened).unwrap();
        assert_eq!(happened, [7]);
        here.read_exact(&mut [0]).unwrap();
        poll.interest(&here, 7, false, true).unwrap();
        poll.wait(None, &mut happened).unwrap();
        assert_eq!(happened, [7], "it can be written");
        poll.remove(&here).unwrap();
        poll.wait(Some(now_ns()), &mut happened).unwrap();
        assert!(happened.is_empty());
    }
}
