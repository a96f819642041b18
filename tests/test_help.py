"""--help speaks Chinese too: every sentence has its translation, and a page fits 80 columns."""

from __future__ import annotations

import subprocess
import sys

import click
import pytest

from klinic.cli import klinic as group
from klinic.cli._help import chinese, sentences
from klinic.render._layout import columns


def commands(command=group, path=()):
    yield path, command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            yield from commands(command.get_command(context, name), (*path, name))


def texts(command):
    yield from (command.help or "").split("\n\n")
    for option in command.params:
        if isinstance(option, click.Option) and option.help:
            yield option.help


def test_every_sentence_is_translated_and_none_is_left_over():
    used = {"Usage: ", "Usage:", "Options", "Commands", "Show this message and exit."}
    for path, command in commands():
        for text in filter(str.strip, texts(command)):
            key = " ".join(text.replace("\b", "").split())
            assert key in sentences(), f"klinic {' '.join(path)}: {key!r} is not in cli/zh.toml"
            used.add(key)
    assert set(sentences()) == used


def test_an_unknown_sentence_stays():
    assert chinese("no such sentence") == "no such sentence"


@pytest.mark.parametrize("path", [path for path, _ in commands()], ids=" ".join)
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_pages_fit_the_terminal(path, lang):
    done = subprocess.run(
        [sys.executable, "-m", "klinic", *path, "--help"],
        capture_output=True,
        text=True,
        env={"KLINIC_LANG": lang, "PATH": "", "COLUMNS": "80", "PYTHONIOENCODING": "utf-8"},
    )
    assert done.returncode == 0
    assert ("用法：" in done.stdout) == (lang == "zh")
    assert max(map(columns, done.stdout.splitlines())) <= (80 if lang == "zh" else 100)
