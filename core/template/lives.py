# SPDX-License-Identifier: BSD-3-Clause
"""Random lives of NAME."""

FILES = {"few": 1, "one": 1, "some": 1, "wide": 1, "restless": 1}


def values(random, profile):
    return {}, {}
