"""Every reason why a layout cannot be, what would fix it, and what padding cannot."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.plan.decoder import DecoderSpec
from labkit.plan.layer_shapes import attention_matrices, gated_mlp_matrices, norm, vocabulary
from labkit.plan.layout import Layout, LayoutError, legal_tensor_parallel_sizes, validate
from labkit.plan.legality import check
from labkit.plan.model import CacheKind, Experts, LayerCache, LayerSpec, ModelSpec
from labkit.plan.weights import BFLOAT16, Matrix, Split, WeightFormat

INT4 = WeightFormat("int4", 4, group_size=128, group_bits=20)
FP8_BLOCKS = WeightFormat("fp8", 8, group_size=128, group_rows=128, group_bits=32)
MXFP4 = WeightFormat("mxfp4", 4, group_size=32, group_bits=8)


def model(
    *,
    heads=64,
    kv_heads=8,
    head_dim=128,
    hidden=8192,
    width=28672,
    layers=80,
    vocab=152064,
    format=BFLOAT16,
    experts=None,
    extra=(),
):
    """A decoder; `experts` makes its MLPs routed ones of `width`."""
    copies = {} if experts is None else {"copies": experts, "active": 2, "prefix": "mlp.experts"}
    part = "MLP" if experts is None else "experts"
    layer = LayerSpec(
        matrices=(
            norm("input_layernorm", hidden),
            *attention_matrices(hidden, heads, kv_heads, head_dim, format=format),
            *gated_mlp_matrices(hidden, width, part=part, format=format, **copies),
            *extra,
        ),
        cache=LayerCache(CacheKind.FULL, kv_heads, 2 * head_dim),
        num_heads=heads,
        score_dim=head_dim,
        value_dim=head_dim,
        experts=None if experts is None else Experts(experts, 2, width),
    )
    return ModelSpec(
        model_type="sample",
        hidden_size=hidden,
        vocab_size=vocab,
        layers=(layer,) * layers,
        embedding=(vocabulary("model.embed_tokens", "embedding", vocab, hidden),),
        head=(norm("model.norm", hidden), vocabulary("lm_head", "LM head", vocab, hidden)),
    )


def rules(legality):
    return [reason.rule for reason in legality.reasons]


def test_a_legal_layout_has_no_reason():
    legality = check(model(), Layout(tp=8, pp=4, replicas=2))
    assert legality.is_legal
    assert legality.reasons == ()
    assert legality.legal_tp == (1, 2, 4, 8, 16, 32, 64)


def test_heads_are_not_fixed_by_padding():
    (reason,) = check(model(heads=28, kv_heads=4, width=18944), Layout(tp=8)).reasons
    assert reason.text == "28 attention heads do not divide over TP 8"
    assert reason.fix == "use TP 4; padding cannot add heads"
    assert not reason.is_fixable_by_padding


def test_kv_heads_divide_or_are_copied():
    assert check(model(heads=24, kv_heads=4, width=24576), Layout(tp=8)).is_legal
    legality = check(model(heads=24, kv_heads=4, width=24576), Layout(tp=6))
    assert rules(legality) == ["KV heads"]
    assert "4 KV heads neither divide over TP 6 nor replicate evenly" in legality.reasons[0].text
    assert legality.reasons[0].fix.startswith("use TP 4 or 8")


def test_copied_kv_heads_are_noted():
    (note,) = check(model(), Layout(tp=16)).notes
    assert "8 KV heads on TP 16: ranks hold copies" in note


def test_columns_that_do_not_divide_are_fixed_by_padding():
    (reason,) = check(model(width=28674), Layout(tp=4)).reasons
    assert reason.text == "MLP 28674 does not divide over TP 4"
    assert reason.is_fixable_by_padding
    assert reason.fix.startswith("pad the MLP to 28676 with 2 zero channels")
    assert "use TP 2" in reason.fix


def test_q1_a_wide_mlp_in_groups_of_128():
    assert check(model(width=14336, format=INT4), Layout(tp=8)).is_legal
    (reason,) = check(model(width=29568, format=INT4), Layout(tp=8)).reasons
    assert reason.rule == "quantisation groups"
    assert "3696 a rank, no multiple of the quantisation group of 128" in reason.text
    for way in ("pad the MLP to 29696 with 128 zero", "use TP 1", "again in groups of 16"):
        assert way in reason.fix


def test_v1_a_vocabulary_is_padded_and_says_to_how_many_rows():
    legality = check(model(vocab=151669), Layout(tp=4))
    assert legality.is_legal
    (note,) = legality.notes
    assert "151669 is padded to 151680 for TP 4: 11 rows that must never be sampled" in note
    assert check(model(vocab=151680), Layout(tp=4)).notes == ()
    assert check(model(vocab=151669), Layout()).notes == ()


def test_allowed_padding_is_listed_instead_of_refused():
    legality = check(model(width=29568, format=INT4), Layout(tp=8), allow_padding=True)
    assert legality.is_legal
    assert "29696" in legality.padding[0].fix
    both = check(
        model(heads=60, kv_heads=4, width=29568, format=INT4), Layout(tp=8), allow_padding=True
    )
    assert rules(both) == ["heads"]


def test_groups_of_the_output_projection_may_not_be_cut_either():
    odd = model(heads=14, kv_heads=2, head_dim=64, hidden=896, width=4864 * 2, format=INT4)
    (reason,) = check(odd, Layout(tp=2)).reasons
    assert reason.text == (
        "o_proj (14 heads x 64) over TP 2 is 448 a rank, no multiple of its quantisation group "
        "of 128"
    )
    assert not reason.is_fixable_by_padding
    assert "again in groups of 64" in reason.fix
    assert check(model(heads=40, kv_heads=8, width=27648, format=INT4), Layout(tp=8)).is_legal


@pytest.mark.parametrize(("width", "is_legal"), [(7168, True), (7424, False), (7936, False)])
def test_fp8_blocks_may_not_be_cut_by_output_features(width, is_legal):
    legality = check(model(width=width, format=FP8_BLOCKS), Layout(tp=4))
    assert legality.is_legal is is_legal
    for reason in legality.reasons:
        assert "quantisation block of 128 of gate_proj, up_proj" in reason.text
        assert "quantisation group of 128 of down_proj" in reason.text
        assert reason.is_fixable_by_padding


def test_a_copied_kv_head_smaller_than_a_block_is_refused():
    small = model(heads=32, kv_heads=4, head_dim=64, width=16384, hidden=2048, format=FP8_BLOCKS)
    (keys, values) = check(small, Layout(tp=4)).reasons
    assert keys.text.startswith("k_proj (4 heads x 64) over TP 4 is 64 a rank")
    assert values.text.startswith("v_proj")
    assert "one scale for each channel" in keys.fix
    assert check(small, Layout(tp=2)).is_legal


def test_packed_integers_may_not_be_cut_within_a_word():
    packed = WeightFormat("int4", 4, row_bits=16)
    (reason,) = check(model(width=1028, format=packed), Layout(tp=2)).reasons
    assert "no multiple of the 32-bit word of 8 weights" in reason.text
    assert reason.fix.startswith("pad the MLP to 1040")


def test_one_scale_for_each_channel_restricts_nothing():
    channels = WeightFormat("int8", 8, row_bits=32)
    assert check(model(width=29568, format=channels), Layout(tp=8)).is_legal


def test_experts_are_cut_by_the_ranks_that_expert_parallelism_leaves():
    moe = model(heads=32, kv_heads=4, hidden=2048, width=768, experts=128, format=FP8_BLOCKS)
    (reason,) = check(moe, Layout(tp=8)).reasons
    assert "expert MLP 768 over the 8 ranks that cut an expert is 96 a rank" in reason.text
    assert reason.fix.startswith("pad the expert MLP to 1024 with 256 zero channels")
    assert "whole experts on each rank: EP = TP x DP" in reason.fix
    assert check(moe, Layout(tp=8, ep=8)).is_legal
    assert check(moe, Layout(tp=4, dp=2, ep=4)).is_legal
    assert not check(moe, Layout(tp=4, dp=4, ep=2)).is_legal


def test_legal_degrees_hold_beside_the_layout_s_dp_and_ep():
    moe = model(heads=32, kv_heads=4, hidden=2048, width=768, experts=128, format=FP8_BLOCKS)
    for layout in (Layout(tp=8), Layout(tp=8, ep=4), Layout(tp=4, dp=4, ep=2)):
        legal = check(moe, layout).legal_tp
        assert legal
        for tp in range(1, 33):
            if tp * layout.dp % layout.ep == 0:
                assert check(moe, replace(layout, tp=tp)).is_legal is (tp in legal)
            else:
                assert tp not in legal


def test_formats_that_engines_deal_in_whole_groups_pass_and_say_so():
    moe = model(heads=64, kv_heads=8, hidden=2880, head_dim=64, width=2880, experts=32)
    layer = moe.layers[0]
    matrices = tuple(
        replace(matrix, format=MXFP4) if matrix.is_expert else matrix for matrix in layer.matrices
    )
    packed = replace(moe, layers=(replace(layer, matrices=matrices),) * 24)
    legality = check(packed, Layout(tp=8))
    assert legality.is_legal
    assert any("whole groups of 32 as if it were 3072" in note for note in legality.notes)
    assert check(packed, Layout(tp=2)).notes == ()
    assert rules(check(packed, Layout(tp=16))) == ["quantisation groups"]


def test_experts_divide_over_ep_with_their_redundant_copies():
    moe = model(heads=128, kv_heads=128, width=2048, experts=256)
    (reason,) = check(moe, Layout(tp=4, dp=80, ep=320)).reasons
    assert reason.text == "EP 320 leaves 64 ranks without one of 256 experts"
    assert "use EP 256; or 64 redundant copies" in reason.fix
    assert check(moe, Layout(tp=4, dp=80, ep=320), num_redundant_experts=64).is_legal
    (uneven,) = check(moe, Layout(tp=2, dp=3, ep=6)).reasons
    assert uneven.text == "256 experts do not divide over EP 6"
    assert "use EP 4 or 8; or 2 redundant copies" in uneven.fix


def test_a_dense_model_takes_replicas_not_attention_copies():
    (reason,) = check(model(), Layout(tp=2, dp=2)).reasons
    assert reason.text == "DP 2 copies attention around shared experts and sample has none"
    assert reason.fix == "use 2 times as many replicas"
    assert rules(check(model(), Layout(tp=2, ep=2))) == ["experts"]


def test_layers_must_reach_every_stage():
    (reason,) = check(model(layers=4), Layout(pp=5)).reasons
    assert reason.text == "PP 5 leaves stages empty; 4 layers take PP 1 to 4"
    assert reason.fix == "use PP 4 or less"


def test_a_lora_rank_is_cut_only_when_fully_sharded():
    assert check(model(), Layout(tp=8), lora_rank=12).is_legal
    (note,) = check(model(), Layout(tp=8), lora_rank=12).notes
    assert "not cut along its rank" in note
    (reason,) = check(model(), Layout(tp=8), lora_rank=12, fully_sharded_lora=True).reasons
    assert reason.text == "LoRA rank 12 does not divide over TP 8"
    assert reason.fix.startswith("use TP 6 or 12; or leave the rank whole")
    assert check(model(), Layout(tp=8), lora_rank=16, fully_sharded_lora=True).is_legal


@pytest.mark.parametrize("bad", [0, -8, 1.5, "8"])
def test_a_lora_rank_is_a_whole_number(bad):
    with pytest.raises(ValueError, match="lora_rank"):
        check(model(), Layout(), lora_rank=bad)


def test_latent_attention_has_heads_but_no_kv_heads():
    latent = Matrix("self_attn.q_b_proj", "attention", 24 * 192, 1536, Split.COLUMN, heads=24)
    output = Matrix("self_attn.o_proj", "attention", 7168, 24 * 128, Split.ROW, heads=24)
    layer = LayerSpec(
        (latent, output, *gated_mlp_matrices(7168, 18432)),
        LayerCache(CacheKind.LATENT, 1, 576),
        num_heads=24,
        score_dim=576,
        value_dim=512,
    )
    mla = replace(model(), layers=(layer,) * 2)
    assert check(mla, Layout(tp=8)).is_legal
    assert "each rank holds all of it" in check(mla, Layout(tp=8)).notes[0]
    legality = check(mla, Layout(tp=16))
    assert [reason.text for reason in legality.reasons] == [
        "24 attention heads do not divide over TP 16"
    ]


def test_recurrent_heads_divide_too():
    state = Matrix("linear_attn.in_proj", "recurrent", 6 * 128, 8192, Split.COLUMN, heads=6)
    legality = check(model(extra=(state,)), Layout(tp=4))
    assert [reason.text for reason in legality.reasons] == [
        "the number of recurrent in_proj heads 6 does not divide over TP 4"
    ]


def test_uneven_heads_are_checked_at_their_own_borders():
    uneven = model(heads=9, kv_heads=3, head_dim=64, hidden=576, width=1536, format=INT4)
    assert rules(check(uneven, Layout(tp=2))) == ["heads", "KV heads"]
    assert check(uneven, Layout(tp=2), allow_uneven_heads=True).is_legal
    wide = model(heads=5, kv_heads=5, head_dim=64, hidden=320, width=1536, format=INT4)
    (reason,) = check(wide, Layout(tp=2), allow_uneven_heads=True).reasons
    assert "o_proj (5 heads x 64) over TP 2 is 192 or 128 a rank" in reason.text


def test_every_reason_is_given_at_once():
    broken = model(heads=9, kv_heads=3, width=1535, layers=30)
    legality = check(broken, Layout(tp=2, pp=31, dp=2, ep=2))
    assert rules(legality) == [
        "heads",
        "KV heads",
        "columns",
        "stages",
        "experts",
        "attention copies",
    ]
    assert all(reason.fix for reason in legality.reasons)
    assert not legality.is_fixable_by_padding


def test_validate_refuses_what_check_finds_with_the_same_words():
    quantised = model(width=29568, format=INT4)
    with pytest.raises(LayoutError) as refused:
        validate(quantised, tp=8)
    assert refused.value.reasons == tuple(
        reason.text for reason in check(quantised, Layout(tp=8)).reasons
    )
    assert refused.value.legal == (1,)
    assert validate(model(), Layout(tp=8, pp=2)) == Layout(tp=8, pp=2)


@settings(max_examples=60, deadline=None)
@given(
    kv_heads=st.integers(1, 8),
    ratio=st.integers(1, 4),
    width=st.integers(1, 64),
    layers=st.integers(1, 6),
    tp=st.integers(1, 16),
    pp=st.integers(1, 8),
)
def test_what_we_run_and_what_we_size_obey_the_same_rules(kv_heads, ratio, width, layers, tp, pp):
    heads = kv_heads * ratio
    run = DecoderSpec("sample", layers, heads * 16, heads, kv_heads, 16, width, 64)
    size = model(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=16,
        hidden=heads * 16,
        width=width,
        layers=layers,
        vocab=64,
    )
    layout = Layout(tp=tp, pp=pp)
    assert check(run, layout) == check(size, layout)
    assert legal_tensor_parallel_sizes(run, 16) == legal_tensor_parallel_sizes(size, 16)


@settings(max_examples=60, deadline=None)
@given(width=st.integers(1, 4000), tp=st.integers(1, 8), group=st.sampled_from([32, 64, 128]))
def test_padding_as_advised_makes_an_mlp_legal(width, tp, group):
    format = WeightFormat("int4", 4, group_size=group, group_bits=20)
    given_width = model(heads=8 * tp, kv_heads=tp, width=width, format=format, layers=1)
    for reason in check(given_width, Layout(tp=tp)).reasons:
        assert reason.is_fixable_by_padding
        padded = int(reason.fix.split("to ")[1].split(" ")[0])
        assert padded > width
        wider = model(heads=8 * tp, kv_heads=tp, width=padded, format=format, layers=1)
        assert check(wider, Layout(tp=tp)).is_legal
