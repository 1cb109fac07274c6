# SPDX-License-Identifier: BSD-3-Clause
"""Runs of one scenario: simulating it, its result, and the directory it is kept in."""
