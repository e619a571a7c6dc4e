"""Names of fields and metrics as people type them, or nearly."""

from __future__ import annotations

import difflib
from collections.abc import Collection

from bbrlab.base.errors import UserError


def resolve(option: str, word: str, names: Collection[str], others: str = "") -> str:
    """The name that a word stands for: itself, or the one that ends with it (``bdp`` for ``network.buffer.bdp``).

    UserError with what may have been meant.

    Args:
        option: that the word was given to, for the message.
        others: where they are listed, or what they are, for the message.
    """
    if word in names:
        return word
    ends = [name for name in names if name.endswith(f".{word}")]
    if len(ends) == 1:
        return ends[0]
    if ends:
        raise UserError(f"{option} {word}: may be {' or '.join(ends)}; give more of it")
    by_end = {name.rsplit(".", 1)[-1]: name for name in names}
    begun = sorted(
        (name for name in by_end if name.startswith(f"{word}_")), key=lambda name: ("mean" not in name, len(name))
    )
    close = begun[:3] or difflib.get_close_matches(word, [*names, *by_end], 3)
    meant = f", did you mean {' or '.join(dict.fromkeys(close))}?" if close else ""
    raise UserError(f"{option} {word}: there is no such field{meant}{f' ({others})' if others else ''}")
