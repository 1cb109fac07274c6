// SPDX-License-Identifier: BSD-3-Clause
//! The calls of a policy that an object built with `LW_RECORD` noted down, as a vector (`vectors/README.md`).

use std::fmt::Write as _;

use linkweir_core::{beginning, Queue, View};

use crate::layout::{Call, Called, VERDICTS};
use crate::settings::Settings;
use crate::Failure;

/// Writes calls as a vector. `settings` are those that the discipline was made with.
///
/// # Errors
/// When the settings changed meanwhile, which is not noted down, or the calls contradict each other.
pub fn vector(settings: &Settings, calls: &[Call]) -> Result<String, Failure> {
    let wrong = |call: &Call, what: &str| Failure::Kernel(format!("at {}: {what}", call.now_ns));
    let mut calls = calls.iter();
    let first = calls
        .next()
        .filter(|call| call.called == Some(Called::Init))
        .ok_or_else(|| {
            Failure::Kernel(
                "no calls were noted down: add the discipline with an object built with LW_RECORD"
                    .to_owned(),
            )
        })?;
    let row = Queue {
        rate_bps: settings.link_bps,
        ..Queue::default()
    };
    let view = View {
        now_ns: first.now_ns,
        link_bps: settings.link_bps,
        queues: &vec![row; settings.classes.len()],
    };
    let mut text = beginning(settings.info, &view, &settings.params, &settings.qparams);
    let mut last = Called::Init;
    for call in calls {
        let called = call
            .called
            .ok_or_else(|| wrong(call, "no such call is known"))?;
        if called != Called::Victim {
            let _ = write!(text, "\nat {} ", call.now_ns);
        } else if last == Called::Enqueued {
            text.push_str(" drops");
        } else if last != Called::Victim {
            return Err(wrong(call, "a victim that no arrival asked for"));
        }
        let (queue, value) = (call.queue, call.value);
        let _ = match called {
            Called::Enqueued => write!(text, "enqueue {} {value}", queue.unwrap_or(u32::MAX)),
            Called::Victim => write!(
                text,
                " {}{}",
                if value == 0 { "" } else { "h" },
                queue.unwrap_or(u32::MAX)
            ),
            Called::Pick => match queue {
                Some(queue) => write!(text, "pick {queue}"),
                None => write!(text, "pick none"),
            },
            Called::Leaving => {
                let verdict = VERDICTS
                    .get(value as usize)
                    .ok_or_else(|| wrong(call, "no such verdict is known"))?;
                write!(text, "verdict {verdict}")
            }
            Called::Expired => write!(
                text,
                "expired {} {}",
                queue.unwrap_or(u32::MAX),
                if value == 0 { "no" } else { "yes" }
            ),
            Called::Sent => write!(text, "send {}", queue.unwrap_or(u32::MAX)),
            Called::Init | Called::Change => {
                return Err(wrong(call, "settings changed, which is not noted down"));
            }
        };
        last = called;
    }
    text.push_str("\n# end\n");
    Ok(text)
}
