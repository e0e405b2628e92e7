"""Serving rows from CSV: other names of columns, and what is wrong by line and column."""

import pytest

from labkit.plan.recorded_serving import ROWS
from labkit.plan.serving_table import read_serving_table


def written(tmp_path, text):
    path = tmp_path / "rows.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_columns_of_the_recorded_rows_are_read(tmp_path):
    lines = ["backend,isl,osl,batch_size,tp_size,silicon_ttft_ms,silicon_tpot_ms"]
    lines += [
        f"vllm,{r.prompt_tokens},{r.output_tokens},{r.concurrency}.0,{r.tp}.0,"
        f"{1e3 * r.ttft!r},{1e3 * r.tpot!r}"
        for r in ROWS
    ]
    rows = read_serving_table(written(tmp_path, "\n".join(lines)), length_share=0.9)
    assert [(r.layout, r.concurrency, r.length_share) for r in rows] == [
        (r.layout, r.concurrency, r.length_share) for r in ROWS
    ]
    assert [r.tpot for r in rows] == pytest.approx([r.tpot for r in ROWS])


def test_an_empty_time_is_one_that_was_not_measured(tmp_path):
    text = "TP,prompt_tokens,output_tokens,concurrency,ttft_ms,tpot_ms,ep\n2,10,20,3,,5,\n"
    (row,) = read_serving_table(written(tmp_path, text))
    assert (row.ttft, row.tpot, row.ep) == (0.0, 5e-3, 1)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("tp,isl,osl\n", "it lacks concurrency: concurrency or batch_size"),
        ("tp,isl,osl,concurrency\n", "it lacks tpot_ms"),
        ("", "it lacks tp"),
        ("tp,isl,osl,concurrency,tpot_ms\n2,a,20,3,5", "line 2: isl is 'a'"),
        ("tp,isl,osl,concurrency,tpot_ms\n2,,20,3,5", "line 2: isl is ''"),
        ("tp,isl,osl,concurrency,tpot_ms\n2,10,20,3,5\n2,10,20,0,5", "line 3: concurrency is 0"),
        ("tp,isl,osl,concurrency,tpot_ms\n2,10,20,1.5,5", "line 2: concurrency is 1.5"),
        ("tp,isl,osl,concurrency,tpot_ms\n2,nan,20,1,5", "line 2: prompt_tokens is nan"),
    ],
)
def test_a_bad_table_is_refused_by_line_and_column(tmp_path, text, named):
    with pytest.raises(ValueError, match=named):
        read_serving_table(written(tmp_path, text))
