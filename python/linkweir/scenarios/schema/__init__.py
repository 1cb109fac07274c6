# SPDX-License-Identifier: BSD-3-Clause
"""JSON Schemas of scenarios and of the gateway's files, for editors.

Keys, units, choices, defaults and meanings come from their declarations, parameters of policies from the core's own
tables. This package adds how the tables are nested.
`python/tests/test_schema.py` holds schema and parser together, in both directions.
"""

from __future__ import annotations

from linkweir.scenarios.schema.gateway import gateway
from linkweir.scenarios.schema.scenario import scenario

KINDS = {"scenario": scenario, "gateway": gateway}
"""What there are schemas of, each with the function that makes it."""
