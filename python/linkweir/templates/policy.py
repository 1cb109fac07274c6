# SPDX-License-Identifier: BSD-3-Clause
"""Earliest deadline first. Replace this by your own algorithm; `linkweir.own` has the list of calls."""

from linkweir.own import parameter


class NAME:
    """The packet whose deadline ends first goes next."""

    class_params = {
        "deadline": parameter("time", default="100ms", min="1us", max="60s", help="time a packet may wait"),
    }

    def __init__(self, view, params, classes):
        self.deadline_ns = [one["deadline"] for one in classes]

    def pick(self, view):
        ends_ns = [
            (queue.head_arrival_ns + self.deadline_ns[q], q) for q, queue in enumerate(view.queues) if queue.ready
        ]
        return min(ends_ns)[1] if ends_ns else None
