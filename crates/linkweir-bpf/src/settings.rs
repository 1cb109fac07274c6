// SPDX-License-Identifier: BSD-3-Clause
//! What a user sets for a discipline: a TOML file with the keys of scenarios and gateways.

use std::ops::RangeInclusive;
use std::path::Path;

use linkweir_config::keys::gateway::QUEUE;
use linkweir_config::matching::{self, Rule, Rules};
use linkweir_config::parameters::{self, Nominal};
use linkweir_config::reader::{Section, Source};
use linkweir_config::units::Kind;
use linkweir_config::{queue, Fault};
use linkweir_core::{PolicyInfo, MAX_RATE_BPS, MIN_RATE_BPS, UNSET};

use crate::layout::{join, MOST_MARKS, MOST_RULES, RULE_WORDS};

/// Most bytes of a file.
pub const FILE_BYTES: u64 = 60_000;
/// Most classes.
const CLASSES: usize = 4096;
/// Code points.
const CODE_POINTS: usize = 64;
/// Policies of which there are programs, a line each; lines with # are comments.
const POLICIES: &str = include_str!("../../../bpf/policies");
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
    /// Rules in order, if one of them has more than code points; they come in place of `class_of`.
    pub rules: Vec<Flat>,
    /// Marks of the firewall with their classes. They come before all rules.
    pub marks: Vec<(u32, usize)>,
}

/// A rule with one range of ports for each key, as `struct lw_rule` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flat {
    class: usize,
    code_points: u64,
    protocols: [u64; 4],
    /// Of `port`, `source_port` and `destination_port`.
    ports: [RangeInclusive<u16>; 3],
}

impl Flat {
    fn words(&self) -> [u64; RULE_WORDS] {
        let [port, source, destination] = self
            .ports
            .each_ref()
            .map(|range| u32::from(*range.start()) | u32::from(*range.end()) << 16);
        let [a, b, c, d] = self.protocols;
        let class = self.class as u32;
        let halves = [join(port, source), join(destination, class)];
        [self.code_points, a, b, c, d, halves[0], halves[1]]
    }
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
        if info.sorted_by_ecn {
            return Err(policy.fault("needs packets sorted by their ECN codepoint, which no class in BPF does; name another policy, or use the kernel's own qdisc of this name"));
        }
        if !POLICIES.lines().any(|line| line == info.name) {
            return Err(policy.fault("the kernel refuses this policy in BPF: its verifier does not get to the end; use linkweir's kernel module, or another policy, such as pf or codes"));
        }
        let params = info
            .params
            .iter()
            .map(|param| parameters::read(&mut scheduler, param))
            .collect::<Result<Vec<_>, _>>()?;
        let mut sections = top.tables("class", CLASSES)?;
        let (classes, rules, qparams, marks) = read_classes(&mut sections, info)?;
        top.finish()?;
        link.known()?;
        scheduler.known()?;
        for section in &sections {
            section.known()?;
        }
        let link_bps = rate_bps.unwrap_or(written);
        let places: Vec<&Section<'_, '_>> = sections.iter().collect();
        let most_bps = best_bps.max(written).max(link_bps);
        let nominal = Nominal::of_link(most_bps);
        parameters::check(info, &nominal, &params, &qparams, &scheduler, &places)?;
        let (class_of, rest) = by_code_point(&rules);
        let rules = flat(&rules, &places)?;
        Ok(Settings {
            info,
            params,
            qparams,
            classes,
            link_bps,
            shapes,
            class_of,
            rest,
            rules,
            marks,
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
        words.push(join(self.marks.len() as u32, self.rules.len() as u32));
        let marks = self.marks.iter();
        let room = std::iter::repeat(0);
        let marked = marks.map(|(mark, class)| join(*mark, *class as u32));
        words.extend(marked.chain(room.clone()).take(MOST_MARKS));
        let rules = self.rules.iter().flat_map(Flat::words);
        words.extend(rules.chain(room).take(MOST_RULES * RULE_WORDS));
        for class in &self.classes {
            let limit_pkts = class.limit_pkts.unwrap_or(u64::MAX);
            words.extend([class.limit_bytes.unwrap_or(u64::MAX), UNSET, limit_pkts]);
        }
        words.extend(&self.qparams);
        words
    }
}

type Marks = Vec<(u32, usize)>;
type Classes = (Vec<Class>, Rules, Vec<u64>, Marks);

fn read_classes(
    sections: &mut [Section<'_, '_>],
    info: &'static PolicyInfo,
) -> Result<Classes, Fault> {
    let mut classes: Vec<Class> = Vec::new();
    let mut qparams = Vec::new();
    let mut rules: Vec<Rule> = Vec::new();
    let mut marks = Marks::new();
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
        let of_addresses = |rule: &Rule| {
            [&rule.addresses, &rule.sources, &rule.destinations]
                .iter()
                .any(|nets| !nets.is_empty())
        };
        if own.rules.iter().any(of_addresses) {
            return Err(section.fault_at(
                "match",
                "a BPF discipline reads code points, protocols and ports, and no addresses; let the firewall mark these packets and write mark = 1",
            ));
        }
        let marked = read_marks(section, at, &mut marks)?;
        let own_rest = own.rest && (!marked || section.stray("match").is_some());
        if own_rest {
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
        (Some(rest), _) => Ok((classes, Rules::new(rules, rest), qparams, marks)),
        (None, Some(last)) => Err(last.fault_at(
            "match",
            "one class must take what no other does; leave match out there",
        )),
        (None, None) => Ok((classes, Rules::new(rules, 0), qparams, marks)),
    }
}

/// Reads the key `mark` of class number `class`: one mark or a list. Whether it has any.
fn read_marks(
    section: &mut Section<'_, '_>,
    class: usize,
    marks: &mut Marks,
) -> Result<bool, Fault> {
    let Some(entry) = section.find("mark") else {
        return Ok(false);
    };
    let entries = if entry.is_list() {
        entry.list(MOST_MARKS)?
    } else {
        vec![entry.clone()]
    };
    for one in entries {
        let mark = one.number((1, u32::MAX.into()))? as u32;
        if marks.iter().any(|(other, _)| *other == mark) {
            return Err(one.fault("this mark was given before; leave one of them out"));
        }
        if marks.len() == MOST_MARKS {
            return Err(one.fault(format!(
                "there are at most {MOST_MARKS} marks in all classes"
            )));
        }
        marks.push((mark, class));
    }
    Ok(true)
}

/// A class without name, with its limits.
fn read_limit(section: &mut Section<'_, '_>) -> Result<Class, Fault> {
    for key in ["max_age", "full", "least", "flows", "l4s_step"] {
        if section.stray(key).is_some() {
            return Err(section.fault_at(key, "a BPF discipline has limits in packets and bytes only; leave this out, or use a gateway"));
        }
    }
    let limit = queue::read(section, &QUEUE, queue::Defaults::default())?;
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

/// Rules with one range of ports for each key; none if all have code points only.
fn flat(rules: &Rules, places: &[&Section<'_, '_>]) -> Result<Vec<Flat>, Fault> {
    let mut found = Vec::new();
    if rules.rules.iter().all(Rule::is_of_code_points) {
        return Ok(found);
    }
    for rule in &rules.rules {
        let mut protocols = [0_u64; 4];
        for protocol in &rule.protocols {
            protocols[usize::from(protocol >> 6)] |= 1 << (protocol & 63);
        }
        if rule.protocols.is_empty() {
            protocols = [u64::MAX; 4];
        }
        for port in or_any(&rule.ports) {
            for source in or_any(&rule.source_ports) {
                for destination in or_any(&rule.destination_ports) {
                    if found.len() == MOST_RULES {
                        let place = places.get(rule.class).or(places.last());
                        let words = format!("a BPF discipline has at most {MOST_RULES} rules with ports or protocols, and a rule counts for each of its ports; write ranges like \"5000-5099\"");
                        return place
                            .map_or(Ok(found), |place| Err(place.fault_at("match", words)));
                    }
                    found.push(Flat {
                        class: rule.class,
                        code_points: rule.dscp.unwrap_or(u64::MAX),
                        protocols,
                        ports: [port.clone(), source.clone(), destination.clone()],
                    });
                }
            }
        }
    }
    Ok(found)
}

/// Ranges, or that of all ports and of packets without ports, whose port counts as 0.
fn or_any(ranges: &[RangeInclusive<u16>]) -> Vec<RangeInclusive<u16>> {
    if ranges.is_empty() {
        vec![0..=u16::MAX]
    } else {
        ranges.to_vec()
    }
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
