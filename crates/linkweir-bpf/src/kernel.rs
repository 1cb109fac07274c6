// SPDX-License-Identifier: BSD-3-Clause
//! The kernel's side: loads `POLICY.bpf.o`, finds a discipline that was loaded before by its pins, and gives it commands.

use std::fmt;
use std::fs;
use std::os::fd::AsFd;
use std::path::Path;

use libbpf_rs::query::ProgInfoIter;
use libbpf_rs::{
    Map, MapCore, MapFlags, MapHandle, Object, ObjectBuilder, OpenObject, PrintLevel, ProgramInput,
    ProgramMut,
};

use crate::layout::{
    Call, Command, Op, Plane, ANSWER_AT, CALL_WORDS, EXCHANGE_WORDS, NOTES_BYTES, PLANE_WORDS,
    VERSION,
};
use crate::Failure;

/// Where a process maps the arena. All processes must map it at the same address.
const ARENA_AT: u64 = 1 << 44;
const PAGE_BYTES: usize = 4096;
/// The program that the loader's commands run, and the one that makes single calls of the policy.
const COMMAND: &str = "linkweir_command";
const REPLAY: &str = "linkweir_replay";
/// Maps that stay pinned, by their names in the object.
/// `calls` is only in objects built with `LW_RECORD`.
const PINNED: [&str; 6] = ["arena", "packets", "exchange", "notes", "bss", "calls"];

/// A loaded object.
pub struct Loaded {
    object: Object,
}

fn failed(what: &str, error: impl fmt::Display) -> Failure {
    Failure::Kernel(format!("{what}: {error}"))
}

/// The last part of a map's name: libbpf puts the object's name before those of data sections.
fn plain(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn open(file: &Path) -> Result<OpenObject, Failure> {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(Failure::Kernel(
            "this kernel describes no types of its own (/sys/kernel/btf/vmlinux is missing): use one with CONFIG_DEBUG_INFO_BTF, or the module linkweir-dkms".to_owned(),
        ));
    }
    libbpf_rs::set_print(Some((PrintLevel::Warn, |_, text| {
        if std::env::var_os("LINKWEIR_BPF_LOG").is_some() {
            eprint!("{text}");
        }
    })));
    ObjectBuilder::default()
        .open_file(file)
        .map_err(|error| failed(&file.display().to_string(), error))
}

/// Leaves out all other programs.
fn only(open: &mut OpenObject, names: &[&str]) {
    for mut program in open.progs_mut() {
        if !names.iter().any(|name| program.name() == *name) {
            program.set_autoload(false);
        }
    }
}

fn load(open: OpenObject, what: &str) -> Result<Loaded, Failure> {
    let object = open.load().map_err(|error| failed(what, error))?;
    Ok(Loaded { object })
}

impl Loaded {
    /// Loads a new discipline, unattached. `id` is the name that tc shows.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn new(file: &Path, id: &str, nslots: u32, arena_bytes: usize) -> Result<Loaded, Failure> {
        let mut open = open(file)?;
        let pages = u32::try_from(arena_bytes.div_ceil(PAGE_BYTES)).unwrap_or(u32::MAX);
        for mut map in open.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            let done = match name.as_str() {
                "arena" => map
                    .set_max_entries(pages)
                    .and_then(|()| map.set_map_extra(ARENA_AT)),
                "packets" => map.set_max_entries(nslots),
                "linkweir" => {
                    if let Some(value) = map.initial_value_mut() {
                        value[..16].fill(0);
                        value[..id.len()].copy_from_slice(id.as_bytes());
                    }
                    Ok(())
                }
                _ => Ok(()),
            };
            done.map_err(|error| failed(&name, error))?;
        }
        for mut program in open.progs_mut() {
            if program.name() == REPLAY {
                program.set_autoload(false);
            }
        }
        load(
            open,
            "the kernel refuses the program; it takes Linux 6.16 or later with CONFIG_NET_SCH_BPF",
        )
    }

    /// Loads the program for commands alone, which can call a policy but has no packets.
    ///
    /// # Errors
    /// When the kernel refuses it.
    pub fn without_packets(file: &Path, arena_bytes: usize) -> Result<Loaded, Failure> {
        let mut open = open(file)?;
        let pages = u32::try_from(arena_bytes.div_ceil(PAGE_BYTES)).unwrap_or(u32::MAX);
        for mut map in open.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            let done = match name.as_str() {
                "arena" => map
                    .set_max_entries(pages)
                    .and_then(|()| map.set_map_extra(ARENA_AT)),
                "packets" | "linkweir" => map.set_autocreate(false),
                _ => Ok(()),
            };
            done.map_err(|error| failed(&name, error))?;
        }
        only(&mut open, &[COMMAND, REPLAY]);
        load(open, "the programs that replay vectors")
    }

    /// Finds the discipline that was pinned in a folder.
    ///
    /// # Errors
    /// When there is none, or it cannot be opened.
    pub fn reopen(file: &Path, pins: &Path) -> Result<Loaded, Failure> {
        let mut open = open(file)?;
        for mut map in open.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            let done = match plain(&name) {
                "linkweir" => map.set_autocreate(false),
                known if PINNED.contains(&known) => map.reuse_pinned_map(pins.join(known)),
                _ => Ok(()),
            };
            done.map_err(|error| failed(&name, error))?;
        }
        only(&mut open, &[COMMAND]);
        load(open, "the program for commands")
    }

    /// Registers the discipline with the kernel and pins all that keeps it alive.
    ///
    /// # Errors
    /// When the kernel refuses it, or `pins` is on no BPF file system.
    pub fn register(&mut self, pins: &Path) -> Result<(), Failure> {
        for mut map in self.object.maps_mut() {
            let name = map.name().to_string_lossy().into_owned();
            if PINNED.contains(&plain(&name)) {
                map.pin(pins.join(plain(&name)))
                    .map_err(|error| failed("pin", error))?;
            }
        }
        for mut map in self.object.maps_mut() {
            if map.name() == "linkweir" {
                let mut link = map
                    .attach_struct_ops()
                    .map_err(|error| failed("register", error))?;
                link.pin(pins.join("link"))
                    .map_err(|error| failed("pin", error))?;
                return Ok(());
            }
        }
        Err(Failure::Kernel(
            "the object has no discipline: build it again with make -C bpf".to_owned(),
        ))
    }

    fn map(&self, name: &str) -> Result<Map<'_>, Failure> {
        self.object
            .maps()
            .find(|map| map.name() == name)
            .ok_or_else(|| {
                Failure::Kernel(format!(
                    "the object has no map {name}: build it again with make -C bpf"
                ))
            })
    }

    fn program(&self, name: &str) -> Result<ProgramMut<'_>, Failure> {
        self.object
            .progs_mut()
            .find(|program| program.name() == name)
            .ok_or_else(|| {
                Failure::Kernel(format!(
                    "the object has no {name}: build it again with make -C bpf"
                ))
            })
    }

    /// Gives a command and returns its answer.
    ///
    /// # Errors
    /// When it fails.
    pub fn command(&self, op: Op, command: &Command) -> Result<u64, Failure> {
        let name = if op as u32 >= Op::Pick as u32 {
            REPLAY
        } else {
            COMMAND
        };
        let mut context = command.bytes(op);
        let input = ProgramInput {
            context_in: Some(&mut context), // the kernel writes the answer there, too
            ..ProgramInput::default()
        };
        let output = self
            .program(name)?
            .test_run(input)
            .map_err(|error| failed(&format!("{op:?}"), error))?;
        let code = output.return_value as i32;
        if code < 0 {
            return Err(Failure::Kernel(format!(
                "{op:?}: {}",
                std::io::Error::from_raw_os_error(-code)
            )));
        }
        let mut word = [0; 8];
        word.copy_from_slice(&context[ANSWER_AT..ANSWER_AT + 8]);
        Ok(u64::from_ne_bytes(word))
    }

    /// Writes words to the arena, `offset` bytes from its start.
    ///
    /// # Errors
    /// When a command fails.
    pub fn write(&self, offset: u32, words: &[u64]) -> Result<(), Failure> {
        let exchange = self.map("exchange")?;
        for (at, part) in words.chunks(EXCHANGE_WORDS).enumerate() {
            let mut value: Vec<u8> = part.iter().flat_map(|word| word.to_ne_bytes()).collect();
            value.resize(EXCHANGE_WORDS * 8, 0);
            exchange
                .update(&[0; 4], &value, MapFlags::ANY)
                .map_err(|error| failed("exchange", error))?;
            self.carry(Op::Write, offset, at, part.len())?;
        }
        Ok(())
    }

    /// Reads words of the arena.
    ///
    /// # Errors
    /// When a command fails.
    pub fn read(&self, offset: u32, count: usize) -> Result<Vec<u64>, Failure> {
        let exchange = self.map("exchange")?;
        let mut words = Vec::with_capacity(count);
        while words.len() < count {
            let part = (count - words.len()).min(EXCHANGE_WORDS);
            self.carry(Op::Read, offset, words.len() / EXCHANGE_WORDS, part)?;
            let value = exchange
                .lookup(&[0; 4], MapFlags::ANY)
                .map_err(|error| failed("exchange", error))?
                .unwrap_or_default();
            words.extend(value.chunks_exact(8).take(part).map(|word| {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(word);
                u64::from_ne_bytes(bytes)
            }));
        }
        Ok(words)
    }

    fn carry(&self, op: Op, offset: u32, part: usize, words: usize) -> Result<(), Failure> {
        let command = Command {
            offset: u64::from(offset) + (part * EXCHANGE_WORDS * 8) as u64,
            words: u32::try_from(words).unwrap_or(0),
            ..Command::default()
        };
        self.command(op, &command).map(drop)
    }

    /// What the arena starts with.
    ///
    /// # Errors
    /// When a command fails.
    pub fn plane(&self) -> Result<Plane, Failure> {
        let words = self.read(0, PLANE_WORDS)?;
        let mut first = [0; PLANE_WORDS];
        first.copy_from_slice(&words);
        Ok(Plane::new(&first))
    }

    /// Lays out memory for a policy.
    ///
    /// # Errors
    /// When the arena is too small.
    pub fn lay_out(&self, nqueues: u32, nslots: u32, state_bytes: usize) -> Result<Plane, Failure> {
        let command = Command {
            nqueues,
            nslots,
            bytes: u32::try_from(state_bytes).unwrap_or(u32::MAX),
            ..Command::default()
        };
        self.command(Op::Layout, &command)?;
        self.plane()
    }

    /// Keeps settings as text with the discipline, in one of two places. `rate_bps` takes the place of their rate, unless it is 0.
    ///
    /// # Errors
    /// When it is too long or cannot be written.
    pub fn keep_notes(&self, place: u64, rate_bps: u64, text: &str) -> Result<(), Failure> {
        if text.len() > NOTES_BYTES - NOTES_AT {
            return Err(Failure::Input(format!(
                "settings have {} bytes; most are {}",
                text.len(),
                NOTES_BYTES - NOTES_AT
            )));
        }
        let words = [VERSION, rate_bps, text.len() as u64];
        let mut value: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        value.extend(text.as_bytes());
        value.resize(NOTES_BYTES, 0);
        self.map("notes")?
            .update(&(place as u32).to_ne_bytes(), &value, MapFlags::ANY)
            .map_err(|error| failed("notes", error))
    }

    /// A text that was kept, and the rate with it.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn notes(&self, place: u64) -> Result<Notes, Failure> {
        read_notes(&self.map("notes")?, place)
    }

    /// The calls that were noted down, if the object was built with `LW_RECORD`.
    ///
    /// # Errors
    /// When it was not, or there was no room for all.
    pub fn calls(&self) -> Result<Vec<Call>, Failure> {
        let map = self.map("calls")?;
        let mut found = Vec::new();
        for page in 0_u32.. {
            let Some(value) = map
                .lookup(&page.to_ne_bytes(), MapFlags::ANY)
                .map_err(|error| failed("calls", error))?
            else {
                break;
            };
            for bytes in value.chunks_exact(8 * CALL_WORDS) {
                let mut words = [0; CALL_WORDS];
                for (word, bytes) in words.iter_mut().zip(bytes.chunks_exact(8)) {
                    let mut eight = [0; 8];
                    eight.copy_from_slice(bytes);
                    *word = u64::from_ne_bytes(eight);
                }
                match Call::new(words) {
                    Some(call) => found.push(call),
                    None => return Ok(found),
                }
            }
        }
        Err(Failure::Kernel(
            "there was no room for all calls: record fewer".to_owned(),
        ))
    }

    /// Instructions that the verifier walked, of each program of this object.
    #[must_use]
    pub fn verified(&self) -> Vec<(String, u32)> {
        // the kernel shortens names to 15 bytes
        let ours: Vec<(u32, String)> = self
            .object
            .progs()
            .filter_map(|program| {
                let id = libbpf_rs::Program::id_from_fd(program.as_fd()).ok()?;
                Some((id, program.name().to_string_lossy().into_owned()))
            })
            .collect();
        ProgInfoIter::default()
            .filter_map(|info| {
                let (_, name) = ours.iter().find(|(id, _)| *id == info.id)?;
                Some((name.clone(), info.verified_insns))
            })
            .collect()
    }
}

/// Settings that are kept as text with a discipline.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Takes the place of their rate, bit/s, if one was reported.
    pub rate_bps: Option<u64>,
    /// The text.
    pub text: String,
}

/// Bytes before the text.
const NOTES_AT: usize = 24;

fn read_notes(map: &impl MapCore, place: u64) -> Result<Notes, Failure> {
    let value = map
        .lookup(&(place as u32).to_ne_bytes(), MapFlags::ANY)
        .map_err(|error| failed("notes", error))?
        .filter(|value| value.len() == NOTES_BYTES)
        .unwrap_or_else(|| vec![0; NOTES_BYTES]);
    let word = |at: usize| {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(&value[at..at + 8]);
        u64::from_ne_bytes(bytes)
    };
    if word(0) != VERSION {
        return Err(Failure::Kernel(
            "another version of linkweir-bpf made this discipline; make it again with del and add"
                .to_owned(),
        ));
    }
    let end = NOTES_AT
        + usize::try_from(word(16))
            .unwrap_or(0)
            .min(NOTES_BYTES - NOTES_AT);
    Ok(Notes {
        rate_bps: Some(word(8)).filter(|rate_bps| *rate_bps != 0),
        text: String::from_utf8_lossy(&value[NOTES_AT..end]).into_owned(),
    })
}

/// The settings that a discipline was made with, by its pins.
///
/// # Errors
/// When there are none, or another version of this program made it.
pub fn notes_of(pins: &Path) -> Result<Notes, Failure> {
    let map = MapHandle::from_pinned_path(pins.join("notes"))
        .map_err(|error| failed(&pins.display().to_string(), error))?;
    read_notes(&map, 0)
}

/// Removes the pins of a discipline. While it is attached it goes on.
///
/// # Errors
/// When they cannot be removed.
pub fn unpin(pins: &Path) -> Result<(), Failure> {
    let found = match fs::read_dir(pins) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(&pins.display().to_string(), error)),
    };
    for entry in found.flatten() {
        fs::remove_file(entry.path())
            .map_err(|error| failed(&entry.path().display().to_string(), error))?;
    }
    fs::remove_dir(pins).map_err(|error| failed(&pins.display().to_string(), error))
}
