"""Preflight on NumPy arrays: a sound batch passes, and every planted bug is caught by its own check and named."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from klinic.errors import BadUsage
from klinic.instrument import k3
from klinic.preflight import Batch, checks, preflight
from klinic.preflight._report import PreflightFailed
from klinic.render._layout import columns
from klinic.text import sentences

PAD, BOS, EOS = 0, 1, 2
PROMPTS, ANSWERS, CAP = (3, 5, 4, 5), (6, 3, 7, 5), 7  # the third is cut off by the cap
WIDTH = 5 + CAP


def sound(**changes):
    """Prompts padded on the left, responses on the right; as the first batch of a run."""
    rng = np.random.default_rng(0)
    ids = rng.integers(5, 50, (4, WIDTH))
    mask = np.zeros((4, WIDTH), int)
    for row, (prompt, answer) in enumerate(zip(PROMPTS, ANSWERS, strict=True)):
        ids[row, : 5 - prompt], ids[row, 5 + answer :], ids[row, 5 - prompt] = PAD, PAD, BOS
        mask[row, 5 : 5 + answer] = 1
        if answer < CAP:
            ids[row, 4 + answer] = EOS
    logp = -rng.random((4, WIDTH - 1))
    reference = logp + 1e-3 * rng.standard_normal(logp.shape)
    right = np.array([1, 0, 0, 1])
    fields = {
        "ids": ids,
        "mask": mask,
        "prompt_lengths": np.array(PROMPTS),
        "pad": PAD,
        "eos": EOS,
        "bos": BOS,
        "logp": logp,
        "old": logp + 1e-4,
        "reference": reference,
        "kl": k3(logp, reference, np.ones_like(logp)),
        "rewards": right + 0.2 * rng.random(4),
        "right": right,
        "advantages": right - 0.5,
        "ended": np.array([1, 1, 0, 1]),
        "sampled": ids[:, 5:],
        "policy_version": 3,
        "sampler_version": np.full(4, 3),
    }
    return Batch(**fields | changes)


def found(name, batch, **more):
    (result,) = preflight(batch, only=[name], **more).results
    return result


NUMPY = ("response-mask", "retokenisation", "kl-at-start", "negative-kl", "first-ratio", "reward-sign", "end-token",
         "policy-version", "library-versions", "doubled-bos")  # fmt: skip


def test_a_sound_batch_passes_and_says_what_was_not_handed_over():
    report = preflight(sound(), versions={"trl": "1.16.0"})
    assert {r.name for r in report.results if r.status == "passed"} == set(NUMPY), str(report)
    assert not report.failed and report.exit_code == 0
    by_name = {r.name: r for r in report.results}
    assert by_name["old-logprobs"].missing == ("model",)
    assert by_name["tokenizers"].missing == ("tokenizer", "reference_tokenizer")
    report.raise_if_failed()


def cell(name, row, column, value):
    array = np.array(getattr(sound(), name), float if name not in ("ids", "sampled") else int)
    array[row, column] = value
    return {name: array}


PLANTED = [
    ("response-mask", "prompt", {"mask": np.roll(sound().mask, -1, 1)}),
    ("response-mask", "late", {"mask": np.where(np.arange(WIDTH) == 5, 0, sound().mask)}),
    ("response-mask", "padding", {"mask": (np.arange(WIDTH) >= 5) * np.ones((4, 1), int)}),
    ("response-mask", "early", cell("mask", 2, slice(9, None), 0)),
    ("response-mask", "early", cell("mask", 2, -1, 0)),
    ("response-mask", "empty", cell("mask", 1, slice(None), 0)),
    ("response-mask", "not-binary", cell("mask", 1, 6, 0.5)),
    ("retokenisation", "not-sampled", cell("sampled", 1, 1, 49)),
    ("kl-at-start", "above", {"reference": sound().logp - 0.3}),
    ("kl-at-start", "above", {"reference": np.roll(sound().reference, 1, 0)}),
    ("kl-at-start", "nan", {"reference": sound().logp * np.nan}),
    ("negative-kl", "below", {"kl": sound().logp - sound().reference}),
    ("negative-kl", "nan", cell("kl", 0, 6, np.nan)),
    ("first-ratio", "off", {"old": sound().logp / 1.3}),
    ("first-ratio", "nan", cell("old", 0, 6, np.nan)),
    ("reward-sign", "wrong-way", {"rewards": -sound().rewards}),
    ("reward-sign", "wrong-way", {"rewards": np.ones(4)}),
    ("reward-sign", "advantages", {"advantages": 0.5 - sound().right}),
    ("reward-sign", "advantages", {"advantages": (0.5 - sound().right)[:, None] * np.ones((4, CAP))}),
    ("reward-sign", "not-finite", {"rewards": np.array([1, np.nan, 0, 1])}),
    ("end-token", "outside", {"mask": np.where(sound().ids == EOS, 0, sound().mask)}),
    ("end-token", "outside", {"mask": np.where(sound().ids == EOS, 0, sound().mask), "ended": None}),
    ("end-token", "said-cut", {"ended": np.zeros(4)}),
    ("policy-version", "differ", {"sampler_version": np.array([3, 3, 2, 3])}),
    ("policy-version", "differ", {"policy_version": "step-4", "sampler_version": "step-3"}),
    ("doubled-bos", "doubled", cell("ids", 1, 1, BOS)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "sentence", "changes"), PLANTED)
def test_a_planted_bug_is_caught(name, sentence, changes):
    result = found(name, sound(**changes))
    assert (result.status, result.sentence) == ("failed", sentence)
    for lang in ("en", "zh"):
        assert result.measured(lang) and result.todo(lang)
        assert not re.search(r"\{\w+\}", result.measured(lang) + result.todo(lang))


def test_what_looks_like_a_bug_and_is_none():
    tool = np.array(sound().mask)
    tool[2, 8] = 0  # a tool's token between two of the response
    assert found("response-mask", sound(mask=tool)).status == "passed"
    # The end token pads as well: only its first one is the response's own.
    ids = np.where(sound().ids == PAD, EOS, sound().ids)
    both = {"ids": ids, "pad": EOS, "ended": None, "sampled": None}
    assert not preflight(sound(**both)).failed
    short = np.where(sound().ids == EOS, 0, sound().mask)
    assert found("end-token", sound(mask=short, **both)).sentence == "outside"
    assert (
        found("response-mask", sound(**both, mask=np.arange(WIDTH) * np.ones((4, 1)) >= 5)).status
        == "failed"
    )
    # Every array as wide as ids.
    wide = np.pad(sound().logp, ((0, 0), (1, 0)))
    assert not preflight(sound(logp=wide, old=wide, reference=wide)).failed
    # Only the response's columns; what lies outside the mask is never read.
    narrow = np.where(sound().mask[:, 5:] == 1, sound().logp[:, 4:], np.nan)
    assert not preflight(sound(logp=narrow, old=narrow, reference=narrow, kl=narrow * 0)).failed


def test_without_ids_the_numbers_alone_are_checked():
    response = {
        n: np.array(getattr(sound(), n))[:, -CAP:]
        for n in ("mask", "logp", "old", "reference", "kl")
    }
    report = preflight(
        Batch(**response), skip=("library-versions",)
    )  # those of trainers that other tests import
    assert {r.name for r in report.results if r.status == "passed"} == {
        "kl-at-start",
        "negative-kl",
        "first-ratio",
    }
    response["old"] = response["old"] + 0.4
    assert [r.name for r in preflight(Batch(**response)).failed] == ["first-ratio"]


def test_what_cannot_be_judged_is_not_checked():
    assert preflight(Batch(), versions={}).exit_code == 3
    for name, changes in (
        ("reward-sign", {"right": np.ones(4)}),
        ("kl-at-start", {"step": 12}),
        ("negative-kl", {"kl_estimator": "k1"}),
        ("end-token", {"ids": np.where(sound().ids == EOS, 7, sound().ids), "ended": None}),
        ("response-mask", {"prompt_lengths": None, "pad": None}),
        ("doubled-bos", {"pad": BOS}),
    ):
        assert found(name, sound(**changes)).status == "not checked", name


@pytest.mark.parametrize(
    ("versions", "status", "sentence"),
    [
        ({"verl": "0.6.1"}, "failed", "known"),
        ({"trl": "0.15.2"}, "failed", "known"),
        ({"trl": "1.16.0"}, "passed", "minded"),
        ({"numpy": "2.0"}, "not checked", ""),
    ],
)
def test_versions_known_for_wrong_numbers(versions, status, sentence):
    result = found("library-versions", sound(), versions=versions)
    assert (result.status, result.sentence) == (status, sentence)
    if status == "failed":
        assert (
            next(iter(versions)) in result.measured("zh")
            and result.values["what"] in result.measured()
        )


@pytest.mark.parametrize(
    "changes",
    [
        {"rewards": np.ones(3)},
        {"rewards": np.ones((4, 1))},
        {"logp": np.zeros((4, WIDTH + 1))},
        {"logp": np.zeros((4, 3))},
        {"ids": [["a"]]},
        {"mask": [[1], [1, 2]]},
    ],
)
def test_shapes_that_do_not_fit_are_errors(changes):
    with pytest.raises(BadUsage):
        preflight(sound(**changes))


def test_a_check_that_crashes_fails_and_the_rest_runs():
    class Broken:
        eos_token_id, bos_token_id, pad_token_id = EOS, BOS, PAD

        def decode(self, ids, **_):
            raise RuntimeError("no such piece\nin the table")

    report = preflight(sound(sampled=None), tokenizer=Broken())
    assert [r.name for r in report.failed] == ["retokenisation"]
    assert "RuntimeError: no such piece" in report.text() and report.text("zh")
    with pytest.raises(PreflightFailed, match="retokenisation"):
        report.raise_if_failed()


def test_the_order_is_the_seeds_and_a_check_is_a_file():
    names = list(checks())
    assert names[:3] == ["response-mask", "tokenizers", "retokenisation"] and names[-1] == "overfit"
    assert set(NUMPY) <= set(names) and len({c.place for c in checks().values()}) == len(names)
    with pytest.raises(BadUsage, match="unknown check"):
        preflight(sound(), skip=["overfitt"])


def test_both_languages_say_the_same():
    en, zh = sentences("preflight", "en"), sentences("preflight", "zh")
    assert en.keys() == zh.keys()
    for key, text in en.items():
        holes = [
            sorted(set(re.findall(r"\{(\w+)\}", t.replace("_zh}", "}")))) for t in (text, zh[key])
        ]
        assert holes[0] == holes[1], key
    spoken = {key.partition(".")[0] for key in en if "." in key} - {"word"}
    assert spoken == set(checks())


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_report_fits_80_columns(lang):
    report = preflight(
        sound(mask=np.roll(sound().mask, 1, 1), rewards=-sound().rewards),
        versions={"verl": "0.6.1"},
    )
    lines = report.text(lang).splitlines()
    assert max(map(columns, lines)) <= 80 and "response-mask" in lines[-1] + lines[-2]
    assert "\x1b[31m" in report.text(lang, colour=True)


# The verb

SCRIPT = """
import numpy as np
from test_preflight import sound
from klinic.preflight import Batch

def good():
    return sound()

def turned():
    return sound(rewards=-sound().rewards), {"skip": ["doubled-bos"]}

def nothing():
    return Batch()

def none():
    return None

def wrong():
    return sound(), {"tokeniser": 1}

def raises():
    return 1 / 0
"""


def klinic(*arguments, cwd):
    source = Path(sys.modules["klinic"].__file__).parent.parent
    path = os.pathsep.join([str(source), str(Path(__file__).parent)])
    return subprocess.run([sys.executable, "-m", "klinic", *map(str, arguments)], capture_output=True, text=True, cwd=cwd,
                          env={**os.environ, "PYTHONPATH": path, "KLINIC_LANG": "en"})  # fmt: skip


@pytest.mark.parametrize(
    ("target", "code", "told"),
    [
        ("train:good", 0, "preflight: 9 passed, 0 failed"),
        ("train.py:good", 0, "preflight: 9 passed, 0 failed"),
        ("train:turned", 1, "mend reward-sign first"),
        ("train:nothing", 3, "preflight: 0 passed"),
        ("train:none", 2, "it returned NoneType, no Batch"),
        ("train:wrong", 2, "did you mean tokenizer?"),
        ("train:raises", 2, "your function raised ZeroDivisionError"),
        ("train:goood", 2, "there is no function 'goood'"),
        ("trian:good", 2, "it cannot be imported (ModuleNotFoundError"),
        ("train", 2, "cannot understand 'train'"),
    ],
)
def test_the_verb_calls_a_function(tmp_path, target, code, told):
    (tmp_path / "train.py").write_text(SCRIPT)
    done = klinic("preflight", target, cwd=tmp_path)
    assert (done.returncode, "Traceback" in done.stderr) == (code, False), done.stderr
    assert told in done.stdout + done.stderr
    assert (done.stdout == "") == (code == 2)


def test_the_verb_reads_a_file(tmp_path):
    given = {f.name: getattr(sound(), f.name) for f in dataclasses.fields(Batch)}
    arrays = {name: np.asarray(value) for name, value in given.items() if value is not None}
    np.savez(tmp_path / "batch.npz", **arrays)
    done = klinic("preflight", "--batch", "batch.npz", "--format", "json", cwd=tmp_path)
    document = json.loads(done.stdout)
    assert done.returncode == 0 and document["status"] == "passed"
    assert [c["name"] for c in document["checks"]] == list(checks())
    np.savez(tmp_path / "odd.npz", **arrays, reward=arrays["rewards"])
    (tmp_path / "broken.npz").write_bytes(b"PK\x03\x04 no zip")
    for name, told in (
        ("odd.npz", "did you mean rewards?"),
        ("broken.npz", "cannot be read"),
        ("none.npz", "no such file"),
        ("b.csv", "unknown format"),
    ):
        done = klinic("preflight", "--batch", name, cwd=tmp_path)
        assert done.returncode == 2 and told in done.stderr and "Traceback" not in done.stderr
    assert klinic("preflight", cwd=tmp_path).returncode == 2
