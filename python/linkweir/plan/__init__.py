# SPDX-License-Identifier: BSD-3-Clause
"""`linkweir plan`: parameters of a policy from what is wanted of it."""

from linkweir.plan.command import app

__all__ = ["app"]
