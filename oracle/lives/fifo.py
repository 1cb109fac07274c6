# SPDX-License-Identifier: BSD-3-Clause
"""Random lives of fifo."""

FILES = {"few": 1, "wide": 1, "restless": 1}


def values(random, profile):
    return {}, {}
