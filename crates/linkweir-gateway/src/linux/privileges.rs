// SPDX-License-Identifier: BSD-3-Clause
//! Gives up the privileges that only set-up needs.

use std::io;

use caps::CapSet;
use nix::sys::prctl;
use nix::unistd::{geteuid, setgroups, setresgid, setresuid, User};

/// The user that the gateway becomes unless the configuration names another.
pub const NOBODY: &str = "nobody";

/// Becomes `user` if this is root, and gives up every capability for good. If `user` is root it stays root, without
/// capabilities.
///
/// # Errors
/// When there is no such user, or the system refuses.
pub fn drop_all(user: Option<&str>) -> io::Result<()> {
    if geteuid().is_root() {
        let name = user.unwrap_or(NOBODY);
        let user = User::from_name(name)?.ok_or_else(|| {
            let message = format!("there is no user {name}; name another one as gateway.user");
            io::Error::new(io::ErrorKind::NotFound, message)
        })?;
        setgroups(&[])?;
        setresgid(user.gid, user.gid, user.gid)?;
        setresuid(user.uid, user.uid, user.uid)?;
    }
    for set in [
        CapSet::Ambient,
        CapSet::Effective,
        CapSet::Inheritable,
        CapSet::Permitted,
    ] {
        caps::clear(None, set).map_err(io::Error::other)?;
    }
    prctl::set_no_new_privs()?;
    Ok(())
}
