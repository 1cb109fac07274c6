// SPDX-License-Identifier: BSD-3-Clause
//! `linkweir-gateway`: the command line. Exit codes: 0 done, 1 failed, 2 bad input.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use linkweir_gateway::config;

/// A tunnel that schedules what it carries
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Read a configuration and say what is wrong with it
    Check {
        /// Configuration file
        config: PathBuf,
    },
}

/// What to say and to return when a command did not do what it was asked.
enum Failure {
    Input(String),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::Check { config } => check(&config),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failure::Input(message)) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn check(file: &std::path::Path) -> Result<(), Failure> {
    let config = config::load(file).map_err(|fault| Failure::Input(fault.to_string()))?;
    println!(
        "{}: sound; {} with {} classes towards {} peers, MTU {} bytes",
        file.display(),
        config.scheduler.info.name,
        config.classes.len(),
        config.peers.len(),
        config.mtu
    );
    Ok(())
}
