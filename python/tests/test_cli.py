# SPDX-License-Identifier: BSD-3-Clause
"""What the command does when all is well."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import re
import shutil
import subprocess
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from command import COMMAND, SCENARIOS, SMALL, linkweir, linkweir_process, read_terminal, strict_json

import linkweir as package


def test_run_leaves_a_whole_directory(tmp_path: Path) -> None:
    trace = tmp_path / "cell.csv"
    trace.write_text("# end=loop\nt_s,capacity_bps\n0,2e6\n1,1e6\n")
    scenario = tmp_path / "small.toml"
    scenario.write_text(SMALL.replace('rate = "2Mbit"', 'trace = "cell.csv"', 1))
    out = tmp_path / "deep" / "out"
    done = linkweir_process("run", scenario, "--out", out, "--seed", 7)
    assert done.returncode == 0, done
    assert done.stderr == ""
    assert str(out / "report.html") in done.stdout

    provenance = strict_json((out / "provenance.json").read_text())
    assert provenance["status"] == "complete"
    assert provenance["seed"] == 7
    digest = hashlib.sha256(trace.read_bytes()).hexdigest()
    assert [(i["name"], i["sha256"]) for i in provenance["inputs"]] == [("inputs/cell.csv", digest)]
    assert (out / "inputs" / "cell.csv").read_bytes() == trace.read_bytes()
    resolved = (out / "scenario.toml").read_text()
    assert provenance["scenario_sha256"] == hashlib.sha256(resolved.encode()).hexdigest()
    assert 'trace = "inputs/cell.csv"' in resolved
    assert "seed = 7" in resolved

    summary = strict_json((out / "summary.json").read_text())
    assert [row["class"] for row in summary["classes"]] == ["ef", "af", "cs0"]
    assert summary["simulated_s"] == 5.0
    tables = {path.stem: pq.read_table(path) for path in (out / "results").glob("*.parquet")}
    assert set(tables) == {"series", "link", "flow_series", "levels", "classes", "flows", "delays"}
    assert tables["series"].num_rows == 3 * 5
    assert sum(tables["series"]["sent_pkts"].to_pylist()) == summary["packets"]
    assert not (out / "figures").exists()  # only with --figures
    assert not list(out.rglob("*.part"))

    report = (out / "report.html").read_text()
    assert "linkweir rerun out" in report
    # Names of vector graphics, and where uPlot comes from; test_report.py sees to it that nothing is asked for.
    named = report.replace("http://www.w3.org/2000/svg", "").replace("https://github.com/leeoniya/uPlot", "")
    for outside in ("http://", "https://", "<script src", "<link", "<img"):
        assert outside not in named, outside


def test_any_name_can_be_shown(tmp_path: Path, small: Path) -> None:
    names = {"ef": "$a_{", "af": "_<script>", "cs0": "\\U0001F6F0 --> \\n" + "long" * 30}
    text = SMALL
    for old, new in names.items():
        text = text.replace(f'"{old}"', f'"{new}"')
    small.write_text(text)
    done = linkweir_process("run", small, "--out", tmp_path / "out")
    assert (done.returncode, done.stderr) == (0, "")
    report = (tmp_path / "out" / "report.html").read_text()
    assert "_<script" not in report
    assert "_&lt;script&gt;" in report
    assert "\\u003cscript>" in report  # in the JSON of the charts


def test_json_is_the_summary(tmp_path: Path, small: Path) -> None:
    done = linkweir("run", small, "--json", "--out", tmp_path / "out")
    printed = strict_json(done.stdout)
    assert printed.pop("directory") == str(tmp_path / "out")
    assert printed == json.loads((tmp_path / "out" / "summary.json").read_text())


def test_without_out_the_directory_is_new(tmp_path: Path, small: Path) -> None:
    for expected in ("runs/small", "runs/small-2"):
        done = linkweir_process("run", small, "--json", cwd=tmp_path)
        assert strict_json(done.stdout)["directory"] == expected


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory that nobody changes."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "small.toml").write_text(SMALL)
    assert linkweir("run", folder / "small.toml", "--out", folder / "out", "--seed", 3).returncode == 0
    return folder / "out"


def test_rerun_is_identical(finished: Path) -> None:
    out = finished
    done = linkweir("rerun", out)
    assert done.returncode == 0, done
    verdicts = dict(reversed(line.split()) for line in done.stdout.splitlines()[:-1])
    assert set(verdicts.values()) == {"identical"}
    assert set(verdicts) >= {"summary.json", "results/series.parquet", "results/flows.parquet"}
    assert done.stdout.endswith(f"identical: {out} and {out}-rerun\n")


@pytest.mark.parametrize("name", ["lte-drive", "pds"])
def test_rerun_of_shipped_scenarios_is_identical(tmp_path: Path, name: str) -> None:
    text = (
        (SCENARIOS / f"{name}.toml").read_text().replace('"300s"', '"30s"').replace('"traces/', f'"{SCENARIOS}/traces/')
    )
    (tmp_path / "s.toml").write_text(text)
    assert linkweir("run", tmp_path / "s.toml", "--out", tmp_path / "out").returncode == 0
    done = linkweir("rerun", tmp_path / "out", "--json", "--out", tmp_path / "again")
    answer = strict_json(done.stdout)
    assert done.returncode == 0
    assert answer["identical"] is True
    assert len(answer["files"]) == 8


def test_rerun_says_what_differs(tmp_path: Path, finished: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    summary = out / "summary.json"
    summary.write_text(summary.read_text().replace('"packets": ', '"packets": 1'))
    done = linkweir("rerun", out)
    assert done.returncode == 1
    assert "different   summary.json" in done.stdout
    assert "identical   results/series.parquet" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("different: ")


def test_names_with_markup_are_text_in_the_report(tmp_path: Path) -> None:
    """Names of a scenario, class, flow, file and directory, all of which a user chooses."""
    (tmp_path / "<probe>trace.csv").write_text("t_s,capacity_bps\n0,2e6\n")
    text = SMALL.replace('rate = "2Mbit"', 'trace = "<probe>trace.csv"', 1).replace('"ef"', '"<probe>class&amp;"')
    text = text.replace('kind = "poisson"', 'kind = "poisson"\nname = "<probe>flow&amp;"')
    (tmp_path / "named.toml").write_text('name = "<probe>scenario&amp;"\n' + text)
    out = tmp_path / "<probe>out&amp;"
    result = package.run(tmp_path / "named.toml", out=out)
    report = (out / "report.html").read_text()
    for shown in (
        "<title>&lt;probe&gt;scenario&amp;amp;</title>",
        "<h1>&lt;probe&gt;scenario&amp;amp;</h1>",
        "<td>&lt;probe&gt;class&amp;amp;</td>",
        "<td>&lt;probe&gt;flow&amp;amp;</td>",
        "name = &quot;&lt;probe&gt;flow&amp;amp;&quot;",
        "<pre>linkweir rerun &lt;probe&gt;out&amp;amp;</pre>",
        "&lt;probe&gt;trace.csv",
    ):
        assert shown in report
    for page in (report, result._repr_html_()):
        assert "&lt;probe&gt;class" in page
        assert "<probe>" not in page


def test_report_is_made_again(tmp_path: Path, finished: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    first = (out / "report.html").read_bytes()
    (out / "report.html").unlink()
    done = linkweir("report", out)
    assert done.returncode == 0, done
    assert (out / "report.html").read_bytes() == first


@pytest.mark.slow
def test_figures_are_files_for_papers(tmp_path: Path, finished: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(finished, out)
    done = linkweir("report", out, "--figures", "svg,pdf")
    assert done.returncode == 0, done
    names = {path.name for path in (out / "figures").iterdir()}
    assert {name for name in names if name.startswith("rates")} == {"rates.svg", "rates.pdf"}
    assert {"delays", "drops", "levels-credit_bits", "distribution-queueing"} <= {name[:-4] for name in names}
    assert (out / "figures/rates.svg").read_bytes().startswith(b"<?xml")
    assert (out / "figures/rates.pdf").read_bytes().startswith(b"%PDF")
    first = {path.name: path.read_bytes() for path in (out / "figures").iterdir()}
    assert linkweir("report", out, "--figures", "svg,pdf").returncode == 0
    assert {path.name: path.read_bytes() for path in (out / "figures").iterdir()} == first


def test_figures_of_another_format_are_refused_before_the_run(tmp_path: Path, small: Path) -> None:
    done = linkweir("run", small, "--out", tmp_path / "out", "--figures", "svg,png")
    assert done.returncode == 2
    assert "png: is no format of figures; give svg, pdf or svg,pdf" in " ".join(done.stderr.replace("│", "").split())
    assert not (tmp_path / "out").exists()
    with pytest.raises(ValueError, match="no format is called 'png'"):
        package.run(small, out=tmp_path / "out", figures=["png"])
    with pytest.raises(ValueError, match="give out"):
        package.run(small, figures=["svg"])


def test_trace_replaces_the_rate(tmp_path: Path, small: Path) -> None:
    trace = tmp_path / "cell.down"
    trace.write_text("".join(f"{ms}\n" for ms in range(1, 1001)))  # 1500 bytes every ms: 12 Mbit/s
    done = linkweir("run", small, "--trace", trace, "--json", "--out", tmp_path / "out")
    assert strict_json(done.stdout)["link"]["capacity_bps"] == pytest.approx(12e6, rel=1e-3)


def test_check_runs_nothing(small: Path) -> None:
    done = linkweir("check", small)
    assert done.returncode == 0
    assert done.stdout == f"{small}: valid: 3 classes, 3 flows, 5 s, policy pss\n"
    resolved = linkweir("check", small, "--resolved").stdout
    again = small.with_name("again.toml")
    again.write_text(resolved)
    assert linkweir("check", again, "--resolved").stdout == resolved
    assert sorted(path.name for path in small.parent.iterdir()) == ["again.toml", "small.toml"]


def test_policies_are_those_of_the_core() -> None:
    listed = linkweir("policies").stdout
    assert [line.split()[0] for line in listed.splitlines()[:-2]] == [policy.name for policy in package.policies()]
    (pss,) = strict_json(linkweir("policies", "pss", "--json").stdout)
    memory = next(param for param in pss["class_params"] if param["name"] == "memory")
    assert memory["default"] == "100ms"
    shown = linkweir("policies", "pss").stdout
    assert (pss["max_classes"], pss["isolates_flows"]) == (4096, True)
    assert "at most 4096 classes" in shown
    for param in pss["params"] + pss["class_params"]:
        assert param["name"] in shown


def test_the_columns_of_each_policy_are_apart_from_their_meanings() -> None:
    for policy in package.policies():
        shown = linkweir("policies", policy.name).stdout
        for stat in policy.stats:
            assert f"\n{stat.column}  " in shown


def test_version() -> None:
    shown = linkweir("--version").stdout
    assert re.fullmatch(rf"linkweir {re.escape(package.__version__)}( \(commit [0-9a-f]{{12}}(-dirty)?\))?\n", shown), (
        shown
    )
    shown = linkweir_process("--help").stdout
    for name in ("run", "check", "policies", "report", "rerun", "reproduce", "plan", "sweep", "log", "lab"):
        assert f" {name} " in shown


def test_a_terminal_gets_a_progress_bar(tmp_path: Path, small: Path) -> None:
    small.write_text(SMALL.replace('"5s"', '"300s"'))
    ours, theirs = pty.openpty()
    words = [*COMMAND, "run", str(small), "--out", str(tmp_path / "out")]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=theirs, env={**os.environ, "TERM": "xterm"})
    os.close(theirs)
    seen = read_terminal(ours)
    assert process.wait() == 0
    assert b"s simulated" in seen


def test_a_closed_pipe_is_no_traceback(small: Path) -> None:
    done = subprocess.run(
        f"'{COMMAND[0]}' -m linkweir check --resolved '{small}' | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == 'name = "small"\n'
    assert "Traceback" not in done.stderr


def test_help_is_shown_as_it_was_written() -> None:
    """rich takes words in brackets for markup and leaves them out."""
    root = Path(package.__file__).parent
    commands = [path for path in (root / "commands").glob("*.py") if "typer.Option" in path.read_text()]
    names = {
        "cli",
        "compare",
        "emulate",
        "export",
        "import_",
        "lab",
        "log",
        "plan",
        "plan_pds",
        "replay",
        "reproduce",
        "sweep",
        "trace",
        "trace_keys",
        "yardstick",
    }
    assert {path.stem for path in commands} == names
    for source in commands:
        helps = re.findall(r'help="([^"]*)"', source.read_text())
        assert helps, source
        assert not [text for text in helps if "[" in text], source


@pytest.mark.parametrize("figures", [",", " ", "svg,,pdf", "svg,"])
def test_an_empty_format_of_figures_is_refused(tmp_path: Path, small: Path, figures: str) -> None:
    done = linkweir("run", small, "--out", tmp_path / "out", "--figures", figures)
    assert done.returncode == 2
    assert "is no format of figures" in " ".join(done.stderr.replace("│", "").split())
    assert not (tmp_path / "out").exists()


def test_the_name_of_a_class_does_not_control_the_terminal(tmp_path: Path, small: Path) -> None:
    small.write_text(small.read_text().replace('"ef"', '"e\\u001b[2Jf"'))
    done = linkweir("run", small, "--out", tmp_path / "out")
    assert done.returncode == 0
    assert "\x1b" not in done.stdout
    assert "\N{REPLACEMENT CHARACTER}[2Jf" in done.stdout
