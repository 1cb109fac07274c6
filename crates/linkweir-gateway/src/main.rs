// SPDX-License-Identifier: BSD-3-Clause
//! `linkweir-gateway`: the command line. Exit codes: 0 done, 1 failed, 2 bad input.

mod arguments;

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use arguments::{Arguments, Command, Running, Setting};
use clap::Parser;
use ipnet::IpNet;
use linkweir_config::queue;
use linkweir_config::units::{self, Kind};
use linkweir_gateway::config::emulate::Emulation;
use linkweir_gateway::config::paths::CONTROL_FOLDER;
use linkweir_gateway::config::{self, wg_quick, Config, Fault, Mode};
use linkweir_gateway::linux::{command, journal, privileges};
use linkweir_gateway::run::secrets::{self, Secrets};
use linkweir_gateway::run::{emulate, keeper, rate, resolver, Gateway};
use linkweir_gateway::show::control::{self, Request, Response};
use linkweir_gateway::show::figures::Show;
use linkweir_gateway::show::{metrics, page};
use linkweir_gateway::tunnel::seal;
use linkweir_gateway::tunnel::seal::Identity;
use zeroize::Zeroizing;

/// Time between figures of `show --watch`.
const WATCH: Duration = Duration::from_secs(1);

/// Why a command failed, which decides its exit code.
enum Failure {
    Input(String),
    Failed(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Failed(error.to_string())
    }
}

fn main() -> ExitCode {
    let done = helper().unwrap_or_else(|| execute(Arguments::parse().command));
    let (message, code) = match done {
        Ok(()) => (None, 0),
        Err(Failure::Input(message)) => (Some(message), 2),
        Err(Failure::Failed(message)) => (Some(message), 1),
    };
    // Standard error may have no reader; a gateway, its keeper and its guards must end all the same.
    journal::finish(message.as_deref());
    ExitCode::from(code)
}

/// Does what a gateway starts this program for, where it did: to keep privileges for it, to ask for names, or to guard a
/// program. People have no use for these, so neither help nor completions know them.
fn helper() -> Option<Result<(), Failure>> {
    let mut arguments = std::env::args_os().skip(1);
    let name = arguments.next()?;
    let name = name.to_str()?;
    if ![keeper::NAME, resolver::NAME, command::GUARD].contains(&name) {
        return None;
    }
    let place = PathBuf::from(arguments.next().unwrap_or_default());
    let done = match name {
        keeper::NAME => {
            let control = PathBuf::from(arguments.next().unwrap_or_default());
            keeper::keep(&place, &control)
        }
        resolver::NAME => resolver::serve(&place.to_string_lossy()),
        _ => {
            let words: Vec<String> = arguments
                .map(|word| word.to_string_lossy().into_owned())
                .collect();
            command::guard(&place, &words)
        }
    };
    Some(done.map_err(Failure::from))
}

fn execute(command: Command) -> Result<(), Failure> {
    match command {
        Command::Keygen { file } => {
            println!("{}", seal::show_key(&seal::generate(&file)?));
            Ok(())
        }
        Command::Check { config, cleartext } => {
            let sound = load_for(&config, cleartext)?;
            let denied = secrets::check(&sound).map_err(input)?;
            accounts_exist(&sound)?;
            println!(
                "{}: valid; {} with {} classes towards {} peers, MTU {} bytes",
                config.display(),
                sound.scheduler.info.name,
                sound.classes.len(),
                sound.peers.len(),
                sound.mtu
            );
            for class in &sound.classes {
                let limit = queue::describe(&class.limit);
                let flows = class.flows.map(|flows| format!(", flows {}", flows.name()));
                println!(
                    "  class {}: {limit}{}",
                    class.name,
                    flows.unwrap_or_default()
                );
            }
            for line in &sound.told {
                println!("{line}");
            }
            for fault in denied {
                eprintln!("linkweir-gateway: not checked: {fault}");
            }
            for warning in sound.warnings() {
                eprintln!("linkweir-gateway: warning: {warning}");
            }
            Ok(())
        }
        Command::Import { file, rate, folder } => import(&file, &rate, &folder),
        Command::Up {
            config,
            cleartext,
            dry_run,
        } => up(&config, cleartext, dry_run),
        Command::Page { listen, gateway } => {
            page::serve(listen, &gateway.path()?).map_err(|error| match error.kind() {
                io::ErrorKind::InvalidInput => Failure::Input(error.to_string()),
                _ => Failure::from(error),
            })
        }
        Command::Metrics {
            listen: Some(listen),
            name,
            per_peer,
            gateway,
        } => Ok(metrics::serve(listen, &name, per_peer, &gateway.path()?)?),
        Command::Metrics {
            listen: None,
            name: _,
            per_peer,
            gateway,
        } => {
            print!("{}", metrics::summary(&gateway.show()?, per_peer));
            Ok(())
        }
        Command::Emulate {
            config,
            duration,
            json,
            normal_priority,
            check,
        } => {
            let link = config::emulate::load(&config)
                .map_err(|fault| Failure::Input(fault.to_string()))?;
            if check {
                println!("{}: valid", config.display());
                for line in &link.told {
                    println!("{line}");
                }
                return Ok(());
            }
            tell(&link.told);
            emulate(&link, duration, !normal_priority, json)
        }
        Command::Rate {
            device,
            class,
            reflector,
            floor,
            ceiling,
            delay,
        } => {
            if floor > ceiling {
                let message = "--floor must not be above --ceiling".to_string();
                return Err(Failure::Input(message));
            }
            let settings = rate::Settings {
                device,
                class,
                reflectors: reflector,
                floor_bps: floor,
                ceiling_bps: ceiling,
                delay_ns: delay,
            };
            rate::run(&settings).map_err(|error| match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => {
                    Failure::Input(error.to_string())
                }
                _ => Failure::from(error),
            })
        }
        Command::Show {
            json,
            watch,
            gateway,
        } => show(&gateway, json, watch),
        Command::Set {
            what:
                Setting::Capacity {
                    rate,
                    peer,
                    path,
                    gateway,
                },
        } => {
            let request = Request::SetCapacity {
                peer,
                path,
                capacity_bps: rate,
            };
            match gateway.ask(&request)? {
                Response::Done => Ok(()),
                other => Err(unexpected(other)),
            }
        }
    }
}

/// Writes the configuration and the keys that a file of wg-quick describes; nothing is overwritten.
fn import(file: &Path, rate: &str, folder: &Path) -> Result<(), Failure> {
    let fault = |what: String| Failure::Input(format!("{}: {what}", file.display()));
    let text =
        std::fs::read_to_string(file).map_err(|error| fault(format!("cannot be read: {error}")))?;
    let text = Zeroizing::new(text);
    let device = file
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let target = folder.join(format!("{device}.toml"));
    let unwritten = |place: String, what: &dyn Display| {
        Failure::Input(format!(
            "{}{place}: {what}; {} was not written",
            file.display(),
            target.display()
        ))
    };
    let imported = wg_quick::import(&text, &device, rate)
        .map_err(|(line, what)| unwritten(format!(":{line}"), &what))?;
    // Its keys are looked at later: they have no files yet.
    config::parse(&imported.text, &target).map_err(|found| {
        // The place is in a file that does not exist.
        let found = Fault {
            file: None,
            line: None,
            ..found
        };
        unwritten(String::new(), &found)
    })?;
    let keys = imported.secrets.iter().map(|(name, _)| folder.join(name));
    for path in keys.chain([target.clone()]) {
        if path.exists() {
            return Err(fault(format!(
                "{} exists; nothing was written: remove it, or choose another --folder",
                path.display()
            )));
        }
    }
    for (name, secret) in &imported.secrets {
        seal::write_key(&folder.join(name), secret)?;
        println!("{}", folder.join(name).display());
    }
    std::fs::write(&target, &imported.text)?;
    println!("{}", target.display());
    for line in &imported.left_out {
        eprintln!("linkweir-gateway: {}: {line}", file.display());
    }
    Ok(())
}

/// Tells the user what traces were taken for, apart from the output of the command.
fn tell(lines: &[String]) {
    for line in lines {
        eprintln!("linkweir-gateway: {line}");
    }
}

/// Reads a configuration; one that protects nothing only if it is wanted.
fn load_for(file: &Path, cleartext: bool) -> Result<Config, Failure> {
    let config = load(file)?;
    if config.mode == Mode::Cleartext && !cleartext {
        let message = "mode = \"cleartext\" protects nothing: anyone on the path can read and forge packets; \
                       add --cleartext if that is what you want";
        return Err(Failure::Input(message.to_string()));
    }
    Ok(config)
}

/// Refuses a user or a group that is not on this host. A restart does not mend that, so it has the exit code of a wrong
/// configuration.
fn accounts_exist(config: &Config) -> Result<(), Failure> {
    let (user, group) = (config.user.as_deref(), config.control_group.as_deref());
    privileges::check(user, group).map_err(|error| Failure::Input(error.to_string()))
}

/// Runs a gateway, or reports what it would set up.
fn up(file: &Path, cleartext: bool, dry_run: bool) -> Result<(), Failure> {
    let config = load_for(file, cleartext)?;
    tell(&config.told);
    if dry_run {
        print!("{}", describe_setup(file, &config)?);
        return accounts_exist(&config);
    }
    let secrets = Secrets::read(&config).map_err(input)?;
    accounts_exist(&config)?;
    Ok(Gateway::set_up(file, config, secrets)?.run()?)
}

/// Emulates a link and prints what it did.
fn emulate(
    link: &Emulation,
    duration_ns: Option<u64>,
    realtime: bool,
    json: bool,
) -> Result<(), Failure> {
    let report = emulate::run(link, duration_ns, realtime)?;
    if json {
        println!(
            "{}",
            serde_json::to_string_pretty(&report).map_err(io::Error::from)?
        );
    } else {
        print!("{}", report.text());
    }
    if report.directions.iter().any(|way| !way.faults.is_empty()) {
        return Err(Failure::Failed(
            "the rate, delay or loss of the link was not as set; the report names the direction"
                .to_string(),
        ));
    }
    Ok(())
}

/// Prints the figures of a gateway, once or every second.
fn show(gateway: &Running, json: bool, watch: bool) -> Result<(), Failure> {
    let mut before = None;
    loop {
        let show = gateway.show()?;
        match write_show(&show, before.as_ref(), json, watch) {
            // The reader has gone, as `head` does.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            written => written?,
        }
        if !watch {
            return Ok(());
        }
        before = Some(show);
        std::thread::sleep(WATCH);
    }
}

/// Writes the figures of a gateway; `before` are those written last.
fn write_show(show: &Show, before: Option<&Show>, json: bool, watch: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match (json, watch) {
        (true, true) => writeln!(out, "{}", serde_json::to_string(show)?)?,
        (true, false) => writeln!(out, "{}", serde_json::to_string_pretty(show)?)?,
        (false, false) => write!(out, "{}", show.text())?,
        (false, true) => {
            // A terminal's screen is written over; elsewhere an empty line parts what is shown.
            let parted = match (out.is_terminal(), before) {
                (true, _) => "\x1b[H\x1b[2J",
                (false, Some(_)) => "\n",
                (false, None) => "",
            };
            write!(out, "{parted}{}", show.text_since(before))?;
        }
    }
    out.flush()
}

/// The text of `up --dry-run`.
fn describe_setup(file: &Path, config: &Config) -> Result<String, Failure> {
    let mut lines = vec![format!(
        "device {}: MTU {} bytes, {}",
        config.device,
        config.mtu,
        listed(&config.addresses, "no address")
    )];
    let secrets = Secrets::read(config).map_err(input)?;
    lines.push(match secrets.private {
        Some(secret) => format!(
            "listens on {} as {}",
            config.listen,
            seal::show_key(&Identity::new(secret).public())
        ),
        None => format!("listens on {} in cleartext", config.listen),
    });
    lines.push(format!("control socket {}", config.control.display()));
    lines.push(format!(
        "then becomes user {}",
        config.user.as_deref().unwrap_or(privileges::NOBODY)
    ));
    for peer in &config.peers {
        let inside = |net: &&IpNet| !config.addresses.iter().any(|own| own.contains(*net));
        let routed: Vec<IpNet> = peer.allowed.iter().filter(inside).copied().collect();
        lines.push(format!(
            "peer {}: {}, {} at first, {}",
            peer.name,
            peer.endpoint.map_or_else(
                || "endpoint unknown until it sends".to_string(),
                |endpoint| format!("at {endpoint}")
            ),
            units::show_whole(peer.capacity.nominal_bps, Kind::Rate),
            if config.routes {
                format!("routes: {}", listed(&routed, "none"))
            } else {
                "no routes".to_string()
            }
        ));
    }
    let text: String = lines.iter().map(|line| format!("  {line}\n")).collect();
    Ok(format!("{}: would set up\n{text}", file.display()))
}

fn listed(nets: &[IpNet], none: &str) -> String {
    if nets.is_empty() {
        return none.to_string();
    }
    let nets: Vec<String> = nets.iter().map(IpNet::to_string).collect();
    nets.join(", ")
}

fn load(file: &Path) -> Result<Config, Failure> {
    config::load(file).map_err(input)
}

fn input(fault: Fault) -> Failure {
    Failure::Input(fault.to_string())
}

fn unexpected(response: Response) -> Failure {
    match response {
        Response::Refused(why) => Failure::Failed(why),
        _ => Failure::Failed(
            "the gateway is of another version than this program; restart the gateway".to_string(),
        ),
    }
}

impl Running {
    fn path(&self) -> Result<PathBuf, Failure> {
        self.control.clone().map_or_else(only_socket, Ok)
    }

    fn show(&self) -> Result<Show, Failure> {
        match self.ask(&Request::Show)? {
            Response::Show(show) => Ok(*show),
            other => Err(unexpected(other)),
        }
    }

    fn ask(&self, request: &Request) -> Result<Response, Failure> {
        Ok(control::ask(&self.path()?, request)?)
    }
}

/// The control socket, where there is but one.
fn only_socket() -> Result<PathBuf, Failure> {
    let entries = std::fs::read_dir(CONTROL_FOLDER)
        .into_iter()
        .flatten()
        .flatten();
    let mut sockets: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "sock"))
        .collect();
    sockets.sort();
    match &sockets[..] {
        [one] => Ok(one.clone()),
        [] => {
            let message = format!(
                "no gateway has a control socket in {}; start one, or name its socket with --control",
                CONTROL_FOLDER
            );
            Err(Failure::Failed(message))
        }
        several => {
            let names: Vec<String> = several
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            Err(Failure::Input(format!(
                "several gateways run; name the control socket of one with --control: {}",
                names.join(", ")
            )))
        }
    }
}
