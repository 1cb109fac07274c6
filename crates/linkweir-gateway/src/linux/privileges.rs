// SPDX-License-Identifier: BSD-3-Clause
//! Gives up the privileges that only set-up needs.

use std::ffi::CString;
use std::io;

use caps::{CapSet, Capability, CapsHashSet};
use nix::sys::prctl;
use nix::unistd::{
    getegid, geteuid, getgrouplist, setegid, setgroups, setresgid, setresuid, Group, User,
};

/// The user that the gateway becomes unless the configuration names another.
pub const NOBODY: &str = "nobody";

/// Gives up, for good, every capability but those that routes and the keys of other users need.
///
/// # Errors
/// When the system refuses.
pub(crate) fn keep_for_reload() -> io::Result<()> {
    let wanted = [Capability::CAP_NET_ADMIN, Capability::CAP_DAC_READ_SEARCH];
    let held = caps::read(None, CapSet::Permitted).map_err(io::Error::other)?;
    let kept: CapsHashSet = wanted
        .into_iter()
        .filter(|cap| held.contains(cap))
        .collect();
    for set in [CapSet::Ambient, CapSet::Inheritable] {
        caps::clear(None, set).map_err(io::Error::other)?;
    }
    for set in [CapSet::Effective, CapSet::Permitted] {
        caps::set(None, set, &kept).map_err(io::Error::other)?;
    }
    prctl::set_no_new_privs()?;
    Ok(())
}

/// Becomes [`NOBODY`] if this is root, and gives up, for good, every capability but those to change devices
/// and their queues, and to send through a device that was made again.
///
/// # Errors
/// When the system refuses.
pub(crate) fn keep_for_devices() -> io::Result<()> {
    if geteuid().is_root() {
        let user = find(None)?;
        prctl::set_keepcaps(true)?;
        setgroups(&[])?;
        setresgid(user.gid, user.gid, user.gid)?;
        setresuid(user.uid, user.uid, user.uid)?;
    }
    let held = caps::read(None, CapSet::Permitted).map_err(io::Error::other)?;
    let kept: CapsHashSet = [Capability::CAP_NET_ADMIN, Capability::CAP_NET_RAW]
        .into_iter()
        .filter(|cap| held.contains(cap))
        .collect();
    for set in [CapSet::Ambient, CapSet::Inheritable] {
        caps::clear(None, set).map_err(io::Error::other)?;
    }
    // The effective ones must be among the permitted ones at any time.
    caps::set(None, CapSet::Effective, &kept).map_err(io::Error::other)?;
    caps::set(None, CapSet::Permitted, &kept).map_err(io::Error::other)?;
    prctl::set_no_new_privs()?;
    Ok(())
}

/// Checks that there is the user that [`drop_all`] will become, and the group of the control socket.
///
/// # Errors
/// When there is none.
pub fn check(user: Option<&str>, control_group: Option<&str>) -> io::Result<()> {
    if geteuid().is_root() {
        find(user)?;
    }
    control_group.map(find_group).transpose().map(drop)
}

/// Makes something that belongs to this group. To give it to the group later would need one more capability.
///
/// # Errors
/// When there is no such group, this process may not act for it, or that of `make`.
pub(crate) fn as_group<T>(
    group: Option<&str>,
    make: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    let Some(name) = group else {
        return make();
    };
    let before = getegid();
    let group = find_group(name)?;
    setegid(group.gid).map_err(|error| {
        let message = format!(
            "cannot act for the group {name} of gateway.control_group: {error}; run as root"
        );
        io::Error::new(io::Error::from(error).kind(), message)
    })?;
    let made = make();
    setegid(before)?;
    made
}

fn find_group(name: &str) -> io::Result<Group> {
    Group::from_name(name)?.ok_or_else(|| {
        let message = format!(
            "there is no group {name}; make it with `groupadd --system {name}`, or name another one as gateway.control_group"
        );
        io::Error::new(io::ErrorKind::NotFound, message)
    })
}

/// The user that [`drop_all`] becomes.
///
/// # Errors
/// When there is none.
pub(crate) fn find(user: Option<&str>) -> io::Result<User> {
    let name = user.unwrap_or(NOBODY);
    User::from_name(name)?.ok_or_else(|| {
        let message = format!("there is no user {name}; name another one as gateway.user");
        io::Error::new(io::ErrorKind::NotFound, message)
    })
}

/// Becomes `user` if this is root, and gives up every capability for good. If `user` is root it stays root, without
/// capabilities.
///
/// # Errors
/// When there is no such user, or the system refuses.
pub fn drop_all(user: Option<&str>) -> io::Result<()> {
    if geteuid().is_root() {
        let user = find(user)?;
        // The groups that the user is in otherwise: they let a program read a modem.
        let name = CString::new(user.name)?;
        let mut groups = getgrouplist(&name, user.gid)?;
        groups.retain(|group| *group != user.gid);
        setgroups(&groups)?;
        setresgid(user.gid, user.gid, user.gid)?;
        setresuid(user.uid, user.uid, user.uid)?;
    }
    clear_capabilities().map_err(io::Error::other)?;
    prctl::set_no_new_privs()?;
    Ok(())
}

/// Gives up every capability of this thread.
///
/// # Errors
/// When the system refuses.
pub(crate) fn clear_capabilities() -> Result<(), caps::errors::CapsError> {
    let sets = [
        CapSet::Ambient,
        CapSet::Effective,
        CapSet::Inheritable,
        CapSet::Permitted,
    ];
    sets.into_iter().try_for_each(|set| caps::clear(None, set))
}

/// The same for a process that may have been started by one without privileges, which cannot become another user.
///
/// # Errors
/// Those of [`drop_all`].
pub(crate) fn drop_rest(user: Option<&str>) -> io::Result<()> {
    let held = caps::read(None, CapSet::Permitted).map_err(io::Error::other)?;
    if held.is_empty() {
        prctl::set_no_new_privs()?;
        return Ok(());
    }
    drop_all(user)
}
