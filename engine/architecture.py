"""Which architecture file covers a config.json, and the canonical model that comes out.

Which keys are read, what stands in for an absent one, which shapes are refused and why, is data
(`profiles/architectures/`, `profiles/blocks/`); `resolver.py` evaluates it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from .config_fields import Config, text_part
from .errors import Refusal
from .evaluation import Thunk
from .flags import fill
from .record import record
from .sources.names import printable

if TYPE_CHECKING:
    from .composing import Origins
    from .yaml_problems import Path
    from .yaml_source import Source


@record(identity=True)
class Model:
    """
    A canonical model.

    `fields` are scalars (hidden_size, ...). `lists` holds `layer_groups` (equal decoder layers with
    a count, their dims, linear modules, other parameters and caches), `outer_groups` (embeddings,
    head, last norm) and `tower_groups` (vision and audio). `origin` says which config key or rule
    each field came from.
    """

    name: str
    model_type: str | None
    fields: Mapping[str, Any]
    lists: Mapping[str, Sequence[Mapping[str, Any]]]
    origin: Mapping[str, str]
    source: str
    counted_parameters: int | None
    architecture: str
    verified: bool
    layer_origin: Mapping[str, tuple[str, str, Path]]  # list field to expression, file id, place
    warnings: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()  # versions of this run that have no class of its type
    drafts: tuple[str, ...] = ()  # architecture files that are not settled, or a part of them
    stored: Mapping[str, Any] = {}  # facts of the weights as they are stored, where a mode asks


class Architecture:
    """
    One file of `profiles/architectures/`.

    `head` says which configs it covers; `own` is what the file says by itself; `data` is that with
    what it extends and with its blocks written out, made when it is first needed.
    """

    def __init__(
        self,
        id: str,
        status: str,
        head: Mapping[str, Any],
        source: Source,
        overlay: bool,
        compose: Callable[[], Mapping[str, Any]],
        trace: Callable[[], Origins],
    ) -> None:
        self.id, self.status, self.head, self.source = id, status, head, source
        self.overlay, self._compose, self._trace = overlay, compose, trace
        self.functions: dict[Any, Thunk] = {}  # expressions by their text, made when needed

    @property
    def own(self) -> Mapping[str, Any]:
        """What the file says by itself."""
        said: Mapping[str, Any] = self.source.data
        return said

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """The whole file; raises `RuleFileError`."""
        return self._compose()

    @cached_property
    def origins(self) -> Origins:
        """Where each part of the whole came from."""
        return self._trace()

    def home(self, path: Path) -> tuple[Source, Path]:
        """The file that said what stands at a path of `data`, and the path there."""
        from .composing import home_of

        return home_of(self.origins, self.source, path)

    def names(self, model_type: Any) -> bool:
        """Whether the file covers a model type by its name."""
        return model_type in self.head.get("matches", {}).get("model_type", ())

    def claims(self, config: Mapping[str, Any]) -> int | None:
        """How many conditions of `matches` the config meets, None if one fails."""
        conditions = self.head.get("matches")
        if conditions is None:
            return None  # a file that others extend
        present = {k for k, v in config.items() if v is not None}
        tests: Mapping[str, Callable[[Any], bool]] = {
            "model_type": lambda wanted: config.get("model_type") in wanted,
            "any_key": lambda wanted: bool(present.intersection(wanted)),
            "all_keys": lambda wanted: present.issuperset(wanted),
            "no_key": lambda wanted: present.isdisjoint(wanted),
            "equals": lambda wanted: all(config.get(k) == v for k, v in wanted.items()),
        }
        if all(tests[key](wanted) for key, wanted in conditions.items()):
            return len(conditions)
        return None

    def refusal(self, name: str, config: Mapping[str, Any]) -> str | None:
        """The sentence with which this file refuses the config, if it does."""
        refuse = self.head.get("refuse")
        if refuse is None or self.claims(config) is None:
            return None
        conditions = self.head.get("matches", {})
        present = [
            k
            for k in (*conditions.get("any_key", ()), *conditions.get("equals", ()))
            if config.get(k) is not None
        ]
        return fill(
            refuse["says"],
            {
                "name": name,
                "key": present[0] if present else "",
                "model_type": printable(str(config.get("model_type")), 60),
            },
        )


def refuse_unsupported(
    architectures: Sequence[Architecture], name: str, config: Mapping[str, Any]
) -> None:
    """
    Raise `Refusal` where a file says that this config is not modelled.

    A file that names a type knows it better than those that go by keys. Where one file models the
    type and another refuses it, the refusal holds if it states more conditions than the type.
    """
    kind = config.get("model_type")
    modelled = max(
        (a.claims(config) or 0 for a in architectures if "refuse" not in a.head and a.names(kind)),
        default=0,
    )
    for architecture in sorted(architectures, key=lambda a: not a.names(kind)):
        closer = architecture.names(kind) and (architecture.claims(config) or 0) > modelled
        says = architecture.refusal(name, config) if closer or not modelled else None
        if says is not None:
            raise Refusal(says)


def choose(
    architectures: Sequence[Architecture], name: str, config: Mapping[str, Any]
) -> Architecture:
    """The file that covers a config; raises `Refusal`."""
    refuse_unsupported(architectures, name, config)
    fitting = [
        (met, a)
        for a in architectures
        if "refuse" not in a.head and (met := a.claims(config)) is not None
    ]
    if not fitting:
        raise Refusal(
            f"{name} (model_type {config.get('model_type')}): no architecture file covers it."
        )
    return max(fitting, key=lambda pair: pair[0])[1]


def resolve(
    architectures: Sequence[Architecture],
    name: str,
    config: Mapping[str, Any],
    source: str,
    counted: int | None,
    place: str = "config.json",
    stack: Mapping[str, Any] | None = None,
    answered: Collection[str] = (),
) -> Model:
    """
    The canonical model of a config; `place` is what origins call it, `stack` holds the library
    versions that facts may hang on, `answered` keys that no remark is made of.

    Raises
    ------
    Refusal
        The config has a shape that no file covers.
    InputProblem
        A field is missing, of the wrong type, or out of range; the message names it.
    """
    from .resolver import Resolver, check_type

    check_type(config)
    outer = choose(architectures, name, config)
    nested = outer.data.get("text")
    if nested is None:
        whole = Config(config, config, place, answered)
        return Resolver(outer, name, whole, stack or {}).model(source, counted)
    text = text_part(config, nested["at"], nested.get("model_type"))
    check_type(text)
    inner = choose(architectures, name, text)
    whole = Config(config, text, place, answered)
    reader = Resolver(inner, name, whole, stack or {})
    return Resolver(outer, name, whole, stack or {}, reader).model(source, counted)
