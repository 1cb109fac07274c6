# SPDX-License-Identifier: BSD-3-Clause
"""Policies of your own, as Python classes: ``scheduler.policy = {python = "mine.py:EarliestDeadline"}``.

A class has the calls of the core's contract, with the same meaning. Only `pick` is needed.

>>> class LongestQueue:
...     "Serves the queue in which most bytes wait."
...
...     def pick(self, view):
...         ready = [q for q, queue in enumerate(view.queues) if queue.ready]
...         return max(ready, key=lambda q: view.queues[q].backlog_bytes, default=None)

``__init__(view, params, classes)`` gets the values of `params`, a dict, and those of `class_params`, a dict for each
class. Times are in ns, rates in bit/s, lengths in bytes. A class that does not like the values raises `ValueError`, and
the scenario is refused.

The calls and their answers:

- ``pick(view)``: the queue whose first packet goes next; None: none; ``(None, ns)``: none, ask again then
- ``enqueued(view, q, size)``: none: a packet of `size` bytes is in queue `q` now
- ``sent(view, q, size)``, ``dropped(view, q, size)``: none: it left queue `q`, or was dropped from it
- ``rated(view)``: none: the capacity, or the rate of a queue, changed
- ``victim(view, q, size)``: the queue that drops its last packet, ``(queue, "head")``: its first; or None
- ``leaving(view, q, ecn)``: whether the packet picked may leave: ``"pass"``, ``"drop"``, or ``"mark"`` if `ecn`
- ``expired(view, q)``: whether the first packet of the full queue `q` may be dropped to make room
- ``observe(view, q)``: a whole number for each entry of `stats`

`view` has ``now_ns``, ``link_bps`` and ``queues``; a queue has ``backlog_pkts``, ``backlog_bytes``, ``head_bytes`` and
``head_arrival_ns`` (None if it is empty), ``rate_bps`` (0: blocked) and ``ready``.

Parameters are declared as class attributes, each a dict from a name to a `parameter`, and statistics as a dict from a
name to ``(unit, help)``:

>>> class EarliestDeadline:
...     class_params = {"deadline": parameter("time", default="100ms", help="time a packet may wait")}
...     stats = {"served": ("packets", "packets sent")}
"""

from __future__ import annotations

import importlib.util
import inspect
import re
import sys
import threading
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import FrameType
from typing import Any

from linkweir import _native

UNITS = ("number", "rate", "time", "size", "bits", "packets", "fraction", "choice")
_TO_BASE = {"time": 1e9, "fraction": 1e6}
MODULES_OF_USERS = "linkweir_own_"
"""With this the names of modules begin that are files of users."""
_LOADING = threading.RLock()
_MOST = {
    "time": "100000s",
    "rate": "1000Gbit",
    "size": "1000GB",
    "bits": "1000Gbit",
    "packets": "4294967295",
    "fraction": "100%",
}
_TAKEN = (
    "policy",
    "name",
    "count",
    "limit",
    "limit_bytes",
    "max_age",
    "full",
    "least",
    "flows",
    "l4s_step",
    "user",
    "coded",
    "across",
)


@dataclass(frozen=True)
class _Declared:
    unit: str
    default: int | None
    min: int
    max: int
    choices: tuple[str, ...]
    help: str


def parameter(
    unit: str,
    *,
    default: str | int | None = None,
    min: str | int | None = None,
    max: str | int | None = None,
    choices: tuple[str, ...] = (),
    help: str = "",
) -> _Declared:
    """Declares a parameter of a policy.

    Args:
        unit: number, rate, time, size, bits, packets, fraction or choice.
        default: the value when the key is left out, with its unit, such as "100ms"; None: the policy gets None.
        min: smallest value; 0 if it is left out.
        max: largest value.
        choices: the words of a choice.
        help: its meaning, for messages.

    Raises:
        ValueError: something does not fit together.

    >>> parameter("time", default="100ms").default
    100000000
    """
    if unit not in UNITS:
        raise ValueError(f'unit = "{unit}": must be one of {", ".join(UNITS)}')
    if (unit == "choice") != bool(choices):
        raise ValueError("choices are for the unit choice, which needs them")
    if unit == "choice":
        low, high = 0, len(choices) - 1
        if default is not None and default not in choices:
            raise ValueError(f"default = {default!r}: must be one of {', '.join(choices)}")
        value = None if default is None else choices.index(str(default))
    else:
        low = _base(unit, 0 if min is None else min)
        high = _base(unit, _MOST.get(unit, 2**53) if max is None else max)
        value = None if default is None else _base(unit, default)
    if low > high or (value is not None and not low <= value <= high):
        raise ValueError(f"min = {min!r}, default = {default!r}, max = {max!r}: must not decrease")
    return _Declared(unit, value, low, high, tuple(choices), help)


def _base(unit: str, value: str | int) -> int:
    if isinstance(value, float):
        raise ValueError(f'{value}: must be a whole number, or a text with a unit such as "100ms"')
    if unit == "number" or (unit == "packets" and not isinstance(value, str)) or value == 0:
        return int(value)
    return round(_native.quantity(str(value), unit) * _TO_BASE.get(unit, 1))


def describe(path: str, content: bytes, name: str) -> dict[str, Any]:
    """What a class in a file declares; for the native module.

    Raises:
        ValueError: the file cannot be run, or the class is no policy.
    """
    module = _module(Path(path), content)
    found = getattr(module, name, None)
    if not inspect.isclass(found):
        policies = [key for key, value in vars(module).items() if inspect.isclass(value) and hasattr(value, "pick")]
        cure = f"its policies are {', '.join(policies)}" if policies else "and none with a method pick"
        raise ValueError(f"there is no class {name} in {path}; {cure}")
    if not callable(getattr(found, "pick", None)):
        raise ValueError(f"{name} has no method pick(self, view), which a policy needs")
    if getattr(found, "stats", {}) and not callable(getattr(found, "observe", None)):
        raise ValueError(f"{name} has stats, but no method observe(self, view, queue), which tells their values")
    return {
        "make": found if found.__init__ is not object.__init__ else lambda _view, _params, _classes: found(),
        "name": name,
        "help": (inspect.cleandoc(found.__doc__ or "").splitlines() or [name])[0],
        "params": _params(found, "params"),
        "class_params": _params(found, "class_params"),
        "stats": _stats(found),
        "ignores_rates": bool(getattr(found, "ignores_rates", False)),
    }


def _module(path: Path, content: bytes) -> Any:
    """The file as a module, with a name of its own for each content. It may import others of its folder."""
    name = f"{MODULES_OF_USERS}{sha256(str(path).encode() + content).hexdigest()[:16]}"
    with _LOADING:
        return sys.modules.get(name) or _loaded(name, path, content)


def _loaded(name: str, path: Path, content: bytes) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"{path} is no Python file; its name must end in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    try:
        exec(compile(content, str(path), "exec"), module.__dict__)
    except BaseException as error:
        del sys.modules[name]
        if isinstance(error, SystemExit):
            cure = 'put that below `if __name__ == "__main__":`'
            raise ValueError(f"{path} ends the program when it is loaded; {cure}") from error
        if not isinstance(error, Exception):
            raise
        raise ValueError(f"{path} cannot be run: {told(error)}") from error
    finally:
        sys.path.remove(folder)
    return module


def _named(found: type, attribute: str) -> Mapping[str, Any]:
    rows = getattr(found, attribute, {})
    if not isinstance(rows, Mapping):
        raise ValueError(f"{found.__name__}.{attribute} must be a dict")
    for key in rows:
        if not isinstance(key, str) or not re.fullmatch(r"[a-z][a-z0-9_]*", key) or key in _TAKEN:
            raise ValueError(
                f"{found.__name__}.{attribute}: {key!r} must be lower-case letters, digits and _, "
                f"and none of {', '.join(_TAKEN)}"
            )
    return rows


def _params(found: type, attribute: str) -> list[dict[str, Any]]:
    rows = []
    for name, declared in _named(found, attribute).items():
        if not isinstance(declared, _Declared):
            raise ValueError(f'{found.__name__}.{attribute}["{name}"] must be linkweir.own.parameter(...)')
        rows.append({"name": name, **vars(declared), "choices": list(declared.choices)})
    return rows


def _stats(found: type) -> list[dict[str, Any]]:
    rows = []
    for name, declared in _named(found, "stats").items():
        if not isinstance(declared, tuple) or len(declared) != 2 or declared[0] not in UNITS[:-1]:
            raise ValueError(f'{found.__name__}.stats["{name}"] must be a unit ({", ".join(UNITS[:-1])}) and a text')
        rows.append({"name": name, "unit": declared[0], "help": str(declared[1])})
    return rows


def told(error: BaseException) -> str:
    """An exception as one line, with the line of the file that raised it; for the native module."""
    if isinstance(error, KeyboardInterrupt):
        return "had not returned when Ctrl-C stopped it"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in traceback.walk_tb(error.__traceback__) if _is_users(frame[0])]
    line = (
        error.lineno if isinstance(error, SyntaxError) else own[-1][1] if own else frames[-1].lineno if frames else None
    )
    text = (error.msg if isinstance(error, SyntaxError) else str(error)).partition("\n")[0] or "no message"
    place = "" if line is None else f" (line {line})"
    return f"{type(error).__name__}: {text}{place}" if frames or line else text


def _is_users(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).startswith(MODULES_OF_USERS)
