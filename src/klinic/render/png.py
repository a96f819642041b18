"""The eight curves as a PNG: fixed order, reward beside acc, the ratio's line at 1, the onset shaded through all."""

from __future__ import annotations

import io
import itertools
from typing import Any

import numpy as np

from klinic.diagnosis import Diagnosis
from klinic.render import _words as words
from klinic.render._layout import wrap
from klinic.render._vitals import absent, player
from klinic.text import say
from klinic.vitals import ROLES, VITALS

POINTS = 2000  # drawn points a curve; more are drawn as their bins' medians, lowest and highest
LINE, FAINT, SICK, GREY = "#1f5fa8", "#b9cbe0", "#c0392b", "#8a8a8a"


def render(answer: Diagnosis, lang: str) -> bytes:
    """PNG bytes of one run's eight panels."""
    import matplotlib

    matplotlib.use("Agg")
    import logging

    import matplotlib.pyplot as plt

    logging.getLogger("matplotlib.font_manager").setLevel(logging.ERROR)
    lang = drawable(lang)
    figure, axes = plt.subplots(2, 4, figsize=(17, 7.2), sharex=True)
    for axis, role in zip(axes.flat, VITALS, strict=True):
        _panel(axis, answer, role, lang)
    main = answer.main
    status = say(f"status.{answer.status}", lang)
    head = (
        f"{answer.run.name}   {status}"
        if main is None
        else f"{answer.run.name}   {words.title(main.failure, lang)} ({main.failure})   {words.since(main, lang)}   {say(f'severity.{main.severity}', lang)}"
    )
    figure.suptitle(
        head, fontsize=13, x=0.01, ha="left", color=SICK if answer.status == "failing" else "black"
    )
    figure.tight_layout(rect=(0, 0, 1, 0.96))
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=100)
    plt.close(figure)
    return out.getvalue()


def drawable(lang: str) -> str:
    """Chinese needs a font that has it; without one the picture is in English rather than in empty boxes."""
    if lang != "zh":
        return lang
    import matplotlib
    from matplotlib import font_manager

    have = {font.name for font in font_manager.fontManager.ttflist}
    fonts = [
        name
        for name in (
            "Noto Sans CJK SC",
            "Noto Sans CJK JP",
            "Source Han Sans SC",
            "WenQuanYi Zen Hei",
            "WenQuanYi Micro Hei",
            "SimHei",
            "Microsoft YaHei",
            "PingFang SC",
        )
        if name in have
    ]
    if not fonts:
        return "en"
    matplotlib.rcParams["font.sans-serif"] = [*fonts, "DejaVu Sans"]
    matplotlib.rcParams["axes.unicode_minus"] = False
    return lang


def _panel(axis: Any, answer: Diagnosis, role: str, lang: str) -> None:
    run = answer.run
    shown, name = player(run, role)
    axis.grid(alpha=0.25)
    axis.tick_params(labelsize=8)
    if name is None:
        _empty(axis, answer, role, lang)
        return
    curve = run.curves[name]
    finite = np.isfinite(curve.values)
    steps, values = curve.steps[finite], curve.values[finite]
    if len(values) > POINTS:
        edges = np.linspace(0, len(values), POINTS // 2 + 1).astype(int)
        starts = edges[:-1]
        axis.fill_between(
            steps[starts],
            np.minimum.reduceat(values, starts),
            np.maximum.reduceat(values, starts),
            color=FAINT,
            linewidth=0,
        )
        axis.plot(
            steps[starts],
            [float(np.median(values[a:b])) for a, b in itertools.pairwise(edges)],
            color=LINE,
            linewidth=1.2,
        )
    else:
        axis.plot(
            steps,
            values,
            color=LINE,
            linewidth=1.2,
            marker="o" if len(values) < 12 else None,
            markersize=3,
        )
    if len(curve.nonfinite_steps):
        axis.plot(
            curve.nonfinite_steps,
            np.full(len(curve.nonfinite_steps), axis.get_ylim()[0]),
            "x",
            color=SICK,
            markersize=4,
        )
    stands_in = shown != role
    label = (
        f"{ROLES[shown].says('title', lang)}"
        if stands_in
        else role
        if lang == "en"
        else f"{role}  {ROLES[role].says('title', lang)}"
    )
    axis.set_title(label, fontsize=10, loc="left", style="italic" if stands_in else "normal")
    axis.text(
        1.0,
        1.01,
        _shortened(curve.metric.source_key),
        transform=axis.transAxes,
        ha="right",
        va="bottom",
        fontsize=7,
        color=GREY,
    )
    if shown == "ratio_mean":
        axis.axhline(1.0, color=SICK, linestyle="--", linewidth=0.8)
        low, high = axis.get_ylim()
        axis.set_ylim(min(low, 0.95), max(high, 1.05))
    _onset(axis, answer)


def _shortened(key: str, most: int = 26) -> str:
    """The end of a long key: it must not run into the title."""
    return key if len(key) <= most else "…" + key[-most:]


def _empty(axis: Any, answer: Diagnosis, role: str, lang: str) -> None:
    axis.set_facecolor("#eeeeee")
    axis.set_title(
        role if lang == "en" else f"{role}  {ROLES[role].says('title', lang)}",
        fontsize=10,
        loc="left",
        color=GREY,
    )
    axis.text(
        0.5,
        0.5,
        "\n".join(wrap(line, width=36) for line in absent(answer, role, lang)),
        transform=axis.transAxes,
        ha="center",
        va="center",
        fontsize=8,
        color="#555555",
    )
    axis.set_yticks([])
    _onset(axis, answer)


def _onset(axis: Any, answer: Diagnosis) -> None:
    main = answer.main
    if main is None or main.onset is None:
        return
    axis.axvspan(
        main.onset.low,
        max(main.onset.high, main.onset.low + 0.2),
        color=SICK,
        alpha=0.18,
        linewidth=0,
    )
    axis.axvline(main.onset.step, color=SICK, linewidth=0.8)
