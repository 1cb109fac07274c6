// SPDX-License-Identifier: BSD-3-Clause
//! Gives up the privileges that only set-up needs.

use std::ffi::CString;
use std::io;

use caps::{CapSet, Capability, CapsHashSet};
use nix::errno::Errno;
use nix::sys::prctl;
use nix::unistd::{
    getegid, geteuid, getgrouplist, getgroups, setegid, setgroups, setresgid, setresuid, Gid,
    Group, Uid, User,
};

/// The user that the gateway becomes unless the configuration names another.
pub const NOBODY: &str = "nobody";
/// Its number, and that of its group, where no file lists users, as in a small container.
const NOBODY_ID: u32 = 65_534;

/// A user to become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Account {
    pub(crate) uid: Uid,
    pub(crate) gid: Gid,
    /// Its name; none: it is known by its number only, and is in no other groups.
    name: Option<String>,
}

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
        become_user(&user, &[])?;
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

/// Checks that there is the user that [`drop_all`] will become, that this process may become it, and that there is the group
/// of the control socket.
///
/// # Errors
/// When there is none, or a capability is missing: which.
pub fn check(user: Option<&str>, control_group: Option<&str>) -> io::Result<()> {
    if geteuid().is_root() {
        let account = find(user)?;
        may_become(&account, &other_groups(&account)?)?;
    }
    control_group.map(find_group).transpose().map(drop)
}

/// Whether this process has the capability, which a container may have taken even from root.
pub(crate) fn has(capability: Capability) -> bool {
    caps::has_cap(None, CapSet::Effective, capability).unwrap_or(true)
}

/// Checks that this process has the capabilities to become a user. Root that stays root needs none.
fn may_become(user: &Account, groups: &[Gid]) -> io::Result<()> {
    if user.uid.is_root() || is_user(user, groups) {
        return Ok(());
    }
    let needed = [Capability::CAP_SETUID, Capability::CAP_SETGID];
    let missing: Vec<String> = needed
        .into_iter()
        .filter(|capability| !has(*capability))
        .map(|capability| capability.to_string())
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(" and ");
    Err(io::Error::new(
        io::ErrorKind::PermissionDenied,
        format!(
            "cannot become the user {}, because this process lacks {missing}; give it {missing} (in a container --cap-add), \
             or write user = \"root\" in [gateway] to stay root without any capability",
            user.name.as_deref().unwrap_or("of gateway.user")
        ),
    ))
}

/// Whether this process is this user already, in these groups.
fn is_user(user: &Account, groups: &[Gid]) -> bool {
    let same_groups = getgroups().is_ok_and(|now| {
        let other = |group: &&Gid| **group != user.gid && !groups.contains(group);
        !now.iter().any(|group| other(&group))
    });
    (geteuid(), getegid()) == (user.uid, user.gid) && same_groups
}

fn become_user(user: &Account, groups: &[Gid]) -> io::Result<()> {
    may_become(user, groups)?;
    // Root that may not change its groups keeps them.
    let keeps = user.uid.is_root() && !has(Capability::CAP_SETGID);
    if keeps || is_user(user, groups) {
        return Ok(());
    }
    setgroups(groups)?;
    setresgid(user.gid, user.gid, user.gid)?;
    setresuid(user.uid, user.uid, user.uid)?;
    Ok(())
}

/// The groups besides its own that a user is in.
fn other_groups(user: &Account) -> io::Result<Vec<Gid>> {
    let Some(name) = &user.name else {
        return Ok(Vec::new());
    };
    let mut groups = getgrouplist(&CString::new(name.as_str())?, user.gid)?;
    groups.retain(|group| *group != user.gid);
    Ok(groups)
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
    let found = Group::from_name(name).map_err(|error| no_list(error, "group", name));
    found?.ok_or_else(|| {
        let message = format!(
            "there is no group {name}; make it with `groupadd --system {name}`, or name another one as gateway.control_group"
        );
        io::Error::new(io::ErrorKind::NotFound, message)
    })
}

/// The user that [`drop_all`] becomes: by its name, or by its number.
///
/// # Errors
/// When there is none.
pub(crate) fn find(user: Option<&str>) -> io::Result<Account> {
    let name = user.unwrap_or(NOBODY);
    let numbered = |id: u32| Account {
        uid: Uid::from_raw(id),
        gid: Gid::from_raw(id),
        name: None,
    };
    match User::from_name(name) {
        Ok(Some(user)) => {
            return Ok(Account {
                uid: user.uid,
                gid: user.gid,
                name: Some(user.name),
            })
        }
        // Without a list of users there is still this one, and root.
        Ok(None) | Err(Errno::ENOENT) if name == NOBODY => return Ok(numbered(NOBODY_ID)),
        Ok(None) | Err(Errno::ENOENT) if name == "root" => return Ok(numbered(0)),
        Ok(None) | Err(Errno::ENOENT) => {}
        Err(error) => return Err(no_list(error, "user", name)),
    }
    if let Ok(id) = name.parse() {
        return Ok(numbered(id));
    }
    let message = format!(
        "there is no user {name}; name another one as gateway.user, or write a number, such as \"{NOBODY_ID}\""
    );
    Err(io::Error::new(io::ErrorKind::NotFound, message))
}

fn no_list(error: Errno, what: &str, name: &str) -> io::Error {
    let error = io::Error::from(error);
    io::Error::new(
        error.kind(),
        format!("cannot look up the {what} {name}: {error}"),
    )
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
        let groups = other_groups(&user)?;
        become_user(&user, &groups)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_known_by_its_name_or_number() {
        assert_eq!(find(Some("root")).unwrap().uid, Uid::from_raw(0));
        let numbered = find(Some("4711")).unwrap();
        assert_eq!(numbered.uid, Uid::from_raw(4711));
        assert_eq!(other_groups(&numbered).unwrap(), []);
        let error = find(Some("no-such-user")).unwrap_err().to_string();
        assert!(error.contains("there is no user no-such-user"), "{error}");
    }
}
