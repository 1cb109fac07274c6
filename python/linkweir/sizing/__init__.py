# SPDX-License-Identifier: BSD-3-Clause
"""Sizing, the arithmetic of `linkweir plan`: parameters of a policy from the rates wanted."""
