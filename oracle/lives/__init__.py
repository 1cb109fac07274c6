# SPDX-License-Identifier: BSD-3-Clause
"""How the random lives of each policy are drawn; generate.py lives them and writes the vectors.

A module has the policy's name and says:

    FILES     how many files of each profile of generate.py
    values(random, profile)   parameters, and parameters of queues by number; drawn again where the policy refuses them
    change(random, plane)     optional: the same for a change
    EVENTS    optional: what happens how often, where it differs from the profile
    JUDGES    optional, True: leaving() is asked before a packet leaves
    ROUNDED   optional, True: what observe() shows is rounded from real numbers, so only vectors by hand hold it
"""
