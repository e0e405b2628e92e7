"""Facts T9, T10, T11 and F2: bytes of a decode step, tensor parallel and gathered."""

from dataclasses import replace

import pytest

from labkit.plan.collectives import ring_latency_seconds, ring_wire_bytes
from labkit.plan.decoder import DecoderSpec
from labkit.plan.layout import LayoutError
from labkit.plan.shard import PartitionError
from labkit.plan.traffic import (
    decode_traffic,
    flat_shard_size,
    gathered_weight_bytes,
    layer_parameters,
    mlp_shard,
)

MIB = 2**20

LLAMA_70B = DecoderSpec(
    model_type="llama",
    num_layers=80,
    hidden_size=8192,
    num_heads=64,
    num_kv_heads=8,
    head_dim=128,
    intermediate_size=28672,
    vocab_size=128256,
)
AS_THE_SOURCE_HAS_IT = replace(LLAMA_70B, hidden_size=4096, num_heads=32, intermediate_size=14336)


def test_a_step_has_one_all_reduce_for_the_embedding_and_two_a_layer():
    traffic = decode_traffic(LLAMA_70B, 8, 1, 2)
    assert traffic.all_reduces == 161
    assert traffic.all_gathers == 1
    assert traffic.payload_bytes == 161 * traffic.payload_bytes_each
    assert traffic.layer_payload_bytes == 160 * traffic.payload_bytes_each


def test_one_rank_moves_nothing():
    traffic = decode_traffic(LLAMA_70B, 1, 64, 2)
    assert (traffic.all_reduces, traffic.all_gathers, traffic.payload_bytes) == (0, 0, 0)
    assert traffic.wire_bytes_per_rank == 0


def test_t9_a_decode_all_reduce_at_batch_64_and_hidden_8192_reduces_1_mib():
    assert decode_traffic(LLAMA_70B, 8, 64, 2).payload_bytes_each == 1_048_576


def test_t10_mlp_of_width_4096_over_8_ranks():
    shard = mlp_shard(4096, 14336, 8, 32, 2)
    assert shard.w1_shape == (4096, 1792)
    assert shard.payload_bytes == 262_144


def test_t10_as_the_source_has_it_80_layers_of_width_4096_move_40_mib():
    traffic = decode_traffic(AS_THE_SOURCE_HAS_IT, 8, 32, 2)
    assert traffic.payload_bytes_each == 262_144
    assert traffic.layer_payload_bytes == 40 * MIB
    assert traffic.layer_payload_bytes / 900e9 == pytest.approx(46.6e-6, rel=1e-3)
    assert traffic.layer_payload_bytes / 50e9 == pytest.approx(839e-6, rel=1e-3)


def test_t10_what_the_ring_and_the_hops_add_to_the_payload():
    traffic = decode_traffic(AS_THE_SOURCE_HAS_IT, 8, 32, 2)
    assert ring_wire_bytes(traffic.layer_payload_bytes, 8) == 70 * MIB
    assert 160 * ring_latency_seconds(8, hop_latency=2e-6) == pytest.approx(4.48e-3)


def test_t10_a_real_70b_is_8192_wide_and_moves_80_mib():
    assert decode_traffic(LLAMA_70B, 8, 32, 2).layer_payload_bytes == 80 * MIB


def test_t11_a_w1_in_16_bit_is_117_mb_and_a_slice_of_8_is_15_mb():
    shard = mlp_shard(4096, 14336, 8, 32, 2)
    assert shard.w1_bytes == 117_440_512
    assert shard.w1_shard_bytes == 14_680_064


def test_f2_gathering_a_70b_moves_a_thousand_times_what_tensor_parallel_moves():
    gathered = gathered_weight_bytes(LLAMA_70B, 8, 2)
    assert gathered == pytest.approx(119.8e9, rel=1e-3)
    assert gathered / decode_traffic(LLAMA_70B, 8, 32, 2).wire_bytes_per_rank == pytest.approx(
        811, rel=1e-2
    )


def test_f2_gathered_bytes_do_not_depend_on_the_batch_and_tensor_parallel_bytes_do():
    one, many = (decode_traffic(LLAMA_70B, 8, batch, 2) for batch in (1, 64))
    assert many.wire_bytes_per_rank == 64 * one.wire_bytes_per_rank
    assert gathered_weight_bytes(LLAMA_70B, 8, 2) > 10 * many.wire_bytes_per_rank


def test_layers_and_ends_make_up_the_model():
    for spec in (LLAMA_70B, replace(LLAMA_70B, tie_word_embeddings=True, qkv_bias=True)):
        tables = 1 if spec.tie_word_embeddings else 2
        ends = tables * spec.vocab_size * spec.hidden_size + spec.hidden_size
        assert spec.num_layers * layer_parameters(spec) + ends == spec.num_parameters


@pytest.mark.parametrize("ranks", [1, 2, 3, 4, 5, 7])
def test_flat_shards_hold_every_element_and_less_than_a_rank_too_many(ranks):
    for parameters in (1, 6, 7, 100, 101):
        assert 0 <= ranks * flat_shard_size(parameters, ranks) - parameters < ranks


def test_one_rank_gathers_nothing():
    assert gathered_weight_bytes(LLAMA_70B, 1, 2) == 0


def test_what_cannot_be_is_refused():
    with pytest.raises(LayoutError, match="legal here"):
        decode_traffic(LLAMA_70B, 3, 1, 2)
    with pytest.raises(ValueError, match="batch is 0"):
        decode_traffic(LLAMA_70B, 8, 0, 2)
    with pytest.raises(ValueError, match="ranks is 0"):
        gathered_weight_bytes(LLAMA_70B, 0, 2)
    with pytest.raises(PartitionError, match="does not divide over TP 3"):
        mlp_shard(4096, 14336, 3, 32, 2)
