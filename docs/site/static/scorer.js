// SPDX-License-Identifier: BSD-3-Clause
// How Sphinx' search ranks what it finds: as it does by itself, but records of measurements come last.
var Scorer = {
  score: (result) => (result[0].startsWith("docs/records/") ? result[4] - 1000 : result[4]),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: {0: 15, 1: 5, 2: -5},
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
