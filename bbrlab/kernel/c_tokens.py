"""The tokens of a C file, without comments and insignificant white space, by which kernels have their keys."""

from __future__ import annotations

import re
from collections.abc import Iterator

# C11, section 6.4, in the order in which a compiler tries them. What begins a comment within a string, a character or the name of an
# included file begins none.
_TOKEN = re.compile(
    r"""
      (?P<space> (?: [^\S\n] | //[^\n]* | /\*.*?\*/ )+ )
    | (?P<newline> \n )
    | (?P<include> \# [^\S\n]* include [^\S\n]* <[^>\n]*> )
    | (?P<quoted> (?:u8|[LuU])? (?: "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' ) )
    | (?P<word> [A-Za-z_$]\w* )
    | (?P<number> \.?\d (?: [eEpP][+-] | [\w.] )* )
    | (?P<sign> >>= | <<= | \.\.\. | -> | \+\+ | -- | << | >> | <= | >= | == | != | && | \|\| | [-+*/%&^|]= | \#\# | . )
    """,
    re.VERBOSE | re.DOTALL,
)


def tokens(text: str) -> list[str]:
    r"""The tokens of a C file. Files with the same ones are compiled to the same, but for the numbers of their lines.

    White space counts in two places: the end of a directive is the token ``\n``, and the name of a macro whose parameters follow at
    once ends in ``(``. In what ``#`` makes a string of it does not count.
    """
    spliced = re.sub(r"\\[^\S\n]*\n", "", text.replace("\r\n", "\n"))
    return list(_tokens(spliced + "\n"))


def _tokens(text: str) -> Iterator[str]:
    line: list[str] = []  # the tokens of this line
    for match in _TOKEN.finditer(text):
        kind, token = match.lastgroup, match[0]
        if kind == "newline":
            if line and line[0].startswith("#"):
                yield token
            line = []
        elif kind != "space":
            line.append("".join(token.split()) if kind == "include" else token)
            is_macro = line[:-1] == ["#", "define"] and text.startswith("(", match.end())
            yield line[-1] + "(" * is_macro  # the bracket itself follows
