// SPDX-License-Identifier: BSD-3-Clause
//! The configurations shown in docs/howto/gateway.md are valid: two are complete, the others replace parts of the first. The
//! commands there that need neither root nor a running gateway succeed. The reference's table of an emulated link shows its
//! declared keys. What docs/howto/paths.md shows of the boat is in its example, and its base's paths fit there.

use std::fs;
use std::path::Path;
use std::process::Command;

use linkweir_gateway::config::emulate::keys::TABLES;
use linkweir_gateway::config::{self, Config};

const PAGE: &str = include_str!("../../../docs/howto/gateway.md");

/// The TOML blocks of the page.
fn blocks() -> Vec<&'static str> {
    blocks_of(PAGE)
}

/// Those of any page.
fn blocks_of(page: &str) -> Vec<&str> {
    let after = page.split("```toml\n").skip(1);
    after
        .map(|text| text.split("```").next().expect("a block ends"))
        .collect()
}

fn parse(text: &str) -> Config {
    config::parse(text, Path::new("ground.toml")).unwrap_or_else(|fault| panic!("{fault}\n{text}"))
}

/// The whole configuration with these keys in place of its link, if they are a link's, and among those of its peer.
fn with(link: Option<&str>, peer: &str) -> Config {
    let whole = blocks()[0];
    let (before, rest) = whole.split_once("[link]\n").unwrap();
    let (shown, after) = rest.split_once("\n[scheduler]").unwrap();
    let (after, own) = after.split_once("name = \"ship\"\n").unwrap();
    let link = link.unwrap_or(shown);
    parse(&format!(
        "{before}[link]\n{link}\n[scheduler]{after}{peer}\n{own}"
    ))
}

/// What a block says below a header, up to the next one.
fn table<'a>(block: &'a str, header: &str) -> &'a str {
    let (_, body) = block.split_once(header).expect(header);
    body.split("\n[").next().unwrap()
}

#[test]
fn the_whole_configuration_is_sound() {
    let config = parse(blocks()[0]);
    assert_eq!(config.classes.len(), 3);
    assert_eq!(config.peers.len(), 1);
    let ship = parse(blocks()[1]);
    assert_eq!(ship.peers[0].keepalive_s, Some(25));
}

#[test]
fn both_ends_of_feedback_are_sound() {
    let block = blocks()[2];
    let column = block
        .lines()
        .next()
        .unwrap()
        .find("# at the receiver")
        .unwrap();
    let (sender, receiver): (Vec<&str>, Vec<&str>) = block
        .lines()
        .map(|line| line.split_at(column.min(line.len())))
        .unzip();
    for end in [sender, receiver] {
        with(None, table(&end.join("\n"), "[[peer]]"));
    }
}

#[test]
fn back_pressure_is_sound() {
    with(Some(table(blocks()[3], "[link]\n")), "name = \"ship\"\n");
}

#[test]
fn a_shared_link_is_sound() {
    let block = blocks()[4];
    with(Some(table(block, "[link]\n")), table(block, "[[peer]]\n"));
}

#[test]
fn a_peer_with_two_underlays_is_sound() {
    let (before, _) = blocks()[0].split_once("[[peer]]").unwrap();
    let config = parse(&format!("{before}{}", blocks()[5]));
    assert_eq!(config.peers[0].underlays.len(), 2);
}

#[test]
fn no_block_is_left_out() {
    assert_eq!(blocks().len(), 6);
}

/// Runs a command of the page with `folder` in place of /etc/linkweir and with further arguments; returns its output.
fn run(line: &str, folder: &Path, more: &[&str]) -> String {
    let command = line.split('#').next().unwrap();
    let words = command.split_whitespace().skip(1);
    let output = Command::new(env!("CARGO_BIN_EXE_linkweir-gateway"))
        .args(words.map(|word| word.replace("/etc/linkweir", folder.to_str().unwrap())))
        .args(more)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{line}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn the_commands_that_need_no_root_run() {
    let name = format!("linkweir-documentation-{}", std::process::id());
    let folder = std::env::temp_dir().join(name);
    let commands = |what: &str| {
        let start = format!("linkweir-gateway {what} /");
        let lines: Vec<_> = PAGE
            .lines()
            .filter(|line| line.starts_with(&start))
            .collect();
        assert!(!lines.is_empty(), "{start}");
        lines
    };
    for line in commands("keygen") {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let public = run(line, &folder, &[]);
        assert_eq!(public.trim().len(), 44, "{line}: 32 bytes in base64");
    }
    fs::write(folder.join("ground.toml"), blocks()[0]).unwrap();
    for line in commands("check") {
        assert!(run(line, &folder, &[]).contains(": valid; pss with 3 classes"));
    }
    for line in commands("up") {
        run(line, &folder, &["--dry-run"]);
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn the_reference_has_the_declared_keys_of_an_emulated_link() {
    let page = include_str!("../../../docs/reference/gateway.md");
    let (_, rest) = page.split_once("## An emulated link\n").unwrap();
    let (_, rest) = rest.split_once("|---|---|---|---|---|\n").unwrap();
    let (shown, _) = rest.split_once("\n\n").unwrap();
    let shown: Vec<Vec<&str>> = shown
        .lines()
        .map(|line| line.split('|').map(str::trim).skip(2).collect())
        .collect();
    // The keys of a capacity are those of [link], in one row.
    let shown: Vec<String> = shown
        .iter()
        .filter(|row| !row[0].contains("rate"))
        .map(|row| row[..4].join(" | "))
        .collect();
    let declared: Vec<String> = TABLES
        .iter()
        .flat_map(|table| table.own)
        .map(|key| {
            let (values, default) = (key.values(), key.default());
            format!(
                "`{}` | {values} | {default} | {}",
                key.name(),
                key.meaning()
            )
        })
        .collect();
    assert_eq!(shown, declared);
}

#[test]
fn the_page_of_paths_shows_the_example_of_a_boat_and_a_sound_base() {
    let boat = include_str!("../configs/boat.toml");
    let blocks = blocks_of(include_str!("../../../docs/howto/paths.md"));
    let mut rest = boat.lines();
    for line in blocks[0].lines().filter(|line| *line != "# ...") {
        assert!(rest.any(|of| of == line), "not in boat.toml: {line}");
    }
    parse(boat);
    let (whole, _) = boat.split_once("[[peer.path]]").unwrap();
    let base = parse(&format!("{whole}{}", blocks[1]));
    let names: Vec<&str> = base.peers[0]
        .paths
        .iter()
        .map(|path| path.name.as_str())
        .collect();
    assert_eq!(names, ["starlink", "lte"]);
}
