# SPDX-License-Identifier: BSD-3-Clause
"""Draws the parameters of each policy for random lives, from which generate.py writes the vectors.

A module has the policy's name and contains:

    FILES     how many files of each profile of generate.py
    values(random, profile)   parameters, and parameters of queues by number; drawn again if the policy refuses them
    change(random, plane)     optional: the same for a change
    EVENTS    optional: how often events happen, where it differs from the profile
    JUDGES    optional, True: leaving() is asked before a packet leaves
    ROUNDED   optional, True: observe() shows rounded real numbers, so only vectors by hand contain them
"""
