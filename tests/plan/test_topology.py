"""Which links groups get, what collectives cost over them, and that labels do not matter."""

import pickle
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labkit.plan.collective_presets import COLLECTIVE_PRESETS, TEXTBOOK_NVLINK
from labkit.plan.collectives import Hierarchical, Ring
from labkit.plan.device_presets import device
from labkit.plan.link_presets import LINKS, link
from labkit.plan.slowest_group import slowest_collective
from labkit.plan.topology import Topology

NVLINK, PCIE, BRIDGE, NETWORK = (
    LINKS[name] for name in ("nvlink4", "pcie4", "nvlink-bridge-3090", "infiniband-ndr")
)
SIZE = 2**20


def bridged(*pairs, gpus=4):
    joined = {frozenset(pair): BRIDGE for pair in pairs}
    return Topology(gpus, 8, PCIE, NETWORK, joined)


def ring(spec):
    return Ring(spec.hop_latency, spec.bandwidth)


def test_links_inside_a_node_between_nodes_and_of_pairs():
    topology = Topology(16, 8, NVLINK, NETWORK)
    assert topology.link(0, 7) is NVLINK
    assert topology.link(7, 8) is NETWORK
    assert bridged((0, 2)).link(2, 0) is BRIDGE
    assert bridged((0, 2)).link(0, 1) is PCIE


def test_a_group_in_one_node_is_a_ring_over_the_slowest_link_it_must_cross():
    topology = bridged((0, 2), (1, 3))
    assert topology.collective((0, 2)) == ring(BRIDGE)
    assert topology.collective((0, 1)) == ring(PCIE)
    assert topology.collective((0, 1, 2, 3)) == ring(PCIE)


def test_a_ring_is_laid_where_the_links_are_fast():
    square = bridged((0, 1), (1, 2), (2, 3), (3, 0))
    assert square.slowest_link((0, 1, 2, 3)) == BRIDGE
    assert square.slowest_link((0, 1, 2)) == PCIE
    five = bridged((0, 1), (1, 2), (2, 3), (3, 4), (4, 0), gpus=8)
    assert five.slowest_link(range(5)) == BRIDGE
    assert five.slowest_link((0, 1, 2, 3)) == PCIE


def test_a_slow_pair_does_not_slow_a_ring_that_can_avoid_it():
    slow = LINKS["pcie3"]
    topology = Topology(4, 4, PCIE, NETWORK, {frozenset((0, 1)): slow})
    assert topology.slowest_link((0, 1, 2, 3)) == PCIE
    assert topology.slowest_link((0, 1)) == slow
    assert topology.best_groups(2) == ((0, 2), (1, 3))


def test_over_nodes_a_collective_is_hierarchical():
    topology = Topology(32, 8, NVLINK, NETWORK)
    assert topology.collective(range(16)) == Hierarchical(ring(NVLINK), ring(NETWORK), 8)
    assert topology.collective(range(0, 32, 8)) == ring(NETWORK)
    assert topology.collective((0, 1, 8, 9)) == Hierarchical(ring(NVLINK), ring(NETWORK), 2)


def test_unequal_shares_of_nodes_make_one_ring_over_the_network():
    topology = Topology(16, 8, NVLINK, NETWORK)
    cost = topology.collective(range(12)).seconds(12, SIZE)
    assert cost == ring(NETWORK).seconds(12, SIZE)
    assert cost > topology.collective((*range(6), *range(8, 14))).seconds(12, SIZE)


def test_a_calibrated_preset_replaces_the_ring_inside_a_node_only():
    preset = COLLECTIVE_PRESETS["h100_sxm/vllm_graph/0.19.0/all_reduce"]
    topology = Topology(16, 8, NVLINK, NETWORK)
    assert topology.collective(range(8), preset) == preset.chosen_model(8)
    both = topology.collective(range(16), preset)
    assert both == Hierarchical(preset.chosen_model(8), ring(NETWORK), 8)
    assert bridged((0, 2)).collective((0, 2), TEXTBOOK_NVLINK) == ring(BRIDGE)


def test_one_gpu_pays_nothing():
    assert Topology(4, 4, NVLINK, NETWORK).collective((2,)).seconds(1, SIZE) == 0


@pytest.mark.parametrize("size", [2, 4, 8])
def test_groups_stay_inside_nodes(size):
    topology = Topology(512, 8, NVLINK, NETWORK)
    groups = topology.best_groups(size)
    assert len(groups) == 512 // size
    assert all(len({topology.node_of(gpu) for gpu in group}) == 1 for group in groups)
    assert sorted(gpu for group in groups for gpu in group) == list(range(512))


def test_groups_above_a_node_take_whole_nodes():
    groups = Topology(64, 8, NVLINK, NETWORK).best_groups(16)
    assert groups[1] == tuple(range(16, 32))
    assert len(groups) == 4


def test_gpus_that_make_no_whole_group_stay_idle_and_groups_inside_a_node_come_first():
    assert Topology(8, 8, NVLINK, NETWORK).best_groups(3) == ((0, 1, 2), (3, 4, 5))
    assert Topology(16, 8, NVLINK, NETWORK).best_groups(3)[-1] == (6, 7, 14)


def test_pairs_that_a_greedy_choice_would_break_stay_together():
    path = bridged((0, 1), (1, 2), (2, 3))
    assert path.best_groups(2) == ((0, 1), (2, 3))
    assert bridged((1, 2)).best_groups(2) == ((1, 2), (0, 3))


def test_a_large_node_with_pairs_is_placed_too():
    pairs = {frozenset((gpu, gpu + 8)): BRIDGE for gpu in range(8)}
    groups = Topology(16, 16, PCIE, NETWORK, pairs).best_groups(2)
    assert set(groups) == {(gpu, gpu + 8) for gpu in range(8)}


def test_the_slowest_group_in_use_sets_the_cost():
    topology = bridged((0, 2))
    assert slowest_collective(topology, topology.best_groups(2)[:1]) == ring(BRIDGE)
    assert slowest_collective(topology, topology.best_groups(2)) == ring(PCIE)


def test_an_all_to_all_waits_for_the_slower_of_node_and_network():
    topology = Topology(16, 8, NVLINK, NETWORK)
    inside = topology.all_to_all(range(8))
    assert inside.seconds(8, SIZE) == pytest.approx(2e-6 + 7 / 8 * SIZE / 450e9)
    across = topology.all_to_all(range(16))
    assert across.seconds(16, SIZE) == pytest.approx(5e-6 + 8 / 16 * SIZE / 50e9)


def test_the_usual_topology_of_a_device():
    h100 = Topology.for_device(device("h100"), 16)
    assert (h100.inside, h100.between, h100.gpus_per_node) == (NVLINK, NETWORK, 8)
    assert Topology.for_device(device("gb200"), 72).collective(range(72)) == ring(link("nvlink5"))
    own = Topology.for_device(device("h100"), 4, link="pcie5", gpus_per_node=2, between=PCIE)
    assert (own.inside.name, own.between, len(own.nodes)) == ("pcie5", PCIE, 2)


@st.composite
def topologies(draw):
    gpus, per_node = draw(st.integers(1, 8)), draw(st.integers(1, 8))
    bare = Topology(gpus, per_node, PCIE, NETWORK)
    inside = [pair for pair in combinations(range(gpus), 2) if len({*map(bare.node_of, pair)}) == 1]
    chosen = draw(st.lists(st.sampled_from(inside), unique=True, max_size=8)) if inside else []
    specs = st.sampled_from([BRIDGE, LINKS["nvlink2"], LINKS["pcie3"]])
    pairs = {frozenset(pair): draw(specs) for pair in chosen}
    return Topology(gpus, per_node, PCIE, NETWORK, pairs)


@settings(max_examples=60, deadline=None)
@given(st.data(), topologies())
def test_relabelling_gpus_with_their_links_changes_nothing(data, topology):
    labels = data.draw(st.permutations(range(topology.gpus)))
    other = topology.relabelled(labels)
    size = data.draw(st.integers(1, topology.gpus))

    def costs(where):
        return [where.collective(group).seconds(size, SIZE) for group in where.best_groups(size)]

    assert sorted(costs(other)) == sorted(costs(topology))
    group = data.draw(st.lists(st.integers(0, topology.gpus - 1), unique=True, min_size=1))
    renamed = [labels[gpu] for gpu in group]
    assert other.collective(renamed) == topology.collective(group)
    assert other.all_to_all(renamed) == topology.all_to_all(group)
    for a, b in combinations(group, 2):
        assert other.link(labels[a], labels[b]) == topology.link(a, b)


@settings(max_examples=40, deadline=None)
@given(topologies(), st.integers(1, 8))
def test_groups_are_disjoint_and_as_many_as_possible(topology, size):
    if size > topology.gpus:
        with pytest.raises(ValueError, match=f"a group of {size} needs as many GPUs"):
            topology.best_groups(size)
        return
    groups = topology.best_groups(size)
    used = [gpu for group in groups for gpu in group]
    assert len(used) == len(set(used))
    assert len(groups) == topology.gpus // size


def test_topologies_are_values():
    one, same = bridged((0, 2)), bridged((2, 0))
    assert one == same
    assert hash(one) == hash(same)
    assert pickle.loads(pickle.dumps(one)) == one
    assert one != bridged((0, 1))


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ((0, 0), "a pair joins two different GPUs"),
        ((0, 9), "a pair joins two different GPUs from 0 to 3"),
    ],
)
def test_a_pair_that_cannot_be_is_refused(pair, message):
    with pytest.raises(ValueError, match=message):
        bridged(pair)


def test_a_pair_over_two_nodes_is_refused():
    with pytest.raises(ValueError, match="GPUs 1 and 2 are of different nodes"):
        Topology(4, 2, PCIE, NETWORK, {frozenset((1, 2)): BRIDGE})


@pytest.mark.parametrize(
    ("group", "message"), [((), "one GPU"), ((1, 1), "once"), ((9,), "0 to 3")]
)
def test_a_group_that_cannot_be_is_refused(group, message):
    with pytest.raises(ValueError, match=message):
        bridged().collective(group)


@pytest.mark.parametrize("bad", [0, -1, 1.5, True])
def test_numbers_of_gpus_are_whole_and_positive(bad):
    with pytest.raises(ValueError, match="gpus"):
        Topology(bad, 8, PCIE, NETWORK)
    with pytest.raises(ValueError, match="size"):
        bridged().best_groups(bad)
