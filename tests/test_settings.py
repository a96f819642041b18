"""klinic.toml: found upwards, checked, and obeyed; thresholds belong to one diagnosis and leave the others alone."""

import subprocess
import sys
from pathlib import Path

import pytest

from klinic import diagnose
from klinic.errors import BadUsage
from klinic.failures import cards
from klinic.settings import Settings, settings
from klinic.thresholds import chosen_cards, thresholds

DEMO = Path(__file__).parent.parent / "src/klinic/demo/trl-entropy-collapse"


def klinic(*arguments, folder):
    return subprocess.run(
        [sys.executable, "-m", "klinic", *arguments], cwd=folder, capture_output=True, text=True
    )


def test_nearest_file_upwards_wins(tmp_path):
    (tmp_path / "klinic.toml").write_text('lang = "zh"\n[thresholds.nan]\n')
    inner = tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    assert settings(inner).lang == "zh"
    (tmp_path / "a" / "pyproject.toml").write_text('[tool.klinic]\nfail_on = "stop"\n')
    settings.cache_clear()
    found = settings(inner)
    assert (found.lang, found.fail_on) == (None, "stop")
    assert found.where.endswith("pyproject.toml")


def test_a_foreign_pyproject_is_passed_by(tmp_path):
    (tmp_path / "klinic.toml").write_text('lang = "en"\n')
    inner = tmp_path / "a"
    inner.mkdir()
    (inner / "pyproject.toml").write_text("[project]\n")
    assert settings(inner).lang == "en"


def test_no_file_no_change(tmp_path):
    assert settings(tmp_path) == Settings()


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ('langu = "zh"', "did you mean lang?"),
        ('lang = "fr"', "README"),
        ("x = [", "mend the file"),
        ('[thresholds.kl-runaway]\nsurge = "high"', "README"),
    ],
)
def test_a_wrong_file_is_one_clear_error(tmp_path, text, hint):
    (tmp_path / "klinic.toml").write_text(text)
    done = klinic("diagnose", str(DEMO), folder=tmp_path)
    assert done.returncode == 2
    assert "klinic.toml" in done.stderr and hint in done.stderr
    assert "Traceback" not in done.stderr


def test_unknown_threshold_is_answered_with_the_nearest():
    with pytest.raises(BadUsage) as trouble:
        chosen_cards({"kl-runaway": {"surg": 8}})
    assert trouble.value.hint == "did you mean surge?"
    with pytest.raises(BadUsage) as trouble:
        chosen_cards({"kl-runawy": {}})
    assert trouble.value.hint == "did you mean kl-runaway?"


def test_every_failure_lists_numbers_only():
    for slug in cards():
        for name, value in thresholds(slug).items():
            assert name == name.lower() and isinstance(value, int | float)


def test_thresholds_change_one_diagnosis_and_no_other():
    assert diagnose(DEMO).main.failure == "entropy-collapse"
    names = thresholds("entropy-collapse")
    never = {"entropy-collapse": dict.fromkeys(names, 0.0)}
    assert all(
        f.status != "present"
        for f in diagnose(DEMO, thresholds=never).findings
        if f.failure == "entropy-collapse"
    )
    assert diagnose(DEMO).main.failure == "entropy-collapse"


def test_the_command_line_obeys(tmp_path):
    before = klinic("diagnose", str(DEMO), folder=tmp_path)
    assert before.returncode == 1
    (tmp_path / "klinic.toml").write_text('lang = "zh"\nskip = ["entropy-collapse"]\n')
    after = klinic("diagnose", str(DEMO), folder=tmp_path)
    assert "entropy-collapse  " not in after.stdout.splitlines()[0]
    assert "支持" in after.stdout
    listed = klinic("explain", "entropy-collapse", "--thresholds", folder=tmp_path)
    assert "[thresholds.entropy-collapse]" in listed.stdout
