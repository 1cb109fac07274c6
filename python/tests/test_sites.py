# SPDX-License-Identifier: BSD-3-Clause
"""`make sites`: it runs what docs/howto/gateway.md says. So a change of the page is noticed before it runs."""

from __future__ import annotations

import re
import sys

import pytest
from command import REPOSITORY

sys.path.append(str(REPOSITORY / "machines"))
import sites
from fresh import TrialError

SOURCE = (REPOSITORY / "machines/sites.py").read_text()


def test_each_command_of_the_page_is_run_and_no_other() -> None:
    commands = sites.Commands()
    assert len(commands.all) > 20
    for pattern in re.findall(r'(?:commands\.like|run)\(f?"([^"]+)"\)', SOURCE):
        for unit in ("metrics", "page"):
            commands.like(pattern.replace("{unit}", unit))
    assert commands.left == set()


def test_a_command_that_the_page_lacks_or_has_in_two_forms_is_an_error() -> None:
    with pytest.raises(TrialError, match="0 commands like rm"):
        sites.Commands().like("rm *")
    with pytest.raises(TrialError, match="commands like systemctl enable"):
        sites.Commands().like("systemctl enable *")


def test_the_configurations_of_both_ends_have_one_key_to_put_in() -> None:
    for at in (0, 1):
        text = sites.block("Write a configuration", "toml", at)
        assert len(re.findall(r'(?m)^public_key = ".*"$', text)) == 1
