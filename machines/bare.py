# SPDX-License-Identifier: BSD-3-Clause
"""Bare Debian systems: made by debootstrap in a folder, entered with chroot, removed afterwards.

A script in a system runs in mount and process namespaces of its own. When it ends or is killed, its mounts and
processes are gone, so a folder can always be removed. Needs root.

Packages come from this machine's own mirror. A system gets what this machine needs to reach the network: name servers,
proxies, certificates of its own authorities, settings of apt, pip and cargo. It gets nothing that holds a password,
token or private key, because a system may be kept.
"""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MIRROR = "http://deb.debian.org/debian"
NAMESPACES = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
ENTER = """
mount -t proc proc "$0/proc" && mount -t sysfs -o ro sysfs "$0/sys" || exit
mount -t devpts -o newinstance,ptmxmode=0666 devpts "$0/dev/pts" && mount -t tmpfs tmpfs "$0/dev/shm" || exit
exec chroot "$0" sh -c "$1"
"""
AUTHORITIES = "usr/local/share/ca-certificates"
CARRIED = ("PIP_", "CARGO_HTTP_", "CARGO_NET_", "CARGO_SOURCE_", "CARGO_REGISTRIES_", "SSL_CERT_FILE")
SECRET = re.compile(
    r"^[^\n=]*(?:token|credential|password|secret)[^\n=]*=|://[^/\s\"']*@|PRIVATE KEY-----",
    re.IGNORECASE | re.MULTILINE,
)


def mirror(label: str) -> str | None:
    """The URL from which this machine's apt gets an archive, "Debian" or "Debian-Security"; None if it has none."""
    command = ["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)", "Created-By: Packages"]
    try:
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None
    found = [line.split("|")[2] for line in shown.splitlines() if line.startswith(f"Debian|{label}|")]
    return found[0].rstrip("/") if found else None


def bootstrap(
    suite: str,
    system: Path,
    packages: list[str],
    log: IO[bytes],
    from_mirror: str | None,
    architecture: str | None = None,
) -> bool:
    """Makes a minimal system, with debootstrap's own mirror unless one is named. False if that failed.

    The architecture is this machine's unless another is named, whose programs this machine must be able to run.
    """
    shutil.rmtree(system, ignore_errors=True)
    command = [*NAMESPACES, "debootstrap", "--variant=minbase", f"--include={','.join(packages)}", suite, str(system)]
    # debootstrap and the programs it runs are in folders that a plain user's PATH lacks
    environment = {**os.environ, "PATH": f"{os.environ.get('PATH', '')}:{PATH}"}
    command += [from_mirror] if from_mirror else []
    if architecture:
        command.insert(len(NAMESPACES) + 1, f"--arch={architecture}")
    done = subprocess.run(command, env=environment, stdout=log, stderr=log, check=False)
    return done.returncode == 0


def unpack(suite: str, architecture: str, folder: Path, packages: Iterable[str]) -> None:
    """Unpacks packages of an architecture and those that they depend on, and runs nothing of them.

    Raises:
        RuntimeError: mmdebstrap is missing, or failed.
    """
    words = [f"--architectures={architecture}", "--variant=extract", f"--include={','.join(packages)}"]
    command = ["mmdebstrap", "--quiet", *words, suite, str(folder), mirror("Debian") or MIRROR]
    try:
        subprocess.run(command, capture_output=True, text=True, check=True)
    except FileNotFoundError:
        raise RuntimeError("mmdebstrap is missing") from None
    except subprocess.CalledProcessError as error:
        raise RuntimeError(f"mmdebstrap: {error.stderr[-2000:]}") from None


def run(system: Path, script: str, log: IO[bytes], user: str = "root") -> int:
    """Runs a shell script in a system, as a user in their home, and returns its exit code."""
    environment = {"PATH": PATH, "HOME": "/root", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}
    environment |= settings()
    script = f"set -e; cd; {script}"
    if user != "root":
        kept = ",".join(["LC_ALL", *settings()])
        script = f"exec su --login --whitelist-environment={kept} {user} --command {shlex.quote(script)}"
    return subprocess.run(
        [*NAMESPACES, "sh", "-c", ENTER, system, script],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        check=False,
    ).returncode


def settings() -> dict[str, str]:
    """The variables of this machine's environment that concern the network, without paths of its folders."""
    return {
        name: value
        for name, value in os.environ.items()
        if (name.startswith(CARRIED) or name.lower().endswith("_proxy"))
        and not Path(value).is_dir()
        and not is_secret(f"the variable {name}", f"{name}={value}")
    }


def is_secret(what: str, text: str) -> bool:
    """Whether a text holds a password, token or private key; if so, prints that it is left out."""
    found = SECRET.search(text) is not None
    if found:
        say_left_out(what)
    return found


@functools.cache  # once per run
def say_left_out(what: str) -> None:
    print(f"bare: not copied into systems, because it holds a password, token or private key: {what}", file=sys.stderr)


def carry_settings(system: Path, log: IO[bytes]) -> None:
    """Copies what this machine needs to reach the network into a system."""
    home = Path.home()
    cargo = Path(os.environ.get("CARGO_HOME", home / ".cargo"))
    copies = {Path("/etc/resolv.conf"): "etc/resolv.conf", Path("/etc/pip.conf"): "etc/pip.conf"}
    copies |= {home / place: "etc/xdg/pip/pip.conf" for place in (".pip/pip.conf", ".config/pip/pip.conf")}
    # cargo reads the settings of every folder above the one it works in
    copies |= {cargo / name: ".cargo/config.toml" for name in ("config", "config.toml")}
    copies |= {path: f"{AUTHORITIES}/{path.name}" for path in Path("/", AUTHORITIES).glob("*.crt")}
    copies |= {Path(value): value.lstrip("/") for value in settings().values() if value.startswith("/")}
    for source, target in copies.items():
        # the bundle of certificates is made below, by Debian's own tool
        if not source.is_file() or (target != "etc/resolv.conf" and (system / target).exists()):
            continue
        if is_secret(str(source), source.read_text(errors="replace")):
            continue
        (system / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, system / target)
        (system / target).chmod(0o644)  # readable for the plain user, whatever its mode is here
    shown = subprocess.run(["apt-config", "dump"], capture_output=True, text=True, check=False).stdout
    reached = [line for line in shown.splitlines() if line.startswith(("Acquire::http::", "Acquire::https::"))]
    reached = [line for line in reached if not is_secret(f"apt's {line.split()[0]}", line)]
    (system / "etc/apt/apt.conf.d/90network").write_text("".join(f"{line}\n" for line in reached))
    if run(system, "update-ca-certificates", log) != 0:
        raise RuntimeError(f"{system}: update-ca-certificates failed")
