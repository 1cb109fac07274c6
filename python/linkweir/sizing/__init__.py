# SPDX-License-Identifier: BSD-3-Clause
"""`linkweir plan`: parameters of a policy from what is wanted of it."""
