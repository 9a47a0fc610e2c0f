"""The generated pages: complete, current, linked, and enough to find what a number comes from."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from fitcheck.engine.api import estimate, rules_for
from fitcheck.engine.cards import card_files
from fitcheck.engine.contract import flat
from fitcheck.engine.errors import Mark
from fitcheck.engine.loading import SPECIAL, files_of, rule_folders
from fitcheck.engine.modes import HEAD
from fitcheck.engine.workshop.book import Book
from fitcheck.engine.workshop.codes import pages as code_pages
from fitcheck.engine.workshop.everything import everything
from fitcheck.engine.workshop.formula_page import claims, formula_page, wrapped
from fitcheck.engine.workshop.markdown import code, origin, plain, sentence, table
from fitcheck.engine.workshop.pages import pages
from fitcheck.engine.workshop.profile_page import folded
from fitcheck.engine.workshop.prove import Proof
from fitcheck.engine.workshop.written import MADE, bring_up_to_date, differing, left_over

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
RULES = rules_for()
WHOLE = everything(RULES)
LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


@cache
def made() -> Mapping[str, str]:
    return pages(RULES)


def prose(text: str) -> str:
    """A page without its code blocks and code spans."""
    return re.sub(r"(`+)[^`].*?\1", "", FENCED.sub("", text))


def test_the_pages_are_current_and_none_is_left_over() -> None:
    hint = "run `fitcheck rules docs`"
    assert list(differing(made(), str(DOCS))) == [], hint
    assert left_over(made(), str(DOCS)) == [], hint


def test_pages_are_always_made_alike() -> None:
    again = pages(rules_for())
    assert again == made()
    assert list(again) == list(made())


def test_every_rule_file_and_code_has_a_page() -> None:
    wanted = {f"components/{f.id}.md" for f in WHOLE.components}
    wanted |= {f"quantities/{f.id}.md" for f in WHOLE.formulas.values() if not f.live}
    for mode, rules in (("", RULES), *((f"{m}/", r) for m, r in RULES.modes.items())):
        wanted |= {f"profiles/{k}/{mode}{p.id}.md" for k, ps in rules.profiles.items() for p in ps}
        wanted |= {f"profiles/statuses/{mode}{s.id}.md" for s in rules.statuses}
    wanted |= {f"profiles/architectures/{a.id}.md" for a in RULES.architectures}
    wanted |= {f"profiles/blocks/{name}.md" for name in RULES.blocks}
    wanted |= {f"cards/{i}.md" for i in card_files(RULES.folders("gpus"))}
    wanted |= {f"codes/{c}.md" for c in code_pages()}
    schemas = {f"schema/{p.name}" for p in (ROOT / "engine/schemas").glob("*.json")}
    graphs = {"graph.svg", *(f"graph-{mode}.svg" for mode in RULES.modes)}
    assert set(made()) == wanted | schemas | graphs | {"README.md", "glossary.md"}


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    heads = re.findall(r"^#+ (.*)$", FENCED.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def documents() -> Iterator[tuple[str, str]]:
    yield from ((n, t) for n, t in made().items() if n.endswith(".md"))
    for path in DOCS.glob("*.md"):
        if path.name not in made():
            yield path.name, path.read_text(encoding="utf-8")


def test_every_link_leads_to_a_page_a_heading_or_a_line() -> None:
    broken = []
    for name, text in documents():
        for target in LINK.findall(prose(text)):
            if target.startswith("https://"):
                continue
            path, _, part = target.partition("#")
            place = (DOCS / name).parent / path if path else DOCS / name
            known = place.exists()
            if known and part and not re.fullmatch(r"L\d+", part):
                known = part in anchors(place.read_text(encoding="utf-8"))
            elif known and part:
                known = int(part[1:]) <= place.read_text(encoding="utf-8").count("\n")
            if not known:
                broken.append(f"{name}: {target}")
    assert broken == []


def test_every_page_can_be_reached_from_the_index() -> None:
    linked = {t.partition("#")[0] for t in LINK.findall(made()["README.md"])}
    alone = [n for n in made() if n not in linked and not n.startswith(("README", "schema/"))]
    assert alone == []
    by_hand = {p.name for p in DOCS.glob("*.md")} - {"README.md"}
    assert by_hand <= linked


def test_tables_have_as_many_cells_in_every_row() -> None:
    for name, text in documents():
        width = 0
        for line in FENCED.sub("", text).split("\n"):
            cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") else 0
            assert cells == width or 0 in (cells, width), f"{name}: {line}"
            width = cells


@pytest.mark.parametrize("formula", RULES.formulas.values(), ids=lambda f: f.id)
def test_the_page_of_a_quantity_says_everything_the_file_says(formula: Any) -> None:
    page = made()[Book(RULES).quantity(formula.id)]
    for case in formula.cases:
        text = " ".join(page.split())
        assert " ".join(case.text.split()) in text.replace(" .. ", " ")
        assert code(case.when_text) in page
        assert sentence(case.says) in page
        assert f"#L{case.mark.line})" in page
    for name in formula.declared():
        assert code(name) in page
    for constant in formula.constants.values():
        assert sentence(constant.meaning) in page
    for found in formula.tables.values():
        assert page.count("\n| ") >= len(found.cells)
    for limit in formula.limits:
        assert sentence(limit.says) in page
    for proof in formula.evidence.values():
        assert sentence(proof.says) in page
    for example in formula.examples:
        assert f"| {plain(example.name)} |" in page
    for claimed in (*formula.claims.get("rises_with", ()), *formula.claims.get("falls_with", ())):
        assert f"with {plain(claimed)} | " in page
    assert " WRONG" not in page and "**refuted" not in page


def test_math_is_balanced_and_without_bare_words() -> None:
    count = 0
    for text in made().values():
        for math in re.findall(r"^```math\n(.*?)\n```$", text, re.MULTILINE | re.DOTALL):
            count += 1
            assert math.count("{") == math.count("}")
            assert math.count(r"\left") == math.count(r"\right")
            rest = re.sub(r"\\(?:mathrm|text|texttt|frac)\{[^{}]*\}|\\[A-Za-z]+", "", math)
            assert not re.search(r"[A-Za-z]{2,}", rest), math
    assert count == sum(len(f.cases) for f in WHOLE.formulas.values())


def test_every_key_of_an_estimate_is_in_the_index() -> None:
    index = made()["README.md"]
    rows = index[index.index("## Find a key of the JSON") : index.index("## Guides")]
    known = set(re.findall(r"`([\w.*]+)`", rows))
    report = estimate("meta-llama/Llama-3.1-8B", gpu="t4", qlora=True, source="catalogue")
    missing = []
    for key in flat(report.to_dict()):
        path = key.split(".")
        heads = {".".join(path[:i]) for i in range(1, len(path) + 1)}
        if not known & (heads | {f"{path[0]}.*"}):
            missing.append(key)
    assert missing == []


def test_every_printed_label_is_in_the_index() -> None:
    index = made()["README.md"]
    rows = index[: index.index("## Find a key of the JSON")]
    for formula in RULES.components:
        assert f"| {plain(formula.title)} |" in rows
    for status in RULES.statuses:
        assert plain(status.title) in rows
    source = (ROOT / "cli" / "verdict.py").read_text(encoding="utf-8")
    labels = re.findall(r'append\(\(\(?"([a-z -]+)"|rows\(\[\("([a-z -]+)"', source)
    words = {a or b for a, b in labels} - {"rules"}
    assert {"headroom", "micro-batch", "spread"} <= words
    assert [w for w in words if w not in rows] == []


class EditorLoader(yaml.SafeLoader):
    """YAML as an editor reads it: `1_024` is a text, and only true and false are truths."""

    yaml_implicit_resolvers: Any = {}  # noqa: RUF012


for _tag, _form, _first in (
    ("bool", r"true|false", "tf"),
    ("int", r"-?(?:0|[1-9][0-9]*)", "-0123456789"),
    ("float", r"-?(?:0|[1-9][0-9]*)\.[0-9]+", "-0123456789"),
):
    EditorLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_form})\Z"), list(_first)
    )


def as_json(value: Any) -> Any:
    """Keys as text, which is what a schema sees."""
    if isinstance(value, dict):
        return {str(key): as_json(inner) for key, inner in value.items()}
    return [as_json(inner) for inner in value] if isinstance(value, list) else value


def kind_of(folder: str, stem: str) -> str:
    folder = folder.removesuffix("/serving")
    if folder == "formulas":
        return stem if stem in (*SPECIAL, HEAD) else "formula"
    named = {
        "gpus": "card",
        "profiles/models": "model",
        "profiles/statuses": "status",
        "profiles/architectures": "architecture",
        "profiles/blocks": "block",
        "profiles/importers": "importer",
    }
    return named.get(folder, "profile")


def problems(kind: str, text: str) -> list[str]:
    schema = json.loads(made()[f"schema/{kind}.json"])
    data = as_json(yaml.load(text, EditorLoader))
    return [e.message for e in jsonschema.Draft202012Validator(schema).iter_errors(data)]


def test_an_editor_finds_nothing_wrong_with_the_bundled_files() -> None:
    for name, text in made().items():
        if name.startswith("schema/"):
            jsonschema.Draft202012Validator.check_schema(json.loads(text))
    for folder in rule_folders(RULES.roots):
        for stem, (path, said, _) in files_of(RULES.roots, folder).items():
            text = Path(path).read_text(encoding="utf-8")
            assert problems(kind_of(folder, stem), text) == [], said


def test_an_editor_finds_a_misspelled_field_and_takes_new_words() -> None:
    text = (ROOT / "formulas" / "gradients.yaml").read_text(encoding="utf-8")
    assert "excludez" in problems("formula", text.replace("excludes:", "excludez:"))[0]
    assert problems("formula", text.replace("flags: [lora]", "flags: [mine]")) == []
    assert problems("formula", text.replace("value: 4,", "value: four,")) == []  # lint's to say
    assert problems("formula", text.replace("kind: source", "kind: sauce", 1))


def test_an_editor_completes_what_exists() -> None:
    schema = json.loads(made()["schema/formula.json"])["properties"]
    assert schema["live"]["items"]["anyOf"][0]["enum"] == [*WHOLE.phases, "always"]
    assert schema["flags"]["items"]["anyOf"][0]["enum"] == list(WHOLE.flags.flags)
    assert "total" in schema["reads"]["items"]["anyOf"][0]["enum"]
    assert schema["cases"]["description"]
    matches = json.loads(made()["schema/profile.json"])["properties"]["matches"]["properties"]
    assert "t4" in matches["card"]["anyOf"][0]["enum"] and "quant" in matches


def test_an_editor_knows_architectures_and_blocks() -> None:
    made_of = json.loads(made()["schema/architecture.json"])
    extends = made_of["properties"]["extends"]["anyOf"][0]["enum"]
    assert "decoder" in extends and "encoder-decoder" not in extends
    assert made_of["$defs"]["block"]["anyOf"][0]["enum"] == list(RULES.blocks)
    architecture = (ROOT / "profiles/architectures/decoder.yaml").read_text(encoding="utf-8")
    block = (ROOT / "profiles/blocks/attention.yaml").read_text(encoding="utf-8")
    assert problems("architecture", architecture.replace("attention,", "mine,")) == []
    assert problems("architecture", architecture.replace("layer_groups:", "layergroups:"))
    assert problems("architecture", architecture.replace("type: boolean", "type: bool"))
    assert "defalts" in problems("block", block.replace("defaults:", "defalts:"))[0]
    assert problems("block", block.replace("part: norm", "part: nrom"))
    assert json.loads(made()["schema/block.json"])["properties"]["defaults"]["description"]
    lists = json.loads(made()["schema/formula.json"])["properties"]["per"]["anyOf"][0]["enum"]
    assert {"layer_groups", "all_groups", "tower_groups"} <= set(lists)


def test_pages_of_files_that_are_gone_are_removed(tmp_path: Path) -> None:
    made_by = f"<!-- {MADE} -->\n"
    first = {"README.md": "a\n", "cards/x.md": made_by, "profiles/k/y.md": made_by}
    assert bring_up_to_date(first, str(tmp_path)) == (list(first), [])
    by_hand = [tmp_path / "mine.md", tmp_path / "cards" / "mine.md", tmp_path / "cards" / "my.txt"]
    for path in by_hand:
        path.write_text("mine\n", encoding="utf-8")
    (tmp_path / "cards" / "folder.md").mkdir()
    second = {**first, "cards/z.md": "d\n"}
    del second["cards/x.md"]
    assert left_over(second, str(tmp_path)) == ["cards/x.md"]
    assert bring_up_to_date(second, str(tmp_path)) == (["cards/z.md"], ["cards/x.md"])
    assert bring_up_to_date(second, str(tmp_path)) == ([], [])
    assert all(path.exists() for path in by_hand)


def test_pages_and_schemas_say_that_they_are_generated() -> None:
    for name, text in made().items():
        if "/" in name or name == "README.md":
            assert MADE in text[:100], name


def test_line_ends_of_another_system_are_no_difference(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"one\r\ntwo\r\n")
    assert differing({"a.md": "one\ntwo\n"}, str(tmp_path)) == {}


def test_text_of_a_file_cannot_become_markup(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        """\
id: mine
title: "A | B <script>alert(1)</script> [x](y) `z`"
status: draft
unit: byte
live: [step]
counts: "*bold* <img src=x> a | b"
constants:
  each: {value: 7, unit: byte, meaning: "`</td>` | x", evidence: [e]}
cases:
  - {id: all, expr: each, says: "see [here](javascript:x) | {each}", evidence: [e]}
claims: {nonnegative: true}
evidence:
  e: {kind: assumption, where: "<b>x</b> | y", says: "a | b"}
examples:
  - {name: "a | b", given: {}, expect: 7}
""",
        encoding="utf-8",
    )
    rules = rules_for((str(tmp_path),))
    found = pages(rules)
    page = found["components/mine.md"]
    assert not re.search(r"(?<!\\)<(?!!-- Made by)", prose(page))
    assert not {"javascript:x", "y"} & set(LINK.findall(prose(page)))
    for line in page.split("\n"):
        if line.startswith("| mine"):
            assert len(re.findall(r"(?<!\\)\|", line)) == 6
    assert "no run that uses it is called safe" in page
    assert f"`{tmp_path / 'mine.yaml'}`" in page
    assert "components/mine.md" in found["README.md"]


def test_a_claim_that_is_only_sampled_or_refuted_says_so() -> None:
    formula = RULES.formulas["optimizer"]
    one, two = (c.id for c in formula.cases)
    found = [
        Proof("optimizer", "", one, "never negative", "proved"),
        Proof("optimizer", "", two, "never negative", "sampled"),
        Proof("optimizer", "", "", "rises with x", "refuted", "x = 1 gives 2"),
    ]
    text = "\n".join(claims(formula, found))
    assert f"| never negative | proved in {one}; sampled in {two} |" in text
    assert "refuted: x = 1 gives 2" in text


def test_a_wrong_example_is_marked() -> None:
    from fitcheck.engine.record import replace
    from fitcheck.engine.workshop.examples import run_examples

    formula = RULES.formulas["optimizer"]
    tried = [replace(t, problem="differs") for t in run_examples(RULES, formula)]
    assert " WRONG |" in formula_page(Book(RULES), formula, [], tried)


def test_pieces_of_markdown() -> None:
    assert plain("a_b  *c*\n| d") == r"a\_b \*c\* \| d"
    assert code("a | b") == r"`a \| b`" and code("`a`") == "`` `a` ``" and code("") == ""
    assert sentence("{a} of {b | percent} a_b") == r"`{a}` of `{b}` a\_b"
    assert table(("a",), []) == []
    assert "https://arxiv.org/abs/1910.02054" in origin("a/b.md", "arXiv:1910.02054, section 3")
    ours = origin("a/b.md", "measurement/evidence/t4_training.jsonl, some rows")
    assert ours.endswith("(../../measurement/evidence/t4_training.jsonl), some rows")
    theirs = origin("a.md", "org/name@0ab:src/x.py#L1-L2")
    assert theirs.endswith("(https://github.com/org/name/blob/0ab/src/x.py#L1-L2)")
    assert folded("a and (b or c) and d") == ["a", "  and (b", "    or c)", "  and d"]
    assert "".join(wrapped("x = " + " + ".join(["long_name"] * 20))).count("long_name") == 20
    assert max(map(len, wrapped("x = " + " + ".join(["long_name"] * 20)))) <= 103
    book = Book(RULES)
    assert book.file("a/b.md", Mark("formulas/x.yaml", 1, 1), False, 3) == (
        "[formulas/x.yaml:3](../../formulas/x.yaml#L3)"
    )
    assert book.file("a/b.md", Mark("mine/x.yaml", 1, 1), True) == "`mine/x.yaml`"
    assert book.named("a/b.md", "nothing") == "`nothing`"
