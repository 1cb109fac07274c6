// SPDX-License-Identifier: BSD-3-Clause
//! What a user sets for a discipline: a TOML file with the keys of scenarios and gateways.

use std::path::Path;

use linkweir_config::matching::{self, Rule, Rules};
use linkweir_config::reader::{Section, Source};
use linkweir_config::units::Kind;
use linkweir_config::{parameters, queue, Fault};
use linkweir_core::{PolicyInfo, MAX_RATE_BPS, MIN_RATE_BPS, UNSET};

/// Most bytes of a file.
pub const FILE_BYTES: u64 = 60_000;
/// Most classes.
const CLASSES: usize = 4096;
/// Most packets of a class.
const LIMIT_PKTS: u64 = 1_000_000;
/// Most bytes of a class.
const LIMIT_BYTES: u64 = 1_000_000_000;
/// Packets of a class where no limit is given.
const DEFAULT_PKTS: u64 = 1000;
/// Code points.
const CODE_POINTS: usize = 64;
/// Policies of the core whose programs the kernel refuses, because its verifier does not get to their end.
const REFUSED: [&str; 3] = ["mlwdf", "exp_rule", "exp_pf"];
/// Parameters of a policy for which `struct lw_settings` has room.
const MOST_PARAMS: usize = 16;

/// A class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Class {
    /// Its name.
    pub name: String,
    /// Most packets; none: bytes limit it.
    pub limit_pkts: Option<u64>,
    /// Most bytes; none: packets limit it.
    pub limit_bytes: Option<u64>,
}

/// What a user sets.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The policy.
    pub info: &'static PolicyInfo,
    /// Its parameters.
    pub params: Vec<u64>,
    /// Its parameters of each class, a row each.
    pub qparams: Vec<u64>,
    /// The classes.
    pub classes: Vec<Class>,
    /// Capacity, bit/s.
    pub link_bps: u64,
    /// Whether packets leave at that rate; otherwise as fast as the device takes them.
    pub shapes: bool,
    /// Class of each code point.
    pub class_of: [usize; CODE_POINTS],
    /// Class of packets without code point.
    pub rest: usize,
}

impl Settings {
    /// Reads the text of a file. `rate_bps` takes the place of `link.rate`, if given. The policy checks its parameters for the largest
    /// capacity known: a link that fades keeps its reservations.
    ///
    /// # Errors
    /// The first thing wrong with it.
    pub fn parse(
        text: &str,
        file: &Path,
        rate_bps: Option<u64>,
        best_bps: u64,
    ) -> Result<Settings, Fault> {
        let source = Source::new(text, Some(file));
        let document = source.parse(FILE_BYTES)?;
        let mut top = Section::new(&source, document.get_ref(), String::new(), 0);
        let mut link = top.need_table("link", "rate = \"20Mbit\"")?;
        let written = link
            .need("rate", "\"20Mbit\"")?
            .whole(Kind::Rate, (MIN_RATE_BPS, MAX_RATE_BPS))?;
        let shapes = link.flag("shape", true)?;
        let mut scheduler = top.need_table("scheduler", "policy = \"pss\"")?;
        let names: Vec<&str> = linkweir_core::policies().iter().map(|p| p.name).collect();
        let policy = scheduler.need("policy", "\"pss\"")?;
        let info = &linkweir_core::policies()[policy.choice(&names)?];
        if REFUSED.contains(&info.name) {
            return Err(policy.fault("the kernel refuses this policy in BPF: its verifier does not get to the end; use linkweir's kernel module, or another policy, such as pf or codes"));
        }
        let params = info
            .params
            .iter()
            .map(|param| parameters::read(&mut scheduler, param))
            .collect::<Result<Vec<_>, _>>()?;
        let mut sections = top.tables("class", CLASSES)?;
        let (classes, rules, qparams) = read_classes(&mut sections, info)?;
        top.finish()?;
        link.known()?;
        scheduler.known()?;
        for section in &sections {
            section.known()?;
        }
        let link_bps = rate_bps.unwrap_or(written);
        let places: Vec<&Section<'_, '_>> = sections.iter().collect();
        let most_bps = best_bps.max(written).max(link_bps);
        parameters::check(info, most_bps, &params, &qparams, &scheduler, &places)?;
        let (class_of, rest) = by_code_point(&rules);
        Ok(Settings {
            info,
            params,
            qparams,
            classes,
            link_bps,
            shapes,
            class_of,
            rest,
        })
    }

    /// Places for packets that all classes together need; at least 1,024, so that a change can raise limits a little.
    #[must_use]
    pub fn slots(&self) -> u32 {
        const LEAST: u64 = 1024;
        const MOST: u64 = 1 << 17;
        let sum: u64 = self
            .classes
            .iter()
            .map(|class| class.limit_pkts.unwrap_or(MOST))
            .sum();
        u32::try_from(sum.clamp(LEAST, MOST)).unwrap_or(u32::MAX)
    }

    /// The words of `struct lw_settings` and of what follows it. `text` is the entry of the map `notes` with these settings.
    #[must_use]
    pub fn words(&self, best_bps: u64, text: u64) -> Vec<u64> {
        let bandwidth_bps = if self.shapes { self.link_bps } else { 0 };
        let mut words = vec![self.link_bps, bandwidth_bps, best_bps.max(self.link_bps)];
        words.extend(
            self.params
                .iter()
                .copied()
                .chain(std::iter::repeat(0))
                .take(MOST_PARAMS),
        );
        words.extend(self.class_of.iter().map(|class| *class as u64));
        words.extend([self.rest as u64, text]);
        for class in &self.classes {
            let limit_pkts = class.limit_pkts.unwrap_or(u64::MAX);
            words.extend([class.limit_bytes.unwrap_or(u64::MAX), UNSET, limit_pkts]);
        }
        words.extend(&self.qparams);
        words
    }
}

type Classes = (Vec<Class>, Rules, Vec<u64>);

fn read_classes(
    sections: &mut [Section<'_, '_>],
    info: &'static PolicyInfo,
) -> Result<Classes, Fault> {
    let mut classes: Vec<Class> = Vec::new();
    let mut qparams = Vec::new();
    let mut rules: Vec<Rule> = Vec::new();
    let mut rest = None;
    for (at, section) in sections.iter_mut().enumerate() {
        let entry = section.need("name", "\"ef\"")?;
        let name = entry.text()?.to_owned();
        if classes.iter().any(|class| class.name == name) {
            return Err(entry.fault("two classes have this name; rename one"));
        }
        for param in &info.qparams {
            qparams.push(parameters::read(section, param)?);
        }
        let mut names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
        names.push(&name);
        let own = matching::read(section, at, &rules, &names)?;
        let only_code_points = |rule: &Rule| {
            *rule
                == Rule {
                    class: rule.class,
                    order: rule.order,
                    dscp: rule.dscp,
                    ..Rule::default()
                }
        };
        if !own.rules.iter().all(only_code_points) {
            return Err(section.fault_at(
                "match",
                "a BPF discipline reads code points only; write rules like { dscp = \"EF\" }",
            ));
        }
        if own.rest {
            if rest.is_some() {
                return Err(section.fault_at(
                    "match",
                    "only one class may take what no other does; write match = [{ dscp = \"EF\" }]",
                ));
            }
            rest = Some(at);
        }
        rules.extend(own.rules);
        let limit = read_limit(section)?;
        classes.push(Class { name, ..limit });
    }
    match (rest, sections.last()) {
        (Some(rest), _) => Ok((classes, Rules::new(rules, rest), qparams)),
        (None, Some(last)) => Err(last.fault_at(
            "match",
            "one class must take what no other does; leave match out there",
        )),
        (None, None) => Ok((classes, Rules::new(rules, 0), qparams)),
    }
}

/// A class without name, with its limits.
fn read_limit(section: &mut Section<'_, '_>) -> Result<Class, Fault> {
    for key in ["max_age", "full", "least", "flows"] {
        if section.stray(key).is_some() {
            return Err(section.fault_at(key, "a BPF discipline has limits in packets and bytes only; leave this out, or use a gateway"));
        }
    }
    let bounds = queue::Bounds {
        pkts: LIMIT_PKTS,
        bytes: LIMIT_BYTES,
        default_pkts: DEFAULT_PKTS,
        least_bytes: 0,
        default_age_ns: None,
    };
    let limit = queue::read(section, bounds)?;
    if limit.time.is_some() {
        return Err(section.fault_at("limit", "a BPF discipline has limits in packets and bytes only; write limit = \"100p\" or limit_bytes"));
    }
    Ok(Class {
        name: String::new(),
        limit_pkts: limit.pkts.map(u64::from),
        limit_bytes: limit.bytes,
    })
}

fn by_code_point(rules: &Rules) -> ([usize; CODE_POINTS], usize) {
    let mut class_of = [rules.rest; CODE_POINTS];
    for (code, class) in class_of.iter_mut().enumerate() {
        let code = u8::try_from(code).unwrap_or(0);
        if let Some(rule) = rules.rules.iter().find(|rule| rule.names(code)) {
            *class = rule.class;
        }
    }
    (class_of, rules.rest)
}

/// Reads a file of settings.
///
/// # Errors
/// When it cannot be read, or the first thing wrong with it.
pub fn load(file: &Path) -> Result<(String, Settings), crate::Failure> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| crate::Failure::Input(format!("{}: {error}", file.display())))?;
    let settings = Settings::parse(&text, file, None, 0)?;
    Ok((text, settings))
}
