"""Tokens of C files, by which kernels have their keys: no comment and no white space that means nothing."""

from __future__ import annotations

import subprocess

import pytest

from bbrlab.base import paths
from bbrlab.kernel.c_tokens import tokens

CODE = sorted((paths.KERNELS / "bbr").glob("*.[ch]"))

SAME = {
    "comment at a line's end": ("a = 1; /* one */\n", "a = 1; // another\n"),
    "comment across lines": ("int a;\nint b;\n", "int a; /* one\n * two // three\n */ int b;\n"),
    "comment between tokens": ("int a;", "int/**/a;"),
    "quotes in a comment": ("a;\nb;", "a; // isn't \"it\nb;"),
    "comment that goes on after a backslash": ("a;\nc;", "a; // one \\\n b;\nc;"),
    "comment in a directive": ("#define A 1\nb", "#define A /* one\n two */ 1 // three\nb"),
    "indentation and lines": ("if (a)\n\treturn f(a, b);\n", "if (a) return f(a,\n\n  b);"),
    "no space": ("a = b + c;", "a=b+c;"),
    "line that goes on": ("#define A(x) do { x; } while (0)\n", "#define A(x)\t\\\n\tdo { x; } \\ \n\twhile (0)"),
    "word that goes on": ("int count;", "int co\\\nunt;"),
    "space in a directive": ("#include <linux/a.h>\n#if A\n#endif\n", "# include  <linux/a.h>\n#  if A\n# endif"),
    "lines of Windows": ("#define A \\\n 1\na;\n", "#define A \\\r\n 1\r\na;\r\n"),
    "end of the file": ("#endif", "#endif\n\n"),
}
OTHER = {
    "number": ("a = 1;", "a = 2;"),
    "word": ("a_b;", "a b;"),
    "sign": ("a+++b;", "a+ ++b;"),
    "shift": ("a >> b;", "a > > b;"),
    "comment in a string": ('a("x // y");', 'a("x // z");'),
    "address in a string": ('a("http://b");', 'a("http://c");'),
    "comment of lines in a string": ('a("/*", b, "*/");', 'a("/*", c, "*/");'),
    "spaces in a string": ('a("x y");', 'a("x  y");'),
    "quote in a string": (r'a("\" // x");', r'a("\" // y");'),
    "backslash at a string's end": (r'a("\\"); // "' + "\nb;", r'a("\\"); // "' + "\nc;"),
    "string of two lines": ('a("x\\\n// y");', 'a("x\\\n// z");'),
    "quote as a character": ("a = '\"'; b = 1; // \"", "a = '\"'; b = 2; // \""),
    "escaped character": (r"a = '\''; b /* ' */;", r"a = '\''; c /* ' */;"),
    "prefix of a string": ('L"a"', 'L "a"'),
    "slashes in an included file's name": ("#include <a//b.h>\n", "#include <a//c.h>\n"),
    "end of a directive": ("#define A 1\n+ 2;", "#define A 1 + 2\n;"),
    "parameters of a macro": ("#define A(x) x\n", "#define A (x) x\n"),
    "lone apostrophe": ("#error isn't /* one */ a\n", "#error isn't /* one */ b\n"),
    "comment that is none": ("a = b / *c; /* */", "a = b /*c; /* */"),
    "number with a sign": ("1e+1", "1e +1"),
}


@pytest.mark.parametrize("one, other", SAME.values(), ids=SAME)
def test_comments_and_white_space_are_no_tokens(one, other):
    assert tokens(one) == tokens(other) != []


@pytest.mark.parametrize("one, other", OTHER.values(), ids=OTHER)
def test_what_means_something_else_has_other_tokens(one, other):
    assert tokens(one) != tokens(other)


def test_tokens_are_whole():
    assert tokens('#define F(a) a##1 // x\nb->c >>= .5e-3f - L\'\\n\' ... "s";') == [
        "#", "define", "F(", "(", "a", ")", "a", "##", "1", "\n", "b", "->", "c", ">>=", ".5e-3f", "-", "L'\\n'", "...", '"s"', ";",
    ]  # fmt: skip


@pytest.mark.compiles
@pytest.mark.parametrize("path", CODE, ids=lambda path: path.name)
def test_a_compiler_reads_the_same_tokens(path):
    """The C preprocessor takes comments out of our kernel code as we do, and with -fpreprocessed does nothing else."""
    argv = ["gcc", "-E", "-fpreprocessed", "-dD", "-P", str(path)]
    bare = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    assert "/*" not in bare
    assert tokens(bare) == tokens(path.read_text(encoding="utf-8"))
