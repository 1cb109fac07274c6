// SPDX-License-Identifier: BSD-3-Clause
//! Faults of applications over TCP, of voice and of replay.

use std::path::Path;

use linkweir_sim::scenario::parse;

use crate::BASE;

/// Keys of a flow, and what the message says. The flow begins in line 33 of the scenario.
const FLOWS: &[(&str, &str)] = &[
    ("kind = \"transfers\"", "geo.toml:33: flow[2].size: is missing; write size = \"100kB\""),
    ("kind = \"transfers\"\nsize = \"0B\"", "flow[2].size = \"0B\": must be 1B .. 1000GB"),
    ("kind = \"transfers\"\nsize = 1000", "flow[2].size = 1000: needs a unit"),
    ("kind = \"transfers\"\nsize = { mean = \"1kB\", distribution = \"paretto\" }", "flow[2].size.distribution = \"paretto\": must be one of exponential, pareto, lognormal; did you mean \"pareto\"?"),
    ("kind = \"transfers\"\nsize = { distribution = \"pareto\" }", "flow[2].size.mean: is missing; write mean = \"100kB\", or cdf or file for a measured distribution"),
    ("kind = \"transfers\"\nsize = { mean = \"1kB\", distribution = \"lognormal\" }", "flow[2].size.deviation: is missing"),
    ("kind = \"transfers\"\nsize = { mean = \"1kB\", max = \"500B\" }", "flow[2].size.max = \"500B\": must not be below mean, \"1kB\""),
    ("kind = \"transfers\"\nsize = { cdf = [[\"1kB\", 0.5], [\"1kB\", 1]] }", "flow[2].size.cdf[1][1] = 1: amounts must rise from pair to pair"),
    ("kind = \"transfers\"\nsize = { cdf = [[\"1kB\", 0.5], [\"2kB\", 0.4]] }", "parts must not fall from pair to pair"),
    ("kind = \"transfers\"\nsize = { cdf = [[\"1kB\", 0.5]] }", "flow[2].size.cdf = [[\"1kB\", 0.5]]: must end with a part of 1"),
    ("kind = \"transfers\"\nsize = { file = \"none.csv\" }", "none.csv: cannot be read"),
    ("kind = \"transfers\"\nsize = \"1kB\"", "flow[2].arrivals: is missing; write arrivals = { every = \"500ms\" }"),
    ("kind = \"transfers\"\nsize = \"1kB\"\narrivals = \"500ms\"", "flow[2].arrivals = \"500ms\": must be a table, such as { every = \"500ms\" }"),
    ("kind = \"transfers\"\nsize = \"1kB\"\narrivals = { every = \"0s\" }", "flow[2].arrivals.every = \"0s\": must be 1ns .. 315360000s"),
    ("kind = \"transfers\"\nsize = \"1kB\"\narrivals = { at = [\"2s\", \"1s\"] }", "flow[2].arrivals.at[1] = \"1s\": times must not fall"),
    ("kind = \"transfers\"\nsize = \"1kB\"\narrivals = { every = \"1s\" }\nconcurrent = 0", "flow[2].concurrent = 0: must be a whole number 1 .. 100000"),
    ("kind = \"transfers\"\nsize = \"1kB\"\narrivals = { every = \"1s\" }\nbytes = \"1MB\"", "flow[2].bytes = \"1MB\": unknown key"),
    ("kind = \"transfers\"\nsize = \"1kB\"\narrivals = { process = \"poisson\" }", "flow[2].arrivals = { process = \"poisson\" }: must say when transfers arrive; add every = \"500ms\", load = \"5Mbit\" or at"),
    ("kind = \"transfers\"\nsize = \"1kB\"\narrivals = { rate = \"5Mbit\" }", "flow[2].arrivals.rate = \"5Mbit\": unknown key; known here: at, load, every, process"),
    ("kind = \"transfers\"\nsize = \"1kB\"\narrivals = { evry = \"5s\" }", "flow[2].arrivals.evry = \"5s\": unknown key; did you mean every?"),
    ("kind = \"transfers\"\nsize = \"1kB\"\narrivals = { every = \"1s\", load = \"5Mbit\" }", "flow[2].arrivals.every = \"1s\": at, load and every exclude each other; leave all but one out"),
    ("kind = \"transfers\"\nsize = \"1kB\"\narrivals = { every = \"1s\", at = [\"1s\"] }", "flow[2].arrivals.every = \"1s\": at, load and every exclude each other"),
    ("kind = \"transfers\"\nsize = \"1kB\"\narrivals = { load = \"5Mbit\", at = [\"1s\"] }", "flow[2].arrivals.load = \"5Mbit\": at, load and every exclude each other"),
    ("kind = \"transfers\"\nsize = \"1kB\"\narrivals = { load = \"5Mbit\", process = \"periodic\" }", "flow[2].arrivals.process = \"periodic\": is a key of every, and load makes a Poisson process; leave it out"),
    ("kind = \"transfers\"\nsize = \"1kB\"\narrivals = { at = [\"1s\"], process = \"periodic\" }", "flow[2].arrivals.process = \"periodic\": is a key of every, and at gives all times; leave it out"),
    ("kind = \"transfers\"\nsize = \"1kB\"\narrivals = { every = \"1s\", shape = 1.5 }", "flow[2].arrivals.shape = 1.5: is a key of size with distribution = \"pareto\"; process is poisson or periodic"),
    ("kind = \"transfers\"\nsize = \"1kB\"\narrivals = { every = \"1s\", concurrent = 5 }", "flow[2].arrivals.concurrent = 5: is a key of the flow; write it beside arrivals"),
    ("kind = \"transfers\"\nsize = \"1B\"\narrivals = { load = \"400Gbit\" }", "flow[2].arrivals.load = \"400Gbit\": gives a transfer every 0.02ns, which must be 1ns .. 315360000s; lower it, or raise size"),
    ("kind = \"transfers\"\nsize = \"1000GB\"\narrivals = { load = \"1bit\" }", "flow[2].arrivals.load = \"1bit\": gives a transfer every 8000000000000s, which must be 1ns .. 315360000s; raise it, or lower size"),
    ("kind = \"transfers\"\nsize = { mean = \"1kB\", shape = 2 }", "flow[2].size.shape = 2: is a key of distribution = \"pareto\"; add that or leave this out"),
    ("kind = \"transfers\"\nsize = { mean = \"1kB\", distribution = \"pareto\", deviation = \"2kB\" }", "flow[2].size.deviation = \"2kB\": is a key of distribution = \"lognormal\"; add that or leave this out"),
    ("kind = \"transfers\"\nsize = { cdf = [[\"1kB\", 1]], mean = \"1kB\" }", "flow[2].size.mean = \"1kB\": not with cdf, which gives the whole distribution; leave one out"),
    ("kind = \"transfers\"\nsize = \"1kB\"\narrivals = { every = \"1s\" }\nconcurrent = \"5p\"", "flow[2].concurrent = \"5p\": must be a whole number 1 .. 100000, not a string"),
    ("kind = \"transfers\"\nsize = \"1kB\"\narrivals = { every = \"1s\" }\nconcurrent = 100000\ncount = 3", "flow[2].concurrent = 100000: all flows together may have 300000 connections at once, more than 262144; lower concurrent or count"),
    ("kind = \"transfers\"\nsize = \"1kB\"\narrivals = { every = \"1s\" }\ncount = 300", "flow[2].concurrent: all flows together may have 300000 connections at once, more than 262144; lower concurrent or count"),
    ("kind = \"requests\"\nresponse = \"1kB\"", "flow[2].think: is missing; write think = \"5s\""),
    ("kind = \"requests\"\nresponse = \"1kB\"\nthink = { mean = \"0s\" }", "flow[2].think.mean = \"0s\": must be above 0"),
    ("kind = \"web\"\nmain = \"1kB\"\nobjects = \"3\"", "flow[2].objects = \"3\": "),
    ("kind = \"web\"\nmain = \"1kB\"\nobjects = 3\nobject = \"1kB\"\nconnections = 101", "flow[2].connections = 101: must be a whole number 1 .. 100"),
    ("kind = \"video\"", "flow[2].ladder: is missing; write ladder = [\"750kbit\", \"1.5Mbit\", \"3Mbit\"]"),
    ("kind = \"video\"\nladder = [\"2Mbit\", \"1Mbit\"]", "flow[2].ladder[1] = \"1Mbit\": rates must rise from one to the next"),
    ("kind = \"video\"\nladder = [\"1Mbit\"]\nbuffer = \"3s\"", "flow[2].buffer = \"3s\": must hold a segment, 4s"),
    ("kind = \"video\"\nladder = [\"1Mbit\"]\nbuffer = \"10s\"\nstartup = \"9s\"", "flow[2].startup = \"9s\": must not be above 8s"),
    ("kind = \"video\"\nladder = [\"1Mbit\"]\nsafety = 0.9", "flow[2].safety = 0.9: is a key of adaptation = \"throughput\"; leave one out"),
    ("kind = \"video\"\nladder = [\"1Mbit\"]\nadaptation = \"throughput\"\ncushion = \"1s\"", "flow[2].cushion = \"1s\": is a key of adaptation = \"bba0\""),
    ("kind = \"video\"\nladder = [\"1Mbit\"]\nreservoir = \"200s\"", "reservoir and cushion together must fit into buffer"),
    ("kind = \"voice\"", "flow[2].codec: is missing; write codec = \"g711\""),
    ("kind = \"voice\"\ncodec = \"g729a\"", "flow[2].codec = \"g729a\": must be one of g711, g711-plc, g729, g723.1, gsm-efr, g722, amr-wb, opus; did you mean \"g729\"?"),
    ("kind = \"replay\"", "flow[2].file: is missing; write file = \"capture.pcap\""),
];

#[test]
fn faults_of_flows_name_line_key_value_and_cure() {
    let mut wrong = String::new();
    for &(keys, expected) in FLOWS {
        let text = BASE.replacen("kind = \"tcp\"", keys, 1);
        let message = match parse(&text, Path::new("geo.toml")) {
            Ok(_) => "nothing".to_owned(),
            Err(fault) => fault.to_string(),
        };
        if !message.contains(expected) {
            wrong.push_str(&format!(
                "{keys}\n     got {message}\n  wanted {expected}\n"
            ));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn faults_of_a_file_of_sizes_name_the_line() {
    let folder = std::env::temp_dir().join(format!("linkweir-cdf-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let keys = "kind = \"transfers\"\nsize = { file = \"s.csv\" }\narrivals = { every = \"1s\" }";
    let text = BASE.replacen("kind = \"tcp\"", keys, 1);
    for (content, expected) in [
        (
            "",
            "s.csv: is empty; it must hold a header bytes,cumulative",
        ),
        (
            "size,cdf\n1,1\n",
            "s.csv:1: must be a header: bytes,cumulative",
        ),
        ("bytes,cumulative\n", "s.csv: must end with a part of 1"),
        (
            "bytes,cumulative\n1,0.5\n",
            "s.csv: must end with a part of 1",
        ),
        (
            "bytes,cumulative\n1\n",
            "s.csv:2: has 1 fields where the header has 2",
        ),
        (
            "bytes,cumulative\n0,1\n",
            "s.csv:2: bytes = \"0\": must be 1 .. 1000000000000",
        ),
        (
            "bytes,cumulative\n5,x\n",
            "s.csv:2: cumulative = \"x\": is not a number; must be 0 .. 1",
        ),
        (
            "bytes,cumulative\n5,0.1\n5,1\n",
            "s.csv:3: amounts must rise",
        ),
    ] {
        std::fs::write(folder.join("s.csv"), content).unwrap();
        let found = parse(&text, &folder.join("geo.toml"))
            .unwrap_err()
            .to_string();
        assert!(found.contains(expected), "{found}\n  wanted {expected}");
    }
    std::fs::remove_dir_all(folder).unwrap();
}
