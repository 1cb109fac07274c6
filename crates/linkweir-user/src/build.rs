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
    /// What is compiled: the file as it was read, whatever is in it now.
    bytes: Vec<u8>,
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
                "{shown}: the file's name is the policy's: use lower-case letters, digits and _, as in earliest.c"
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
            bytes: bytes.to_vec(),
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
        let mut theirs = compiler.command();
        theirs.args(["-std=c11", "-O2", "-g", "-Wall", "-Wextra", "-fPIC", "-c"]);
        theirs
            .args(include(&built.folder))
            .arg("-iquote")
            .arg(self.file.parent().unwrap_or(Path::new("/")))
            .arg("user.c")
            .arg("-o")
            .arg("user.o");
        built.warnings = said(&mut theirs, &built.folder)?;

        let mut ours = compiler.command();
        ours.args(["-std=gnu11", "-O2", "-fPIC"])
            .args(include(&built.folder));
        ours.arg(format!("-DLW_USER_POLICY=lw_policy_{}", self.name));
        ours.arg(format!("-DLW_USER_NAME=\"{}\"", self.name));
        match kind {
            Kind::Library => ours.args(["-shared", "-Wl,-z,defs", "-Wl,-Bsymbolic", "table.c"]),
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
        let path = self
            .file
            .to_string_lossy()
            .replace('\\', "\\\\")
            .replace('"', "\\\"");
        let mut user = format!("#line 1 \"{path}\"\n").into_bytes();
        user.extend(&self.bytes);
        fs::write(folder.join("user.c"), user)?;
        fs::write(folder.join("table.c"), TABLE)?;
        if kind == Kind::Program {
            fs::write(folder.join("guarded.c"), GUARDED)?;
        }
        Ok(())
    }
}

/// The C compiler of this machine, with the options that CC gives it.
struct Compiler(Vec<OsString>);

impl Compiler {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.0[0]);
        command.args(&self.0[1..]);
        command
    }

    fn works(&self) -> bool {
        let mut command = self.command();
        let command = command.arg("--version").stdin(Stdio::null());
        command.output().is_ok_and(|output| output.status.success())
    }
}

/// What CC names, or the first that runs of those that machines have.
fn compiler() -> Result<Compiler, String> {
    let wanted = env::var("CC").unwrap_or_default();
    let words: Vec<OsString> = wanted.split_whitespace().map(OsString::from).collect();
    if !words.is_empty() {
        let compiler = Compiler(words);
        return compiler.works().then_some(compiler).ok_or_else(|| {
            format!(
                "no C compiler: CC = {wanted} does not run; unset CC or name another, such as gcc"
            )
        });
    }
    ["cc", "gcc", "clang"]
        .map(|name| Compiler(vec![name.into()]))
        .into_iter()
        .find(Compiler::works)
        .ok_or_else(|| {
            "no C compiler, which a policy in C needs: apt-get install gcc libc6-dev".to_owned()
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
    let of_c_library = |name: &str| text.contains(&format!("fatal error: {name}:"));
    if [
        "stdint.h",
        "stdbool.h",
        "stddef.h",
        "string.h",
        "stdio.h",
        "stdlib.h",
    ]
    .into_iter()
    .any(of_c_library)
        || text.contains("cannot find Scrt1.o")
    {
        return Err(format!(
            "the C compiler lacks the C library's headers: apt-get install libc6-dev\n{text}"
        ));
    }
    if let Some(name) = undefined(&text) {
        return Err(if name.starts_with("lw_policy_") {
            format!("defines no policy: {name} must be a table `const struct lw_policy {name} = {{ ... }};`, which is not static")
        } else {
            format!("uses {name}, which the file does not define; a policy computes with integers and links no library besides C's own")
        });
    }
    Err(format!("does not compile:\n{text}"))
}

/// The name that the linker did not find.
fn undefined(text: &str) -> Option<&str> {
    let (_, after) = text.split_once("undefined reference to `")?;
    after.split('\'').next()
}

/// A new folder for temporary files, which only we may enter.
fn new_folder() -> io::Result<PathBuf> {
    use std::os::unix::fs::DirBuilderExt;

    static COUNT: AtomicU64 = AtomicU64::new(0);
    // The compiler runs in another folder, so that a relative TMPDIR would not be found there.
    let all = std::path::absolute(env::temp_dir())?;
    loop {
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = all.join(format!("linkweir-{}-{number}", process::id()));
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| folder),
        }
    }
}
