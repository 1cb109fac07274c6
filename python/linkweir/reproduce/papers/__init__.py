# SPDX-License-Identifier: BSD-3-Clause
"""The papers that are reproduced: one module for each, or for each kind of traffic in it."""
