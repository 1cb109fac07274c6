# SPDX-License-Identifier: BSD-3-Clause
"""A figure that notebooks show."""

from __future__ import annotations

import io

from matplotlib.figure import Figure


class Picture(Figure):
    """A figure without pyplot, which keeps every figure it makes; so it shows itself where pyplot would show it."""

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", bbox_inches="tight")
        return buffer.getvalue()
