"""Chat messages as text."""

from __future__ import annotations

from typing import Any


def text(value: Any) -> str:
    """A prompt or a completion as it reads: a text itself, one message its content, several one a line under their roles."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, dict):
        return _content(value)
    if isinstance(value, list | tuple):
        if len(value) == 1:
            return text(value[0])
        return "\n".join(
            f"{role}: {_content(part)}"
            if isinstance(part, dict) and (role := _role(part))
            else text(part)
            for part in value
        )
    return str(value)


def split(messages: list[Any]) -> tuple[str, str]:
    """The prompt, up to the first turn of the policy, and what follows."""
    for i, message in enumerate(messages):
        if isinstance(message, dict) and _role(message) in {"assistant", "gpt", "model", "policy"}:
            return text(messages[:i]), text(messages[i:])
    return text(messages), ""


def _role(message: dict[str, Any]) -> str:
    role = message.get("role", message.get("from", ""))
    return role if isinstance(role, str) else ""


def _content(message: dict[str, Any]) -> str:
    content = message.get("content", message.get("value", message.get("text", "")))
    if isinstance(content, list):
        content = "".join(
            part if isinstance(part, str) else str(part.get("text", ""))
            for part in content
            if isinstance(part, str | dict)
        )
    spoken = "" if content is None else str(content)
    thought = message.get("reasoning_content")
    calls = message.get("tool_calls")
    if isinstance(thought, str) and thought:
        spoken = f"<think>{thought}</think>{spoken}"
    if isinstance(calls, list) and calls:
        spoken += "".join(f"\n<tool_call>{_call(call)}</tool_call>" for call in calls)
    return spoken


def _call(call: Any) -> str:
    inner = call.get("function", call) if isinstance(call, dict) else call
    if isinstance(inner, dict) and "name" in inner:
        return f"{inner['name']}({inner.get('arguments', '')})"
    return str(inner)
