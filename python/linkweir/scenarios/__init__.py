# SPDX-License-Identifier: BSD-3-Clause
"""Scenarios and what they consist of: quantities, policies, kinds of flows, and the schema for editors."""
