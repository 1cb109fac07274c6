# SPDX-License-Identifier: BSD-3-Clause
"""From a scenario to what runs on a machine, and back: scripts for tc, configurations of the gateway.

What cannot be carried over is said, a line each; nothing is left out silently.
"""
