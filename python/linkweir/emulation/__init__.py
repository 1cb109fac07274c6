# SPDX-License-Identifier: BSD-3-Clause
"""Runs a command behind an emulated link, in real time and on this machine's kernel.

::

    near: COMMAND                                 far: what --serve runs
       link 100.64.0.2                               link 100.64.0.1
          |                                             |
          +---- TUN ---- links.Link, one each way ---- TUN

Both ends are network namespaces without names: nothing but their processes and two devices keeps them alive. Packets
pass `linkweir.Link`, the simulator's engine, so every policy, trace and medium of a scenario works here, and the
machine's clock drives it.
"""
