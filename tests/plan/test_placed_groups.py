"""The GPUs that a layout's groups get: all of them at once, whatever the GPUs are called."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.plan.device_presets import device
from labkit.plan.layout import Layout
from labkit.plan.link_presets import LINKS
from labkit.plan.model import ModelSpec
from labkit.plan.placed_groups import slowest_stage_link, spread_tp_groups, stage_groups, tp_groups
from labkit.plan.step_system import System
from labkit.plan.steptime import decode_step, prefill_step
from labkit.plan.topology import Topology

H100 = device("h100")
PCIE, BRIDGE, NVLINK, NETWORK = (
    LINKS[name] for name in ("pcie4", "nvlink2", "nvlink4", "infiniband-ndr")
)
DENSE = {
    "model_type": "llama",
    "hidden_size": 1024,
    "num_hidden_layers": 8,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "intermediate_size": 2816,
    "vocab_size": 32000,
    "torch_dtype": "bfloat16",
}
MODEL = ModelSpec.from_hf(DENSE)
MIXTURE = ModelSpec.from_hf(
    DENSE | {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}
)


def box(*pairs: tuple[int, int], gpus: int = 4) -> Topology:
    return Topology(gpus, 4, PCIE, NETWORK, {frozenset(pair): BRIDGE for pair in pairs})


def step(topology: Topology, layout: Layout, model: ModelSpec = MODEL, **system) -> float:
    return decode_step(model, System(H100, topology, **system), layout, 8, 500).seconds


def test_a_second_replica_that_gets_no_bridge_slows_the_layout():
    one, two = box((0, 2)), box((0, 2), (1, 3))
    alone, both = Layout(tp=2), Layout(tp=2, replicas=2)
    assert step(one, alone) == step(two, alone) == step(two, both)
    assert step(one, both) > step(one, alone)
    assert step(one, both) == step(box(), both)


def test_stages_count_as_replicas_do():
    one, two = box((0, 2)), box((0, 2), (1, 3))
    assert step(one, Layout(tp=2, pp=2)) > step(two, Layout(tp=2, pp=2))


def test_a_group_that_no_node_has_room_for_crosses_the_network():
    topology = Topology(12, 6, NVLINK, NETWORK)
    assert tp_groups(topology, Layout(tp=4, replicas=3))[-1] == (4, 5, 10, 11)
    assert step(topology, Layout(tp=4)) == step(topology, Layout(tp=4, replicas=2))
    assert step(topology, Layout(tp=4, replicas=3)) > step(topology, Layout(tp=4, replicas=2))


def test_a_replica_whose_stages_lie_in_two_nodes_sets_the_link_between_stages():
    topology = Topology(12, 6, NVLINK, NETWORK)
    assert slowest_stage_link(topology, Layout(tp=2, pp=2, replicas=2)) == NVLINK
    assert slowest_stage_link(topology, Layout(tp=2, pp=2, replicas=3)) == NETWORK


def test_stages_of_one_gpu_stand_at_the_two_ends_of_a_bridge():
    one, two = box((0, 2)), box((0, 2), (1, 3))
    assert slowest_stage_link(one, Layout(pp=2)) == BRIDGE
    assert slowest_stage_link(one, Layout(pp=2, replicas=2)) == PCIE
    assert slowest_stage_link(two, Layout(pp=2, replicas=2)) == BRIDGE
    assert slowest_stage_link(two, Layout(tp=2, pp=2)) == PCIE
    assert slowest_stage_link(two, Layout(tp=2, pp=2), tp_inside=False) == BRIDGE


def test_the_other_order_spreads_each_tp_group():
    topology = Topology(16, 8, NVLINK, NETWORK)
    layout = Layout(tp=4, pp=2, replicas=2)
    groups = spread_tp_groups(topology, layout)
    assert groups == [(0, 2, 4, 6), (1, 3, 5, 7), (8, 10, 12, 14), (9, 11, 13, 15)]
    assert slowest_stage_link(topology, layout, tp_inside=False) == NVLINK
    wide = Layout(tp=8, pp=2)
    assert spread_tp_groups(topology, wide)[0] == tuple(range(0, 16, 2))
    spread, neighbours = (
        prefill_step(MODEL, System(H100, topology, tp_inside=inside), wide, 4096, 2).seconds
        for inside in (False, True)
    )
    assert spread > neighbours


def test_experts_wait_for_the_stage_with_the_slowest_links():
    topology = Topology(12, 6, NVLINK, NETWORK)
    one, three = (Layout(tp=1, dp=4, ep=4, replicas=replicas) for replicas in (1, 3))
    assert stage_groups(topology, three)[-1] == (4, 5, 10, 11)
    assert step(topology, three, MIXTURE) > step(topology, one, MIXTURE)


def test_an_all_to_all_crosses_every_link_of_its_ranks():
    ring_of_four = box((0, 1), (1, 2), (2, 3), (3, 0))
    assert ring_of_four.slowest_link(range(4)) == BRIDGE
    assert ring_of_four.all_to_all(range(4)).bandwidth == PCIE.bandwidth
    every = box(*combinations(range(4), 2))
    assert every.all_to_all(range(4)).bandwidth == BRIDGE.bandwidth


def test_a_layout_of_more_gpus_than_there_are_is_refused():
    message = "the layout takes 12 GPUs and the topology has 8; 2 replicas of 4 would fit"
    with pytest.raises(ValueError, match=message):
        step(Topology(8, 8, NVLINK, NETWORK), Layout(tp=4, replicas=3))
    with pytest.raises(ValueError, match="the topology has 4"):
        System(H100, box()).stage_link(Layout(pp=8))


@st.composite
def boxes(draw) -> Topology:
    nodes = draw(st.sampled_from([1, 2]))
    pairs = {}
    for node in range(nodes):
        every = list(combinations(range(4 * node, 4 * node + 4), 2))
        for pair in draw(st.lists(st.sampled_from(every), unique=True, max_size=5)):
            pairs[frozenset(pair)] = draw(st.sampled_from([BRIDGE, NVLINK]))
    return Topology(4 * nodes, 4, PCIE, NETWORK, pairs)


@settings(max_examples=40, deadline=None)
@given(st.data(), boxes(), st.booleans(), st.sampled_from([MODEL, MIXTURE]))
def test_relabelling_gpus_with_their_links_changes_no_term(data, topology, tp_inside, model):
    labels = data.draw(st.permutations(range(topology.gpus)))
    sizes = st.sampled_from([1, 2, 4])
    layout = Layout(
        tp=data.draw(sizes),
        pp=data.draw(sizes),
        dp=data.draw(sizes) if model is MIXTURE else 1,
        replicas=data.draw(sizes),
    )
    if layout.world_size > topology.gpus:
        return
    systems = [
        System(H100, where, tp_inside=tp_inside)
        for where in (topology, topology.relabelled(labels))
    ]
    decode, relabelled = (decode_step(model, each, layout, 8, 500).terms for each in systems)
    assert decode == relabelled
    prefill, relabelled = (prefill_step(model, each, layout, 300, 4).terms for each in systems)
    assert prefill == relabelled
