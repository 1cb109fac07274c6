# SPDX-License-Identifier: BSD-3-Clause
"""The pages of reports as a browser lays them out."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from browser import PROGRAM

from linkweir.report import html_page

SCROLL = """<script>
const box = document.querySelector(".wide"), head = document.querySelector("th");
box.scrollTop = 1000;
document.title = box.scrollTop + " " + (head.getBoundingClientRect().top - box.getBoundingClientRect().top);
</script>"""


@pytest.mark.browser
def test_the_headings_of_a_long_table_stay_in_sight(tmp_path: Path) -> None:
    assert PROGRAM is not None
    page = tmp_path / "page.html"
    table = html_page.table(["n", "square"], [[str(n), str(n * n)] for n in range(500)])
    page.write_text(html_page.document("Squares", table + SCROLL), encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom"]
    shown = subprocess.run([PROGRAM, *options, page.as_uri()], capture_output=True, text=True, check=True).stdout
    title = re.search(r"<title>(.*?) (.*?)</title>", shown)
    assert title is not None
    assert (float(title[1]), float(title[2])) == (1000, pytest.approx(0, abs=1)), "rows moved, headings did not"
