# SPDX-License-Identifier: BSD-3-Clause
"""The two ends of an emulated link: namespaces, devices, and the processes in them.

A child of the emulator, the keeper, makes both network namespaces with a TUN device in each, and hands the devices'
descriptors to the emulator. Its own child is the first process (init) of a new process namespace and starts the
commands. Init is killed when the keeper dies, the keeper when the emulator dies, and all other processes when init
dies: so whichever process is killed, nothing stays behind. The namespaces have no names, and the kernel removes them
with their devices when the last process and descriptor are gone.

Without root the keeper first makes a user namespace, in which it is root. The commands run as the user who started the
emulator: root under sudo.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from linkweir.fault import Error

NEAR, FAR = "100.64.0.2", "100.64.0.1"
"""Addresses of the command's end, and of the other one: shared address space, RFC 6598, as mahimahi has them."""
NEAR6, FAR6 = "fd64::2", "fd64::1"
DEVICE = "link"
MTU_BYTES = 1500
QUEUE_PKTS = 10_000
"""Packets that wait in front of the emulator if it is late."""
LISTENS_S = 5.0
"""How long the far command may take until it listens."""

_PATH = f"{os.environ.get('PATH') or os.defpath}:/usr/sbin:/sbin:/usr/bin:/bin"
# linux/sched.h, linux/mount.h, linux/prctl.h, linux/if_tun.h
_NEW_MOUNT, _NEW_USER, _NEW_PROCESS, _NEW_NET = 0x00020000, 0x10000000, 0x20000000, 0x40000000
_PRIVATE, _RECURSIVE, _READ_ONLY, _NO_SUID, _NO_DEVICE, _NO_EXEC = 1 << 18, 1 << 14, 1, 2, 4, 8
_DEATH_SIGNAL = 1
_SET_DEVICE, _TUN, _NO_INFORMATION = 0x400454CA, 0x0001, 0x1000
_LONG_MESSAGE = 65_536
_INTERRUPT = signal.SIGUSR1
"""What the emulator sends for Ctrl-C. The processes between it and the command do not act on SIGINT itself, because a
terminal sends it to the command as well."""
_FORWARDED: Mapping[int, int] = {signal.SIGTERM: signal.SIGTERM, _INTERRUPT: signal.SIGINT}
_HELD = (signal.SIGINT, signal.SIGQUIT, *_FORWARDED)
"""Signals that are blocked until there is a process to forward them to; those of terminals stay blocked."""

_SET_UP = f"""\
link set dev lo up
link set dev {DEVICE} mtu {MTU_BYTES} txqueuelen {QUEUE_PKTS} multicast off
{{before}}link set dev {DEVICE} up
address add {{own}} peer {{other}} dev {DEVICE}
"""
_BEFORE6 = f"link set dev {DEVICE} addrgenmode none\n"
_SET_UP6 = f"address add {{own}} peer {{other}} dev {DEVICE} nodad\n"


class EndsError(Error):
    """The ends of the link cannot be made here; the message says why and what to do."""


@dataclass(frozen=True)
class Ended:
    """How the command ended.

    Attributes:
        code: its exit code, or 128 and the number of the signal that killed it.
        missed_pkts: packets sent at the near and the far end that the emulator read too late.
    """

    code: int
    missed_pkts: tuple[int, int]


class Ends:
    """Both ends, until they are closed.

    Args:
        command: what runs at the near end, and its arguments.
        serve: what a shell runs at the far end, if anything; the command starts when it listens on a port.

    Raises:
        EndsError: they cannot be made.
    """

    def __init__(self, command: Sequence[str], serve: str | None = None) -> None:
        self._check()
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        sys.stdout.flush()
        sys.stderr.flush()
        emulator = os.getpid()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)
        try:
            self._keeper = os.fork()
            if self._keeper == 0:
                self.socket.close()
                _run(theirs, lambda: _keep(theirs, emulator, command, serve))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        self.devices: list[int] = []
        try:
            message, self.devices, _, _ = socket.recv_fds(self.socket, _LONG_MESSAGE, 2)
            if len(self.devices) != 2:
                raise _fault(message)
        except BaseException:
            self.close()
            raise

    @staticmethod
    def _check() -> None:
        if shutil.which("ip", path=_PATH) is None:
            raise EndsError("the program ip is missing: apt-get install iproute2")
        try:
            os.close(os.open("/dev/net/tun", os.O_RDWR))
        except OSError as error:
            cure = "load the module with `modprobe tun`, or give the container the device (--device /dev/net/tun)"
            if error.errno in (errno.EACCES, errno.EPERM):
                cure = "run it with sudo, or let users open the device: chmod 666 /dev/net/tun"
            raise EndsError(f"/dev/net/tun: {error.strerror}; {cure}") from None

    def ended(self) -> Ended:
        """How the command ended, when the socket can be read.

        Raises:
            EndsError: it could not be started, or its processes were killed.
        """
        message = self.socket.recv(_LONG_MESSAGE)
        found = json.loads(message) if message else {}
        if "code" not in found:
            raise _fault(message)
        near, far = found["missed"]
        return Ended(found["code"], (near, far))

    def forward(self, number: int) -> None:
        """Sends SIGINT or SIGTERM to the command."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._keeper, _INTERRUPT if number == signal.SIGINT else number)

    def close(self) -> None:
        """Kills what still runs at both ends and closes the devices."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._keeper, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._keeper, 0)
        self.socket.close()
        while self.devices:
            os.close(self.devices.pop())


def _fault(message: bytes) -> EndsError:
    found = json.loads(message) if message else {}
    return EndsError(found.get("error", "the processes at the link's ends were killed"))


# --- In the keeper and in init --------------------------------------------------------------------------------------


def _run(told: socket.socket, work: Callable[[], None]) -> NoReturn:
    """The whole life of a child of the emulator."""
    code = 1
    try:
        signal.set_wakeup_fd(-1)  # the emulator's
        work()
        code = 0
    except EndsError as error:
        _tell(told, error=str(error))
    except BaseException:
        _tell(told, error=f"a defect of linkweir:\n{traceback.format_exc()}")
    finally:
        os._exit(code)


def _tell(told: socket.socket, **found: Any) -> None:
    with contextlib.suppress(OSError):  # the emulator may be gone
        told.send(json.dumps(found).encode()[:_LONG_MESSAGE])


def _call(name: str, *arguments: Any) -> None:
    """Calls a function of the C library that Python has not in all its versions.

    Raises:
        OSError: it failed.
    """
    library = ctypes.CDLL(None, use_errno=True)
    if getattr(library, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def _die_with(parent: Callable[[], bool]) -> None:
    """Is killed with its parent; ends at once if that has ended already."""
    _call("prctl", _DEATH_SIGNAL, int(signal.SIGKILL), 0, 0, 0)
    if not parent():
        os._exit(1)


def _forward_to(child: int, *, translated: bool = False) -> None:
    """Passes on to a child what the emulator sends from now on, and what it sent while that was blocked."""

    def forward(number: int, _: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, _FORWARDED[number] if translated else number)

    for number in _FORWARDED:
        signal.signal(number, forward)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FORWARDED)


def _early() -> int | None:
    """A signal for the command that came while it was blocked, as the emulator sends it; None if there is none."""
    came = signal.sigpending()
    if signal.SIGINT in came:  # of a terminal
        return _INTERRUPT
    return next((number for number in _FORWARDED if number in came), None)


def _keep(told: socket.socket, emulator: int, command: Sequence[str], serve: str | None) -> None:
    """Makes the namespaces and devices, starts init, and waits for its end."""
    user = _become_root()
    # Only now: the kernel forgets the signal when a process gains rights.
    _die_with(lambda: os.getppid() == emulator)
    try:
        _call("unshare", _NEW_MOUNT)
        _call("mount", None, b"/", None, _PRIVATE | _RECURSIVE, None)
        far, far_net = _end(FAR, FAR6, NEAR, NEAR6)
        near, near_net = _end(NEAR, NEAR6, FAR, FAR6)
        _call("unshare", _NEW_PROCESS)
    except OSError as error:
        raise EndsError(_refused(error, user is not None)) from None
    socket.send_fds(told, [b"{}"], [near, far])
    os.close(near)
    os.close(far)
    alive, held = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(held)
        _run(told, lambda: _init(told, alive, (near_net, far_net), command, serve, user))
    # What a terminal sent before the fork, init did not get; after it, both did, and init waits for this.
    os.write(held, bytes([signal.SIGINT in signal.sigpending()]))
    _forward_to(pid)
    told.close()
    os.close(near_net)
    os.close(far_net)
    os.waitpid(pid, 0)


def _become_root() -> tuple[int, int] | None:
    """Makes a user namespace where that is needed; returns user and group as they were outside then."""
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        with contextlib.suppress(OSError):
            _call("unshare", _NEW_NET)
            return None
    try:
        _call("unshare", _NEW_USER)
        _map(0, user, 0, group)
    except OSError as error:
        raise EndsError(_refused(error, True)) from None
    return user, group


def _map(user: int, outer_user: int, group: int, outer_group: int) -> None:
    """Gives the process in its new user namespace a user and a group."""
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {outer_user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {outer_group} 1")


def _refused(error: OSError, as_user: bool) -> str:
    who = "users without root" if as_user else "this process"
    cure = (
        "run it with sudo, or allow it: sysctl kernel.apparmor_restrict_unprivileged_userns=0 (Ubuntu), "
        "kernel.unprivileged_userns_clone=1 (Debian), user.max_user_namespaces above 0"
        if as_user
        else "give the container --privileged, or run it outside"
    )
    return f"this machine does not let {who} make namespaces and devices ({error.strerror}); {cure}"


def _end(own: str, own6: str, other: str, other6: str) -> tuple[int, int]:
    """Makes a network namespace with a device, in which the process then is; returns descriptors of both."""
    _call("unshare", _NEW_NET)
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    fcntl.ioctl(device, _SET_DEVICE, struct.pack("16sH22x", DEVICE.encode(), _TUN | _NO_INFORMATION))
    # Any user may ping and serve on any port: the namespace has no other users.
    # The kernel's own solicitations of routers would be packets on the link.
    for key, value in (
        ("ipv4/ping_group_range", "0 0"),
        ("ipv4/ip_unprivileged_port_start", "0"),
        (f"ipv6/conf/{DEVICE}/router_solicitations", "0"),
    ):
        with contextlib.suppress(OSError):
            Path(f"/proc/sys/net/{key}").write_text(value)
    with_ipv6 = Path("/proc/sys/net/ipv6").exists()  # not with ipv6.disable=1, where `ip` refuses all of it
    lines = _SET_UP.format(own=own, other=other, before=_BEFORE6 if with_ipv6 else "")
    if with_ipv6:
        lines += _SET_UP6.format(own=own6, other=other6)
    words = ["ip", "-batch", "-"]
    done = subprocess.run(
        words, input=lines, capture_output=True, text=True, env={"PATH": _PATH}, timeout=30, check=False
    )
    if done.returncode:
        raise EndsError(f"ip cannot set up the devices: {done.stderr.strip()}")
    return device, os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


# --- In init --------------------------------------------------------------------------------------------------------


def _init(
    told: socket.socket,
    alive: int,
    nets: tuple[int, int],
    command: Sequence[str],
    serve: str | None,
    user: tuple[int, int] | None,
) -> None:
    """The first process of the process namespace: starts the commands, and reports how the near one ended."""
    begins = os.read(alive, 1)
    if not begins:
        return
    _die_with(lambda: not select.select([alive], [], [], 0)[0])
    try:
        _call("mount", b"proc", b"/proc", b"proc", _NO_SUID | _NO_DEVICE | _NO_EXEC, None)
    except OSError as error:
        message = f"/proc cannot be mounted ({error.strerror}): in a container, run it with --privileged"
        raise EndsError(message) from None
    near_net, far_net = nets
    served = None
    if serve is not None:
        served = _start(["/bin/sh", "-c", serve], far_net, user, {"near": NEAR, "far": FAR}, far=True)
        _await(served, serve)
    early = _INTERRUPT if begins[0] else _early()
    if early is not None:
        _tell(told, code=128 + _FORWARDED[early], missed=(0, 0))
        return
    pid = _start(command, near_net, user, {"near": NEAR, "far": FAR})
    _forward_to(pid, translated=True)
    status = None
    while status is None:
        ended, found = os.wait()
        if ended == pid:
            status = found
        elif ended == served:
            print(f"linkweir emulate: --serve ended ({_code(found)})", file=sys.stderr, flush=True)
    missed = []
    for net in nets:
        _call("setns", net, _NEW_NET)
        missed.append(_missed_pkts())
    _tell(told, code=_code(status), missed=missed)


def _code(status: int) -> int:
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def _start(
    command: Sequence[str],
    net: int,
    user: tuple[int, int] | None,
    addresses: dict[str, str],
    *,
    far: bool = False,
) -> int:
    """Starts a command in a network namespace; returns its process."""
    pid = os.fork()
    if pid:
        return pid
    try:
        _call("setns", net, _NEW_NET)
        _show_devices()
        if user is not None:
            _call("unshare", _NEW_USER)
            _map(user[0], 0, user[1], 0)
        for number in (*_HELD, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _HELD)
        if far:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(2, 1)
        environment = {f"LINKWEIR_{name.upper()}": address for name, address in addresses.items()}
        os.execvpe(command[0], list(command), {**os.environ, **environment})
    except OSError as error:
        print(f"linkweir emulate: {command[0]}: {error.strerror}", file=sys.stderr, flush=True)
        os._exit(127 if error.errno == errno.ENOENT else 126)
    finally:
        os._exit(1)


def _show_devices() -> None:
    """Puts a /sys with the devices of this network namespace over the host's, as `ip netns exec` does."""
    flags = _NO_SUID | _NO_DEVICE | _NO_EXEC
    if os.statvfs("/sys").f_flag & os.ST_RDONLY:
        flags |= _READ_ONLY
    try:
        _call("unshare", _NEW_MOUNT)
        _call("mount", b"sysfs", b"/sys", b"sysfs", flags, None)
    except OSError as error:
        print(f"linkweir emulate: /sys shows the host's devices ({error.strerror})", file=sys.stderr, flush=True)


def _await(pid: int, serve: str) -> None:
    """Waits until the far command listens."""
    until_s = time.monotonic() + LISTENS_S
    while not _listens(pid) and _early() is None:
        if os.waitpid(pid, os.WNOHANG)[0]:
            raise EndsError(f"--serve {serve}: ended before it listened on a port; try the command by itself")
        if time.monotonic() > until_s:
            message = f"linkweir emulate: --serve listens on no port after {LISTENS_S:g} s; the command starts anyway"
            print(message, file=sys.stderr, flush=True)
            return
        time.sleep(0.01)


def _listens(pid: int) -> bool:
    """Whether a socket in the network namespace of a process waits for data: TCP's state 0A, UDP's 07."""
    for table, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        with contextlib.suppress(OSError):
            rows = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
            if any(row.split()[3] == state for row in rows):
                return True
    return False


def _missed_pkts() -> int:
    """Packets that the device dropped because the emulator had not read earlier ones."""
    for line in Path("/proc/self/net/dev").read_text().splitlines():
        name, _, numbers = line.strip().partition(":")
        if name == DEVICE:
            # Eight columns of what it received, then bytes, packets, errors and drops of what it sent.
            return int(numbers.split()[11])
    return 0
