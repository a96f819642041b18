"""The JSON Schema of one answer; a test holds every answer against it."""

from __future__ import annotations

from typing import Any

_TEXT: dict[str, Any] = {"type": "string"}
_MAYBE_TEXT: dict[str, Any] = {"type": ["string", "null"]}
_MAYBE_NUMBER: dict[str, Any] = {"type": ["number", "null"]}
_STEP: dict[str, Any] = {"type": "integer"}


def _object(required: str, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required.split(), "properties": properties}


def _choice(*words: str | None) -> dict[str, Any]:
    return {"enum": list(words)}


def _maybe(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "null"}]}


def _list(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": schema}


_ONSET = _object("step low high", step=_STEP, low=_STEP, high=_STEP)
_SEVERITY = _choice("stop", "act", "caution", None)
_CONFIDENCE = _choice("certain", "likely", "possible", None)
_EVIDENCE = _object(
    "metric says shape before after onset sentence values text",
    metric=_TEXT,
    says=_choice("for", "against"),
    shape=_choice("flat", "rises", "falls", "surges", "plunges", "drifts", "levels off", "noisy"),
    before=_MAYBE_NUMBER,
    after=_MAYBE_NUMBER,
    onset={"type": ["integer", "null"]},
    sentence=_TEXT,
    values={"type": "object"},
    text=_TEXT,
)
_FINDING = _object(
    "failure stage status severity confidence onset because_of slice evidence missing",
    failure=_TEXT,
    stage=_choice("implementation", "data", "scale", "step", "reward", "outcome", "benign"),
    status=_choice("present", "consequence", "ruled_out", "not_checked", "benign"),
    severity=_SEVERITY,
    confidence=_CONFIDENCE,
    onset=_maybe(_ONSET),
    because_of=_MAYBE_TEXT,
    slice=_MAYBE_TEXT,
    side=_choice("rollout", "train", "host", None),
    evidence=_list(_EVIDENCE),
    missing=_list(_object("metric how_to_log", metric=_TEXT, how_to_log=_TEXT)),
    crashed=_TEXT,
)
_ACTION = _object(
    "kind knob flag old new command restart why",
    kind=_choice("set", "fix-reward", "fix-code", "change-data", "inspect"),
    knob=_TEXT,
    flag=_MAYBE_TEXT,
    command=_MAYBE_TEXT,
    restart=_choice("must", "may", "no"),
    why=_TEXT,
)
_METRIC = _object(
    "name source_key unit definition count conversion derived_from",
    name=_TEXT,
    source_key=_TEXT,
    unit=_TEXT,
    definition=_TEXT,
    count=_STEP,
    conversion=_MAYBE_TEXT,
    derived_from={"type": ["array", "null"]},
)
_ANSWER = _object(
    "schema_version klinic_version lang run status failure confidence severity onset first_mover restart findings first_action then roll_back_to smoke notes",
    schema_version={"const": 1},
    klinic_version=_TEXT,
    lang=_choice("en", "zh"),
    run=_object(
        "name trainer steps sources metrics unread_keys segments",
        name=_TEXT,
        trainer=_TEXT,
        steps=_object("first last logged", first=_STEP, last=_STEP, logged=_STEP),
        sources=_list(_TEXT),
        metrics=_list(_METRIC),
        unread_keys=_list(_TEXT),
        segments=_list(_object("first last", first=_STEP, last=_STEP)),
    ),
    status=_choice("failing", "caution", "healthy", "unclear"),
    failure=_MAYBE_TEXT,
    confidence=_CONFIDENCE,
    confidence_hit_rate=_maybe(
        _object(
            "share groups runs",
            share={"type": "number"},
            groups={"type": "integer"},
            runs={"type": "integer"},
        )
    ),
    severity=_SEVERITY,
    onset=_maybe(_ONSET),
    first_mover=_MAYBE_TEXT,
    restart=_choice("must", "may", "no"),
    findings=_list(_FINDING),
    first_action=_maybe(_ACTION),
    then=_list(_ACTION),
    roll_back_to=_maybe(
        _object(
            "step checkpoint path exists complete",
            step=_STEP,
            checkpoint=_TEXT,
            path=_TEXT,
            exists={"type": "boolean"},
            complete={"type": "boolean"},
        )
    ),
    smoke=_maybe(
        _object("steps control better_if", steps=_STEP, control=_TEXT, better_if=_list(_TEXT))
    ),
    notes=_list(_object("metric text", metric=_MAYBE_TEXT, text=_TEXT)),
)
_ERROR = _object("error", error=_object("what where hint", what=_TEXT, where=_TEXT, hint=_TEXT))

SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "klinic diagnose --format json",
    "anyOf": [
        _ANSWER,
        _object("schema_version runs", schema_version={"const": 1}, runs=_list(_ANSWER)),
        _ERROR,
    ],
}
