// SPDX-License-Identifier: BSD-3-Clause
//! Finds the known word that a misspelt one probably means.

/// The word nearest to what was written, unless several are or all are far from it: at most two letters in five may
/// be wrong, or the end may be missing or too long.
pub fn nearest<'w>(written: &str, words: &[&'w str]) -> Option<&'w str> {
    const LONGEST: usize = 40;
    const LEAST_COMMON: usize = 3;
    let written: Vec<char> = written
        .chars()
        .take(LONGEST)
        .flat_map(char::to_lowercase)
        .collect();
    let distances: Vec<(usize, &'w str)> = words
        .iter()
        .filter_map(|word| {
            let letters: Vec<char> = word.chars().flat_map(char::to_lowercase).collect();
            let distance = distance(&written, &letters);
            let least = written.len().min(letters.len());
            let begins = least >= LEAST_COMMON && written[..least] == letters[..least];
            (begins || 5 * distance <= 2 * written.len().max(letters.len()))
                .then_some((distance, *word))
        })
        .collect();
    let (least, _) = distances.iter().min_by_key(|(distance, _)| *distance)?;
    let mut nearest = distances.iter().filter(|(distance, _)| distance == least);
    match (nearest.next(), nearest.next()) {
        (Some((_, word)), None) => Some(word),
        _ => None,
    }
}

/// How many letters to insert, delete, change or swap with their neighbour: Damerau (1964).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut next = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut least = (row[j] + usize::from(x != y))
                .min(row[j + 1] + 1)
                .min(next[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_word_is_close_or_none() {
        let words = ["rate", "trace", "nominal", "delay", "return_delay"];
        assert_eq!(nearest("rtae", &words), Some("rate"));
        assert_eq!(nearest("nominl", &words), Some("nominal"));
        assert_eq!(nearest("Delay", &words), Some("delay"));
        assert_eq!(nearest("colour_of_the_sky", &words), None);
        assert_eq!(nearest("return", &words), Some("return_delay"));
        let policies = ["fifo", "rr", "wrr", "drr", "pss"];
        assert_eq!(nearest("wfq", &policies), None);
        assert_eq!(nearest("dwrr", &policies), None); // as near to wrr as to drr
        assert_eq!(nearest("udp", &["cbr", "tcp"]), None);
        assert_eq!(nearest("", &words), None);
    }
}
