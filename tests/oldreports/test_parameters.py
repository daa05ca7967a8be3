"""The table of how large encoders are."""

from synthetic_runs import write_plan, write_run

from isogloss.oldreports.gather import gather, run_rows
from isogloss.oldreports.parameters import parameter_table
from isogloss.oldreports.rows import Parameters, PretrainStep


def counted(shared, **own):
    yield {"step": 20, "loss": 5.0, "rate": 1e-3}
    yield {"language": "", "parameters": shared}
    for language, count in own.items():
        yield {"language": language, "parameters": count}


def written(folder, **encoders):
    names = [
        write_run(folder, f"a{number}", {"kind": "pretrain", "title": f"encoder {name}", "rows": list(rows)})
        for number, (name, rows) in enumerate(encoders.items())
    ]
    write_plan(folder, names)
    return gather(folder).finished("pretrain")


def test_the_table_has_what_is_shared_and_what_each_language_has(tmp_path):
    runs = written(tmp_path, joint=counted(1500), modular=counted(1000, en=250, fr=250))
    (table,) = parameter_table(runs)
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["joint", "1,500", "none", "1,500", "1,500"],
        ["modular", "1,000", "250 (English (en), French (fr))", "1,250", "1,500"],
    ]
    assert [row["parameters"] for row in table.data] == [1500, 1000, 250, 250]


def test_seeds_of_one_encoder_are_one_line(tmp_path):
    rows = list(counted(1500))
    names = [
        write_run(tmp_path, f"a{seed}", {"kind": "pretrain", "title": "encoder joint", "rows": rows})
        for seed in range(3)
    ]
    write_plan(tmp_path, names)
    (table,) = parameter_table(gather(tmp_path).finished("pretrain"))
    assert len(table.rows) == len(table.data) == 1


def test_rows_of_steps_and_of_parameters_are_told_apart(tmp_path):
    (run,) = written(tmp_path, joint=counted(1500))
    steps, parameters = run_rows(run, PretrainStep), run_rows(run, Parameters)
    assert [len(rows) for rows, _ in (steps, parameters)] == [1, 1]
    assert not steps[1] and not parameters[1]


def test_records_without_counts_make_no_table(tmp_path):
    assert parameter_table(written(tmp_path, old=[{"step": 1, "loss": 2.0}])) == []
