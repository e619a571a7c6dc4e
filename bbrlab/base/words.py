"""Numbers and names as text of sentences."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence

NAMED = 6  # of many names


def number_of(count: int, thing: str, more: str = "") -> str:
    """1 run, 1,200 runs; ``more``: the plural where it is not the singular with an s."""
    return f"{count:,} {thing if count == 1 else more or f'{thing}s'}"


def in_short(names: Sequence[str], named: int = NAMED) -> str:
    """Names with commas; of more than so many the first ones, and how many more there are."""
    more = f" and {len(names) - named} more" if len(names) > named else ""
    return ", ".join(names[:named]) + more


# What a terminal obeys, or what makes text look like another one: control characters but new line and tab, the marks that
# turn the direction of writing, and bytes of a name that are no text (lone surrogates).
_NOT_SHOWN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def shown(text: str) -> str:
    """A text as a terminal may have it: what it would obey stands there as its code (``\\x1b``).

    Names of files come from bytes; where the locale cannot read them (LC_ALL=POSIX), they are read as UTF-8.
    """
    if not _NOT_SHOWN.search(text):
        return text
    with contextlib.suppress(UnicodeEncodeError):  # other halves of a letter are no bytes
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return _NOT_SHOWN.sub(lambda found: ascii(found.group()).strip("'"), text)
