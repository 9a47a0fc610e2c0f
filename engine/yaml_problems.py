"""What is refused in a rule file, with places: the slow walk for files that look unusual."""

from __future__ import annotations

from typing import Any

import yaml

from .errors import Mark, Problem, RuleFileError

MAX_DEPTH = 24
MAX_NODES = 5_000
MAX_PROBLEMS = 50  # of one file; whoever has more starts with these

Path = tuple[str | int, ...]


_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class PlainLoader(_BASE):  # type: ignore[misc]
    """The parser without the guessing of types, which takes half of its time."""

    def resolve(self, kind: Any, value: Any, implicit: Any) -> str:
        return ""

    def descend_resolver(self, current_node: Any, current_index: Any) -> None:
        """Nothing is resolved."""

    def ascend_resolver(self) -> None:
        """Nothing is resolved."""


_LOADER: Any = PlainLoader


def loader() -> Any:
    """The parser: libyaml where it is there."""
    return _LOADER


def has_controls(text: str) -> bool:
    """Whether a text has characters that a terminal obeys."""
    if text.isprintable():
        return False
    return any((ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 for c in text)


class Verifier:
    """Walks the events of a file without recursion and reports everything that is refused."""

    def __init__(self, path: str, text: str) -> None:
        self.path, self.text = path, text
        self.key_marks: dict[Path, Mark] = {}
        self.problems: list[Problem] = []
        self.stack: list[list[Any]] = []  # [container, path, pending key or next index]
        self.root: Any = None
        self.nodes = 0

    def fail(self, code: str, name: str, mark: Mark, message: str) -> None:
        self.problems.append(Problem(code, name, mark, message, self.text))
        if len(self.problems) >= MAX_PROBLEMS:
            raise RuleFileError(self.problems)

    def stop(self, code: str, name: str, mark: Mark, message: str) -> RuleFileError:
        self.fail(code, name, mark, message)
        return RuleFileError(self.problems)

    def place(self, event: Any) -> Mark:
        return Mark(self.path, event.start_mark.line + 1, event.start_mark.column + 1)

    def add(self, value: Any, event: Any) -> Path:
        """Put `value` where the stack points; returns its path."""
        mark = self.place(event)
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self.stop("F105", "too-large", mark, f"More than {MAX_NODES:,} values in a file.")
        if not self.stack:
            self.root = value
            return ()
        frame = self.stack[-1]
        container, parent, slot = frame
        if isinstance(container, list):
            path = (*parent, len(container))
            container.append(value)
        else:
            path = (*parent, slot)
            if slot not in container:  # a duplicate was reported when its key was read
                container[slot] = value
            frame[2] = None
        return path

    def key(self, event: Any) -> bool:
        """Take the event as a mapping key if one is due."""
        if (
            not self.stack
            or not isinstance(self.stack[-1][0], dict)
            or self.stack[-1][2] is not None
        ):
            return False
        frame, mark = self.stack[-1], self.place(event)
        if not isinstance(event, yaml.ScalarEvent):
            raise self.stop("F104", "bad-key", mark, "A key has to be a plain word.")
        name = event.value
        path = (*frame[1], name)
        if name in frame[0]:
            first = self.key_marks[path].line
            where = f" under {frame[1][-1]}" if frame[1] else ""
            self.fail(
                "F102",
                "duplicate-key",
                mark,
                f"`{name}` appears twice{where}; the first is on line {first}. Keep one of them.",
            )
        else:
            self.key_marks[path] = mark
        frame[2] = name
        return True

    def run(self) -> Any:
        documents = 0
        for event in yaml.parse(self.text, Loader=loader()):
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self.stop(
                        "F104",
                        "two-documents",
                        self.place(event),
                        "One file holds one document; remove the `---` line.",
                    )
            elif isinstance(event, yaml.AliasEvent):
                raise self.stop(
                    "F104",
                    "alias",
                    self.place(event),
                    f"`*{event.anchor}`: aliases are not read. Write the value out.",
                )
            elif isinstance(event, (yaml.ScalarEvent, yaml.CollectionStartEvent)):
                self.node(event)
            elif isinstance(event, yaml.CollectionEndEvent):
                self.stack.pop()
        if self.problems:
            raise RuleFileError(self.problems)
        return self.root

    def node(self, event: Any) -> None:
        mark = self.place(event)
        if event.anchor is not None:
            raise self.stop(
                "F104",
                "anchor",
                mark,
                f"`&{event.anchor}`: anchors are not read. Write the value out.",
            )
        if event.tag is not None and event.tag != "!":
            raise self.stop(
                "F104", "tag", mark, f"`{event.tag}`: YAML tags are not read. Remove it."
            )
        if isinstance(event, yaml.ScalarEvent) and has_controls(event.value):
            message = "A text holds control characters, which could steer a terminal. Remove them."
            raise self.stop("F104", "control-character", mark, message)
        if self.key(event):
            return
        if isinstance(event, yaml.ScalarEvent):
            self.add(event.value, event)
            return
        container: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
        path = self.add(container, event)
        if len(self.stack) >= MAX_DEPTH:
            raise self.stop("F105", "too-deep", mark, f"Nested deeper than {MAX_DEPTH} levels.")
        self.stack.append([container, path, None])


def verify(path: str, text: str) -> None:
    """Raise `RuleFileError` with every problem of the text as YAML; nothing where it is fine."""
    walk = Verifier(path, text)
    try:
        walk.run()
    except yaml.MarkedYAMLError as error:
        at: Any = error.problem_mark or error.context_mark
        mark = Mark(path, at.line + 1, at.column + 1) if at else Mark(path, 1, 1)
        walk.fail("F100", "not-yaml", mark, f"Not readable as YAML: {error.problem}.")
        raise RuleFileError(walk.problems) from None
    except yaml.YAMLError as error:
        reason = " ".join(str(error).split())
        walk.fail("F100", "not-yaml", Mark(path, 1, 1), f"Not readable as YAML: {reason}.")
        raise RuleFileError(walk.problems) from None
