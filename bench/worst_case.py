# SPDX-License-Identifier: BSD-3-Clause
"""Voice users whom an admission control for the worst case lets in, on the links of the papers on CoDeS.

    .venv/bin/python bench/worst_case.py

The whole code word of rate 1/6 is the most that can be sent of a packet. It decodes down to an Es/N0 of -4.8612 dB;
below, no number of users can be guaranteed anything. The results are on docs/records/claims.md.
"""

from __future__ import annotations

from linkweir.reproduce.papers import codes

CODE_WORD = 6
"""Coded bits per bit of a packet: all of the mother code of rate 1/6."""
DECODES_DB, ESN0_DB, WORST_DB = -4.8612, 10.0, -60.0
VOICE_BPS, ON_S, OFF_S = 64e3, 0.5, 0.05


def users(coded_bytes: int, *, talking: bool) -> int:
    """Users whose packets fit if each takes a whole code word; all talk at once, or as much as on average."""
    packets_per_s = VOICE_BPS / (8 * codes.PACKET_BYTES)
    if not talking:
        packets_per_s *= ON_S / (ON_S + OFF_S)
    return int(codes.LINK_BPS / (CODE_WORD * 8 * coded_bytes * packets_per_s))


def main() -> None:
    """Prints the table of the page."""
    margin_db = ESN0_DB - DECODES_DB
    print(f"fades of more than {margin_db:.1f} dB lose the packet; the papers name {-WORST_DB:g} dB: 0 users\n")
    print("| paper | all talk at once | as much as on average |\n|---|---|---|")
    for paper in (codes.CONFERENCE, codes.JOURNAL):
        print(
            f"| {paper.name} | {users(paper.coded_bytes, talking=True)} | {users(paper.coded_bytes, talking=False)} |"
        )


if __name__ == "__main__":
    main()
