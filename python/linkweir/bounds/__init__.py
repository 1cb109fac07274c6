# SPDX-License-Identifier: BSD-3-Clause
"""Worst-case delays and backlogs of a scenario's classes, by network calculus."""
