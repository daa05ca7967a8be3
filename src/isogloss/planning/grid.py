"""Expand the [grid] of a recipe to its models, and check every combination, name and file."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby, product

from isogloss.core.errors import ConfigError, add_location, check_named
from isogloss.core.languages import check_language
from isogloss.core.run_parts import Optimization, with_fields
from isogloss.data.corpus import Split, is_translation
from isogloss.data.sources import Sources, Treebanks, combined_fingerprint
from isogloss.encoders import FAMILIES
from isogloss.methods.plain import SourceOnly
from isogloss.planning.alignments import AlignmentRequest, alignments, links_subwords
from isogloss.planning.encoders import seeds_for
from isogloss.planning.methods import (
    OF_METHODS,
    OF_TRAINING,
    MethodEntry,
    all_changes,
    changes_of,
    check_patience,
    check_reads,
    combination,
    dependencies_of,
    fill_seed,
    given_model,
    method_entries,
    optimization_of,
    sort_by_dependency,
)
from isogloss.planning.tasks import labels_of, learned_tasks, package_of, tasks_of, treebanks_of
from isogloss.planning.translations import (
    RecipeTranslator,
    TranslationRequest,
    check_labels,
    check_links,
    needs_tags,
)
from isogloss.recipes.checking import refuse_empty_or_twice
from isogloss.recipes.recipe import GridTable, Recipe, Table, many
from isogloss.runs.average import AverageRequest, build_average
from isogloss.runs.fine_tune import FineTune, LearnedTask
from isogloss.runs.pretrained import identify_encoder
from isogloss.runs.run import Encoder, LinkedBitext
from isogloss.runs.translate import Translate
from isogloss.tasks import find_task
from isogloss.training.setting import AuxiliaryLoss, Combination, Method, Reads


@dataclass(frozen=True, kw_only=True)
class Planning:
    """A recipe whose grid and measurements are planned."""

    recipe: Recipe
    sources: Sources
    encoders: Mapping[Encoder, str]
    """Its encoders, each with the label that methods and measurements choose it by."""
    translators: Sequence[RecipeTranslator] = ()


@dataclass(frozen=True, kw_only=True)
class GridCell:
    """Models that differ only in their method: one encoder, corpus, source, target, seed."""

    encoder: Encoder
    corpus: str
    task: str
    labels: tuple[str, ...] | None
    """Labels of the corpus, for a task of any labels."""
    source: tuple[str, ...]
    target: str
    """As the grid names it: one language, or several joined by +."""
    seed: int
    treebanks: Treebanks
    examples: int
    dev_examples: int
    changes: Table
    """Fields of the optimization that differ from the default."""
    models: dict[str, FineTune] = field(default_factory=dict)
    """Models by the label of their method, filled while the grid is planned."""
    against: Mapping[str, str] = field(default_factory=dict)
    """For the label of each method, the label of its baseline in the recipe."""

    @property
    def targets(self) -> tuple[str, ...]:
        """The target languages that are not source languages."""
        return tuple(language for language in self.target.split("+") if language not in self.source)


def cells(planning: Planning) -> list[GridCell]:
    """Expand the grid: the product of encoders, corpora, sources, targets, optimizations and seeds.

    Methods that read translations occur once for each translator of the recipe.
    """
    grid = planning.recipe.grid
    if grid is None:
        return []
    with add_location("grid"):
        _check_lists(grid)
        entries = method_entries(grid, planning.translators)
        grid_cells = list(_cells(grid, planning))
    groups = [list(group) for _, group in groupby(grid_cells, lambda cell: replace(cell, seed=0))]
    for entry in sort_by_dependency(entries):
        for seeds in groups:
            if _trains_in(entry, seeds[0], grid, planning.encoders):
                _add(planning, entry, seeds, dependencies_of(entry, entries))
    # In the order of the recipe, not of dependencies.
    labels = [entry.label for entry in entries]
    against = _against(entries)
    return [
        replace(
            cell,
            models={label: cell.models[label] for label in labels if label in cell.models},
            against=against,
        )
        for cell in grid_cells
    ]


def _against(entries: Sequence[MethodEntry]) -> dict[str, str]:
    """Return the baselines that the recipe names, by label.

    Raises ConfigError for an unknown baseline.
    """
    comparisons = [entry for entry in entries if entry.choice.against]
    for entry in comparisons:
        candidates = [candidate.label for candidate in entries if candidate.label != entry.label]
        with add_location(entry.table):
            check_named("against", "other method of this grid", candidates, entry.choice.against)
    return {entry.label: entry.choice.against for entry in comparisons}


def _add(
    planning: Planning, entry: MethodEntry, seeds: Sequence[GridCell], dependencies: Sequence[tuple[str, str]]
) -> None:
    """Build the models of a method in cells that differ in their seed, where its dependencies were built.

    An average of several seeds belongs to the cell of the first seed, and so do models that start from it.
    """
    ready_cells = [cell for cell in seeds if all(label in cell.models for _, label in dependencies)]
    if not ready_cells:
        field, missing = next(
            pair for pair in dependencies if all(pair[1] not in cell.models for cell in seeds)
        )
        with add_location(entry.table):
            raise ConfigError(
                f"{field}: {missing!r} is not trained for target {seeds[0].target!r}. "
                "Add it to that method's targets, or take it out of these."
            )
    if entry.method.weights_from == "parts":
        with add_location(entry.table):
            _add_averages(planning, entry, combination(entry.method), ready_cells)
    else:
        for cell in ready_cells:
            cell.models[entry.label] = _build_started(planning, cell, entry)


def _add_averages(
    planning: Planning, entry: MethodEntry, method: Combination, seeds: Sequence[GridCell]
) -> None:
    check_reads(method, method.reads(seeds[0].source, seeds[0].targets), OF_TRAINING)
    _check_method(planning, seeds[0], entry)
    size = entry.choice.size or len(seeds)
    if len(seeds) % size:
        raise ConfigError(
            f"size: {len(seeds)} seeds of one encoder do not make averages of {size}. Give a "
            "size that divides them, 0 for one average of all, or other seeds."
        )
    for begin in range(0, len(seeds), size):
        request = AverageRequest(
            method=method,
            of=entry.choice.of,
            members=[cell.models for cell in seeds[begin : begin + size]],
            seed=seeds[begin].seed,
            encoder=seeds[begin].encoder,
            encoders=planning.encoders,
            sources=planning.sources,
        )
        seeds[begin].models[entry.label] = build_average(request)


def _trains_in(entry: MethodEntry, cell: GridCell, grid: GridTable, built: Mapping[Encoder, str]) -> bool:
    """Return whether a method is trained in a cell: from its source, for its target, on its encoder."""
    choice = entry.choice
    with add_location(entry.table):
        check_named("encoders", "encoder of this recipe", set(built.values()), *choice.encoders)
    has_encoder = not choice.encoders or built[cell.encoder] in choice.encoders
    has_source = not choice.sources or "+".join(cell.source) in choice.sources
    return has_encoder and has_source and cell.target in (choice.targets or grid.targets)


def _build_started(planning: Planning, cell: GridCell, entry: MethodEntry) -> FineTune:
    """Build a model of a cell with the model it starts from and its teacher, if it has any."""
    with add_location(entry.table):
        name = f"encoder {planning.encoders[cell.encoder]!r}"
        cell.encoder.check_read((*cell.source, *cell.targets), planning.sources.encoders, name)
        if entry.method.weights_from == "model":
            method = given_model(entry.method)
            with add_location("model"):
                existing = identify_encoder(fill_seed(method.model, cell.seed))
            cell = replace(cell, encoder=existing)
            entry = replace(entry, method=with_fields(method, model=existing.label))
        if entry.method.needs_start and not entry.choice.start:
            raise ConfigError(
                f"{entry.method.name} starts from the model of a different method. Name a method "
                f'of this grid: start = "source-only".'
            )
        _check_method(planning, cell, entry)
    choice = entry.choice
    start, teacher = (cell.models[label] if label else None for label in (choice.start, choice.teacher))
    model = _model(planning, cell, entry, all_changes(entry, cell.changes, cell.corpus, cell.task))
    return replace(model, start=start, teacher=_teacher(planning, cell, entry, teacher))


def _cells(grid: GridTable, planning: Planning) -> Iterator[GridCell]:
    sources = planning.sources
    with add_location(".optimization"):
        variants = list(changes_of(grid.optimization))
    pairs = [(corpus, task) for corpus in many(grid.corpus) for task in tasks_of(grid, corpus, sources)]
    for task in many(grid.task):
        if task not in {used_task for _, used_task in pairs}:
            raise ConfigError(f".task: no corpus of this grid has labels for {task!r}. Add one, or drop it.")
    for encoder, (corpus, task), source in product(planning.encoders, pairs, many(grid.source)):
        with add_location(".seeds"):
            seeds = seeds_for(grid.seeds, encoder, planning.encoders)
        for target, changes, seed in product(grid.targets, variants, seeds):
            cell = GridCell(
                encoder=encoder,
                corpus=corpus,
                task=task,
                labels=labels_of(task, corpus, sources),
                source=tuple(source.split("+")),
                target=target,
                seed=seed,
                treebanks=treebanks_of(grid, corpus, sources),
                examples=grid.examples,
                dev_examples=grid.dev_examples,
                changes=changes,
            )
            if cell.targets:
                yield cell


def _model(planning: Planning, cell: GridCell, entry: MethodEntry, changes: Table) -> FineTune:
    sources = planning.sources
    with add_location(entry.table):
        optimization = optimization_of(changes, cell.encoder, cell.task, sources)
    source, target = _languages_used(cell, entry, optimization)
    auxiliary_reads = entry.auxiliary.reads(cell.source, cell.targets) if entry.auxiliary else Reads()
    method_reads = entry.method.reads(source, target).chosen_by(optimization.dev, source, target)
    train = dict.fromkeys((*method_reads.train, *auxiliary_reads.train))
    splits: list[tuple[Split, str]] = [("train", language) for language in train]
    splits += [("dev", language) for language in method_reads.dev]
    with add_location(entry.table):
        translations = _translations(cell, entry, splits, sources)
        check_patience(optimization, entry.method.name, method_reads)
        is_untrained = entry.method.weights_from != "training"
        check_reads(entry.method, method_reads, OF_TRAINING if is_untrained else ())
        if entry.auxiliary:
            with add_location("auxiliary"):
                check_reads(entry.auxiliary, auxiliary_reads, OF_METHODS)
        _check_peft(planning, cell, entry)
        further = _list_learned_tasks(cell, changes, method_reads.tasks, auxiliary_reads.tasks, sources)
        alignment_runs = _list_alignments(planning, cell, entry, method_reads, auxiliary_reads)
    translated_here = {(run.split, run.languages) for run in translations}
    from_files = [pair for pair in splits if pair not in translated_here]
    return FineTune(
        encoder=cell.encoder,
        corpus=cell.corpus,
        task=cell.task,
        labels=cell.labels,
        package=package_of(cell.task),
        method=entry.method,
        auxiliary=entry.auxiliary,
        further=further or None,
        peft=entry.peft,
        source=source,
        target=target,
        optimization=optimization,
        aligned=alignment_runs,
        original=cell.encoder.original if method_reads.original or auxiliary_reads.original else None,
        translated=translations or None,
        treebanks=tuple(pair for pair in cell.treebanks if pair[0] in (*source, *target)),
        examples=cell.examples,
        dev_examples=cell.dev_examples,
        seed=cell.seed,
        data=_fingerprint(cell, entry, from_files, method_reads, sources, further),
    )


def _languages_used(
    cell: GridCell, entry: MethodEntry, optimization: Optimization
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the languages of a cell that a model depends on, as source and as target."""
    uses = {*entry.method.uses, *(entry.auxiliary.uses if entry.auxiliary else ()), optimization.dev}
    source = cell.source if {"source", "all"} & uses else ()
    return source, cell.targets if {"target", "all"} & uses else ()


def _list_learned_tasks(
    cell: GridCell, changes: Table, tasks: Sequence[str], auxiliary_tasks: Sequence[str], sources: Sources
) -> tuple[LearnedTask, ...]:
    """Return the further tasks that a method learns, and ``auxiliary_tasks`` of its auxiliary loss."""

    def lengths(task: str) -> Optimization:
        return optimization_of(changes, cell.encoder, task, sources)

    with add_location("tasks" if tasks else "auxiliary.tasks"):
        further = tuple(dict.fromkeys((*tasks, *auxiliary_tasks)))
        tasks_learned = learned_tasks(further, cell.corpus, lengths, sources)
    source_treebanks = tuple(pair for pair in cell.treebanks if pair[0] in cell.source)
    return tuple(
        replace(task, treebanks=source_treebanks) if sources.has_treebanks(task.corpus) else task
        for task in tasks_learned
    )


def _fingerprint(
    cell: GridCell,
    entry: MethodEntry,
    splits: Sequence[tuple[Split, str]],
    method_reads: Reads,
    sources: Sources,
    further: Sequence[LearnedTask],
) -> str:
    """Return the fingerprint of the files of splits and languages, and of files that are read without labels.

    Raises DataError if a file that is read with labels has none.
    """
    limits: dict[Split, int] = {"train": cell.examples, "dev": cell.dev_examples}
    read = [(cell.corpus, cell.treebanks, splits)]
    source_splits = [(split, language) for split in limits for language in cell.source]
    read += [(task.corpus, task.treebanks, source_splits) for task in further]
    files = []
    with add_location("grid"):
        for corpus, treebanks, corpus_splits in read:
            sources.check_labelled(corpus, corpus_splits, entry.label)
            files += [
                sources.fingerprint(corpus, language, split, treebanks=treebanks, examples=limits[split])
                for split, language in corpus_splits
            ]
        files += [
            sources.fingerprint(
                cell.corpus,
                language,
                method_reads.unlabelled_split,
                treebanks=cell.treebanks,
                examples=limits[method_reads.unlabelled_split],
            )
            for language in method_reads.unlabelled
        ]
    return combined_fingerprint(files)


def _translations(
    cell: GridCell, entry: MethodEntry, splits: Sequence[tuple[Split, str]], sources: Sources
) -> tuple[Translate, ...]:
    """Build the translations that a model reads. Empty if they are read from files."""
    if entry.by is None:
        for part in (entry.method, entry.auxiliary):
            if part:
                check_links(cell.task, part)
        return ()
    check_labels(cell.task, entry.method)
    requests = [
        TranslationRequest(
            corpus=cell.corpus,
            languages=language,
            split=split,
            examples=cell.examples if split == "train" else cell.dev_examples,
            treebanks=cell.treebanks,
            tags=needs_tags(cell.task, entry.method),
            links=any(
                part.reads((), ()).needs_links(find_task(cell.task))
                for part in (entry.method, entry.auxiliary)
                if part
            ),
            encoder=cell.encoder,
        )
        for split, language in splits
        if is_translation(language)
    ]
    return tuple(entry.by.run(request, sources) for request in requests)


def _check_method(planning: Planning, cell: GridCell, entry: MethodEntry) -> None:
    folders = planning.sources.encoders
    facts = cell.encoder.facts(folders) if cell.encoder.folder(folders) else None
    task = find_task(cell.task)
    encoder = facts.config if facts else None
    entry.method.check(task, encoder)
    if entry.auxiliary:
        entry.auxiliary.check(task, encoder)
    cell.encoder.check_layers(entry.method, folders)
    with add_location("auxiliary"):
        cell.encoder.check_layers(entry.auxiliary, folders)


def _check_peft(planning: Planning, cell: GridCell, entry: MethodEntry) -> None:
    folders = planning.sources.encoders
    facts = cell.encoder.facts(folders)
    entry.method.check_peft(entry.peft)
    if entry.peft and facts:
        with planning.sources.assuming_packages():
            entry.peft.check(FAMILIES[facts.family])
    with add_location("peft"):
        cell.encoder.check_layers(entry.peft, folders)


def _teacher(
    planning: Planning, cell: GridCell, entry: MethodEntry, teacher_run: FineTune | None
) -> FineTune | None:
    """Return the model whose predictions are learned, if a method or its auxiliary loss needs one.

    Default: the source-only model with the grid's optimization and peft. It ignores the changes of the
    method, so all methods have the same teacher.
    """
    parts: tuple[Method | AuxiliaryLoss | None, ...] = (entry.method, entry.auxiliary)
    if not any(part.reads((), ()).needs_teacher(find_task(cell.task)) for part in parts if part):
        if teacher_run:
            with add_location(entry.table):
                raise ConfigError(
                    f"teacher: {entry.method.name} learns no model's predictions in "
                    f'{cell.task}. Remove it, or add auxiliary = {{ name = "model-consistency" }}.'
                )
        return None
    if teacher_run:
        return teacher_run
    teacher = replace(entry, method=SourceOnly(), auxiliary=None, peft=entry.teacher_peft, by=None)
    return _model(planning, cell, teacher, cell.changes)


def _list_alignments(
    planning: Planning, cell: GridCell, entry: MethodEntry, method_reads: Reads, auxiliary_reads: Reads
) -> tuple[LinkedBitext, ...] | None:
    """Return the word alignments that a method or its auxiliary loss reads. None if they read no bitext.

    Raises ConfigError if the two read different corpora or units, because a model has one bitext for each
    pair.
    """
    parts: tuple[tuple[Method | AuxiliaryLoss | None, Reads], ...] = (
        (entry.method, method_reads),
        (entry.auxiliary, auxiliary_reads),
    )
    readers = [(part, part_reads) for part, part_reads in parts if part and part_reads.bitext]
    if not readers:
        return None
    forms = {(part_reads.bitext, links_subwords(part)) for part, part_reads in readers}
    if len(forms) > 1:
        readings = " and ".join(
            f"{part.name} reads {'subwords' if links_subwords(part) else 'words'} of {part_reads.bitext!r}"
            for part, part_reads in readers
        )
        raise ConfigError(
            f"bitext: {readings}, and a model has one bitext of each pair of languages. Give both the same, "
            "or remove auxiliary."
        )
    (bitext, subwords), *_ = forms
    pairs = dict.fromkeys(pair for _, part_reads in readers for pair in part_reads.pairs)
    request = AlignmentRequest(planning.recipe.align, subwords=subwords)
    return alignments(request, planning.sources, cell.encoder, bitext, tuple(pairs))


def _check_lists(grid: GridTable) -> None:
    for name in ("corpus", "source", "targets", "seeds", "method"):
        refuse_empty_or_twice(many(getattr(grid, name)), f".{name}")
    sources, targets = ([part.split("+") for part in many(parts)] for parts in (grid.source, grid.targets))
    for name, groups in (("source", sources), ("targets", targets)):
        for languages in groups:
            refuse_empty_or_twice(languages, f".{name}")
            for language in languages:
                check_language(language, f".{name}")
    if all(set(languages) <= set(source) for source in sources for languages in targets):
        raise ConfigError(f".targets: {list(grid.targets)} holds only the source. Name another language.")
    if len(sources) == 1 and (among := set(chain(*targets)) & set(sources[0])):
        raise ConfigError(
            f".targets: the source {' and '.join(sorted(among))} is no target. Remove it; x-mixup pairs a "
            f"source with itself by source_as_target = true."
        )
    check_named(".treebanks", "language of this grid", list(chain(*sources, *targets)), *grid.treebanks)
