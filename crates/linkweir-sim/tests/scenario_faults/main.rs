// SPDX-License-Identifier: BSD-3-Clause
//! What is wrong with a scenario is named with file, line, key, value, range and cure.

mod applications;
mod beam;
mod bonds;
mod constellation;
mod files;
mod network;
mod satellite;
mod traces;
mod users;

use std::path::Path;

use linkweir_sim::experiment::Traffic;
use linkweir_sim::scenario::{self, parse, Overrides};

const BASE: &str = r#"duration = "10s"

[link]
rate = "20Mbit"
delay = "250ms"

[scheduler]
policy = "pss"

[[class]]
name = "ef"
level = 0

[[class]]
name = "af"
level = 1
low_level = 3
rate = "5Mbit"

[[class]]
name = "cs0"
level = 2

[[flow]]
class = "ef"
kind = "cbr"
rate = "5Mbit"

[[flow]]
class = "af"
kind = "greedy"

[[flow]]
class = "cs0"
kind = "tcp"
"#;

/// The message for a scenario, in a file of this name, with one piece of its text replaced.
fn fault_with(base: &str, name: &str, from: &str, to: &str) -> String {
    assert!(base.contains(from), "{from}");
    let text = base.replacen(from, to, 1);
    let read = parse(&text, Path::new(name));
    read.expect_err(&text).to_string()
}

/// Flows of a class are isolated below policies that let another choose among its packets; the simulator's own do not.
#[test]
fn flows_are_refused_below_policies_that_do_not_nest() {
    let flows = |policy: &str| {
        let text = format!(
            "duration = \"1s\"\n[link]\nrate = \"1Mbit\"\n[scheduler]\npolicy = \"{policy}\"\n\
             [[class]]\nname = \"all\"\nflows = \"fq_codel\"\n[[flow]]\nclass = \"all\"\nkind = \"tcp\"\n"
        );
        parse(&text, Path::new("geo.toml"))
    };
    let core = linkweir_core::policies();
    let nesting = core.iter().filter(|info| info.nests());
    let names: Vec<_> = nesting.map(|info| info.name).collect();
    for name in core.iter().map(|info| info.name).chain(["bps_like"]) {
        if names.contains(&name) {
            assert!(flows(name).is_ok(), "{name}");
            continue;
        }
        let wanted = format!(
            "geo.toml:8: class[0].flows = \"fq_codel\": needs a policy that leaves the choice among the packets of a class to another, and {name} does not; leave flows out, or use one of {}",
            names.join(", ")
        );
        assert_eq!(flows(name).unwrap_err().to_string(), wanted);
    }
    let unknown = fault("name = \"ef\"", "name = \"ef\"\nflows = \"fifo\"");
    assert!(
        unknown.contains("class[0].flows = \"fifo\": must be one of fq_codel, drr, dualpi2"),
        "{unknown}"
    );
}

/// A step is for L4S packets; the other ways to keep flows apart do not know them.
#[test]
fn a_step_is_refused_without_l4s_packets() {
    let to = |keys: &str| fault("name = \"ef\"", &format!("name = \"ef\"\n{keys}"));
    for flows in ["", "flows = \"fq_codel\"\n"] {
        let found = to(&format!("{flows}l4s_step = \"2ms\""));
        assert!(
            found.ends_with("class[0].l4s_step = \"2ms\": is for L4S packets, which the class does not sort; add flows = \"dualpi2\", or leave it out"),
            "{found}"
        );
    }
    let found = to("flows = \"dualpi2\"\nl4s_step = \"5s\"");
    assert!(
        found.ends_with("class[0].l4s_step = \"5s\": must be 0s .. 4s"),
        "{found}"
    );
}

/// Packets of a class with `l4s` carry ECT(1), which TCP without ECN does not send.
#[test]
fn tcp_without_ecn_is_refused_among_l4s_packets() {
    let read = |l4s: &str, flow: &str| {
        let text = format!(
            "duration = \"1s\"\n[link]\nrate = \"1Mbit\"\n[scheduler]\npolicy = \"dualpi2\"\n\
             [[class]]\nname = \"all\"\nl4s = \"{l4s}\"\n[[flow]]\nname = \"load\"\nclass = \"all\"\n{flow}\n"
        );
        parse(&text, Path::new("geo.toml"))
    };
    let fault = read("yes", "kind = \"tcp\"").unwrap_err();
    assert_eq!(
        fault.to_string(),
        "geo.toml:8: class[0].l4s = \"yes\": must be no, as packets of flow load cannot carry a congestion mark; or write ecn = true in the flow, or give it another class"
    );
    for cc in ["prague", "dctcp"] {
        let fault = read("no", &format!("kind = \"tcp\"\ncc = \"{cc}\"")).unwrap_err();
        assert_eq!(
            fault.to_string(),
            "geo.toml:8: class[0].l4s = \"no\": must be yes, as flow load answers each mark a little, and would starve classic flows; or write another cc in the flow"
        );
    }
    for (l4s, flow) in [
        ("yes", "kind = \"tcp\"\necn = true"),
        ("yes", "kind = \"tcp\"\ncc = \"prague\""),
        ("yes", "kind = \"tcp\"\ncc = \"dctcp\""),
        ("yes", "kind = \"cbr\"\nrate = \"100kbit\""),
        ("no", "kind = \"tcp\""),
    ] {
        assert!(read(l4s, flow).is_ok(), "{l4s} {flow}");
    }
}

/// Algorithms that count marks have ECN without being asked, and need it.
#[test]
fn algorithms_that_count_marks_need_ecn_and_the_linux_profile() {
    let read = |keys: &str| {
        let text = format!(
            "duration = \"1s\"\n[link]\nrate = \"1Mbit\"\n[scheduler]\npolicy = \"fifo\"\n[[class]]\nname = \"all\"\n\
             [[flow]]\nname = \"load\"\nclass = \"all\"\nkind = \"tcp\"\n{keys}\n"
        );
        parse(&text, Path::new("geo.toml"))
    };
    for cc in ["prague", "dctcp"] {
        let found = read(&format!("cc = \"{cc}\"")).unwrap();
        let Traffic::Tcp(config) = &found.experiment.flows[0].traffic else {
            panic!("not TCP")
        };
        assert!(config.ecn);
        let without = read(&format!("cc = \"{cc}\"\necn = false")).unwrap_err();
        assert_eq!(
            without.to_string(),
            "geo.toml:13: flow[0].ecn = false: must be true with cc = \"prague\" or \"dctcp\", which count marks; without ECN choose reno, as Linux does"
        );
        let old = read(&format!("cc = \"{cc}\"\nprofile = \"ns2\"")).unwrap_err();
        assert_eq!(
            old.to_string(),
            format!("geo.toml:12: flow[0].cc = \"{cc}\": must be cubic or newreno with profile = \"ns2\"; only the linux profile has the others")
        );
    }
}

/// The message for the base scenario with one piece of text replaced.
fn fault(from: &str, to: &str) -> String {
    assert!(BASE.contains(from), "{from}");
    let text = BASE.replacen(from, to, 1);
    parse(&text, Path::new("geo.toml"))
        .expect_err(&text)
        .to_string()
}

#[test]
fn the_base_is_sound() {
    let scenario = parse(BASE, Path::new("geo.toml")).unwrap();
    assert_eq!(scenario.experiment.name, "geo");
    assert_eq!(scenario.experiment.flows.len(), 3);
    assert_eq!(scenario.experiment.link.return_delay_ns, 250_000_000);
}

/// A scenario with this many flows of EF, and these keys.
fn with_flows(duration: &str, count: u64, keys: &str) -> Result<(), String> {
    let text = BASE.replacen("\"10s\"", &format!("\"{duration}\""), 1);
    let flow = format!("kind = \"cbr\"\ncount = {count}\n{keys}");
    let text = text.replacen("kind = \"cbr\"", &flow, 1);
    let read = parse(&text, Path::new("geo.toml"));
    read.map(drop).map_err(|fault| fault.to_string())
}

#[test]
fn histograms_of_flows_that_would_fill_the_memory_are_refused() {
    assert_eq!(with_flows("10s", 8418, "delays = true"), Ok(()));
    assert_eq!(with_flows("10s", 90_000, "delays = false"), Ok(()));
    assert_eq!(
        with_flows("10s", 90_000, "delays = true").unwrap_err(),
        "geo.toml:28: flow[0].delays = true: histograms of 90000 flows may take 10.7 GB of memory, more than 1.0 GB; \
         ask for those of at most 8418 flows"
    );
    assert!(with_flows("10s", 8419, "delays = true").is_err());
}

#[test]
fn intervals_of_calls_that_would_fill_the_memory_are_refused() {
    // 1000 s are 100 intervals.
    let buffers = "playout = [\"60ms\", \"200ms\", \"adaptive\", \"1s\"]";
    assert_eq!(with_flows("1000s", 25_000, buffers), Ok(()));
    assert_eq!(with_flows("1009.9s", 25_000, buffers), Ok(()));
    assert_eq!(
        with_flows(
            "100000000s",
            1,
            "stop = \"100s\"\nplayout = [\"60ms\", \"1s\"]"
        ),
        Ok(())
    );
    assert_eq!(
        with_flows("1010s", 25_000, buffers).unwrap_err(),
        "geo.toml:28: flow[0].playout = [\"60ms\", \"200ms\", \"adaptive\", \"1s\"]: the table voice may have \
         10100000 rows, one each 10s for each buffer of each flow, more than 10000000; use fewer flows or buffers, or a \
         shorter duration"
    );
    assert!(with_flows("100000000s", 1, "playout = [\"60ms\", \"1s\"]").is_err());
    // The buffer of a call that names none counts as well.
    let call = BASE.replacen("\"10s\"", "\"1000h\"", 1);
    let call = call.replacen(
        "kind = \"tcp\"",
        "kind = \"voice\"\ncodec = \"g711\"\ncount = 28",
        1,
    );
    let found = parse(&call, Path::new("geo.toml")).unwrap_err().to_string();
    let wanted = "geo.toml:33: flow[2].playout: the table voice may have 10080000 rows";
    assert!(found.starts_with(wanted), "{found}");
}

#[test]
fn a_limit_in_bytes_below_every_packet_is_refused() {
    for (keys, bytes) in [
        ("", 1500),
        ("overhead = \"38B\"\n", 1538),
        ("mpu = \"2kB\"\n", 2000),
    ] {
        let limited = |limit: u32| {
            let link = BASE.replacen("[scheduler]", &format!("{keys}[scheduler]"), 1);
            let class = format!("name = \"ef\"\nlimit_bytes = \"{limit}B\"");
            parse(
                &link.replacen("name = \"ef\"", &class, 1),
                Path::new("geo.toml"),
            )
        };
        let refused = limited(bytes - 1).unwrap_err().to_string();
        let cure = format!("class[0].limit_bytes = \"{}B\": must hold a packet of flow cbr1, {bytes}B on the wire; raise it", bytes - 1);
        assert!(refused.contains(&cure), "{refused}");
        assert!(limited(bytes).is_ok());
    }
    // 500 bytes and a header of 52.
    let short = |limit: &str| {
        let flow = "kind = \"tcp\"\nbytes = \"500B\"";
        let class = format!("name = \"cs0\"\nlimit_bytes = \"{limit}\"");
        let text = BASE.replacen("kind = \"tcp\"", flow, 1);
        parse(
            &text.replacen("name = \"cs0\"", &class, 1),
            Path::new("geo.toml"),
        )
    };
    short("552B").unwrap();
    let refused = short("551B").unwrap_err().to_string();
    assert!(refused.contains(", 552B on the wire"), "{refused}");
    let smallest_counts = BASE
        .replacen("name = \"ef\"", "name = \"ef\"\nlimit_bytes = \"64B\"", 1)
        .replacen(
            "rate = \"5Mbit\"\n\n[[flow]]",
            "rate = \"5Mbit\"\npacket = { min = \"64B\", max = \"1500B\" }\n\n[[flow]]",
            1,
        );
    assert!(parse(&smallest_counts, Path::new("geo.toml")).is_ok());
}

/// What replaces what in the base scenario, and what the message says.
const REPLACED: &[(&str, &str, &str)] = &[
    ("rate = \"20Mbit\"", "rtae = \"20Mbit\"", "geo.toml:4: link.rtae = \"20Mbit\": unknown key; did you mean rate?"),
    ("rate = \"20Mbit\"", "", "geo.toml:3: link.rate: is missing"),
    ("[link]\nrate", "[lnik]\nrate", "geo.toml:3: lnik: unknown key; did you mean [link]?"),
    ("[link]\nrate", "[path]\nrate", "geo.toml:1: [link]: is missing; write a table [link], such as one with rate = \"20Mbit\""),
    ("rate = \"5Mbit\"\n\n[[class]]\nname = \"cs0\"", "rate = \"20Mbit\"\n\n[[class]]\nname = \"cs0\"", "the reservation must be below the link's capacity: give a smaller one (pss, link.nominal = \"20Mbit\", the mean capacity unless you give it)"),
    ("policy = \"pss\"\n\n[[class]]\nname = \"ef\"\nlevel = 0\n\n[[class]]\nname = \"af\"\nlevel = 1\nlow_level = 3\nrate = \"5Mbit\"\n\n[[class]]\nname = \"cs0\"\nlevel = 2", "policy = \"pds\"\nlimit = \"19p\"\n\n[[class]]\nname = \"ef\"\n\n[[class]]\nname = \"af\"\n\n[[class]]\nname = \"cs0\"", "geo.toml:9: scheduler.limit = \"19p\": must hold the 20 packets that greedy flows keep waiting"),
    ("delay =", "delya =", "geo.toml:5: link.delya = \"250ms\": unknown key; did you mean delay?"),
    ("delay =", "colour =", "geo.toml:5: link.colour = \"250ms\": unknown key; known here: rate, trace"),
    ("\"20Mbit\"", "20", "geo.toml:4: link.rate = 20: needs a unit: one of Gbit, Mbit, kbit, bit, like \"20Mbit\""),
    ("\"20Mbit\"", "\"20Mbps\"", "in tc it means bytes per second"),
    ("\"20Mbit\"", "\"20mbit\"", "geo.toml:4: link.rate = \"20mbit\": unknown unit \"mbit\" for a rate; use one of Gbit, Mbit, kbit, bit; did you mean \"20Mbit\"?"),
    ("\"20Mbit\"", "\"20 Mbit/s\"", "geo.toml:4: link.rate = \"20 Mbit/s\": unknown unit \"Mbit/s\" for a rate; use one of Gbit, Mbit, kbit, bit; did you mean \"20Mbit\"?"),
    ("\"20Mbit\"", "\"20M\"", "geo.toml:4: link.rate = \"20M\": unknown unit \"M\" for a rate; use one of Gbit, Mbit, kbit, bit; did you mean \"20Mbit\"?"),
    ("\"20Mbit\"", "\"-20Mbit\"", "geo.toml:4: link.rate = \"-20Mbit\": must be 0bit .. 400Gbit"),
    ("\"20Mbit\"", "\"nanMbit\"", "is not a number"),
    ("\"20Mbit\"", "nan", "link.rate = nan: needs a unit"),
    ("delay = \"250ms\"", "delay = \"250ms\"\nloss = { mean = 0.1, burst = \"0.5p\" }", "geo.toml:6: link.loss.burst = \"0.5p\": must be 1p .. 1000000p"),
    ("delay = \"250ms\"", "delay = \"250ms\"\nloss = { burst = \"5p\" }", "geo.toml:6: link.loss.mean: is missing; write mean = \"1%\""),
    ("delay = \"250ms\"", "delay = \"250ms\"\nloss = { mean = \"70%\", burst = \"2p\" }", "geo.toml:6: link.loss.mean = \"70%\": must be at most 0.666666 with a mean burst of 2p"),
    ("delay = \"250ms\"", "delay = \"250ms\"\nloss = { mean = 0.1, burst = \"2p\", phase = 1 }", "link.loss.phase = 1: unknown key; known here: burst, mean"),
    ("delay = \"250ms\"", "delay = \"250ms\"\nreorder = 0.1", "geo.toml:6: link.reorder = 0.1: must be a table like { probability = \"1%\", delay = \"10ms\" }"),
    ("delay = \"250ms\"", "delay = \"250ms\"\nreorder = { probability = 1.5, delay = \"1ms\" }", "link.reorder.probability = 1.5: must be 0% .. 100%"),
    ("delay = \"250ms\"", "delay = \"250ms\"\nreorder = { probability = 0.5 }", "link.reorder.delay: is missing; write delay = \"10ms\""),
    ("delay = \"250ms\"", "delay = \"250ms\"\nreorder = { probability = 0.5, delay = \"2h\" }", "link.reorder.delay = \"2h\": must be 0s .. 3600s"),
    ("delay = \"250ms\"", "delay = \"0.1ns\"", "geo.toml:5: link.delay = \"0.1ns\": is less than half of 1ns, the smallest step, and would count as 0; write 0s, or 1ns or more"),
    ("delay = \"250ms\"", "delay = { steps = [[\"0s\", \"250ms\"], [\"1s\", \"0.1ns\"]] }", "\"0.1ns\": is less than half of 1ns"),
    ("delay = \"250ms\"", "delay = \"250ms\"\nloss = nan", "geo.toml:6: link.loss = nan: is not a number"),
    ("\"20Mbit\"", "true", "must be a rate like \"20Mbit\", not true or false"),
    ("\"20Mbit\"", "\"0bit\"", "must be above 0 at some time"),
    ("\"20Mbit\"", "\"500bit\"", "link.nominal: is missing and the mean capacity, 500bit, is no use"),
    ("\"10s\"", "\"10\"", "geo.toml:1: duration = \"10\": needs a unit"),
    ("\"10s\"", "\"1000000h\"", "must be 1us .. 315360000s"),
    ("duration = \"10s\"", "duration = \"10s\"\nwarmup = \"10s\"", "geo.toml:2: warmup"),
    ("duration = \"10s\"", "duration = \"10h\"\ninterval = \"1us\"", "raise interval"),
    ("\"pss\"", "\"psss\"", "must be one of {policies}; did you mean \"pss\"?"),
    ("low_level", "lowlevel", "geo.toml:17: class[1].lowlevel = 3: unknown key; did you mean low_level?"),
    ("\"5Mbit\"", "\"20Mbit\"", "geo.toml:18: class[1].rate = \"20Mbit\": the reservation must be below the link's capacity"),
    ("rate = \"5Mbit\"", "share = 1.0", "geo.toml:18: class[1].share = 1.0: must be 0% .. 99.9999%"),
    ("rate = \"5Mbit\"", "rate = \"5Mbit\"\nlr = \"60kbit\"\nlm = \"60kbit\"", "geo.toml:20: class[1].lm = \"60kbit\": lm must be above lr"),
    ("level = 2", "level = 1", "level"),
    ("level = 2", "level = -1", "geo.toml:22: class[2].level = -1: must be a whole number 0 .. 65535"),
    ("kind = \"greedy\"", "kind = \"udp\"", "flow[1].kind = \"udp\": must be one of cbr, poisson, onoff, greedy, tcp, voice, replay, transfers, requests, web, video; cbr, poisson and onoff send datagrams as over UDP"),
    ("kind = \"greedy\"", "kind = \"gready\"", "did you mean \"greedy\"?"),
    ("kind = \"greedy\"", "kind = \"greedy\"\nbacklog = \"2000p\"", "class[1].limit: must hold the 2000 packets"),
    ("kind = \"greedy\"", "kind = \"greedy\"\nbacklog = \"0.5p\"", "must be whole"),
    ("class = \"af\"", "class = \"aff\"", "geo.toml:30: flow[1].class = \"aff\": no class has this name; did you mean \"af\"?"),
    ("kind = \"greedy\"", "kind = \"greedy\"\nplayout = \"60\"", "flow[1].playout = \"60\": needs a unit"),
    ("kind = \"greedy\"", "kind = \"greedy\"\nplayout = \"adaptiv\"", ", or \"adaptive\""),
    ("kind = \"greedy\"", "kind = \"greedy\"\nplayout = [\"60ms\", \"0.06s\"]", "names \"60ms\" twice; leave one out"),
    ("kind = \"greedy\"", "kind = \"greedy\"\nplayout = \"11s\"", "must be 1ms .. 10s"),
    ("kind = \"greedy\"", "kind = \"greedy\"\ndelays = 1", "must be true or false"),
    ("kind = \"tcp\"", "kind = \"tcp\"\nplayout = \"60ms\"", "flow[2].playout = \"60ms\": not over TCP"),
    ("duration = \"10s\"", "duration = \"10s\"\nlog = \"all\"", "log = \"all\": must be one of none, packets"),
    ("duration = \"10s\"", "duration = \"10s\"\nlog_rows = 5", "log_rows = 5: needs log = \"packets\"; add it or leave this out"),
    ("kind = \"tcp\"", "kind = \"tcp\"\npacket = \"1500B\"", "flow[2].packet = \"1500B\": unknown key"),
    ("kind = \"tcp\"", "kind = \"tcp\"\ncount = 100000", "there would be more than 100000 flows"),
    ("kind = \"tcp\"", "kind = \"tcp\"\ncount = 0", "must be a whole number 1 .. 100000"),
    ("kind = \"tcp\"", "kind = \"tcp\"\nmin_rto = \"10s\"\nmax_rto = \"5s\"", "must not be below min_rto, 10s"),
    ("kind = \"tcp\"", "kind = \"tcp\"\nwindow = \"5p\"\ninitial_window = \"6p\"", "flow[2].initial_window = \"6p\": must not exceed window, 5p"),
    ("kind = \"tcp\"", "kind = \"tcp\"\nprofile = \"ns2\"\nheader = \"0B\"", "flow[2].header = \"0B\": 0B with link.overhead and link.mpu counts as 0B"),
    ("kind = \"tcp\"", "kind = \"tcp\"\nstart = \"10s\"", "flow[2].start = \"10s\": the last source would start at 10s"),
    ("name = \"cs0\"", "name = \"cs0\"\ncount = 4095", "serves 1 .. 4096 queues, not 4097: use fewer, or another policy"),
    ("name = \"cs0\"", "name = \"ef\"", "geo.toml:21: class[2].name = \"ef\": two classes have this name"),
    ("[[class]]", "[class]", "geo.toml:10: class: is written [class] here and [[class]] in line 14: use one form; [[class]] only for what may be there several times"),
    ("[[class]]\nname = \"cs0\"", "[class]\nname = \"cs0\"", "geo.toml:20: class: is written [class] here and [[class]] in line 14: use one form; [[class]] only for what may be there several times"),
    ("[[class]]\nname = \"ef\"", "[[classes]]\nname = \"ef\"", "geo.toml:10: classes: unknown key; did you mean class?"),
    ("[link]\nrate = \"20Mbit\"", "[link]\nrate = \"20Mbit\"\nrate = \"30Mbit\" # two", "geo.toml:5: link.rate = \"30Mbit\": is given twice, first in line 4; leave one of them out"),
    ("low_level = 3", "low_level = 3\nlevel = 7", "geo.toml:18: class[1].level = 7: is given twice, first in line 16; leave one of them out"),
    ("rate = \"20Mbit\"", "rate.mean = \"20Mbit\"\nrate.mean = \"30Mbit\"", "geo.toml:5: link.rate.mean = \"30Mbit\": is given twice, first in line 4; leave one of them out"),
    ("rate = \"20Mbit\"", "\"rate\" = \"20Mbit\"\nrate = \"30Mbit\"", "geo.toml:5: link.rate = \"30Mbit\": is given twice, first in line 4; leave one of them out"),
    ("rate = \"20Mbit\"", "rate = \"20Mbit\"\n'rate' = \"30Mbit\"", "geo.toml:5: link.rate = \"30Mbit\": is given twice, first in line 4; leave one of them out"),
    ("rate = \"20Mbit\"", "rate.mean = 1\ndelay.mean = 1\nrate.mean = 2", "geo.toml:6: link.rate.mean = 2: is given twice, first in line 4; leave one of them out"),
    ("rate = \"20Mbit\"", "rate.mean = 1\nrate = \"20Mbit\"", "geo.toml:5: link.rate = \"20Mbit\": is given twice, first in line 4; leave one of them out"),
    ("rate = \"20Mbit\"", "rates = [\n{ a = 1, a = 2 }]", "geo.toml:5: link.a: is given twice, in one table; leave one of them out"),
    ("rate = \"20Mbit\"", "rate = { \"mean\" = 1, mean = 2 }", "geo.toml:4: link.rate.mean: is given twice, in one table; leave one of them out"),
    ("\"20Mbit\"", "{ mean = \"1Mbit\", mean = \"2Mbit\" }", "geo.toml:4: link.rate.mean: is given twice, in one table; leave one of them out"),
    ("[scheduler]", "[[peer]]\n[peer.one]\n[[peer]]\n[peer.one]\n[peer.one]\n[scheduler]", "geo.toml:11: peer.one: is a second table [peer.one]; the first is in line 10"),
    ("[link]", "[[link]]\n[link]", "geo.toml:4: link: is written [link] here and [[link]] in line 3: use one form; [[link]] only for what may be there several times"),
    ("[scheduler]", "[link]", "geo.toml:7: link: is a second table [link]; the first is in line 3: put all keys under one"),
    ("rate = \"20Mbit\"", "rate = \u{201c}20Mbit\u{201d}", "geo.toml:4: link.rate = \u{201c}20Mbit\u{201d}: \u{201c} is not a quotation mark of TOML; write rate = \"20Mbit\""),
    ("\"20Mbit\"", "\"20Mbit\u{201d}", "\u{201d} is not a quotation mark of TOML; write rate = \"20Mbit\""),
    ("rate = \"20Mbit\"", "rate = 20Mbit # nominal", "geo.toml:4: link.rate = 20Mbit: needs quotes; write rate = \"20Mbit\""),
    ("policy = \"pss\"", "policy = pss", "geo.toml:8: scheduler.policy = pss: needs quotes; write policy = \"pss\""),
    ("rate = \"20Mbit\"", "rate = \"20Mbit\"\nfollow = True", "geo.toml:5: link.follow = True: needs quotes; write follow = true"),
    // The quotes in the remark are not what is wrong.
    ("rate = \"20Mbit\"", "rate = 20Mbit\" # \u{201c}nominal\u{201d}", "geo.toml:4: is not TOML"),
    ("[link]", "[link", "geo.toml:3: is not TOML"),
    ("kind = \"cbr\"", "kind = \"cbr\"\npacket = \"2MB\"", "must be 1B .. 1048575B"),
    ("delay = \"250ms\"", "delay = \"250ms\"\noverhead = \"-1500B\"", "must be whole and -1kB .. 1kB"),
    ("delay = \"250ms\"", "delay = \"250ms\"\noverhead = \"-40B\"\n[[flow]]\nclass=\"ef\"\nkind=\"cbr\"\nrate=\"1Mbit\"\npacket=\"40B\"", "counts as 0B"),
    ("\"20Mbit\"\ndelay = \"250ms\"", "\"400Gbit\"\ndelay = \"1h\"", "geo.toml:5: link.delay = \"1h\": 400Gbit and 3600s on the way keep 120000000000 packets of 1500B there, more than 50000000; lower either"),
    ("\"20Mbit\"\ndelay = \"250ms\"", "\"400Gbit\"\nsatellite = { packet = \"1500B\", ground_delay = \"1h\" }", "geo.toml:5: link.satellite.ground_delay = \"1h\": 400Gbit and 3600s on the way"),
    ("\"20Mbit\"\ndelay = \"250ms\"", "\"1Gbit\"\nsatellite = { packet = \"1500B\", ground_delay = \"500s\" }\ndelay = \"500s\"", "geo.toml:6: link.delay = \"500s\": 1Gbit and 1000s on the way keep 83333333 packets"),
    ("\"20Mbit\"", "{ steps = [[\"0s\", \"1Mbit\"], [\"0s\", \"2Mbit\"]] }", "link.rate.steps[1][0] = \"0s\": must be later than 0s"),
    ("\"20Mbit\"", "{ steps = [[\"0s\", \"1Mbit\"]], end = \"loop\" }", "link.rate.period: is missing"),
    ("\"20Mbit\"", "{ mean = \"1Mbit\", amplitude = 2.0, period = \"1s\" }", "link.rate.amplitude = 2.0: must be a number 0 .. 1"),
    ("\"20Mbit\"", "{ mean = \"1Mbit\", amplitude = 0.5, period = \"1s\", fase = 1 }", "did you mean phase?"),
    ("rate = \"20Mbit\"", "trace = \"no-such-file.csv\"", "geo.toml:4: link.trace = \"no-such-file.csv\": no-such-file.csv: cannot be read"),
    ("rate = \"20Mbit\"", "trace = \"/dev/zero\"", "is not a regular file"),
    ("rate = \"20Mbit\"", "rate = \"20Mbit\"\nend = \"loop\"", "is only for a link with a trace"),
];

#[test]
fn faults_name_line_key_value_and_cure() {
    let mut wrong = String::new();
    let names: Vec<&str> = linkweir_core::policies()
        .iter()
        .map(|info| info.name)
        .collect();
    let policies = names.join(", ");
    for &(from, to, expected) in REPLACED {
        let message = fault(from, to);
        let expected = expected.replace("{policies}", &policies);
        if !message.contains(&expected) {
            wrong.push_str(&format!(
                "{from} -> {to}\n     got {message}\n  wanted {expected}\n"
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    // What is repeated is short and printable, however long the line.
    let long = format!("rate = 1{}Mbit", "0\u{7}".repeat(5000));
    assert!(fault("rate = \"20Mbit\"", &long).len() < 400);
    let long = format!("rate = \u{201c}{}Mbit\u{201d}", "1".repeat(5000));
    assert!(fault("rate = \"20Mbit\"", &long).len() < 400);
    let long = format!("rate = \"{}20M\"", "0".repeat(5000));
    assert!(fault("rate = \"20Mbit\"", &long).len() < 400);
    // Three letters, of which one is the same, are no near match.
    for (from, to) in [("\"pss\"", "\"wfq\""), ("\"greedy\"", "\"udp\"")] {
        assert!(!fault(from, to).contains("did you mean"), "{to}");
    }
}

#[test]
fn delays_before_the_queue_count_where_packets_are_kept_there() {
    let fast = BASE.replacen("20Mbit", "400Gbit", 1);
    let fast = fast.replacen("250ms", "1s", 1);
    let late = |kind: &str| {
        let from = format!("kind = \"{kind}\"");
        let text = fast.replacen(&from, &format!("{from}\naccess_delay = \"2s\""), 1);
        assert_ne!(text, fast);
        parse(&text, Path::new("geo.toml"))
    };
    let found = late("tcp").unwrap_err().to_string();
    assert_eq!(
        found,
        "geo.toml:36: flow[2].access_delay = \"2s\": 400Gbit and 3s on the way keep 100000000 packets of 1500B there, \
         more than 50000000; lower either"
    );
    assert!(late("cbr").is_ok());
}

#[test]
fn what_terminals_hear_counts_among_the_rows() {
    let read = |link: &str| {
        let text = format!(
            "duration = \"100s\"\ninterval = \"1us\"\n[link]\n{link}\n[scheduler]\npolicy = \"fifo\"\n\
             [[class]]\nname = \"a\"\ncount = 60\n[[flow]]\nclass = \"a\"\nkind = \"greedy\"\ncount = 30\n"
        );
        parse(&text, Path::new("b.toml"))
    };
    assert!(read("rate = \"1Mbit\"").is_ok());
    let found = read("beam = { symbol_rate = \"50MBd\", clear_sky_esn0_db = 12 }");
    assert_eq!(
        found.unwrap_err().to_string(),
        "b.toml:2: interval = \"1us\": 100000000 bins for 60 classes (two rows each) and 30 flows are more than \
         10000000000 rows; raise interval"
    );
}

#[test]
fn too_much_of_anything_is_refused_before_it_takes_memory() {
    assert!(fault(
        "kind = \"greedy\"",
        "kind = \"cbr\"\nrate = \"1Mbit\"\ncount = 99999999999"
    )
    .contains("100000"));
    let deep = format!("x = {}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert!(parse(&deep, Path::new("deep.toml")).is_err());
    let wide = fault(
        "name = \"cs0\"\nlevel = 2",
        "name = \"cs0\"\nlevel = 2\nlimit = \"99999999999p\"",
    );
    assert!(wide.contains("must be 1p .. 100000000p"), "{wide}");
}

#[test]
fn without_a_file_the_key_is_the_place() {
    let text = BASE.replace("20Mbit", "20");
    let fault = scenario::parse_with(&text, None, &Overrides::default()).unwrap_err();
    assert!(
        fault
            .to_string()
            .starts_with("link.rate = \"20\": needs a unit"),
        "{fault}"
    );
}
