"""The suites of other projects that our functions are compared with: each has a test here that exists.

A clone is read from ``--clones DIR``, where it is named owner+name; its test is skipped without it.
"""

import ast
from pathlib import Path
from typing import NamedTuple

import pytest


class Suite(NamedTuple):
    """A function that is compared with a project, and the test that compares it."""

    project: str
    """GitHub repository of a clone, or a package that is installed."""
    compared: str
    test: str
    """File and function."""


SCORERS = "metrics/test_beside_scorers.py"
STATISTICS = "features/translation/test_beside_statistics.py"
READERS = "data/test_beside_readers.py"
ALIGNERS = "features/statistical_alignment/test_beside_aligners.py"
MINING = "diagnostics/test_beside_mining.py"
OTHERS = "functional/test_beside_other_projects.py"

SUITES = [
    Suite("seqeval", "F1 of spans", f"{OTHERS}::test_spans_are_scored_as_by_seqeval"),
    Suite(
        "chakki-works/seqeval",
        "tables of schemes",
        f"{SCORERS}::test_spans_are_those_of_the_tables_of_seqevals_tests",
    ),
    Suite(
        "seqeval", "all short sentences", f"{SCORERS}::test_spans_of_all_short_sentences_are_those_of_seqeval"
    ),
    Suite(
        "chakki-works/seqeval", "conlleval.pl", f"{SCORERS}::test_chunks_and_accuracy_are_those_of_conlleval"
    ),
    Suite(
        "ufal/conll2018",
        "UPOS, UAS, LAS, CLAS",
        f"{SCORERS}::test_trees_are_scored_as_by_the_evaluation_of_conll_2018",
    ),
    Suite(
        "UniversalDependencies/tools",
        "valid and invalid files",
        f"{READERS}::test_valid_files_of_the_validator_are_read_and_invalid_ones_read_or_refused",
    ),
    Suite(
        "EmilStenstrom/conllu",
        "texts of its tests",
        f"{READERS}::test_texts_of_conllus_tests_have_the_same_words_or_are_refused",
    ),
    Suite(
        "pyconll/pyconll",
        "files of its tests",
        f"{READERS}::test_files_of_other_projects_tests_have_the_words_that_conllu_reads",
    ),
    Suite("facebookresearch/MLQA", "answers", f"{OTHERS}::test_answers_are_scored_as_by_the_script_of_mlqa"),
    Suite(
        "google-research/xtreme",
        "odd answers",
        f"{SCORERS}::test_odd_answers_are_scored_as_by_the_script_of_squad",
    ),
    Suite(
        "google-research/xtreme",
        "files of answers",
        f"{SCORERS}::test_files_of_answers_are_scored_as_by_the_script_of_squad",
    ),
    Suite(
        "neulab/awesome-align", "AER", f"{SCORERS}::test_links_are_scored_as_by_the_script_of_awesome_align"
    ),
    Suite("cisnlp/simalign", "AER", f"{SCORERS}::test_links_are_scored_as_by_the_script_of_simalign"),
    Suite("clab/fast_align", "atools", f"{ALIGNERS}::test_intersection_and_union_are_those_of_atools"),
    Suite(
        "moses-smt/mosesdecoder",
        "symal",
        f"{ALIGNERS}::test_links_are_those_of_moses_with_the_languages_exchanged",
    ),
    Suite("clab/fast_align", "links", f"{ALIGNERS}::test_links_are_those_of_the_program_fast_align"),
    Suite("eflomal", "links", f"{ALIGNERS}::test_links_are_about_those_of_eflomals_own_front_end"),
    Suite("google-research/xtreme", "mining", f"{MINING}::test_pairs_and_threshold_are_those_of_xtreme"),
    Suite("facebookresearch/LASER", "xsim", f"{MINING}::test_errors_of_retrieval_are_those_of_lasers_xsim"),
    Suite(
        "torch",
        "formulas of CKA",
        "features/representations/test_cka.py::test_the_debiased_form_is_song_and_others_equation_5",
    ),
    Suite("peft", "TIES", f"{OTHERS}::test_ties_with_scale_1_is_that_of_peft"),
    Suite("arcee-ai/mergekit", "kept changes", f"{OTHERS}::test_as_many_changes_are_kept_as_by_mergekit"),
    Suite("peft", "methods", "encoders/test_peft_products.py::test_every_method_of_peft_gives_its_numbers"),
    Suite(
        "peft",
        "families and heads",
        "encoders/test_peft_products.py::test_every_family_and_head_gives_its_numbers",
    ),
    Suite(
        "transformers",
        "heads",
        "using/test_foreign_heads.py::test_trained_heads_of_every_family_predict_as_in_transformers",
    ),
    Suite(
        "adapters",
        "adapters of languages",
        "features/publishing/test_adapterhub.py::test_a_languages_adapter_gives_the_librarys_states_and_scores",
    ),
    Suite(
        "adapters",
        "adapters of tasks",
        "features/publishing/test_adapterhub.py::test_a_task_stacks_on_a_language_as_in_the_library",
    ),
    Suite("statsmodels", "McNemar", f"{STATISTICS}::test_mcnemars_test_is_that_of_statsmodels"),
    Suite("statsmodels", "Holm", f"{STATISTICS}::test_holms_correction_is_that_of_statsmodels"),
    Suite("statsmodels", "power", f"{STATISTICS}::test_power_and_the_seeds_needed_are_those_of_statsmodels"),
    Suite("scikit-learn", "scores of classes", f"{OTHERS}::test_classes_are_scored_as_by_scikit_learn"),
    Suite("sacrebleu", "BLEU and chrF", f"{STATISTICS}::test_bleu_and_chrf_are_those_of_sacrebleu"),
    Suite(
        "datasets",
        "features and formats",
        "recipes/test_described_rows.py::test_a_formatted_dataset_has_the_rows_of_one_without_a_format",
    ),
    Suite(
        "numbers as labels",
        "one reading of a file",
        "features/described_corpora/test_label_cells.py::test_numbers_are_labels_or_positions_in_the_whole_file",
    ),
    Suite(
        "machamp-nlp/machamp",
        "words of odd files",
        f"{READERS}::test_odd_files_have_the_words_that_machamp_reads",
    ),
    Suite("langcodes", "codes", f"{READERS}::test_codes_of_three_letters_are_those_of_langcodes"),
    Suite(
        "rspeer/langcodes",
        "examples of tags",
        f"{READERS}::test_tags_of_the_examples_of_langcodes_have_its_language",
    ),
]


@pytest.mark.parametrize("suite", SUITES, ids=lambda suite: f"{suite.project}, {suite.compared}")
def test_a_suite_has_a_test_that_exists(suite):
    file, function = suite.test.split("::")
    path = Path(__file__).parent / file
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert function in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
