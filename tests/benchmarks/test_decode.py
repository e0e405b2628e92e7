"""The decode benchmark's parts: messages, processes, rows, bars, text. No timings."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from safetensors.torch import save_file
from tokenizers import Tokenizer, models

from benchmarks import peers
from benchmarks.bar import Bar, ErrorBar
from benchmarks.bars import bars
from benchmarks.peers.gguf_file import gguf_name, pair_neighbours, write
from benchmarks.plan import FULL, QUICK
from benchmarks.process import SideFailed, SideProcess
from benchmarks.prompts import prompts
from benchmarks.protocol import (
    MARK,
    READY,
    Answer,
    Request,
    decode_answer,
    decode_request,
    encode,
    serve,
)
from benchmarks.readme import RESULT, decode_table
from benchmarks.report import full_report, rank_sentences
from benchmarks.rounds import measure
from benchmarks.rows import Agreement, Row, find, row_from_dict, speedup
from benchmarks.sides import (
    ALL_SIDES,
    BANDWIDTH,
    BOUND,
    DTENSOR,
    LLAMA_CPP,
    OURS,
    OURS_GLOO,
    TRANSFORMERS,
    TRANSFORMERS_TP,
)
from labkit.models.checkpoint import open_checkpoint

REQUEST = Request("float32", 1, [[3, 4, 5]], 4)


def row(side: str, *seconds: float, **overrides) -> Row:
    fields = {"ranks": 1, "threads": 1, "dtype": "float32", "batch": 1} | overrides
    return Row(side=side, seconds_per_step=seconds, **fields)


class TestProtocol:
    def test_messages_survive_the_wire(self):
        answer = Answer(1.5, [[1, 2], [3, 4]], "sdpa")
        assert decode_request(encode(REQUEST)) == REQUEST
        assert decode_answer(MARK + encode(answer)) == answer

    def test_what_a_library_prints_is_no_answer(self):
        assert decode_answer("Loading weights: 100%\n") is None
        assert decode_answer(encode(Answer(1.0))) is None

    def test_a_failing_run_answers_with_its_traceback_and_serves_on(self):
        def run(request: Request) -> Answer:
            if request.new_tokens == 4:
                raise RuntimeError("no room for the cache")
            return Answer(2.0)

        sink = io.StringIO()
        serve(
            run, io.StringIO(f"{encode(REQUEST)}\n{encode(replace(REQUEST, new_tokens=5))}"), sink
        )
        ready, first, second = map(decode_answer, sink.getvalue().splitlines())
        assert ready == READY
        assert first is not None
        assert "no room for the cache" in first.error
        assert second == Answer(2.0)


class TestProcess:
    def test_a_missed_deadline_names_the_side(self):
        process = SideProcess("slow side", "benchmarks.peers.bandwidth")
        with pytest.raises(SideFailed, match="slow side gave no answer within 0 s"):
            process.ask(REQUEST, deadline=0.01)
        with pytest.raises(SideFailed, match="slow side was ended before"):
            process.ask(REQUEST, deadline=60)

    def test_nobody_is_asked_when_no_time_is_left(self):
        process = SideProcess("late side", "benchmarks.peers.bandwidth")
        with pytest.raises(SideFailed, match="late side was not asked"):
            process.ask(REQUEST, deadline=0)
        process.close(patience=0)

    def test_an_early_end_quotes_the_last_words(self):
        process = SideProcess("absent side", "benchmarks.peers.absent")
        with pytest.raises(SideFailed, match=r"absent side ended with exit code 1: .*No module"):
            process.wait_until_ready(60)

    def test_an_exception_is_passed_on(self, tmp_path: Path):
        process = SideProcess(OURS, "benchmarks.peers.ours", str(tmp_path), "1")
        process.wait_until_ready(60)
        with pytest.raises(SideFailed, match=f"{OURS} raised: .*Error"):
            process.ask(REQUEST, deadline=60)
        process.close()


class TestRows:
    def test_agreement_finds_the_first_divergence(self):
        reference = [[1, 2, 3], [4, 5, 6], [7, 8, 9]]
        assert Agreement.of(reference, reference) == Agreement(3, 3, None)
        assert Agreement.of([[1, 2, 0], [4, 0, 6], [7, 8, 9]], reference) == Agreement(1, 3, 1)

    def test_missing_tokens_are_not_agreement(self):
        assert Agreement.of([[1, 2]], [[1, 2, 3]]) == Agreement(0, 1, 2)

    def test_speedup_pairs_rounds(self):
        # A disturbance that slows both sides of a round leaves the ratio alone.
        ours, theirs = row(OURS, 1.0, 10.0, 1.0), row(TRANSFORMERS, 2.0, 20.0, 2.0)
        assert speedup(ours, theirs) == 2.0
        assert speedup(theirs, ours) == 0.5
        assert speedup(row(OURS), theirs) is None
        assert speedup(None, theirs) is None

    def test_tokens_per_second_counts_the_whole_batch(self):
        measured = row(OURS, 0.5, 1.0, 0.25, batch=8)
        assert measured.tokens_per_second == 16.0
        assert measured.spread == (8.0, 32.0)
        assert row(OURS, error="killed").tokens_per_second is None

    @given(
        seconds=st.lists(st.floats(1e-6, 10.0), max_size=5),
        agreement=st.none() | st.builds(Agreement, st.integers(0), st.integers(0), st.none()),
    )
    def test_rows_survive_json(self, seconds, agreement):
        measured = replace(row(OURS, *seconds), agreement=agreement)
        assert row_from_dict(json.loads(json.dumps(measured.as_dict()))) == measured

    def test_find_tells_contestants_apart(self):
        rows = [row(OURS, 1.0, ranks=3), row(OURS, 2.0, threads=2), row(OURS, 3.0)]
        assert find(rows, OURS, "float32", 1) is rows[2]
        assert find(rows, OURS, "float32", 1, ranks=3) is rows[0]
        assert find(rows, OURS, "bfloat16", 1) is None


class TestBars:
    def rows(self, ours: float, tp: float) -> list[Row]:
        """One rank takes `ours`, two and three take `tp` seconds per step; each peer takes 1."""
        return [
            measured
            for dtype in ("float32", "bfloat16")
            for batch in (1, 8, 32)
            for measured in (
                *(row(OURS, ours, threads=t, dtype=dtype, batch=batch) for t in (1, 2)),
                *(row(TRANSFORMERS, 1.0, threads=t, dtype=dtype, batch=batch) for t in (1, 2)),
                *(row(OURS, tp, ranks=n, dtype=dtype, batch=batch) for n in (2, 3)),
                row(OURS_GLOO, 1.0, ranks=2, dtype=dtype, batch=batch),
                row(TRANSFORMERS_TP, 1.0, ranks=3, dtype=dtype, batch=batch),
                row(DTENSOR, 1.0, ranks=3, dtype=dtype, batch=batch),
            )
        ]

    def test_all_cleared(self):
        found = bars(self.rows(ours=0.5, tp=0.12))
        assert len(found) == 30
        assert all(bar.ok for bar in found)
        assert all(bar.as_dict()["goal_met"] for bar in found if bar.goal is not None)

    def test_equal_speed_clears_only_never_slower(self):
        found = {bar.name: bar for bar in bars(self.rows(ours=1.0, tp=1.0))}
        assert found["one rank against transformers, one thread, bfloat16, batch 32"].ok
        assert not found["one rank against transformers, one thread, bfloat16, batch 1"].ok
        assert not found["three ranks against transformers TP, float32, batch 1"].ok
        assert not found["three ranks against DTensor, float32, batch 1"].ok

    def test_slower_at_a_batch_is_missed(self):
        assert not any(bar.ok for bar in bars(self.rows(ours=1.01, tp=1.01)))

    @pytest.mark.parametrize(
        ("name", "clears", "misses"),
        [
            ("two ranks against one rank, float32, batch 8", 1 / 1.26, 1 / 1.24),
            ("two ranks against one rank, bfloat16, batch 32", 1 / 1.31, 1 / 1.29),
            ("two ranks against gloo, float32, batch 1", 1 / 2.6, 1 / 2.4),
            ("three ranks against transformers TP, float32, batch 8", 1 / 3.1, 1 / 2.9),
            ("three ranks against DTensor, bfloat16, batch 1", 1 / 8.1, 1 / 7.9),
        ],
    )
    def test_a_bar_is_where_it_was_set(self, name: str, clears: float, misses: float):
        for seconds, ok in ((clears, True), (misses, False)):
            found = {bar.name: bar for bar in bars(self.rows(ours=1.0, tp=seconds))}
            assert found[name].ok is ok

    def test_not_measured_is_missed(self):
        found = bars([])
        assert len(found) == 30
        assert not any(bar.ok for bar in found)
        assert "not measured" in str(found[0])

    def test_an_error_must_stay_below_its_bar(self):
        assert ErrorBar("x", 0.05, 0.06).ok
        assert not ErrorBar("x", 0.07, 0.06).ok
        assert not ErrorBar("x", None, 0.06).ok
        assert "MISSED  x: 7.0% (bar at most 6%)" in str(ErrorBar("x", 0.07, 0.06))

    def test_goal_is_recorded_beside_the_bar(self):
        fields = Bar("x", 1.3, 1.15, 1.5).as_dict()
        assert fields == {
            "name": "x", "value": 1.3, "bar": 1.15, "goal": 1.5, "ok": True, "goal_met": False,
        }  # fmt: skip


class TestReport:
    def test_says_what_more_ranks_give_or_cost_and_over_what(self):
        rows = [
            row(OURS, 1.0),
            replace(row(OURS, 0.8, ranks=2), settings="shared memory"),
            replace(row(OURS_GLOO, 4.0, ranks=2), settings="gloo"),
        ]
        ours, gloo = rank_sentences(rows)
        assert "2 ranks over shared memory decode at 1.25 times the speed of one rank" in ours
        assert "2 ranks over gloo decode at 0.25 times the speed of one rank: slower" in gloo

    def test_shows_figures_failures_and_missed_bars(self):
        rows = [
            replace(row(OURS, 0.5), agreement=Agreement(0, 1, 3)),
            row(TRANSFORMERS, 1.0),
            row(LLAMA_CPP, error="llama.cpp gave no answer within 9 s"),
        ]
        text = full_report(rows, bars(rows))
        assert "2.00" in text
        assert "0/1 (from 3)" in text
        assert "FAILED llama.cpp" in text
        assert "MISSED" in text


class TestPlans:
    def test_full_has_every_side_dtype_and_batch(self):
        assert {(side.name, side.ranks) for side in FULL.sides} == {
            (BANDWIDTH, 1), (OURS, 1), (OURS, 2), (OURS, 3), (OURS_GLOO, 2), (TRANSFORMERS, 1),
            (TRANSFORMERS_TP, 3), (DTENSOR, 3), (LLAMA_CPP, 1),
        }  # fmt: skip
        assert FULL.dtypes == ("float32", "bfloat16")
        assert tuple(FULL.new_tokens) == (1, 8, 32)

    def test_every_side_has_its_module(self):
        folder = Path(peers.__file__).parent
        assert all((folder / f"{side.module}.py").exists() for side in ALL_SIDES)

    def test_prompts_are_distinct_windows(self, tiny: Path):
        windows = prompts(tiny, 32, 32)
        assert {len(window) for window in windows} == {32}
        assert len({tuple(window) for window in windows}) == 32

    def test_measures_one_rank_against_the_memory_bound(self, tiny: Path):
        sides = tuple(s for s in ALL_SIDES if (s.name, s.ranks) in {(OURS, 1), (BANDWIDTH, 1)})
        plan = replace(QUICK, sides=sides, new_tokens={2: 4}, rounds=2, prompt_tokens=8)
        rows = measure(replace(plan, deadline=60.0, limit=60.0), tiny)
        assert {(r.side, r.threads) for r in rows} == {(OURS, 1), (OURS, 2), (BOUND, 1), (BOUND, 2)}
        assert all(len(r.seconds_per_step) == 2 and not r.error for r in rows)


class TestGguf:
    def test_names(self):
        assert gguf_name("model.layers.12.mlp.up_proj.weight") == "blk.12.ffn_up.weight"
        assert gguf_name("model.embed_tokens.weight") == "token_embd.weight"

    def test_pairs_are_neighbours_within_each_head(self):
        rows = pair_neighbours(torch.arange(8)[:, None].numpy(), num_heads=2)[:, 0].tolist()
        assert rows == [0, 2, 1, 3, 4, 6, 5, 7]

    @pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
    def test_labkit_reads_back_the_same_weights(self, tmp_path: Path, dtype: str):
        directory = _small_llama(tmp_path)
        target = tmp_path / "model.gguf"
        write(directory, target, dtype)
        ours, back = open_checkpoint(directory), open_checkpoint(target)
        assert set(back.names()) == set(ours.names())
        for name in ours.names():
            expected = ours.read(name).to(getattr(torch, dtype)).float()
            if expected.dim() == 1:
                expected = ours.read(name)
            assert torch.equal(back.read(name).float(), expected), name


def _small_llama(folder: Path) -> Path:
    """A Hugging Face directory of a random model with 4 heads over 2 KV heads."""
    config = {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32,
        "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
        "intermediate_size": 48, "vocab_size": 40, "max_position_embeddings": 64,
        "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
        "tie_word_embeddings": True, "bos_token_id": 0, "eos_token_id": 1,
    }  # fmt: skip
    generator = torch.Generator().manual_seed(0)
    shapes = {"model.embed_tokens": (40, 32), "model.norm": (32,)}
    for layer in range(2):
        prefix = f"model.layers.{layer}"
        shapes |= {
            f"{prefix}.input_layernorm": (32,),
            f"{prefix}.post_attention_layernorm": (32,),
            f"{prefix}.self_attn.q_proj": (32, 32),
            f"{prefix}.self_attn.k_proj": (16, 32),
            f"{prefix}.self_attn.v_proj": (16, 32),
            f"{prefix}.self_attn.o_proj": (32, 32),
            f"{prefix}.mlp.gate_proj": (48, 32),
            f"{prefix}.mlp.up_proj": (48, 32),
            f"{prefix}.mlp.down_proj": (32, 48),
        }
    weights = {
        f"{name}.weight": torch.randn(shape, generator=generator) for name, shape in shapes.items()
    }
    vocabulary = {f"<{index}>": index for index in range(40)}
    (folder / "config.json").write_text(json.dumps(config))
    save_file(weights, folder / "model.safetensors")
    Tokenizer(models.BPE(vocabulary, [])).save(str(folder / "tokenizer.json"))
    return folder


def test_readme_quotes_the_stored_result():
    result = json.loads(RESULT.read_text())
    assert decode_table(result) in (RESULT.parents[2] / "README.md").read_text()


def test_stored_result_has_every_bar_and_hides_no_miss():
    result = json.loads(RESULT.read_text())
    rows = [row_from_dict(fields) for fields in result["rows"]]
    assert [bar.as_dict() for bar in bars(rows)] == result["bars"]
