"""The course: the exercises of ``klinic course`` with their curves drawn; progress is that of the terminal."""

from __future__ import annotations

import copy
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from klinic.course import answering, quiz
from klinic.course.answers import letters
from klinic.course.desk import Desk
from klinic.course.look import TABLE
from klinic.course.plan import PARTS, following, ids, task, tasks
from klinic.course.progress import Progress, default_place, load, store
from klinic.course.scenes import Log, log
from klinic.course.words import has, hints, tell
from klinic.errors import KlinicError
from klinic.render.sparkline import RATIOS
from klinic.said import said
from klinic.serve.page import language, page
from klinic.serve.plots import Line, plot
from klinic.serve.shown import title
from klinic.text import say_in
from klinic.vitals import VITALS

PAGES = 4  # of the introduction
LEAST = 0.2  # span of a ratio's axis: less is drawn as the flat line it is (our choice)
_lock = threading.Lock()


class WebDesk(Desk):
    """A learner at a page: nothing is typed, so nothing is said of typing."""

    def type(self, *commands: str) -> str:
        """Buttons stand for it."""
        return ""

    def answer_example(self) -> str:
        """A form stands for it."""
        return ""


def _place(request: Request) -> Path:
    return request.app.state.progress or default_place()


def _desk(request: Request, name: str | None, turn: int | None) -> WebDesk:
    """The learner's desk at one exercise; nothing is written."""
    progress, _ = load(_place(request))
    progress.turn = turn or progress.turn
    progress.at = name or progress.at
    return WebDesk(progress, _place(request), language(request))


def _turn(request: Request) -> int | None:
    asked = request.query_params.get("round", "")
    return int(asked) if asked in ("1", "2") else None


async def course(request: Request) -> Response:
    """Every exercise of a round, done or not."""
    desk = _desk(request, None, _turn(request))
    turn, lang = desk.progress.turn, desk.lang
    parts = [
        {
            "title": tell(f"part.{part}", lang),
            "goal": tell(f"goals.learn.{part}", lang),
            "tasks": [_entry(desk, one.id, lang) for one in tasks(turn) if one.part == part],
        }
        for part in PARTS
    ]
    return page(
        request,
        "course.html",
        parts=parts,
        turn=turn,
        rounds={one: tell(f"goals.round{one}", lang) for one in (1, 2)},
    )


def _entry(desk: Desk, name: str, lang: str) -> dict[str, Any]:
    key = desk.progress.key(name)
    return {
        "id": name,
        "title": tell(f"title.{name}", lang),
        "done": desk.progress.done.get(key, False),
        "tried": bool(desk.progress.tries.get(key)),
    }


async def exercise(request: Request) -> Response:
    """One exercise; hints and verdict follow from what the learner has done so far."""
    name, turn = request.path_params["task"], _turn(request)
    if name not in ids():
        raise HTTPException(404)
    if turn == 2 and name not in [one.id for one in tasks(2)]:
        turn = 1  # questions are asked in round one only
    desk = _desk(request, name, turn)
    if name not in [one.id for one in tasks(desk.progress.turn)]:
        desk.progress.turn = 1
    values = await run_in_threadpool(_values, desk)
    return page(request, "exercise.html", **values)


def _values(desk: WebDesk) -> dict[str, Any]:
    progress, lang, one = desk.progress, desk.lang, desk.task
    then = following(progress.turn, progress.at, progress.done)
    values: dict[str, Any] = {
        "kind": one.kind,
        "id": one.id,
        "turn": progress.turn,
        "title": desk.say(f"title.{one.id}"),
        "done": desk.done,
        "then": then.id if then else None,
        "logs": [],
        "plots": [],
        "options": [],
        "several": desk.several,
        "note": "",
        "ask": "",
        "pages": [],
        "hints": [],
        "more_hints": False,
        "verdict": "",
        "failed": False,
        "tool": "",
        "choices": [],
        "mind": [],
        "tried": (progress.tries.get(progress.key()) or [""])[-1].split(),
        "samples": [],
    }
    if one.kind == "lab":
        return values
    if one.kind == "read":
        values["pages"] = [blocks(tell(f"page.{i}", lang)) for i in range(1, PAGES + 1)]
        values["plots"] = _plots([log("healthy", 1)], lang)
        return values
    known = hints(desk.about("real_hints"), lang) if progress.turn == 2 else []
    known = known or hints(desk.about("hints"), lang)
    taken = min(progress.hints.get(progress.key(), 0), len(known))
    values |= {"hints": known[:taken], "more_hints": taken < len(known)}
    if one.kind == "quiz":
        values["ask"] = desk.say(f"quiz.{one.number}.ask")
        values["options"] = [
            {"letter": letter, "text": desk.say(f"quiz.{one.number}.option.{letter}")}
            for letter in quiz.options(one.number, lang)
        ]
    else:
        logs = desk.logs()
        real = any(not found.drawn for found in logs)
        asked = desk.about("real_ask" if real and has(desk.about("real_ask"), lang) else "ask")
        values |= {
            "ask": say_in("serve", "course.scene", lang)
            if asked == "task.scene.ask"  # which says what to type
            else desk.say(asked),
            "note": say_in("serve", "course.real" if real else "course.drawn", lang),
            "logs": [found.name for found in logs],
            "plots": _plots(logs, lang),
            "samples": [(found.name, found.samples) for found in logs if found.samples],
            "choices": _choices(lang),
            # In every scene, or the choice itself would tell which one is healthy.
            "mind": list(VITALS) if one.kind == "scene" else [],
        }
    if values["tried"]:
        values |= _judged(desk, values["tried"])
    return values


def blocks(text: str) -> list[tuple[str, bool]]:
    """Paragraphs and tables (True) of a page; what it says of the terminal's commands is left out."""
    found = []
    for block in text.strip("\n").split("\n\n"):
        lines = [line for line in block.split("\n") if not line.startswith(("(", "（"))]
        table = any("   " in line for line in lines)
        found.append(("\n".join(lines) if table else " ".join(lines), table))
    return found


def _choices(lang: str) -> list[tuple[str, str]]:
    healthy = tell("words.healthy", lang)
    return [
        (slug, healthy if slug == "healthy" else title(slug, lang)) for slug in letters().values()
    ]


def _judged(desk: WebDesk, tried: Sequence[str]) -> dict[str, Any]:
    """What is said of the last answer, and klinic's own view; nothing is kept of asking again."""
    again = WebDesk(copy.deepcopy(desk.progress), desk.place, desk.lang)
    told = answering.answer(again, tried).strip()
    tool = answering.diagnose(again, []).strip() if desk.task.kind in ("pair", "scene") else ""
    return {"verdict": told, "failed": again.failed, "tool": tool, "done": desk.done}


def _plots(logs: Sequence[Log], lang: str) -> list[dict[str, Any]]:
    """One box a curve, the logs of a pair in the same one."""
    made = []
    for key in TABLE:
        lines = [
            Line(one.name, [int(row["step"]) for row in one.rows if key in row], one.column(key))
            for one in logs
            if key in one.keys
        ]
        drawn = plot(lines, least=LEAST if key in RATIOS else 0.0) if lines else None
        if drawn is not None:
            made.append({"title": key, "plot": drawn})
    return made


async def act(request: Request) -> Response:
    """A hint, an answer, a page read, or all forgotten; then the same page again."""
    name, form = request.path_params["task"], await request.form()
    if name not in ids():
        raise HTTPException(404)
    turn = 2 if form.get("round") == "2" else 1
    given = [str(word) for word in form.getlist("answer") if word]
    mind = [str(word) for word in form.getlist("mind") if word]
    wrong = await run_in_threadpool(_act, request, name, turn, str(form.get("do")), given, mind)
    if wrong:
        return page(request, "trouble.html", 400, what=wrong)
    if form.get("do") == "forget":
        return RedirectResponse("/course", 303)
    return RedirectResponse(f"/course/{name}?round={turn}#said", 303)


def _act(
    request: Request, name: str, turn: int, do: str, given: Sequence[str], mind: Sequence[str]
) -> str:
    """Carry it out and keep it; what is wrong with it, or nothing."""
    with _lock:
        desk = _desk(request, name, turn)
        progress = desk.progress
        progress.seen[progress.key()] = True
        try:
            if do == "hint":
                progress.hints[progress.key()] = progress.hints.get(progress.key(), 0) + 1
            elif do == "read" and task(name).kind == "read":
                progress.done[progress.key()] = True
                progress.seen |= {f"page/{i}": True for i in range(1, PAGES + 1)}
            elif do == "answer" and task(name).kind in ("pair", "scene", "quiz"):
                minded = task(name).kind == "scene" and desk.logs()[0].mind
                answering.answer(desk, [*given, *mind] if minded else given)
            elif do == "forget":
                desk.progress = Progress()
            store(desk.progress, desk.place)
        except KlinicError as trouble:
            return said(trouble.what, desk.lang)
    return ""


routes = [
    Route("/course", course),
    Route("/course/{task}", exercise, methods=["GET"]),
    Route("/course/{task}", act, methods=["POST"]),
]
