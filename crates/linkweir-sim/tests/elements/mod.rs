// SPDX-License-Identifier: BSD-3-Clause
//! Two-line elements for the tests that damage them: `scenario_corruption`, and the fuzz target `files`.

/// A constellation whose satellites are those of a file of two-line elements, `f`, with a place for more keys.
pub const LISTED: &str = "duration = \"9s\"\n[constellation]\ntle = \"f\"\nKEYS\n\
    stations = [{ name = \"a\", latitude = 49, longitude = 2 }, { name = \"b\", latitude = 41, longitude = -74 }]\n\
    [constellation.ground]\nrate = \"1Mbit\"\nmask = 0\n[constellation.ground.scheduler]\npolicy = \"fifo\"\n\
    [[constellation.ground.class]]\nname = \"a\"\n\
    [constellation.isl]\nrate = \"1Mbit\"\n[constellation.isl.scheduler]\npolicy = \"fifo\"\n\
    [[constellation.isl.class]]\nname = \"a\"\n\
    [[flow]]\nkind = \"tcp\"\nclass = \"a\"\nfrom = \"a\"\nto = \"b\"\n";

/// Gives lines of elements the last digit that they must have, which chance seldom finds.
pub fn summed(content: &[u8]) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = content.split(|c| *c == b'\n').map(<[u8]>::to_vec).collect();
    for line in lines.iter_mut().filter(|line| line.len() == 69) {
        let digits = line[..68].iter().map(|c| match c {
            b'0'..=b'9' => u32::from(c - b'0'),
            b'-' => 1,
            _ => 0,
        });
        line[68] = b'0' + (digits.sum::<u32>() % 10) as u8;
    }
    lines.join(&b'\n')
}
