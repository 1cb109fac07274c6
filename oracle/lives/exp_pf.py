# SPDX-License-Identifier: BSD-3-Clause
"""Random lives of exp_pf."""

import exp_pf

from lives import urgency

FILES = {"few": 2, "one": 1, "some": 1, "wide": 1, "restless": 3, "steady": 2, "slow": 1}
EVENTS = urgency.EVENTS
ROUNDED = True
JUDGES = True

values = urgency.values_of(exp_pf)
change = urgency.change_of(exp_pf)
