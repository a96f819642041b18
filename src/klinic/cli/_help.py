"""``--help`` in Chinese: click's own pages with their sentences looked up in ``zh.toml`` beside this file."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import click

from klinic.compiled import parsed
from klinic.render._layout import columns, pad, wrap

FIRST_COLUMN = 30  # columns, as click has it


@cache
def sentences() -> dict[str, str]:
    """Chinese sentences by the English ones, white space between words as one blank."""
    return dict(parsed(Path(__file__).with_name("zh.toml")))


def chinese(text: str) -> str:
    """A sentence of --help in Chinese; one that is not known stays as it is."""
    return sentences().get(" ".join(text.replace("\b", "").split()), text)


class ChineseHelp(click.HelpFormatter):
    """Writes usage, headings and help texts in Chinese, wrapped by columns on the screen."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        """The first line."""
        super().write_usage(prog, args, chinese("Usage: "))

    def write_text(self, text: str) -> None:
        """A help text, paragraph by paragraph."""
        blank = " " * self.current_indent
        for i, paragraph in enumerate(text.split("\n\n")):
            self.write(("\n" if i else "") + wrap(chinese(paragraph), blank, blank) + "\n")

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        """A heading and what stands under it."""
        with super().section(chinese(name)):
            yield

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = FIRST_COLUMN, col_spacing: int = 2
    ) -> None:
        """Options or verbs with their help."""
        rows = list(rows)
        width = min(col_max, max(columns(first) for first, _ in rows)) + col_spacing
        blank = " " * self.current_indent
        for first, second in rows:
            said, bracket, extra = second.partition("  [")
            said = chinese(said) + bracket + chinese(extra)
            if columns(first) + col_spacing > width:
                self.write(f"{blank}{first}\n")
                first = ""
            lead = blank + pad(first, width)
            self.write(wrap(said, lead, blank + " " * width) + "\n")
