# SPDX-License-Identifier: BSD-3-Clause
"""A figure that notebooks show, and whose files take one drawing."""

from __future__ import annotations

import contextlib
import io

from matplotlib.backend_bases import RendererBase
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine


class Picture(Figure):
    """A figure without pyplot, which keeps every figure it makes; so it shows itself where pyplot would show it."""

    laid_out_alone = False
    """Matplotlib draws a figure to lay it out, then again into the file. The layout does not need the first drawing;
    only the outline of a file that is `tight` does."""

    def draw(self, renderer: RendererBase) -> None:
        """Draws it, or only lays it out."""
        engine = self.get_layout_engine()
        if self.laid_out_alone and isinstance(engine, ConstrainedLayoutEngine):
            with contextlib.suppress(ValueError):  # as matplotlib does when it draws
                engine.execute(self)
        else:
            super().draw(renderer)

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", bbox_inches="tight")
        return buffer.getvalue()
