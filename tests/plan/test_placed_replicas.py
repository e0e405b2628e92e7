"""The GPUs that a layout's replicas get: all at once, and whatever the GPUs are called."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.plan.canonical_order import canonical_order, form
from labkit.plan.device_presets import device
from labkit.plan.hardware import LinkSpec
from labkit.plan.layout import Layout
from labkit.plan.link_presets import LINKS
from labkit.plan.model import ModelSpec
from labkit.plan.placed_replicas import placed, placed_replicas
from labkit.plan.replica_shape import ReplicaShape
from labkit.plan.step_system import System
from labkit.plan.steptime import decode_step, prefill_step
from labkit.plan.topology import Topology

H100 = device("h100")
PCIE, SLOW, BRIDGE, NVLINK, NETWORK = (
    LINKS[name] for name in ("pcie4", "pcie3", "nvlink2", "nvlink4", "infiniband-ndr")
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
SQUARE = ((0, 1), (1, 2), (2, 3), (3, 0))


def box(*pairs: tuple[int, int], gpus: int = 4, node: int | None = None) -> Topology:
    joined = {frozenset(pair): BRIDGE for pair in pairs}
    return Topology(gpus, node or gpus, PCIE, NETWORK, joined)


def step(topology: Topology, layout: Layout, model: ModelSpec = MODEL) -> float:
    return decode_step(model, System(H100, topology), layout, 8, 500).seconds


def stage_link(topology: Topology, layout: Layout, *, tp_inside: bool = True) -> LinkSpec:
    return System(H100, topology, tp_inside=tp_inside).stage_link(layout)


def test_a_second_replica_that_gets_no_bridge_slows_the_layout():
    one, two = box((0, 2)), box((0, 2), (1, 3))
    alone, both = Layout(tp=2), Layout(tp=2, replicas=2)
    assert step(one, alone) == step(two, alone) == step(two, both)
    assert step(one, both) > step(one, alone)
    assert step(one, both) == step(box(), both)


def test_stages_and_copies_of_attention_count_as_replicas_do():
    one, two = box((0, 2)), box((0, 2), (1, 3))
    for layout in (Layout(tp=2, pp=2), Layout(tp=2, dp=2)):
        slower, faster = (
            System(H100, topology).all_reduce(layout).seconds(2, 2**20) for topology in (one, two)
        )
        assert slower > faster


def test_a_group_that_no_node_has_room_for_crosses_the_network():
    topology = Topology(12, 6, NVLINK, NETWORK)
    assert topology.best_groups(4) == ((0, 1, 2, 3), (6, 7, 8, 9), (4, 5, 10, 11))
    one, two, three = (step(topology, Layout(tp=4, replicas=number)) for number in (1, 2, 3))
    assert one == two < three


def test_stages_of_a_replica_without_room_in_a_node_stay_inside_nodes_one_by_one():
    topology = Topology(12, 6, NVLINK, NETWORK)
    _, blocks = placed_replicas(topology, Layout(tp=4, pp=2))
    assert blocks == ((0, 1, 2, 3, 6, 7, 8, 9),)
    assert stage_link(topology, Layout(tp=4, pp=2)) == NETWORK


def test_a_replica_whose_stages_lie_in_two_nodes_sets_the_link_between_stages():
    topology = Topology(12, 6, NVLINK, NETWORK)
    assert stage_link(topology, Layout(tp=2, pp=2, replicas=2)) == NVLINK
    assert stage_link(topology, Layout(tp=2, pp=2, replicas=3)) == NETWORK


def test_experts_wait_for_the_stage_with_the_slowest_links():
    topology = Topology(12, 6, NVLINK, NETWORK)
    one, three = (Layout(tp=1, dp=4, ep=4, replicas=replicas) for replicas in (1, 3))
    assert step(topology, three, MIXTURE) > step(topology, one, MIXTURE)


def test_stages_of_one_gpu_stand_at_the_two_ends_of_a_bridge():
    one, two = box((0, 2)), box((0, 2), (1, 3))
    assert stage_link(one, Layout(pp=2)) == BRIDGE
    assert stage_link(one, Layout(pp=2, replicas=2)) == PCIE
    assert stage_link(two, Layout(pp=2, replicas=2)) == BRIDGE
    assert stage_link(two, Layout(tp=2, pp=2)) == PCIE
    assert stage_link(two, Layout(tp=2, pp=2), tp_inside=False) == BRIDGE


def test_stages_stand_on_the_groups_that_reduce_and_face_each_other_over_bridges():
    pairs = [(0, 2), (1, 3), (0, 3), (2, 1)]
    assert stage_link(box(*pairs), Layout(tp=2, pp=2)) == BRIDGE
    assert stage_link(box(*pairs[:3]), Layout(tp=2, pp=2)) == PCIE
    assert stage_link(box(*combinations(range(4), 2)), Layout(tp=2, pp=2)) == BRIDGE


def test_stages_follow_a_path_of_bridges_that_need_not_close_to_a_ring():
    assert stage_link(box((2, 0), (0, 3), (3, 1)), Layout(pp=4)) == BRIDGE
    assert stage_link(box((2, 0), (3, 1)), Layout(pp=4)) == PCIE


def test_one_group_takes_the_fastest_bridge_even_where_two_would_not():
    pairs = {frozenset((0, 1)): BRIDGE, frozenset((1, 2)): NVLINK, frozenset((2, 3)): BRIDGE}
    topology = Topology(4, 4, PCIE, NETWORK, pairs)
    assert topology.best_groups(2, 1) == ((1, 2),)
    assert topology.best_groups(2) == ((0, 1), (2, 3))
    assert step(topology, Layout(tp=2)) < step(topology, Layout(tp=2, replicas=2))


def test_groups_of_whole_nodes_take_the_nodes_with_bridges_first():
    bridged = [(4, 5), (5, 6), (6, 7), (7, 4), (12, 13), (13, 14), (14, 15), (15, 12)]
    topology = box(*bridged, gpus=16, node=4)
    one, two = (System(H100, topology).all_reduce(Layout(tp=8, replicas=n)) for n in (1, 2))
    assert one.seconds(8, 2**20) < two.seconds(8, 2**20)


def test_the_other_order_spreads_each_tp_group():
    topology = Topology(16, 8, NVLINK, NETWORK)
    shape, blocks = placed_replicas(topology, Layout(tp=4, pp=2), tp_inside=False)
    assert list(shape.tp_groups(blocks[0])) == [(0, 2, 4, 6), (1, 3, 5, 7)]
    assert list(shape.hops(blocks[0])) == [(0, 1), (2, 3), (4, 5), (6, 7)]
    wide = Layout(tp=8, pp=2)
    spread, neighbours = (
        prefill_step(MODEL, System(H100, topology, tp_inside=inside), wide, 4096, 2).seconds
        for inside in (False, True)
    )
    assert spread > neighbours


def test_an_all_to_all_crosses_every_link_of_its_ranks():
    assert box(*SQUARE).slowest_link(range(4)) == BRIDGE
    assert box(*SQUARE).all_to_all(range(4)).bandwidth == PCIE.bandwidth
    every = box(*combinations(range(4), 2))
    assert every.all_to_all(range(4)).bandwidth == BRIDGE.bandwidth


def test_a_layout_of_more_gpus_than_there_are_is_refused():
    message = "the layout takes 12 GPUs and the topology has 8; 2 replicas of 4 would fit"
    with pytest.raises(ValueError, match=message):
        step(Topology(8, 8, NVLINK, NETWORK), Layout(tp=4, replicas=3))
    with pytest.raises(ValueError, match="the topology has 4"):
        stage_link(box(), Layout(pp=8))
    with pytest.raises(ValueError, match="there are 2 groups of 2 here, not 3"):
        box().best_groups(2, 3)


def test_nodes_with_other_bridges_and_equal_rings_can_be_listed_in_any_order():
    one, other = box((0, 1), gpus=8, node=4), box((4, 5), (5, 6), gpus=8, node=4)
    both = replace(one, pairs={**one.pairs, **other.pairs})
    assert both.canonical == replace(both, nodes=both.nodes[::-1]).canonical
    assert one.canonical == box((6, 4), gpus=8, node=4).canonical


@st.composite
def boxes(draw) -> Topology:
    node, nodes = draw(st.sampled_from([(4, 1), (4, 2), (3, 3), (6, 1), (6, 2), (8, 1)]))
    pairs = {}
    for first in range(0, node * nodes, node):
        every = list(combinations(range(first, first + node), 2))
        for pair in draw(st.lists(st.sampled_from(every), unique=True, max_size=2 * node)):
            pairs[frozenset(pair)] = draw(st.sampled_from([BRIDGE, NVLINK, SLOW]))
    missing = 0 if pairs else draw(st.sampled_from([0, 1]))
    return Topology(node * nodes - missing, node, PCIE, NETWORK, pairs)


def layouts_of(gpus: int) -> list[Layout]:
    """All with as many replicas as fit, and with one."""
    sizes = (1, 2, 3, 4, 8)
    return [
        Layout(tp, pp, dp, ep, replicas)
        for tp in sizes
        for pp in (1, 2, 3, 4)
        for dp in (1, 2, 3)
        if tp * pp * dp <= gpus
        for ep in {1, tp * dp}
        for replicas in {1, gpus // (tp * pp * dp)}
    ]


@settings(max_examples=25, deadline=None)
@given(st.data(), boxes(), st.booleans())
def test_relabelling_gpus_and_nodes_with_their_links_changes_no_term(data, topology, tp_inside):
    renamed = topology.relabelled(data.draw(st.permutations(range(topology.gpus))))
    other = replace(renamed, nodes=tuple(data.draw(st.permutations(renamed.nodes))))
    assert other.canonical == topology.canonical
    ours, theirs = (System(H100, where, tp_inside=tp_inside) for where in (topology, other))
    for layout in layouts_of(topology.gpus):
        one, two = (decode_step(MIXTURE, each, layout, 8, 500).terms for each in (ours, theirs))
        assert one == two
        one, two = (prefill_step(MIXTURE, each, layout, 99, 4).terms for each in (ours, theirs))
        assert one == two


@settings(max_examples=25, deadline=None)
@given(boxes(), st.booleans())
def test_every_replica_gets_gpus_of_its_own_and_more_replicas_are_never_faster(topology, inside):
    for layout in layouts_of(topology.gpus):
        shape = ReplicaShape(layout.tp, layout.dp, layout.pp, inside)
        used = [gpu for block in placed(topology, shape, layout.replicas) for gpu in block]
        assert len(used) == len(set(used)) == layout.world_size
        grouped = [gpu for group in shape.tp_groups(tuple(used)) for gpu in group]
        assert sorted(grouped) == sorted(used)
    for tp in (1, 2, 3):
        times = [
            step(topology, Layout(tp=tp, replicas=replicas))
            for replicas in range(1, topology.gpus // tp + 1)
        ]
        assert times == sorted(times)


@settings(max_examples=25, deadline=None)
@given(st.data(), st.sampled_from([2, 3]), st.integers(1, 3))
def test_of_all_ways_to_place_groups_the_one_with_the_fastest_slowest_group_is_taken(
    data, size, count
):
    every = list(combinations(range(6), 2))
    pairs = {
        frozenset(pair): data.draw(st.sampled_from([BRIDGE, NVLINK, SLOW]))
        for pair in data.draw(st.lists(st.sampled_from(every), unique=True))
    }
    topology, count = Topology(6, 6, PCIE, NETWORK, pairs), min(count, 6 // size)
    best = min(
        max(topology.ring_seconds(order[n * size :][:size]) for n in range(count))
        for order in permutations(range(6))
    )
    found = topology.best_groups(size, count)
    assert max(topology.ring_seconds(group) for group in found) == best


@settings(max_examples=40, deadline=None)
@given(st.data(), st.integers(1, 7))
def test_equal_graphs_get_equal_forms_and_the_order_has_every_point_once(data, size):
    colours = {
        frozenset(pair): data.draw(st.integers(0, 2)) for pair in combinations(range(size), 2)
    }
    names = data.draw(st.permutations(range(size)))

    def colour(a: int, b: int) -> int:
        return colours[frozenset((a, b))]

    def renamed(a: int, b: int) -> int:
        return colours[frozenset((names[a], names[b]))]

    ours, theirs = canonical_order(range(size), colour), canonical_order(range(size), renamed)
    assert sorted(ours) == list(range(size))
    assert form(ours, colour) == form(theirs, renamed)


def test_a_node_of_many_gpus_and_few_bridges_is_placed_quickly_too():
    topology = Topology(72, 72, PCIE, NETWORK, {frozenset((3, 50)): BRIDGE})
    assert topology.best_groups(2, 1) == ((3, 50),)
    _, blocks = placed_replicas(topology.canonical, Layout(tp=8, pp=3, replicas=3))
    assert len({gpu for block in blocks for gpu in block}) == 72


@pytest.mark.parametrize("size", [16, 32])
def test_a_ring_of_many_gpus_is_numbered_by_its_links(size):
    ring = {frozenset((gpu, (gpu + 1) % size)): BRIDGE for gpu in range(size)}
    topology = Topology(size, size, PCIE, NETWORK, ring)
    other = topology.relabelled([(5 * gpu + 3) % size for gpu in range(size)])
    assert other.pairs != topology.pairs
    assert other.canonical == topology.canonical


def test_a_large_node_is_placed_group_by_group_along_its_bridges():
    pairs = {frozenset((gpu, gpu + 36)): BRIDGE for gpu in range(36)}
    topology = Topology(72, 72, PCIE, NETWORK, pairs)
    groups = topology.best_groups(2)
    assert {frozenset(group) for group in groups} == set(pairs)
    assert topology.best_groups(2, 5) == groups[:5]
    assert len({gpu for group in topology.best_groups(8) for gpu in group}) == 72
