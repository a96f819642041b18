"""Errors speak Chinese too: every message in the source has its translation, and real misuse is answered in it."""

from __future__ import annotations

import errno
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import msgspec
import pytest
import yaml
from messages import modules_of

import klinic
from klinic.cli import klinic as group
from klinic.diagnose import diagnose_all
from klinic.errors import KlinicError
from klinic.render._words import text_of
from klinic.said import catalogue, complaint, said
from klinic.settings import Settings

SOURCE = Path(klinic.__file__).parent
DEMO = SOURCE / "demo" / "trl-entropy-collapse"
RUNS = Path(__file__).parent / "runs"
# What a learner is to type in the course, and a verb: the same in every language.
COMMANDS = {"answer", "round 2", "read 1-{}", "lang en, lang zh", "klinic lab list"}
COMMANDS |= {"better, worse, inconclusive"}
# Handed on by the printers, or worded by the system.
HANDED_ON = {"what", "hint", "text", "str(trouble)", "trouble.what", "trouble.hint"}
HANDED_ON |= {"trouble.format_message()"}

REASONS = (
    errno.ENOENT, errno.EACCES, errno.EPERM, errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENAMETOOLONG,
    errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO, errno.EMFILE, errno.ELOOP, errno.ESTALE, errno.ENOEXEC,
    errno.E2BIG, errno.ENOMEM,
)  # fmt: skip


@pytest.fixture(scope="module")
def modules():
    return modules_of(SOURCE)


def test_every_message_is_translated(modules):
    missing = {
        template: where
        for module in modules
        for template, where in module.found.items()
        if re.search("[A-Za-z]", template) and template not in COMMANDS
        if template not in catalogue()["klinic"]
        and ("{}" in template or said(template, "zh") == template)
    }
    assert not missing, f"lang/errors.zh.toml lacks: {json.dumps(missing, indent=1)}"


def test_no_message_is_built_in_a_way_that_cannot_be_read(modules):
    unknown = {text: module.path.name for module in modules for text in module.unknown}
    assert not {text: at for text, at in unknown.items() if text not in HANDED_ON}


def test_no_translation_is_left_over(modules):
    used = {template for module in modules for template in module.found}
    assert not set(catalogue()["klinic"]) - used - {"did you mean {}?"}


def test_holes_and_places_agree():
    seen: set[str] = set()
    for part in catalogue().values():
        for english, chinese in part.items():
            assert english not in seen, f"{english!r} stands twice"
            seen.add(english)
            holes = {int(hole) for hole in re.findall(r"\{(\d+)!?\}", chinese)}
            assert holes <= set(range(english.count("{}"))), english
            kept = set(re.findall(r"\{[a-z]+\}|--[a-z-]+", english))
            assert all(word in chinese for word in kept), english
            assert not chinese.endswith("。"), chinese


def caught(function, *arguments, **named):
    with pytest.raises(Exception) as trouble:
        function(*arguments, **named)
    return str(trouble.value)


def from_the_system():
    """Reasons as the system, the shell's words, TOML, JSON, YAML and msgspec really give them."""
    for code in REASONS:
        yield os.strerror(code)
    yield caught(open, "/no/such/file")
    yield caught(b"\xff".decode, "utf-8")
    for text in ("'a", "a\\"):
        yield caught(shlex.split, text)
    for text in (
        "a = ", "a = x", "=", "a", "a = 1 b", "[a", "a = 1\na = 2", "[a]\n[a]", "a = [1", "a = {b = 1",
        'a = "x', "a = '\x00'", 'a = "',
    ):  # fmt: skip
        yield caught(tomllib.loads, text)
    for text in ("", "{1", '["a" 1]', '{"a', "1 2", '"\n"', '{"a" 1}'):
        yield caught(json.loads, text)
    for text in (
        "a: [1, 2\nb: 3", "a: {b: 1\nc: 2", "a: 'x\n", "@a", "a: b: c", "- a\nb: c", "a: 1\n- b", "*x",
        "a: !!foo!x 1",
    ):  # fmt: skip
        for loader in (yaml.SafeLoader, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            yield caught(yaml.load, text, Loader=loader).splitlines()[0]
    for value in ({"lang": 1}, {"lang": "fr"}, {"map": [1]}):
        yield caught(msgspec.convert, value, Settings)
    yield caught(msgspec.convert, 1, Settings)
    yield caught(msgspec.json.decode, b'{"a": 1}', type=dict[str, str])


def from_click():
    """Usage errors as click really words them."""
    for words in (
        ["--nope"], ["diagnose"], ["diagnose", "x", "--formatt", "json"], ["diagnose", "x", "--l", "y"],
        ["explain", "a", "b"], ["explain", "a", "b", "c"], ["diagnose", "x", "--lang", "fr"],
        ["smoke", "a", "b", "--steps", "x"], ["smoke", "a", "b", "--steps", "0"], ["diagnose", "x", "--lang"],
        ["lab", "run"], ["lab", "run", "-o", "x", "--seed", "x"], ["lab", "nope"], ["lab", "lis"], ["rescue", "x", "--timeout", "x"],
        ["course", "--progress", "/"], ["lab", "run", "-o", "x", "--onset"], ["plot", "x", "--version=1"],
    ):  # fmt: skip
        try:
            group.main(words, standalone_mode=False)
        except click.UsageError as trouble:
            yield trouble.format_message()
        except KlinicError:
            continue


def test_foreign_reasons_are_translated_and_none_is_left_over():
    heard = [*from_the_system(), *from_click()]
    for text in heard:
        # What stays is quoted: names, values, options.
        rest = re.sub(r"'[^']*'|`[^`]*`|0x\w+|x>=|（.*?）|\(.*?\)", "", said(text, "zh"))
        assert not re.search("[A-Za-z]", rest), f"{text!r} -> {said(text, 'zh')}"
        assert said(text, "en") == text
    # Where the tests run as root, every file is readable.
    for english in {**catalogue()["click"], **catalogue()["system"]}.keys() - {
        "{} {} is not readable."
    }:
        wanted = re.compile(".+?".join(map(re.escape, english.split("{}"))))
        assert any(wanted.search(text) for text in heard), f"{english!r} is never said"


def test_the_most_particular_template_wins_and_quotes_stay():
    assert said("unknown failure or metric 'x'", "zh") == "没有 'x' 这种失效或指标"
    assert said("unknown failure 'or metric'", "zh") == "没有 'or metric' 这种失效"
    assert said("unknown placeholder {checkpont}", "zh") == "没有占位符 {checkpont}"
    assert said("nobody ever said this", "zh") == "nobody ever said this"
    quoted = "the unchanged run fails, so nothing can be compared; mended, say --retry; its last lines are:\n  {}"
    lines = "a\n  json: Expecting value: line 1 column 1 (char 0)"
    assert said(quoted.replace("{}", lines), "zh").endswith(lines)
    assert complaint("it is empty", "a.log", "", "en") == "error: a.log: it is empty"
    assert complaint("it is empty", "", "none", "zh") == "错误：文件是空的\n提示：无"


def ask(*arguments, cwd=None, **environment):
    kept = {k: v for k, v in os.environ.items() if k not in ("LANG", "LC_ALL", "LC_MESSAGES")}
    return subprocess.run(
        [sys.executable, "-m", "klinic", *map(str, arguments)],
        capture_output=True,
        encoding="utf-8",
        cwd=cwd,
        env={**kept, "PYTHONUTF8": "1", **environment},
    )


@pytest.mark.parametrize(
    ("arguments", "what", "hint"),
    [
        (["diagnoze"], "klinic：没有 'diagnoze' 这个子命令", "是不是 diagnose？"),
        (["diagnose"], "缺少参数", "klinic diagnose --help"),
        (["diagnose", "nowhere"], "nowhere：没有这个文件或目录", "检查路径"),
        (["diagnose", "zip.log"], "zip.log：这是 gzip 压缩文件", "先解压"),
        (["diagnose", "empty.log"], "empty.log：文件是空的", "指定训练器实际写入的文件"),
        (["diagnose", DEMO, "--nope"], "没有选项 '--nope'", "klinic diagnose --help"),
        (["diagnose", DEMO, "--lang", "fr"], "'--lang' 的值无效", "klinic diagnose --help"),
        (["diagnose", DEMO, "--format", "pdf"], "--format：没有 'pdf' 这种格式", ""),
        (["diagnose", DEMO, "--only", "kl-runway"], "没有 'kl-runway' 这种失效", "是不是 kl-runaway？"),
        (["diagnose", DEMO, "--map", "entropy"], "--map：看不懂 'entropy'", "写成 --map entropy=my/key"),
        (["diagnose", DEMO, "--config", "empty.log"], "empty.log：配置不是键值映射", "--config 应指定"),
        (["explain", "qqqq"], "没有 'qqqq' 这种失效或指标", "klinic explain 列出全部"),
        (["lab", "run", "-o", "x", "--set", "lr"], "--set：看不懂 'lr'", "写成 --set lr=0.002"),
        (["rescue", DEMO, "-o", "r", "--command", "a {checkpont}"], "没有占位符 {checkpont}", "是不是 checkpoint？"),
    ],
)  # fmt: skip
def test_misuse_is_answered_in_chinese(tmp_path, arguments, what, hint):
    (tmp_path / "empty.log").touch()
    (tmp_path / "zip.log").write_bytes(b"\x1f\x8b\x08\x00")
    done = ask(*arguments, cwd=tmp_path, KLINIC_LANG="zh")
    assert done.returncode == 2 and done.stdout == "" and "Traceback" not in done.stderr
    first, second = done.stderr.splitlines()
    assert first.startswith("错误：") and what in first, first
    assert second.startswith("提示：") and hint in second, second


def test_a_broken_settings_file_is_said_in_the_locale_language(tmp_path):
    (tmp_path / "klinic.toml").write_text("lang = ")
    for arguments in (["diagnose", DEMO], ["lab", "list"]):
        done = ask(*arguments, cwd=tmp_path, LANG="zh_CN.UTF-8")
        assert done.returncode == 2 and "Traceback" not in done.stderr
        assert (
            "klinic.toml：无法读取：值无效" in done.stderr and "提示：改好这个文件" in done.stderr
        )
    assert "用法：" in ask("--help", cwd=tmp_path, LANG="zh_CN.UTF-8").stdout
    (tmp_path / "klinic.toml").write_text('lang = "zh"')
    assert ask("diagnoze", cwd=tmp_path, LANG="C").stderr.startswith("错误：")
    assert ask("diagnoze", "--lang", "en", cwd=tmp_path).stderr.startswith("error: klinic: unknown")


def test_json_errors_are_english_unless_chinese_was_asked_for(tmp_path):
    for arguments in (["diagnose", "nowhere"], ["diagnose", DEMO, "--nope"]):
        words = [*arguments, "--format", "json"]
        error = json.loads(ask(*words, KLINIC_LANG="zh").stdout)["error"]
        assert set(error) == {"what", "where", "hint"} and error["what"].isascii()
        asked = json.loads(ask(*words, "--lang", "zh").stdout)["error"]
        assert "没有" in asked["what"] and asked["where"] == error["where"]


def test_no_verb_is_answered_with_the_page_of_help():
    done = ask(KLINIC_LANG="zh")
    assert done.returncode == 2 and done.stderr.startswith("用法：") and "错误" not in done.stderr
    assert ask("lab", KLINIC_LANG="en").stderr.startswith("Usage: ")


def test_what_is_printed_without_an_error_is_translated_too():
    assert said("stopped", "zh") == "已停止"
    assert said("a bug in klinic: KeyError: 'x'", "zh") == "klinic 自身的错误：KeyError：'x'"


@pytest.mark.parametrize(
    "place",
    [DEMO, *sorted(p for p in RUNS.iterdir() if p.is_dir() and p.name != "lab")],
    ids=lambda p: p.name,
)
def test_no_sentence_of_a_finding_keeps_a_hole(place):
    for answer in diagnose_all(place):
        for finding in answer.findings:
            for e in finding.evidence:
                for lang in ("en", "zh"):
                    said_of = text_of(finding, e, lang)
                    assert not re.search(r"\{\w+\}", said_of), (finding.failure, said_of)
