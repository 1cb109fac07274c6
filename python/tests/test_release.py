# SPDX-License-Identifier: BSD-3-Clause
"""What a release rests on: one version, licences of all crates, and files made from a commit alone."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import subprocess
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from command import REPOSITORY

import linkweir

VERSION = re.compile(r'^version(?: =|:) "?([^"\n]+)"?$', re.MULTILINE)


def load(name: str, folder: str = "release") -> ModuleType:
    """A file of release/ or machines/, which are not packages."""
    spec = importlib.util.spec_from_file_location(f"{folder}_{name}", REPOSITORY / f"{folder}/{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


sys.path.append(str(REPOSITORY / "release"))  # where its files look for one another
release, notices, emulated, build = load("release"), load("notices"), load("emulated"), load("build")
arm64, tunnel, wireguard = load("arm64"), load("tunnel_arm64", "machines"), load("kernel_wireguard", "machines")
guest = tunnel.guest


def test_the_version_is_in_one_place_and_its_copies_agree() -> None:
    [version] = VERSION.findall((REPOSITORY / "Cargo.toml").read_text())
    assert linkweir.__version__ == version
    assert VERSION.findall((REPOSITORY / "CITATION.cff").read_text()) == [version]
    locked = (REPOSITORY / "Cargo.lock").read_text()
    assert set(re.findall(r'name = "linkweir-[a-z]+"\nversion = "(.*)"', locked)) == {version}
    for manifest in (REPOSITORY / "crates").glob("*/Cargo.toml"):
        text = manifest.read_text()
        assert "\nversion.workspace = true\n" in text, manifest
        assert not re.search(r"^linkweir-[a-z]+ = .*version", text, re.MULTILINE), manifest
    given = re.findall(
        r'^linkweir-([a-z]+) = .*version = "(.*)"', (REPOSITORY / "Cargo.toml").read_text(), re.MULTILINE
    )
    assert given == [("config", version), ("core", version), ("sim", version)]


CRATES = [f"--package=linkweir-{name}" for name in ("core", "config", "sim", "link")]


def cargo(*arguments: str, **environment: str) -> None:
    """Runs cargo; a failure shows what it wrote."""
    done = subprocess.run(
        ["cargo", *arguments, *CRATES], cwd=REPOSITORY, env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.long
def test_the_crates_of_the_link_can_be_packed(tmp_path: Path) -> None:
    """Each holds all that it needs, and the packages compile. In a new folder, as cargo keeps packages unpacked."""
    cargo("package", "--locked", "--allow-dirty", "--quiet", f"--target-dir={tmp_path}")


@pytest.mark.long
def test_the_pages_of_the_crates_have_no_broken_links() -> None:
    cargo("doc", "--locked", "--no-deps", "--quiet", RUSTDOCFLAGS="-D warnings")


def test_a_version_is_cited_with_the_date_of_its_changes() -> None:
    [version] = VERSION.findall((REPOSITORY / "Cargo.toml").read_text())
    changes = (REPOSITORY / "CHANGELOG.md").read_text()
    released = re.findall(rf"^## {re.escape(version)}, (\d{{4}}-\d\d-\d\d)$", changes, re.MULTILINE)
    assert re.findall(r"^date-released: (.*)$", (REPOSITORY / "CITATION.cff").read_text(), re.MULTILINE) == released


def test_the_licences_of_all_linked_crates_are_at_hand() -> None:
    command = [sys.executable, REPOSITORY / "release/notices.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "failed to download" in done.stderr:
        pytest.skip(f"NOT CHECKED: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr


def test_the_copy_of_boringtun_is_as_released_but_for_what_its_readme_lists() -> None:
    copy = REPOSITORY / "third-party/boringtun"
    lines = (copy / "SHA256SUMS").read_text().splitlines()
    released = {path: digest for digest, path in (line.split() for line in lines)}
    here = {path.relative_to(copy).as_posix() for path in copy.rglob("*.rs")}
    digests = {path: hashlib.sha256((copy / path).read_bytes()).hexdigest() for path in here}
    changed = {path for path in here if digests[path] != released.get(path)}
    assert released.keys() <= here
    assert changed == here - released.keys() == {"src/lib.rs", "src/noise/session.rs"}
    listed = re.findall(r"^\| `(src/.*?)` \|", (copy / "README.md").read_text(), re.MULTILINE)
    assert {path for path in listed if path in here} == changed


def test_a_crate_without_licence_is_refused_and_a_text_is_printed_once(tmp_path: Path) -> None:
    crates = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "LICENSE-MIT").write_text("Copyright Jo\n")
        crates.append(notices.Crate(name, "1.0", "MIT OR Apache-2.0", tmp_path / name))
    listed = notices.listing("wheel", crates)
    assert listed.count("Copyright Jo") == 1
    assert "one 1.0 (MIT OR Apache-2.0)\ntwo 1.0 (MIT OR Apache-2.0)\n" in listed
    (tmp_path / "two/LICENSE-MIT").unlink()
    with pytest.raises(SystemExit, match=r"two 1\.0"):
        notices.listing("wheel", crates)


@pytest.mark.parametrize("name", [*build.IN_PYTHON, *build.IN_GATEWAY])
def test_a_package_without_a_licence_or_with_another_text_is_refused(name: str) -> None:
    names = build.IN_PYTHON if name in build.IN_PYTHON else build.IN_GATEWAY
    texts = {f"any/where/{one}": (REPOSITORY / "LICENSES" / one).read_bytes() for one in names}
    build.need_licences("package", names, texts)
    with pytest.raises(SystemExit, match=name):
        build.need_licences("package", names, texts | {f"any/where/{name}": b""})
    del texts[f"any/where/{name}"]
    with pytest.raises(SystemExit, match=name):
        build.need_licences("package", names, texts)


def test_packages_have_all_texts_that_are_kept() -> None:
    bpf = (REPOSITORY / "bpf/Makefile").read_text()
    in_bpf = set(re.findall(r"\.\./LICENSES/(\S+)", bpf))
    assert {*build.IN_PYTHON, *build.IN_GATEWAY, *in_bpf} == {path.name for path in (REPOSITORY / "LICENSES").iterdir()}
    declared = re.findall(r'^    "LICENSES/(.*)",$', (REPOSITORY / "pyproject.toml").read_text(), re.MULTILINE)
    assert set(declared) == set(build.IN_PYTHON)
    manifest = (REPOSITORY / "crates/linkweir-gateway/Cargo.toml").read_text()
    assert set(re.findall(r'LICENSES/([^"]*)"', manifest)) == set(build.IN_GATEWAY)


def test_the_licence_at_the_root_is_the_one_of_most_files() -> None:
    """Hosts show the file LICENSE; LICENSES has the texts that SPDX lines name."""
    assert (REPOSITORY / "LICENSE").read_text() == (REPOSITORY / "LICENSES/BSD-3-Clause.txt").read_text()


def test_only_an_empty_folder_takes_a_release(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    assert release.empty(tmp_path / "there").is_dir()
    assert release.empty(tmp_path / "not/there").is_dir()
    (tmp_path / "there/file").write_text("")
    for taken in ("there", "there/file"):
        with pytest.raises(release.ReleaseError, match="not an empty folder"):
            release.empty(tmp_path / taken)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit, and a change that is not committed."""
    root = tmp_path / "repository"
    (root / "release").mkdir(parents=True)
    (root / "release/build.py").write_text("committed\n")
    words = ["-c", "user.name=Jo", "-c", "user.email=jo@example.org"]
    for command in (["init", "-q"], ["add", "."], [*words, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", "-C", root, *command], check=True)
    (root / "release/build.py").write_text("not committed\n")
    monkeypatch.setattr(release, "ROOT", root)
    monkeypatch.setattr(release, "WORK", tmp_path / "work")
    return root


def test_a_release_is_made_from_the_commit_alone(repository: Path) -> None:
    source = release.clone("HEAD")
    assert (source / "release/build.py").read_text() == "committed\n"
    assert release.git("rev-parse", "HEAD", at=source) == release.git("rev-parse", "HEAD", at=repository)
    with pytest.raises(release.ReleaseError, match="another release"):
        release.clone("HEAD")


def test_an_unknown_commit_is_refused(repository: Path) -> None:
    with pytest.raises(release.ReleaseError, match="rev-parse"):
        release.clone("--all")
    assert not release.WORK.exists()


def test_runs_of_two_machines_are_compared_byte_by_byte(tmp_path: Path) -> None:
    for machine in ("one", "other"):
        (tmp_path / machine / "run").mkdir(parents=True)
        (tmp_path / machine / "run/summary.json").write_text("1")
        (tmp_path / machine / "run/provenance.json").write_text(machine)
    assert emulated.same_files(tmp_path / "one", tmp_path / "other") == 1
    (tmp_path / "other/run/summary.json").write_text("2")
    with pytest.raises(SystemExit, match=r"summary\.json"):
        emulated.same_files(tmp_path / "one", tmp_path / "other")
    (tmp_path / "other/run/more.json").write_text("1")
    with pytest.raises(SystemExit, match=r"more\.json"):
        emulated.same_files(tmp_path / "one", tmp_path / "other")


def packed(root: Path, program: str, **changes: str) -> Path:
    """A package with this program, and fields of its own."""
    said = {"Package": "test", "Version": "1", "Architecture": "amd64", "Depends": "libc6 (>= 2.34)"} | changes
    said |= {"Maintainer": "Jo <jo@example.org>", "Description": "a test"}
    for path, text in {arm64.PROGRAM: program, "usr/share/page": "text"}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "DEBIAN").mkdir(exist_ok=True)
    (root / "DEBIAN/control").write_text("".join(f"{name}: {value}\n" for name, value in said.items()))
    package = root.with_suffix(".deb")
    subprocess.run(["dpkg-deb", "--build", "--root-owner-group", root, package], check=True, capture_output=True)
    return package


def test_packages_for_two_processors_differ_in_their_programs_only(tmp_path: Path) -> None:
    one = packed(tmp_path / "one", "for amd64")
    other = {"Architecture": "arm64", "Depends": "libc6 (>= 2.36)"}
    assert arm64.same_package(one, packed(tmp_path / "two", "for arm64", **other)) == 5
    for change in ({"Version": "2"}, {"Depends": "libc6, libssl3"}):
        with pytest.raises(SystemExit, match="different things"):
            arm64.same_package(one, packed(tmp_path / "two", "for arm64", **other | change))
    (tmp_path / "two/usr/share/page").chmod(0o755)
    with pytest.raises(SystemExit, match=r"different files: usr/share/page$"):
        arm64.same_package(one, packed(tmp_path / "two", "for arm64", **other))


# as the gateway's program, with a key whose public one is the same with "public" before it
STAND_IN = """#!/bin/sh
case $1 in
keygen) echo $$ >"$2"; echo "public $$" ;;
check) echo "$2: valid" ;;
*) echo "listens as public $(cat "$(dirname "$4")/key")" ;;
esac
"""


def test_programs_for_two_processors_say_the_same(tmp_path: Path) -> None:
    def package(name: str, program: str) -> Path:
        examples = tmp_path / name / arm64.EXAMPLES
        examples.mkdir(parents=True)
        (examples / "hub.toml").write_text("# a hub\n[gateway]\n")
        (tmp_path / name / arm64.PROGRAM).parent.mkdir(parents=True)
        (tmp_path / name / arm64.PROGRAM).touch(mode=0o755)
        return packed(tmp_path / name, program)

    amd64 = package("amd64", STAND_IN)
    assert arm64.same_answers(amd64, SimpleNamespace(package=package("same", STAND_IN), runner=())) == 1
    for part, other, fault in (
        ("valid", "wrong", "say"),
        ("listens as public", "listens as", "say"),
        ('echo "public', 'echo "another', "not the public key of its file"),
    ):
        program = STAND_IN.replace(part, other)
        assert program != STAND_IN
        with pytest.raises(SystemExit, match=fault):
            arm64.same_answers(amd64, SimpleNamespace(package=package(other.split()[-1], program), runner=()))


def test_a_machine_makes_as_many_checks_as_are_expected() -> None:
    for machine in (tunnel, wireguard):
        text = Path(str(machine.__file__)).with_suffix(".sh").read_text()
        single = re.findall(r"^(?:says|until_says|end_pings) ", text, re.MULTILINE)
        both_ways = re.findall(r"^carries ", text, re.MULTILINE)
        assert len(single) + 2 * len(both_ways) == machine.CHECKS


def test_a_machine_is_judged_by_all_its_checks() -> None:
    checks = 9
    seen = [*("ok - check" for _ in range(checks)), "ended after 25.12 s"]
    assert guest.judge("\n".join(seen), checks) == []
    faults = {
        "not ok - the tunnel opens": [*seen, "not ok - the tunnel opens"],
        f"{checks - 1} checks of {checks} held": seen[1:],
        "the last check was not reached": seen[:-1],
        "kernel log: [    1.0] Kernel panic - not syncing": [*seen, "[    1.0] Kernel panic - not syncing"],
    }
    for fault, lines in faults.items():
        assert guest.judge("\n".join(lines), checks) == [fault]


def test_the_page_explains_every_file_of_the_record() -> None:
    record = (REPOSITORY / "docs/records/release.md").read_text()
    listed = re.findall(r"^\| (\S+) \| [\d,]+ \|", record, re.MULTILINE)
    page = (REPOSITORY / "docs/howto/release.md").read_text()
    rows = re.findall(r"^\| (`[^|]+) \|", page, re.MULTILINE)
    names = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    patterns = [name.replace("VERSION", "*").replace("…", "*") for name in names]
    assert len(listed) > 10
    for name in listed:
        assert any(fnmatchcase(name, pattern) for pattern in patterns), name
