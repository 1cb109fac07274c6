# SPDX-License-Identifier: BSD-3-Clause
"""Kinds of flows."""

OPEN_LOOP = ("cbr", "poisson", "onoff", "voice", "replay")
"""Those that send at a rate of their own, whatever is lost."""
