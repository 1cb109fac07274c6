// SPDX-License-Identifier: BSD-3-Clause
//! Each reader of a measured series says what it took the file for, and takes the same dialects. Means are worked out by hand.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use linkweir_sim::scenario::{parse, Scenario};

use crate::again;

const REST: &str = "[scheduler]\npolicy = \"fifo\"\n[[class]]\nname = \"a\"\n";
const CBR: &str = "[[flow]]\nclass = \"a\"\nkind = \"cbr\"\nrate = \"10kbit\"\n";
const RATE: &str = "[link]\nrate = \"1Mbit\"\n";
const HOP: &str = "[link]\nrate = \"1Mbit\"\n[link.satellite]\npacket = \"1500B\"\n";
const BEAM: &str = "[link.beam]\nsymbol_rate = \"1MBd\"\nclear_sky_esn0_db = 12\n";

/// A reader: the scenario in front of its classes, and its flow.
#[derive(Clone, Copy)]
struct Named {
    link: &'static str,
    flow: &'static str,
    /// The key that names the file `f`, and a place for `decimal`.
    keys: &'static str,
}

const DELAYS: Named = Named {
    link: HOP,
    flow: CBR,
    keys: "delays = \"f\"\n",
};
const FADING: Named = Named {
    link: HOP,
    flow: CBR,
    keys: "fading = \"f\"\n",
};
const ATTENUATION: Named = Named {
    link: BEAM,
    flow: CBR,
    keys: "attenuation = \"f\"\n",
};
const PACKETS: Named = Named {
    link: RATE,
    flow: "[[flow]]\nclass = \"a\"\nkind = \"replay\"\nfile = \"f\"\n",
    keys: "",
};
const SIZES: Named = Named {
    link: RATE,
    flow: "[[flow]]\nclass = \"a\"\nkind = \"transfers\"\narrivals = { load = \"200kbit\" }\nsize = { file = \"f\" }\n",
    keys: "",
};

impl Named {
    /// The scenario that names a file with this content, and `decimal` if it is given.
    fn read(self, content: &[u8], decimal: Option<char>) -> Result<Scenario, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder =
            std::env::temp_dir().join(format!("linkweir-readings-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("f"), content).unwrap();
        let mut keys = self.keys.to_string();
        let mut flow = self.flow.to_string();
        if let Some(mark) = decimal {
            if !keys.is_empty() {
                keys.push_str(&format!("decimal = \"{mark}\"\n"));
            } else if flow.contains("{ file") {
                flow = flow.replace("\"f\" }", &format!("\"f\", decimal = \"{mark}\" }}"));
            } else {
                flow.push_str(&format!("decimal = \"{mark}\"\n"));
            }
        }
        let text = format!("duration = \"9s\"\n{}{keys}{REST}{flow}", self.link);
        let read = parse(&text, &folder.join("s.toml"));
        std::fs::remove_dir_all(&folder).unwrap();
        let place = format!("{}/", folder.display());
        let shown = |text: &String| text.replace(&place, "");
        read.map(|mut scenario| {
            scenario.readings = scenario.readings.iter().map(shown).collect();
            scenario
        })
        .map_err(|fault| shown(&fault.to_string()))
    }
}

/// A reader, a file, and what it is taken for.
const FILES: [(Named, &str, &str); 5] = [
    (
        DELAYS,
        "t_s,to_satellite_s,to_ground_s\n0,0.1,0.01\n2,0.2,0.03\n",
        "f: delays; t from t_s, delay from to_satellite_s in s, delay from to_ground_s in s; 2 values; from 0; 4s long; then \
         hold; mean 150ms to the satellite, 20ms to the ground; no gaps",
    ),
    (
        FADING,
        "t_s,gain_db\n0,-1.5\n1,-2.5\n2,-9.5\n",
        "f: fading; a time in s and a gain in dB per line; 3 values, mostly every 1s; from 0; 3s long; then loop; mean -4.5 dB; \
         no gaps",
    ),
    (
        ATTENUATION,
        "t_s,attenuation_db\n0,1.5\n1,1.5\n2,1.5\n3,1.5\n8,9.5\n9,9.5\n",
        // Four times 1 s and once 5 s, of which the last but one is part: 1.5 dB for 8 s, 9.5 dB for 2 s.
        "f: attenuations; t from t_s in s, attenuation from attenuation_db in dB; 6 values, mostly every 1s; from 0; 10s long; \
         then hold; mean 3.1 dB; 1 gap of 5s",
    ),
    (
        PACKETS,
        "t_s,bytes\n0.5,100\n1,200\n2.5,1500\n",
        // 1800 bytes in 2 s.
        "f: packets; t from t_s in s, length from bytes in B; 3 packets; from 500ms to 2.5s; mean 600B, 7.2kbit; longest pause \
         1.5s",
    ),
    (
        SIZES,
        "bytes,cumulative\n1000,0.25\n9000,1\n",
        // A quarter is 1000 B, and the rest lies evenly between 1000 and 9000 B.
        "f: distribution; amounts from bytes, parts of all from cumulative; 2 values; 1kB to 9kB; mean 4kB",
    ),
];

#[test]
fn each_reader_says_what_it_took_the_file_for() {
    for (named, content, expected) in FILES {
        let scenario = named.read(content.as_bytes(), None).unwrap();
        assert_eq!(scenario.readings, [expected]);
        let repeated = again(&scenario);
        assert_eq!(repeated.experiment, scenario.experiment, "{expected}");
        let (_, taken) = expected.split_once(": ").unwrap();
        assert!(
            repeated.readings[0].ends_with(taken),
            "{:?}",
            repeated.readings
        );
    }
}

/// With semicolons, commas before three decimals may mark thousands.
#[test]
fn each_reader_is_told_the_mark_of_decimals() {
    for (named, content) in [
        (DELAYS, "t_s;to_satellite_s;to_ground_s\n0;1,125;1,250\n"),
        (FADING, "0;1,125\n1;-1,250\n"),
        (ATTENUATION, "t_s;a\n0;1,125\n"),
        (PACKETS, "t_s;bytes\n1,125;100\n2,250;100\n"),
        (SIZES, "bytes;cumulative\n1,125;1\n"),
    ] {
        let fault = named.read(content.as_bytes(), None).unwrap_err();
        assert!(
            fault.contains("may be 1.125 or 1125; write decimal = \",\""),
            "{fault}"
        );
        let told = named.read(content.as_bytes(), Some(',')).unwrap();
        let plain = content.replace(',', ".").replace(';', ",");
        let plain = named.read(plain.as_bytes(), None).unwrap();
        assert_eq!(told.experiment, plain.experiment, "{content}");
        assert_eq!(again(&told).experiment, plain.experiment, "{content}");
    }
}

#[test]
fn a_mark_of_decimals_needs_a_file() {
    for (link, flow) in [
        (format!("{HOP}decimal = \",\"\n"), CBR.to_string()),
        (format!("{BEAM}decimal = \",\"\n"), CBR.to_string()),
        (
            RATE.to_string(),
            SIZES
                .flow
                .replace("{ file = \"f\" }", "{ mean = \"1kB\", decimal = \",\" }"),
        ),
    ] {
        let text = format!("duration = \"9s\"\n{link}{REST}{flow}");
        let fault = parse(&text, Path::new("s.toml")).unwrap_err().to_string();
        assert!(
            fault.contains("decimal = \",\": is only for a file"),
            "{fault}"
        );
    }
}

/// Fading with quotes around numbers with decimal commas, between which there are commas, too.
#[test]
fn quoted_decimals_of_a_fading_are_read() {
    let quoted = FADING.read(
        b"\"t_s\",\"gain_db\"\n\"0,5\",\"-1,25\"\n\"1,5\",\"-2,5\"\n",
        None,
    );
    let plain = FADING.read(b"0.5 -1.25\n1.5 -2.5\n", None);
    assert_eq!(quoted.unwrap().experiment, plain.unwrap().experiment);
}
