// SPDX-License-Identifier: BSD-3-Clause
//! Compiles a user's C file.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::{env, fs, io, process};

/// Headers of the contract, and those that the core's own policies share.
const HEADERS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/headers.rs"));
const TABLE: &str = include_str!("../harness/table.c");
const GUARDED: &str = include_str!("../harness/guarded.c");
/// Lines of the compiler's that a message shows.
const MOST_LINES: usize = 12;

/// A user's file that may be a policy.
pub(crate) struct Source {
    file: PathBuf,
    /// Name of the policy.
    pub(crate) name: String,
}

/// What becomes of it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Library,
    Program,
}

/// A compiled file. Its folder is removed when this is dropped.
pub(crate) struct Built {
    folder: PathBuf,
    pub(crate) file: PathBuf,
    /// What the compiler said.
    pub(crate) warnings: String,
}

impl Drop for Built {
    fn drop(&mut self) {
        // Nothing can be done if it cannot be removed; it lies where temporary files do.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Source {
    /// # Errors
    /// When the file cannot be a policy.
    pub(crate) fn new(file: &Path, bytes: &[u8]) -> Result<Source, String> {
        let shown = file.display();
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(good) {
            return Err(format!(
                "{shown}: the file's name is the policy's: use lower-case letters, digits and _, as in earliest_deadline.c"
            ));
        }
        let symbol = format!("lw_policy_{name}");
        if !String::from_utf8_lossy(bytes).contains(&symbol) {
            return Err(format!(
                "{shown}: defines no policy: a file {name}.c has a table `const struct lw_policy {symbol} = {{ ... }};`"
            ));
        }
        Ok(Source {
            // The compiler runs in another folder, and its messages name the file as it is given here.
            file: std::path::absolute(file).map_err(|error| format!("{shown}: {error}"))?,
            name: name.into_owned(),
        })
    }

    /// How messages call it.
    pub(crate) fn shown(&self) -> String {
        format!("{}.c", self.name)
    }

    /// Compiles it.
    ///
    /// # Errors
    /// What the compiler says, or why there is none.
    pub(crate) fn build(&self, kind: Kind) -> Result<Built, String> {
        let compiler = compiler()?;
        let folder = new_folder().map_err(|error| {
            format!(
                "no folder for temporary files in {}: {error}; set TMPDIR",
                env::temp_dir().display()
            )
        })?;
        let mut built = Built {
            file: folder.join(if kind == Kind::Library {
                "policy.so"
            } else {
                "policy"
            }),
            folder,
            warnings: String::new(),
        };
        self.lay_out(&built.folder, kind)
            .map_err(|error| format!("{}: {error}", built.folder.display()))?;

        let include = |folder: &Path| [OsString::from("-I"), folder.into()];
        let mut theirs = Command::new(&compiler);
        theirs.args(["-std=c11", "-O2", "-g", "-Wall", "-Wextra", "-fPIC", "-c"]);
        theirs
            .args(include(&built.folder))
            .arg(&self.file)
            .arg("-o")
            .arg("user.o");
        built.warnings = said(&mut theirs, &built.folder)?;

        let mut ours = Command::new(&compiler);
        ours.args(["-std=gnu11", "-O2", "-fPIC"])
            .args(include(&built.folder));
        ours.arg(format!("-DLW_USER_POLICY=lw_policy_{}", self.name));
        ours.arg(format!("-DLW_USER_NAME=\"{}\"", self.name));
        match kind {
            Kind::Library => ours.args(["-shared", "-Wl,-z,defs", "table.c"]),
            Kind::Program => ours.args(["table.c", "guarded.c"]),
        };
        ours.arg("user.o").arg("-o").arg(&built.file);
        said(&mut ours, &built.folder)?;
        Ok(built)
    }

    fn lay_out(&self, folder: &Path, kind: Kind) -> io::Result<()> {
        fs::create_dir(folder.join("linkweir"))?;
        for (name, text) in HEADERS {
            fs::write(folder.join(name), text)?;
        }
        fs::write(folder.join("table.c"), TABLE)?;
        if kind == Kind::Program {
            fs::write(folder.join("guarded.c"), GUARDED)?;
        }
        Ok(())
    }
}

/// The C compiler of this machine.
fn compiler() -> Result<OsString, String> {
    let wanted = env::var_os("CC").filter(|name| !name.is_empty());
    let names: Vec<OsString> = match &wanted {
        Some(name) => vec![name.clone()],
        None => ["cc", "gcc", "clang"].map(OsString::from).to_vec(),
    };
    let works = |name: &&OsString| {
        let mut command = Command::new(name);
        let command = command.arg("--version").stdin(Stdio::null());
        command.output().is_ok_and(|output| output.status.success())
    };
    names
        .iter()
        .find(works)
        .cloned()
        .ok_or_else(|| match wanted {
            Some(name) => format!(
                "no C compiler: CC = {} does not run",
                name.to_string_lossy()
            ),
            None => {
                "no C compiler, which a policy in C needs: apt-get install gcc libc6-dev".to_owned()
            }
        })
}

/// Runs the compiler; what it says if it succeeds.
fn said(command: &mut Command, folder: &Path) -> Result<String, String> {
    let output = command
        .current_dir(folder)
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("the C compiler does not run: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    let mut lines: Vec<&str> = text.lines().collect();
    if lines.len() > MOST_LINES {
        lines.truncate(MOST_LINES);
        lines.push("...");
    }
    let text = lines.join("\n");
    if output.status.success() {
        return Ok(text);
    }
    if text.contains("fatal error: std") || text.contains("cannot find Scrt1.o") {
        return Err(format!(
            "the C compiler lacks the C library's headers: apt-get install libc6-dev\n{text}"
        ));
    }
    Err(format!("does not compile:\n{text}"))
}

/// A new folder for temporary files, which only we may enter.
fn new_folder() -> io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;

    static COUNT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("linkweir-{}-{number}", process::id()));
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
}
