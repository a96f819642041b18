"""Rows that several lines spell: a banner with the step, then bullets, a boxed table, a panel or a printed dictionary.

NeMo-RL prints bullets, AReaL and tinker-cookbook a boxed table, open-instruct a panel, SkyRL a dictionary of one key a line, DeepSpeed-Chat
the reward on the line after the losses. Layouts: trainers/native.md, trainers/hf.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from klinic.sources.grammar import Row
from klinic.sources.grammar.dicts import literal
from klinic.sources.rows import number, numbers, step_of

LONGEST_DICTIONARY = 2000  # lines
_NUMBER = r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|nan|inf)"
_BANNER = re.compile(
    r"^=+ Step (?P<nemo>\d+)/\d+ =+$"
    r"|\bTrain step (?P<areal>\d+)/\d+ done\."
    r"|\bpipeline step (?P<roll>\d+) (?:start|finished)"
    r"|^[Ee]poch: (?P<epoch>\d+) ?\| ?[Ss]tep: (?P<chat>\d+) ?\|"
)
_TITLE = re.compile(r"^ {4,}Step (\d+)\s*$")  # of tinker-cookbook's table, centred above it
_OF_BANNERS = ("= Step ", "Train step ", "pipeline step ", "poch: ")  # it cannot match without
_CHAT = re.compile(r"^\s*[Ee]poch: \d+ ?\| ?[Ss]tep: \d+ ?\|")
_OPENS_DICTIONARY = re.compile(r"(?:^|- )Step (\d+):\s*$")
_SECTION = re.compile(r"^\W*(?P<name>[A-Z]\w+(?: \w+)*?)(?: Results)?:$")
_BULLET = re.compile(rf"^• (?P<name>[A-Za-z][\w ]*?): (?P<value>{_NUMBER})s?(?:\s*\(.*\))?$", re.I)
_REWARD = re.compile(rf"^average reward score: ({_NUMBER})", re.IGNORECASE)
_COMMAS = re.compile(rf"(reward/[\w@]+): ({_NUMBER})(?=,|$)", re.IGNORECASE)
_PANEL = re.compile(rf"(?:^|\| )\s*([\w@/.\-]+): ({_NUMBER})(?= |$)", re.IGNORECASE)
_PIPELINE_STEP = re.compile(r"\brollout (\d+): \{")
# Keys of the plain section; others carry the section's name.
_PLAIN = "Training"


class Blocks:
    """Knows the step of the last banner and what is open below it."""

    def __init__(self) -> None:
        self.step: int | None = None
        self.section = _PLAIN
        self.dictionary: list[str] | None = None
        self.depth = 0
        self.panel: dict[str, float] | None = None
        self.group = ""
        self.beside: dict[str, float] = {}
        self.rollout: int | None = None
        self._epoch, self._before, self._last = 0, 0, 0

    @property
    def open(self) -> bool:
        """Whether any line may be a part of a block."""
        return self.step is not None or self.dictionary is not None or self.panel is not None

    def take(self, text: str) -> Row | bool:
        """A finished row; True where the line belongs to a block; False where it is none of ours."""
        line = text.strip()
        if self.dictionary is not None:
            return self._printed(line)
        if self.panel is not None:
            return self._in_panel(text, line)
        if line.endswith(":") and (opened := _OPENS_DICTIONARY.search(line)) is not None:
            self.step, self.dictionary, self.depth = int(opened.group(1)), [], 0
            return True
        if text.startswith("    ") and (titled := _TITLE.match(text)) is not None:
            self.step, self.section = int(titled.group(1)), _PLAIN
            return True
        if line.startswith("╭") and " Metrics " in line:
            self.panel, self.group = {}, ""
            return True
        if (
            any(word in line for word in _OF_BANNERS)
            and (banner := _BANNER.search(line)) is not None
        ):
            return self._banner(banner)
        if (
            "reward/avg_raw_reward: " in line
            and "{" not in line
            and (commas := _COMMAS.findall(line))
        ):
            self.beside = {key: float(value) for key, value in commas}
            return True
        if self.step is None:
            return False
        return self._below(line)

    def place(self, text: str, row: Row) -> Row:
        """Put a row on the run's own axis.

        slime numbers updates ("step 7:") beside rollouts ("rollout 3:"): several updates belong to one rollout. Steps
        of DeepSpeed-Chat begin again at each epoch. SkyRL's reward stands on the line before its dictionary.
        """
        if (found := _PIPELINE_STEP.search(text)) is not None:
            self.rollout = int(found.group(1))
        elif "train/step" in row.values and self.rollout is not None:
            return Row(self.rollout, row.values, row.leaves)
        elif row.step is not None and self.step is not None and _CHAT.search(text) is not None:
            return Row(self.step, row.values, row.leaves)
        if row.step is None and self.beside:
            values, self.beside = {**self.beside, **row.values}, {}
            return Row(None, values, row.leaves)
        return row

    def _banner(self, banner: re.Match[str]) -> bool:
        self.section = _PLAIN
        if banner["chat"] is None:
            self.step = int(banner["nemo"] or banner["areal"] or banner["roll"])
            return True
        at = int(banner["chat"])
        if int(banner["epoch"]) > self._epoch:
            # Steps begin again at each epoch.
            self._epoch, self._before = int(banner["epoch"]), self._last + 1
        self.step = self._last = self._before + at
        return False  # the losses stand on the same line

    def _below(self, line: str) -> Row | bool:
        if (reward := _REWARD.match(line)) is not None:
            return Row(self.step, {"average reward score": float(reward.group(1))}, {})
        if (bullet := _BULLET.match(line)) is not None:
            name = bullet["name"] if self.section == _PLAIN else f"{self.section}/{bullet['name']}"
            return Row(self.step, {name: float(bullet["value"])}, {})
        if (section := _SECTION.match(line)) is not None:
            self.section = section["name"].removesuffix(" Results")
            return True
        if line.startswith("│"):
            cells = [cell.strip() for cell in line.strip("│").split("│")]
            pairs = zip(cells[::2], cells[1::2], strict=False)
            values = {key: found for key, value in pairs if (found := number(value)) is not None}
            return Row(self.step, values, {}) if values else True
        return line[:1] in "╒├└┌╞╘┏┃┡" if line else False

    def _printed(self, line: str) -> Row | bool:
        assert self.dictionary is not None
        if not self.dictionary and not line.startswith("{"):
            self.dictionary = None
            return False
        self.dictionary.append(line)
        self.depth += line.count("{") - line.count("}")
        if self.depth <= 0:
            found = literal(" ".join(self.dictionary))
            self.dictionary = None
            return Row(self.step, numbers(found), found) if isinstance(found, dict) else True
        if len(self.dictionary) > LONGEST_DICTIONARY:
            self.dictionary = None
        return True

    def _in_panel(self, text: str, line: str) -> Row | bool:
        assert self.panel is not None
        if line.startswith("╰"):
            values, self.panel = self.panel, None
            return Row(step_of(_last_names(values)), values, {}) if values else True
        if not line.startswith("│"):
            self.panel = None
            return False
        inner = text.strip().strip("│")
        group, _, rest = inner.strip().partition(" ")
        if inner.startswith("   "):  # a wrapped line of the group before
            rest = inner
        else:
            self.group = group
        for key, value in _PANEL.findall(rest.strip()):
            self.panel[key if self.group == "other" else f"{self.group}/{key}"] = float(value)
        return True


def _last_names(values: Mapping[str, float]) -> dict[str, float]:
    return {key.rpartition("/")[2]: value for key, value in values.items()}
