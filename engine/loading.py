"""Reading rule folders: the bundled one, and overlays whose files replace by id or add."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from . import expression as ex
from .architecture import Architecture
from .composing import Library
from .errors import FitcheckError, InputProblem, Mark, Problem, RuleFileError
from .flags_reader import read_flags, with_values_of
from .formula import Formula, spelled
from .formula_reader import FormulaReader
from .paths import bundled_root as bundled_root, rule_files
from .profile import Profile
from .profile_reader import completed, read_profile
from .rules import Rules, Status
from .source_later import head_of
from .units import Units

if TYPE_CHECKING:
    from .flags import FlagSet
    from .yaml_source import Source

T = TypeVar("T")
Roots = Sequence[tuple[str, bool]]  # (folder, is an overlay), in order of precedence
Files = Mapping[str, "tuple[Source, bool]"]  # stem to (file, from an overlay)

# files of formulas/ that are no formula
SPECIAL = ("flags", "units", "phases", "hints", "lists", "checkpoint", "plots", "advise")
FAMILIES = ("profiles/architectures", "profiles/blocks")
NO_PROFILES = (
    "statuses",
    "architectures",
    "blocks",
    "models",
    "importers",
)  # folders of profiles/ with another form
NO_RULES = ("gguf",)  # and one that a reader of files has to itself


def roots_of(overlays: Sequence[str] = ()) -> Roots:
    """The bundled folder and the overlays; raises `InputProblem` where one does not exist."""
    roots = [(bundled_root(), False)]
    for folder in overlays:
        if not os.path.isdir(folder):
            is_file = os.path.exists(folder)
            hint = "it is a file; give the folder it lies in" if is_file else "no such folder"
            raise InputProblem(f"--rules {folder}: {hint}.", flag="rules")
        if (folder, True) in roots:
            continue
        roots.append((folder, True))
        overlay = [(folder, True)]
        if not any(files_of(overlay, place) for place in rule_folders(overlay)):
            raise InputProblem(
                f"--rules {folder}: no rule file in it. Put formula files there, or folders "
                "formulas/, gpus/, profiles/ as in the project.",
                flag="rules",
            )
    return roots


def profile_kinds(roots: Roots, mode: str | None = None) -> tuple[str, ...]:
    """The folders of profiles/ that hold best-match profiles (of a mode), in any root."""
    found: set[str] = set()
    for root, _ in roots:
        folder = os.path.join(root, "profiles")
        if os.path.isdir(folder):
            names = os.listdir(folder)
            found |= {n for n in names if n[0] != "." and is_kind(os.path.join(folder, n), mode)}
    return tuple(sorted(found.difference(NO_PROFILES, NO_RULES)))


def is_kind(folder: str, mode: str | None) -> bool:
    """Whether a folder is a kind of profiles, of a mode where given; some are of modes only."""
    if mode is not None:
        return os.path.isdir(os.path.join(folder, mode))
    if not os.path.isdir(folder):
        return False
    with os.scandir(folder) as entries:
        found = [entry.is_dir() for entry in entries if entry.name[0] != "."]
    return not found or not all(found)


def placed(folder: str, mode: str | None) -> str:
    """Where a mode has its own files of a kind: `profiles/statuses/MODE`."""
    return f"{folder}/{mode}" if mode else folder


def rule_folders(roots: Roots) -> tuple[str, ...]:
    """Every folder that can hold rule files."""
    from .modes import modes_of

    kinds = (*profile_kinds(roots), *NO_PROFILES)
    own = [
        folder
        for mode in modes_of(roots_for_modes(roots))
        for folder in folders_of_mode(roots, mode)
    ]
    return ("formulas", *(f"profiles/{kind}" for kind in kinds), "gpus", *own)


def folders_of_mode(roots: Roots, mode: str) -> tuple[str, ...]:
    """Every folder that a mode has to itself."""
    kinds = (*profile_kinds(roots, mode), "statuses")
    return (placed("formulas", mode), *(placed(f"profiles/{kind}", mode) for kind in kinds))


def roots_for_modes(roots: Roots) -> Roots:
    """An overlay by itself may change a bundled mode, whose file it need not have."""
    return [(bundled_root(), False), *roots]


def files_of(roots: Roots, folder: str) -> dict[str, tuple[str, str, bool]]:
    """Stem to (path, name in messages, from an overlay); a later root replaces by stem."""
    found: dict[str, tuple[str, str, bool]] = {}
    for root, overlay in roots:
        for stem, path in files_in(root, overlay, folder):
            said = path if overlay else f"{folder}/{os.path.basename(path)}"
            found[stem] = (path, said, overlay)
    return found


def files_in(root: str, overlay: bool, folder: str) -> Iterator[tuple[str, str]]:
    """(stem, path) of a folder's files in one root; an overlay may be a flat folder of formulas."""
    yield from rule_files(os.path.join(root, folder))
    if overlay and folder.partition("/")[0] == "formulas":
        from .modes import homes

        for stem, path in rule_files(root):
            if homes().get(stem, "formulas") == folder:
                yield stem, path


def changed_families(roots: Roots) -> list[str]:
    """The architecture files and blocks of overlay folders, as messages name them."""
    found = [file for folder in FAMILIES for file in files_of(roots, folder).values()]
    return [said for _, said, overlay in found if overlay]


class Loader:
    """
    Reads the files of all roots and collects every problem before it gives up.

    With `lazy`, expressions of formula files are parsed when they are first needed; with `cached`,
    bundled files that have not changed since an earlier run are not parsed again. With `mode` the
    rules are those of a mode: its own files, and of the shared formulas those that they read.
    """

    def __init__(
        self, roots: Roots, lazy: bool = False, cached: bool = False, mode: str | None = None
    ) -> None:
        self.roots, self.lazy, self.cached, self.mode = roots, lazy, cached, mode
        self.problems: list[Problem] = []
        self._read: dict[str, list[tuple[str, Source, bool]]] = {}

    def in_mode(self, mode: str) -> Loader:
        """A loader of a mode that has the files that this one has read already."""
        other = Loader(self.roots, self.lazy, self.cached, mode)
        other._read = dict(self._read)
        return other

    def note_doubles(self, folder: str) -> None:
        """F706: two files of one folder of rules with one id; only the last would count."""
        for root, overlay in self.roots:
            if self.cached and not overlay:
                continue  # a start does not list the bundled folders twice
            found: dict[str, str] = {}
            for stem, path in files_in(root, overlay, folder):
                if stem in found:
                    message = (
                        f"{found[stem]} has the id `{stem}` too, and only one of them can "
                        "count. Rename or remove one."
                    )
                    mark = Mark(path, 1, 1)
                    self.problems.append(Problem("F706", "name-taken", mark, message))
                found[stem] = path

    def sources(self, folder: str) -> list[tuple[str, Source, bool]]:
        """(stem, parsed file, from an overlay) of a folder, each file read once."""
        if folder not in self._read:
            self._read[folder] = []
            if (kept := self.kept(folder)) is not None:
                self._read[folder] = kept
                return kept
            self.note_doubles(folder)
            for stem, (path, said, overlay) in files_of(self.roots, folder).items():
                root = next(r for r, _ in reversed(self.roots) if path.startswith(r))
                if overlay and leads_outside(path, root):
                    message = "This is a link to a file outside the folder; copy the file instead."
                    mark = Mark(said, 1, 1)
                    self.problems.append(Problem("F104", "link-outside", mark, message))
                    continue
                fresh = overlay or not self.cached
                source = self.guarded(Mark(said, 1, 1), partial(_mapping, path, said, fresh))
                if source is not None:
                    self._read[folder].append((stem, source, overlay))
        return self._read[folder]

    def kept(self, folder: str) -> list[tuple[str, Source, bool]] | None:
        """The files of a folder that only the bundled root has, where the cache has them all."""
        if not self.cached or any(files_of([root], folder) for root in self.roots if root[1]):
            return None
        from .data_cache import kept_sources

        found = kept_sources(os.path.join(self.roots[0][0], *folder.split("/")), folder)
        return None if found is None else [(stem, source, False) for stem, source in found]

    def guarded(
        self, mark: Mark | None, make: Callable[[], T], source: Source | None = None
    ) -> T | None:
        """The result of `make()`, or None after noting what is wrong with the file."""
        try:
            return make()
        except RuleFileError as error:
            self.problems += error.problems
        except KeyError as error:
            message = f"`{error.args[0]}` is missing in this file."
            self.note("F107", "missing-key", message, mark, source)
        except (TypeError, ValueError, AttributeError, IndexError) as error:
            message = f"The file does not have the expected shape ({error})."
            self.note("F108", "bad-value", message, mark, source)
        return None

    def note(
        self, code: str, name: str, message: str, mark: Mark | None, source: Source | None
    ) -> None:
        """Keep one problem, with the lines of its file where that could be read."""
        if source is not None:
            self.problems.append(Problem(code, name, source.mark(), message, source.text))
        else:
            assert mark is not None
            self.problems.append(Problem(code, name, mark, message))

    def parsed(self, source: Source, make: Callable[[], T]) -> T | None:
        """`guarded` for a file that was read."""
        return self.guarded(None, make, source)

    def load(self) -> Rules:
        """The rules; raises `RuleFileError` with every problem of reading them."""
        rules = self.collect()
        if self.problems or rules is None:
            raise RuleFileError(self.problems)
        return rules

    def collect(self) -> Rules | None:
        """What can be read of the rules; None where flags or units cannot."""
        sources = {stem: (source, overlay) for stem, source, overlay in self.sources("formulas")}
        if self.problems and not all(name in sources for name in SPECIAL[:3]):
            return None
        for name in SPECIAL[:3]:
            if name not in sources:
                raise FitcheckError(
                    f"formulas/{name}.yaml is missing; rules cannot be read without it."
                )
        units = self.parsed(sources["units"][0], lambda: read_units(sources["units"][0]))
        if units is None:
            return None
        flags = self.parsed(sources["flags"][0], lambda: read_flags(sources["flags"][0], units))
        if flags is None:
            return None
        if self.mode is not None:
            return self.of_mode(self.mode, units, flags, sources)
        phases = self.phases(sources["phases"][0])
        if phases is None:
            return None
        formulas, broken = self.formulas(units, sources, [s for s in sources if s not in SPECIAL])
        broken |= {stem for stem in files_of(self.roots, "formulas") if stem not in sources}
        return self.put_together(
            units, flags, phases, sources, sources, formulas, broken, self.statuses(units)
        )

    def of_mode(self, name: str, units: Units, shared: FlagSet, sources: Files) -> Rules | None:
        """The rules of a mode: its own files, and the shared formulas that they lead to."""
        from .flags_reader import flags_of_mode
        from .modes import HEAD, read_mode, refuse_unknown

        refuse_unknown(self.roots, name)
        folder = placed("formulas", name)
        own = {stem: (source, overlay) for stem, source, overlay in self.sources(folder)}
        if HEAD not in own:
            return None
        head, overlay = own.pop(HEAD)
        mode = self.parsed(head, lambda: read_mode(head, units, overlay))
        stated = own["flags"][0] if "flags" in own else None
        flags = self.parsed(stated or head, lambda: flags_of_mode(head, units, shared, stated))
        phases, statuses = self.phases(head), self.statuses(units)
        if mode is None or flags is None or phases is None:
            return None
        for stem in own.keys() & sources.keys() - {*SPECIAL}:
            message = f"formulas/{stem}.yaml has this id already; a mode needs ids of its own."
            source = own[stem][0]
            mark = source.mark(("id",))
            self.problems.append(source.problem("F706", "name-taken", mark, message))
        needed = {*mode.formula.reads, *(read for s in statuses for read in s.formula.reads)}
        needed |= {name for plot in mode.plots for name, _ in plot.quantities()}
        needed |= {name for table in mode.tables for name in table.columns.values()}
        needed |= set(mode.beside.facts.values()) if mode.beside else set()
        start = [*(stem for stem in own if stem not in SPECIAL), *sorted(needed)]
        formulas, broken = self.formulas(units, {**sources, **own}, start, True)
        broken |= {stem for stem in files_of(self.roots, folder) if stem not in own}
        found = self.put_together(
            units, flags, phases, own, sources, formulas, broken - {HEAD}, statuses
        )
        found.mode = mode
        return found

    def put_together(
        self,
        units: Units,
        flags: FlagSet,
        phases: Mapping[str, str],
        own: Files,
        shared: Files,
        formulas: Mapping[str, Formula],
        broken: set[str],
        statuses: Sequence[Status],
    ) -> Rules:
        """The rules, with the profiles and families that come to the parts."""
        profiles = {
            kind: self.profiles(kind, units) for kind in profile_kinds(self.roots, self.mode)
        }
        rules = Rules(
            self.roots,
            units,
            with_values_of(flags, profiles),
            phases,
            own["hints"][0] if "hints" in own else None,
            formulas,
            profiles,
            statuses,
            self.architectures(),
            {
                name: count
                for files in ([shared] if shared is own else [shared, own])
                if "lists" in files
                for name, count in self.lists(files["lists"][0]).items()
            },
            frozenset(broken),
        )
        rules.blocks = self.blocks()
        rules.checkpoint = own["checkpoint"][0] if "checkpoint" in own else None
        return rules

    def phases(self, source: Source) -> dict[str, str] | None:
        return self.parsed(source, lambda: dict(source.data["phases"]))

    def formulas(
        self, units: Units, sources: Files, names: Sequence[str], follow: bool = False
    ) -> tuple[dict[str, Formula], set[str]]:
        """These formulas, with `follow` also all that they read, and what could not be read."""
        found: dict[str, Formula] = {}
        broken, waiting = set(), dict.fromkeys(names)
        while waiting:
            stem = next(iter(waiting))
            del waiting[stem]
            if stem not in sources or stem in SPECIAL:
                continue
            source, overlay = sources[stem]
            reader = FormulaReader(source, units, overlay, self.lazy)
            formula = self.parsed(source, reader.attempt)
            self.problems += reader.problems
            if formula is None or reader.problems:
                broken.add(stem)
            if formula is None:
                continue
            found[formula.id] = formula
            if formula.id != stem:
                self.problems.append(misnamed(source, stem, formula.id))
            if follow:
                reads = (*formula.reads, *([formula.band[0]] if formula.band else ()))
                waiting.update(dict.fromkeys(r for r in reads if r not in found))
        return (dict(sorted(found.items())) if follow else found), broken

    def profiles(self, kind: str, units: Units) -> list[Profile]:
        found = [
            self.parsed(source, partial(read_profile, kind, source, units, overlay, self.lazy))
            for _, source, overlay in self.sources(placed(f"profiles/{kind}", self.mode))
        ]
        read = [p for p in found if p is not None]
        return self.guarded(Mark(f"profiles/{kind}", 1, 1), partial(completed, read)) or []

    def architectures(self) -> list[Architecture]:
        """The architecture files, put together with others and with blocks when one is needed."""
        found = self.sources("profiles/architectures")
        library = Library(
            {stem: source for stem, source, _ in found},
            self.blocks(),
            lambda: {stem for place in FAMILIES for stem in files_of(self.roots, place)},
            [stem for stem, _, overlay in found if overlay],
        )
        return [
            Architecture(
                stem,
                str(head_of(source).get("status", "draft")),
                head_of(source),
                source,
                overlay,
                partial(library.data, source),
                partial(library.origins, source),
            )
            for stem, source, overlay in found
        ]

    def blocks(self) -> dict[str, Source]:
        """The files of parts that several architectures share."""
        return {stem: source for stem, source, _ in self.sources("profiles/blocks")}

    def lists(self, source: Source) -> dict[str, ex.Node]:
        """The counts of `lists.yaml`."""
        found: dict[str, ex.Node] = {}
        for name, entry in source.data.get("lists", {}).items():
            path = ("lists", name, "count")
            try:
                found[name] = ex.parse(str(entry["count"]))
            except ex.ExpressionError as error:
                mark = source.inside(path, error.offset)
                self.problems.append(source.problem(error.code, error.name, mark, error.message))
        return found

    def statuses(self, units: Units) -> list[Status]:
        found = [
            self.parsed(source, partial(read_status, source, units, overlay))
            for _, source, overlay in self.sources(placed("profiles/statuses", self.mode))
        ]
        return [s for s in found if s is not None]


def leads_outside(path: str, root: str) -> bool:
    """Whether a link takes a file out of its folder; files from strangers must not read others."""
    real, inside = os.path.realpath(path), os.path.realpath(root)
    return os.path.commonpath([real, inside]) != inside


def misnamed(source: Source, stem: str, name: Any) -> Problem:
    """F103: the id of a file is the stem of its name."""
    message = f"The file is called {stem} and its id is {name}. Rename one of them."
    return source.problem("F103", "name-mismatch", source.mark(("id",)), message)


def _mapping(path: str, said: str, fresh: bool) -> Source:
    from .data_cache import read_source

    source = read_source(path, said, fresh)
    if not isinstance(head_of(source), Mapping):
        message = "A rule file holds `key: value` lines."
        raise RuleFileError([source.problem("F108", "bad-value", source.mark(), message)])
    return source


def read_units(source: Source) -> Units:
    """Read `units.yaml`."""
    data = source.data
    sizes = {n: (s["factor"], s["dimension"]) for n, s in data["sizes"].items()}
    return Units(frozenset(data["dimensions"]), frozenset(data["labels"]), sizes)


def read_status(source: Source, units: Units, overlay: bool) -> Status:
    """Read one file of `profiles/statuses/`."""
    data = source.data
    because = tuple((spelled(b["when"]), str(b["says"])) for b in data.get("because", ()))
    when = spelled(data["when"])
    names = FormulaReader(source, units, overlay).read()  # the names its conditions may use
    return Status(
        str(data["id"]),
        str(data["title"]),
        data["exit_code"],
        bool(data["safe"]),
        str(data.get("style", "")),
        when,
        because,
        names,
    )


def load_rules(overlays: Sequence[str] = (), mode: str | None = None) -> Rules:
    """
    The bundled rules (of a mode) with overlay folders on top, later ones winning.

    Raises
    ------
    InputProblem
        An overlay folder does not exist or holds no rule file, or there is no such mode.
    RuleFileError
        Rule files are wrong; every problem found is listed.
    """
    from .data_cache import save_caches

    rules = Loader(roots_of(overlays), lazy=True, cached=True, mode=mode).load()
    save_caches()
    return rules
