# SPDX-License-Identifier: BSD-3-Clause
"""A rerun compares results, also those of another version of pyarrow."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from command import linkweir, strict_json


@pytest.fixture
def rewritten(tmp_path: Path, small: Path) -> Path:
    """A run whose tables another version of pyarrow wrote: other bytes, the same values."""
    out = tmp_path / "out"
    assert linkweir("run", small, "--out", out).returncode == 0
    for path in (out / "results").glob("*.parquet"):
        before = path.read_bytes()
        pq.write_table(pq.read_table(path), path, compression="snappy")
        assert path.read_bytes() != before
    provenance = json.loads((out / "provenance.json").read_text())
    (out / "provenance.json").write_text(json.dumps(provenance | {"pyarrow": "15.0.0"}))
    return out


def test_another_writer_s_bytes_are_the_same_results(rewritten: Path) -> None:
    done = linkweir("rerun", rewritten)
    assert done.returncode == 0
    again = f"{rewritten}-rerun"
    assert "same values results/series.parquet\n" in done.stdout
    assert "identical   summary.json\n" in done.stdout
    assert done.stdout.endswith(f"same results: {rewritten} and {again}\n")
    assert done.stderr == (
        f"linkweir: the same results, which pyarrow 15.0.0 and {pa.__version__} wrote as different bytes\n"
    )
    found = strict_json(linkweir("rerun", rewritten, "--out", f"{again}2", "--json").stdout)
    assert (found["identical"], found["same"]) == (False, True)


def test_other_values_are_different_whoever_wrote_them(rewritten: Path) -> None:
    path = rewritten / "results/series.parquet"
    table = pq.read_table(path)
    at = table.column_names.index("sent_pkts")
    more = pc.add(table["sent_pkts"], pa.scalar(1, pa.uint64()))
    pq.write_table(table.set_column(at, "sent_pkts", more), path)
    done = linkweir("rerun", rewritten)
    assert done.returncode == 1
    assert "different   results/series.parquet\n" in done.stdout
    assert "same values results/link.parquet\n" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("different: ")
    assert "linkweir: pyarrow was 15.0.0 and is" in done.stderr


def test_every_line_names_verdict_and_file(rewritten: Path) -> None:
    lines = linkweir("rerun", rewritten).stdout.splitlines()[:-1]
    for line in lines:
        verdict, name = line.rsplit(" ", 1)
        assert verdict.strip() in ("identical", "same values")
        assert (rewritten / name).is_file()
