"""The live view's command line: what may stand in it, completion, and what was typed before."""

from __future__ import annotations

import os
from typing import Any

from rich.text import Text
from textual import events
from textual.suggester import Suggester
from textual.widgets import Input, RichLog

from bbrlab_apps.play.prompt_link import LINE_BYTES


class Words:
    """What may stand in a line, as the guest's prompt told it (mininet/prompt.py)."""

    def __init__(self, content: Any):
        self.own: dict[str, list[list[str]]] = content["own"]
        self.commands = sorted([*self.own, *content["mininets"], *content["nodes"]])
        self.nodes: list[str] = content["nodes"]

    def after(self, line: str) -> list[str]:
        """The words that may stand where ``line`` ends, and begin as it does."""
        *before, begun = line.split(" ")
        before = [word for word in before if word]
        return [word for word in self._at(before) if word.startswith(begun)]

    def _at(self, before: list[str]) -> list[str]:
        if not before:
            return self.commands
        if before[0] not in self.own:
            return self.nodes if before[0] in self.commands else []
        places = self.own[before[0]]
        if len(places) == 1:  # as many as one likes, each once
            return [word for word in places[0] if word not in before]
        return places[len(before) - 1] if len(before) <= len(places) else []


class _Completion(Suggester):
    """Shows how the line may go on."""

    def __init__(self) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self.words: Words | None = None

    async def get_suggestion(self, value: str) -> str | None:
        """The line with its last word completed."""
        endings = self.words.after(value) if self.words and value else []
        return value[: value.rfind(" ") + 1] + endings[0] if endings else None


class CommandLine(Input):
    """A line with completion (Tab) and what was typed before (up, down)."""

    def __init__(self) -> None:
        self.completion = _Completion()
        super().__init__(suggester=self.completion, max_length=LINE_BYTES // 4, id="line")
        self.before: list[str] = []
        self._back = 0

    async def _on_key(self, event: events.Key) -> None:
        """Keys with a meaning. Not as bindings: those wait for the screen, behind letters that are typed ahead."""
        if event.key in ("enter", "ctrl+j"):  # ctrl+j: the end of a line that a program types
            self._submit()
        elif event.key == "tab":
            self._complete()
        elif event.key in ("up", "down"):
            self._earlier(1 if event.key == "up" else -1)
        else:
            return
        event.prevent_default()
        event.stop()

    def _complete(self) -> None:
        """Complete the last word; show what it can be if there are several."""
        words = self.completion.words
        endings = words.after(self.value) if words else []
        if not endings:
            return
        begun = self.value.split(" ")[-1]
        common = os.path.commonprefix(endings)
        self.value = self.value[: len(self.value) - len(begun)] + common + (" " if len(endings) == 1 else "")
        self.cursor_position = len(self.value)
        if len(endings) > 1 and common == begun:
            self.app.query_one(RichLog).write(Text("  ".join(endings), style="dim"))

    def _earlier(self, step: int) -> None:
        """Show the line that was typed ``step`` before."""
        self._back = min(max(self._back + step, 0), len(self.before))
        self.value = self.before[-self._back] if self._back else ""
        self.cursor_position = len(self.value)

    def _submit(self) -> None:
        """Enter: the line is taken, and the next key begins another one, however soon it comes."""
        line = self.value
        if line.strip():
            self.before.append(line)
        self._back, self.value = 0, ""
        self.post_message(self.Submitted(self, line))

    def _on_paste(self, event: events.Paste) -> None:
        """Each pasted line ends where its end is; what follows the last end may be gone on with."""
        event.prevent_default()  # which would take the first line alone
        event.stop()
        *lines, rest = event.text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        for line in lines:
            self.insert_text_at_cursor(line)
            self._submit()
        self.insert_text_at_cursor(rest)
