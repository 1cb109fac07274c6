// SPDX-License-Identifier: BSD-3-Clause
//! The manual page and the shells' completions say what the program's help says. `make manuals` writes them.

use std::fs;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};
use clap_complete::Shell;

#[allow(dead_code)] // what only the program reads
#[path = "../src/arguments.rs"]
mod arguments;

const NAME: &str = "linkweir-gateway";
/// Set, this test writes the files.
const WRITE: &str = "LINKWEIR_WRITE_MANUALS";

/// The page's head; the date is that of its form.
const HEAD: &str = r#".\" SPDX-License-Identifier: BSD-3-Clause
.\" Made of the program's help by make manuals; do not edit by hand.
.TH LINKWEIR-GATEWAY 8 2026-11-23 Linkweir
.SH NAME
linkweir\-gateway \- a tunnel that schedules the packets it carries
.SH SYNOPSIS
.B linkweir\-gateway
.I COMMAND
[\fIARGUMENTS\fR] [\fIOPTIONS\fR]
.SH DESCRIPTION
.B linkweir\-gateway
sends packets through an encrypted tunnel and decides which packet leaves next while the capacity of the link changes. It also
emulates links to try this on. A file in TOML says which packets belong to which class and what each class is promised;
.I /usr/share/doc/linkweir\-gateway/reference/gateway.md
lists its keys.
.SH COMMANDS
"#;

/// What help does not say.
const TAIL: &str = r#".SH FILES
.TP
.I /etc/linkweir/NAME.toml
a configuration; the service linkweir\-gateway@NAME starts it
.TP
.I /run/linkweir/DEVICE.sock
control socket of a running gateway
.TP
.I /usr/share/doc/linkweir\-gateway
how to set up a tunnel, every key of a configuration, examples
.SH "EXIT STATUS"
0 done, 1 failed, 2 bad input.
.SH SIGNALS
.B SIGHUP
reads the configuration again;
.B SIGTERM
stops the gateway, a second one at once.
.SH "SEE ALSO"
.BR linkweir (1),
.BR ip (8),
.BR tc (8)
"#;

/// The program's arguments without the command that clap adds.
fn command() -> Command {
    arguments::Arguments::command()
        .name(NAME)
        .disable_help_subcommand(true)
}

/// One page with all commands.
fn page() -> String {
    let mut page = HEAD.to_string();
    for sub in command().get_subcommands() {
        describe(sub, NAME, &mut page);
    }
    page + TAIL
}

/// A command; of one that has commands itself, those.
fn describe(command: &Command, above: &str, page: &mut String) {
    let name = format!("{above} {}", command.get_name());
    if command.has_subcommands() {
        for sub in command.get_subcommands() {
            describe(sub, &name, page);
        }
        return;
    }
    let (positionals, options): (Vec<_>, Vec<_>) = command
        .get_arguments()
        .partition(|argument| argument.is_positional());
    let mut line = format!(".B {}", escaped(&name));
    for argument in &positionals {
        line.push_str(&format!("\n.I {}", name_of(argument)));
    }
    if !options.is_empty() {
        line.push_str("\n[\\fIOPTIONS\\fR]");
    }
    let short = name.trim_start_matches(NAME).trim();
    let about = escaped(
        &command
            .get_about()
            .map(ToString::to_string)
            .unwrap_or_default(),
    );
    page.push_str(&format!(".SS {short}\n{line}\n.PP\n{about}.\n"));
    for argument in positionals.into_iter().chain(options) {
        let help = escaped(
            &argument
                .get_help()
                .map(ToString::to_string)
                .unwrap_or_default(),
        );
        page.push_str(&format!(
            ".TP\n{}\n{help}{}\n",
            written(argument),
            default(argument)
        ));
    }
}

fn name_of(argument: &Arg) -> String {
    match argument.get_value_names() {
        Some([name, ..]) => escaped(name),
        _ => escaped(&argument.get_id().as_str().to_uppercase()),
    }
}

fn written(argument: &Arg) -> String {
    let Some(long) = argument.get_long() else {
        return format!(".I {}", name_of(argument));
    };
    let short = argument
        .get_short()
        .map(|short| format!("\\-{short}, "))
        .unwrap_or_default();
    let value = match argument.get_action().takes_values() {
        true => format!(" \\fI{}\\fR", name_of(argument)),
        false => String::new(),
    };
    format!("\\fB{short}\\-\\-{}\\fR{value}", escaped(long))
}

fn default(argument: &Arg) -> String {
    match argument.get_default_values() {
        [value, ..] if argument.get_action().takes_values() => {
            format!(" (default {})", escaped(&value.to_string_lossy()))
        }
        _ => String::new(),
    }
}

/// As roff shows it letter by letter.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('`', "")
}

fn completion(shell: Shell) -> String {
    let mut out = Vec::new();
    clap_complete::generate(shell, &mut command(), NAME, &mut out);
    // clap_complete 4.6 calls the commands of a program with a hyphen in its name by two names, so bash would not know them.
    String::from_utf8(out)
        .expect("it is text")
        .replace("linkweir__subcmd__gateway", "linkweir__gateway")
}

/// Writes a file, or says that it is not as it would be written.
fn compare(file: &str, content: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("manual")
        .join(file);
    if std::env::var_os(WRITE).is_some() {
        fs::create_dir_all(path.parent().expect("it has a folder")).unwrap();
        fs::write(&path, content).unwrap();
        return;
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == content,
        "{} is not what the program's help says: make manuals",
        path.display()
    );
}

#[test]
fn the_manual_page_is_made_of_the_help() {
    let page = page();
    for command in [
        "keygen",
        "check",
        "up",
        "show",
        "page",
        "metrics",
        "emulate",
        "set capacity",
    ] {
        assert!(page.contains(&format!(".SS {command}\n")), "{command}");
    }
    compare("linkweir-gateway.8", &page);
}

#[test]
fn completions_are_made_of_the_arguments() {
    compare("bash/linkweir-gateway", &completion(Shell::Bash));
    compare("zsh/_linkweir-gateway", &completion(Shell::Zsh));
    compare("fish/linkweir-gateway.fish", &completion(Shell::Fish));
}
