"""Every generated page of docs/, from the rule files; nothing in them depends on time or place."""

from __future__ import annotations

from ..card_reader import read_card
from ..glossary import glossary
from ..loading import files_of
from ..rules import Rules
from ..yaml_source import read
from .architecture_page import architecture_page
from .block_page import block_page
from .book import Book, graph_of
from .card_page import card_page
from .code_page import code_page
from .codes import pages as code_pages
from .drawing import to_svg
from .editor_schemas import editor_schemas
from .everything import everything
from .examples import run_examples
from .formula_page import formula_page
from .graph import graph
from .index_page import index_page
from .profile_page import profile_page, status_page
from .prove import prove


def pages(rules: Rules) -> dict[str, str]:
    """Each page by its place below docs/, such as `components/ID.md`."""
    whole, made = everything(rules), {}
    book = Book(whole)
    for formula in whole.formulas.values():
        home = whole.home(formula.id)
        proofs, tried = list(prove(home, formula)), list(run_examples(home, formula))
        made[book.quantity(formula.id)] = formula_page(book, formula, proofs, tried)
    for part in (rules, *rules.modes.values()):
        own = Book(part)
        for kind, profiles in part.profiles.items():
            for profile in profiles:
                made[f"{own.folder(kind)}/{profile.id}.md"] = profile_page(own, profile)
        for status in part.statuses:
            made[f"{own.folder('statuses')}/{status.id}.md"] = status_page(own, status)
        made[graph_of(part)] = to_svg(graph(part), own.quantity)
    for found in rules.architectures:
        made[f"profiles/architectures/{found.id}.md"] = architecture_page(book, found)
    overlaid = {stem: file[2] for stem, file in files_of(rules.roots, "profiles/blocks").items()}
    for name, source in rules.blocks.items():
        made[f"profiles/blocks/{name}.md"] = block_page(book, name, source, overlaid[name])
    cards = []
    for path, said, overlay in files_of(rules.roots, "gpus").values():
        source = read(path, said)
        card = read_card(source, rules.units, overlay)
        names = [str(n) for key in ("aliases", "family") for n in source.data.get(key, ())]
        made[f"cards/{card.id}.md"] = card_page(book, card, names)
        cards.append(card)
    for code, page in code_pages().items():
        made[f"codes/{code}.md"] = code_page(page)
    for name, text in editor_schemas(whole).items():
        made[f"schema/{name}.json"] = text
    made["README.md"] = index_page(Book(rules), sorted(cards, key=lambda c: c.id), code_pages())
    made["glossary.md"] = glossary(whole)
    return dict(sorted(made.items()))
