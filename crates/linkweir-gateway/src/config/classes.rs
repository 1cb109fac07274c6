// SPDX-License-Identifier: BSD-3-Clause
//! `[[class]]`: queues, their limits, the policy's parameters of each, and which packets go there.

use linkweir_config::keys::gateway::{CLASS_NAME, LEAST, MATCH, MAX_AGE, QUEUE};
use linkweir_config::matching::{self, Rule, Rules};
use linkweir_config::reader::Section;
use linkweir_config::{parameters, queue, Fault};
use linkweir_core::PolicyInfo;

use super::names::word;
use super::peer_paths;
use linkweir_plane::setup::Class;

/// How long packets of a class of voice may wait by default, ns: a call can use nothing older.
const VOICE_AGE_NS: u64 = 200_000_000;
/// On a slow link they may wait for as long as so many of the largest packets take: one that is being sent when a packet comes
/// must not be the end of it.
const VOICE_AGE_PKTS: u64 = 2;
/// The code point of voice, expedited forwarding (RFC 3246).
const EF: u8 = 46;

/// Reads all classes; also returns the rows of policy parameters. The largest packet occupies the slowest link for `full_ns`;
/// `resend_ns` is the `reorder` that `resend` needs, where some peer has paths.
pub(super) fn read(
    sections: &mut [Section<'_, '_>],
    info: &'static PolicyInfo,
    full_ns: u64,
    resend_ns: Option<u64>,
) -> Result<(Vec<Class>, Rules, Vec<u64>), Fault> {
    let mut classes: Vec<Class> = Vec::new();
    let mut qparams = Vec::new();
    let mut rules: Vec<Rule> = Vec::new();
    let mut rest = None;
    // In whole milliseconds, as people write it.
    let voice_age_ms = full_ns.saturating_mul(VOICE_AGE_PKTS).div_ceil(1_000_000);
    let voice_age_ns = voice_age_ms
        .saturating_mul(1_000_000)
        .clamp(VOICE_AGE_NS, MAX_AGE.form.max);
    for (at, section) in sections.iter_mut().enumerate() {
        let entry = section.entry_of(&CLASS_NAME)?;
        let name = word(&entry)?;
        if classes.iter().any(|class| class.name == name) {
            return Err(entry.fault("two classes have this name; rename one"));
        }
        for param in &info.qparams {
            qparams.push(parameters::read(section, param)?);
        }
        let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
        let names = [&names[..], &[&name]].concat();
        let own = matching::read(section, at, &rules, &names)?;
        if own.rest {
            if let Some(earlier) = rest.and_then(|at: usize| classes.get(at)) {
                let message = if section.find(MATCH.name).is_none() {
                    "is missing, and only one class takes what no other does"
                } else {
                    "ends with {}, and only one class takes what no other does"
                };
                return Err(section.fault_at(
                    MATCH.name,
                    format!(
                        "{message}, \"{}\"; write match = [{{ dscp = \"EF\" }}]",
                        earlier.name
                    ),
                ));
            }
            rest = Some(at);
        }
        rules.extend(own.rules);
        let is_voice = rules.iter().any(|rule| rule.class == at && rule.names(EF));
        let defaults = queue::Defaults {
            least_bytes: 0,
            age_ns: is_voice.then_some(voice_age_ns),
        };
        let limit = queue::read(section, &QUEUE, defaults)?;
        let flows = queue::isolation(section, &QUEUE, info.name, info.nests())?;
        let (uses, reorder_ns, resend) = peer_paths::uses(section, resend_ns)?;
        classes.push(Class {
            name,
            limit,
            flows,
            uses,
            reorder_ns,
            resend,
        });
        let limits = classes.iter().map(|class| &class.limit);
        queue::shares(limits, |message| section.fault_at(LEAST.name, message))?;
    }
    let Some(rest) = rest else {
        let last = &sections[sections.len() - 1];
        return Err(last.fault_at(
            MATCH.name,
            "one class must take what no other does; leave match out there, or end it with {}",
        ));
    };
    Ok((classes, Rules::new(rules, rest), qparams))
}
