"""The page is the explanation, the documentation and the test."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from blocks import blocks_in, blocks_of, complaints

import klinic.failures as failures
from klinic.failures import cards
from klinic.text import LANGUAGES, body, common, page

FOLDER = Path(failures.__file__).parent
STEMS = sorted(card.stem for card in cards().values())
SLUGS = sorted(cards())
SEEDS = range(5)
HEADINGS = 7


def page_blocks():
    for stem in STEMS:
        for i, block in enumerate(blocks_in(FOLDER / f"{stem}.en.md")):
            yield pytest.param(block, id=f"{stem}-{i}")
    for i, block in enumerate(blocks_in(Path(__file__).parent / "field_guide.md")):
        yield pytest.param(block, id=f"field-guide-{i}")


@pytest.mark.parametrize("block", list(page_blocks()))
def test_every_block_holds_on_five_seeds(block):
    assert block.expects
    wrong = {seed: found for seed in SEEDS if (found := complaints(block, seed))}
    assert not wrong, f"{wrong}\n{block.text}"


@pytest.mark.parametrize("slug", SLUGS)
def test_the_two_languages_show_the_same_blocks_and_sentences(slug):
    en, zh = (page(slug, lang) for lang in LANGUAGES)
    assert [b.text for b in blocks_of(body(slug, "en"))] == [
        b.text for b in blocks_of(body(slug, "zh"))
    ]
    assert en.sentences.keys() == zh.sentences.keys()
    for key, sentence in en.sentences.items():
        assert set(re.findall(r"\{(\w+)\}", sentence)) == set(
            re.findall(r"\{(\w+)\}", zh.sentences[key])
        ), key
    for lang in LANGUAGES:
        assert ("\n" + body(slug, lang)).count("\n## ") == HEADINGS
    assert en.title and zh.title and en.summary and zh.summary and en.summary != zh.summary


def sentence_keys(path: Path) -> set[str]:
    """Literal keys handed to seen() and Evidence(), conditional ones included."""
    keys: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("seen", "Evidence"):
            at = 3 if node.func.id == "seen" else 2
            if len(node.args) > at:
                keys |= {
                    leaf.value
                    for leaf in ast.walk(node.args[at])
                    if isinstance(leaf, ast.Constant)
                    and isinstance(leaf.value, str)
                    and re.fullmatch(r"[a-z]+(-[a-z]+)*", leaf.value)
                    and not _inside_test(node.args[at], leaf)
                }
    return keys


def _inside_test(expression: ast.expr, leaf: ast.Constant) -> bool:
    inside = [n.test for n in ast.walk(expression) if isinstance(n, ast.IfExp)] + [
        n for n in ast.walk(expression) if isinstance(n, ast.JoinedStr | ast.Call)
    ]
    return any(leaf in ast.walk(part) for part in inside)


@pytest.mark.parametrize("stem", STEMS)
def test_every_sentence_of_the_code_stands_in_the_page(stem):
    slug = stem.replace("_", "-")
    missing = sentence_keys(FOLDER / f"{stem}.py") - page(slug, "en").sentences.keys()
    assert not missing


def test_common_sentences_exist_in_both_languages_with_the_same_placeholders():
    en, zh = common("en"), common("zh")
    assert en.keys() == zh.keys()
    for key, sentence in en.items():
        assert set(re.findall(r"\{(\w+)\}", sentence)) == set(re.findall(r"\{(\w+)\}", zh[key])), (
            key
        )


def test_every_action_has_a_reason_in_words():
    wanted = {f"action.{t.knob}" for card in cards().values() for t in card.treatments}
    assert wanted <= common("en").keys()


def test_what_a_failure_explains_exists():
    for card in cards().values():
        assert set(card.explains) <= cards().keys() - {card.slug}, card.slug
