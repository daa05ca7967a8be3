"""Gates in reports: numbers over draws, the claim built for each verdict, and what is shown."""

from itertools import combinations, permutations, product

import pytest
from synthetic_runs import measure, write_plan, write_run

from isogloss.oldreports import write_report
from isogloss.oldreports.gate_claims import gate_claims
from isogloss.oldreports.gate_figures import gate_figures
from isogloss.oldreports.gate_tables import MaskLikeness, Masks, SpecificGates, alike_over_draws, gate_tables
from isogloss.oldreports.typed_rows import typed

CODES = ("en", "fr", "ru")
OWN = {"attention": 0.81, "feed-forward": 0.64}
KINDS = tuple(OWN)
SHAKE = (-0.01, 0.01, 0.0)
LAYERS = range(1, 5)


def rows(*, shared=0.8, fall=0.05, attention=0.05, draws=3, own=OWN, kinds=KINDS):
    """Give rows in which corrected likeness falls by layer and from attention to feed-forward."""

    def row(one, other, part, share):
        (first, draw), (second, also) = one, other
        layer, module = part
        noise = own.get(module, 0.7)
        found = noise if first == second else noise * (share + SHAKE[draw % 3])
        return {
            **{"encoder": "mini", "first": first, "first_draw": draw, "second": second, "second_draw": also},
            **{"layer": layer, "module": module, "gates": 64, "cosine": found, "correlation": found / 2},
            **{"open_cosine": found, "overlap": found, "only_first": 5, "only_second": 3},
        }

    more = {"attention": attention, "feed-forward": -attention}
    for one, other in combinations(product(CODES, range(draws)), 2):
        yield row(one, other, (None, "all"), shared)
        for kind in kinds:
            yield row(one, other, (None, kind), shared + more[kind])
            for layer in LAYERS:
                yield row(one, other, (layer, kind), shared - fall * layer + more[kind])


def others(draws=3):
    """Give perplexities, kept shares and language-specific gates."""
    about = {"encoder": "mini"}
    for mask, draw in (("", None), *product(CODES, range(draws))):
        for code in CODES:
            worse = 0 if not mask else 10 if mask == code else 50
            yield {
                **about,
                "language": code,
                "mask": mask,
                "draw": draw,
                "perplexity": 40.0 + worse + (draw or 0),
            }
    for mask, draw in product(CODES, range(draws)):
        kept = {"layer": None, "module": "all", "parameters": 1000, "kept": 0.5, "expected": 0.49}
        yield {**about, "mask": mask, "draw": draw, **kept}
    for keeps, prunes in permutations(CODES, 2):
        for module, count in (("attention", 4), ("feed-forward", 12), ("all", 16)):
            where = {"layer": None, "module": module, "gates": count, "of": 200, "parameters": 5 * count}
            yield {**about, "keeps": keeps, "prunes": prunes, **where}


def masks(**how):
    return [typed(MaskLikeness, row) for row in rows(**how)]


# Numbers


def test_numbers_are_means_over_pairs_of_draws_and_corrected_by_both_languages_own():
    over = {(one.first, one.second, one.layer, one.module): one for one in alike_over_draws(masks())}
    control = over["en", "en", 2, "attention"]
    assert (control.pairs, control.cosine, control.corrected) == (3, pytest.approx(0.81), None)
    found = over["en", "ru", 2, "attention"]
    assert found.pairs == 9
    assert found.corrected == pytest.approx(0.8 - 0.1 + 0.05)
    assert found.cosine == pytest.approx(0.81 * 0.75)
    assert found.correlation_corrected == pytest.approx(0.75)


def test_without_a_second_draw_nothing_is_corrected():
    assert {one.corrected for one in alike_over_draws(masks(draws=1))} == {None}


# The claim


def verdict(**how):
    (claim,) = gate_claims(masks(**how))
    return claim.letter, claim.verdict


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ({}, "supported"),
        ({"fall": -0.03}, "refuted"),
        ({"attention": -0.05}, "refuted"),
        ({"draws": 1}, "not tested"),
        ({"own": dict.fromkeys(KINDS, 0.01)}, "not tested"),
        ({"kinds": ("attention",)}, "not tested"),
        ({"kinds": ("attention",), "fall": -0.03}, "refuted"),
    ],
)
def test_each_half_of_the_claim_can_refute_it_and_noise_tests_nothing(how, expected):
    assert verdict(**how) == ("n", expected)


def test_the_claim_says_its_numbers():
    (claim,) = gate_claims(masks())
    assert "ρ −1.00 (−1.00) of layer and cosine, p = 0.0000, n = 3" in claim.number
    assert "attention minus feed-forward 0.10 (0.10)" in claim.number


def test_nothing_is_claimed_where_nothing_was_measured():
    assert gate_claims([]) == ()


# What is shown


def test_tables_have_the_control_on_the_diagonal_and_corrected_cosines_in_brackets():
    found = Masks(likeness=masks(), perplexities=[])
    assert gate_tables(found) == []
    tables = {table.name: table for table in gate_tables(everything())}
    first = tables["gates-attention-mini"].rows
    assert [row[0].text for row in first] == ["English (en)", "French (fr)", "Russian (ru)"]
    assert first[0][1].text == "0.81 ± 0.00"
    assert first[0][1].mark == "source"
    assert first[0][2].text == first[1][1].text == "0.69 ± 0.01 (0.85)"
    assert {"gates-all-mini", "gates-feed-forward-mini", "gates-parts-mini"} <= tables.keys()


def everything():
    from isogloss.oldreports.gate_tables import MaskKept, MaskPerplexity

    kinds = {"perplexity": MaskPerplexity, "expected": MaskKept, "prunes": SpecificGates}
    parted = {name: [typed(kind, row) for row in others() if name in row] for name, kind in kinds.items()}
    return Masks(
        likeness=masks(),
        perplexities=parted["perplexity"],
        kept=parted["expected"],
        specific=parted["prunes"],
    )


def test_the_table_of_perplexities_sets_each_mask_against_each_language():
    (table,) = [one for one in gate_tables(everything()) if one.name == "gates-perplexity-mini"]
    shown = [[cell.text for cell in row] for row in table.rows]
    assert shown[0] == ["whole", "100.0", "40.0", "40.0", "40.0"]
    assert shown[2] == ["pruned for French (fr)", "50.0", "91.0 ± 1.0", "51.0 ± 1.0", "91.0 ± 1.0"]
    assert table.rows[2][3].mark == "source"


def test_the_table_of_specific_gates_names_who_keeps_and_who_prunes():
    (table,) = [one for one in gate_tables(everything()) if one.name == "gates-specific-mini"]
    assert [cell.text for cell in table.rows[0]] == [
        *("English (en)", "French (fr)", "4 (2.0)", "12 (6.0)", "16 (8.0)", "80")
    ]
    assert len(table.rows) == 6


def test_layers_are_drawn_by_cosine_and_by_correlation():
    by_cosine, by_correlation = gate_figures(masks())
    assert by_cosine.name == "gates-layers-cosine-mini"
    assert "en–fr attention 0.59 and feed-forward 0.40" in by_cosine.alt
    assert "en–fr attention 0.29" in by_correlation.alt
    assert by_cosine.svg == gate_figures(masks())[0].svg


def test_one_layer_or_one_language_is_no_line():
    assert gate_figures([row for row in masks() if row.layer in (None, 2)]) == []
    assert gate_figures([row for row in masks() if row.first == row.second]) == []


def test_gates_of_attention_alone_are_drawn_without_a_control_too():
    assert len(gate_figures(masks(kinds=("attention",), draws=1))) == 2


def test_a_report_shows_gates_and_tests_the_claim(tmp_path):
    names = [write_run(tmp_path, "gates", measure("language-gates", [*rows(), *others()]))]
    write_plan(tmp_path, names)
    report = write_report(tmp_path)
    assert report.warnings == ()
    assert {path.stem for path in report.figures} == {
        "gates-layers-cosine-mini",
        "gates-layers-correlation-mini",
    }
    assert [claim.verdict for claim in report.claims if claim.letter == "n"] == ["supported"]
    page = report.html.read_text(encoding="utf-8")
    for part in ('id="language-gates"', "Perplexity under masks", "Gates that only one language keeps"):
        assert part in page
    assert not [path for path in report.tables if path.stem.startswith("other")]


def test_a_broken_row_is_named_and_left_out(tmp_path):
    broken = [{**row, "gates": "many"} if number == 0 else row for number, row in enumerate(rows())]
    write_plan(tmp_path, [write_run(tmp_path, "gates", measure("language-gates", [*broken, *others()]))])
    assert any(
        "'gates' is 'many', not a whole number" in warning for warning in write_report(tmp_path).warnings
    )
