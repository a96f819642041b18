"""Versions of trainers that are known to log a number wrongly, by the tables in klinic/trainers."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from klinic.preflight._given import Given
from klinic.preflight._result import Result, check, failed, missing, passed
from klinic.trainers import Bug, tables

PACKAGES = {"open_instruct": "open-instruct", "tinker_cookbook": "tinker-cookbook", "ms_swift": "ms-swift",
            "nemo_rl": "nemo-rl", "prime_rl": "prime-rl"}  # fmt: skip
MODULES = {"ms_swift": "swift"}  # imported under another name


@check(120)
def library_versions(given: Given) -> Result:
    """A bug that a later version mends fails; one that all later versions have is only named."""
    found = given.versions if given.versions is not None else loaded()
    known = {name: version for name, version in found.items() if name in tables()}
    if not known:
        return missing("versions")
    old: list[tuple[str, str, Bug]] = []
    minded: list[tuple[str, str, Bug]] = []
    for name, version in known.items():
        for bug in tables()[name].bugs:
            if not (bug.since or bug.until) or not _between(version, bug):
                continue
            (old if bug.until else minded).append((name, version, bug))
    if old:
        name, version, bug = old[0]
        return failed(
            "known",
            trainer=name,
            version=version,
            key=bug.key,
            what=bug.en,
            what_zh=bug.zh,
            last=bug.until,
            count=len(old),
        )
    told = ", ".join(f"{name} {version}" for name, version in known.items())
    if minded:
        name, version, bug = minded[0]
        keys = ", ".join(
            dict.fromkeys(
                key for *_, bug in minded for key in bug.key.removeprefix("unread:").split()
            )
        )
        return passed("minded", found=told, keys=keys, count=len(minded))
    return passed(found=told)


def loaded() -> Mapping[str, str]:
    """Versions of the trainers that this process has imported: others do not train here."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in tables():
        if MODULES.get(name, name) in sys.modules:
            try:
                found[name] = version(PACKAGES.get(name, name))
            except PackageNotFoundError:
                continue
    return found


def _between(version: str, bug: Bug) -> bool:
    mine, first, last = (_numbers(v) for v in (version, bug.since, bug.until))
    return (not first or mine[: len(first)] >= first) and (not last or mine[: len(last)] <= last)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
