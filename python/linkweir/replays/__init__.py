# SPDX-License-Identifier: BSD-3-Clause
"""Recordings of a gateway, and replaying them under other policies."""
