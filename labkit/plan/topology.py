"""Which link joins which GPUs, where groups go, and what a collective costs there.

    GPUs of a node      `inside`, or a faster or slower link of their own in `pairs`
    GPUs of two nodes   `between`, one port for each GPU

A ring waits for the slowest link that it must cross. Over several nodes a collective is
hierarchical: inside each node, then between them on a node's share of the bytes. Groups go where
links are fastest: a tensor parallel group stays inside a node while it fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from types import MappingProxyType

from labkit.plan.canonical_topology import canonical_topology
from labkit.plan.collective_presets import CollectivePreset
from labkit.plan.collectives import AllToAll, CostModel, Hierarchical, Ring
from labkit.plan.hardware import DeviceSpec, LinkSpec, require_count
from labkit.plan.link_presets import link as find_link
from labkit.plan.pair_placement import REFERENCE_BYTES, bottleneck
from labkit.plan.placed_replicas import placed
from labkit.plan.replica_shape import ReplicaShape


@dataclass(frozen=True)
class Topology:
    """GPUs 0 to `gpus` - 1 and the links between them.

    Attributes:
        gpus_per_node: GPUs of a node, which have consecutive numbers; the last may have fewer.
        inside: between two GPUs of a node.
        between: between two nodes, for each GPU of them.
        pairs: two GPUs of one node that have another link, such as an NVLink bridge.
        nodes: the GPUs of each node, where they are not numbered node by node.
    """

    gpus: int
    gpus_per_node: int
    inside: LinkSpec
    between: LinkSpec
    pairs: Mapping[frozenset[int], LinkSpec] = field(default_factory=dict)
    nodes: tuple[tuple[int, ...], ...] = ()

    def __post_init__(self) -> None:
        require_count("gpus", self.gpus)
        require_count("gpus_per_node", self.gpus_per_node)
        pairs = {frozenset(pair): spec for pair, spec in dict(self.pairs).items()}
        object.__setattr__(self, "pairs", MappingProxyType(pairs))
        every = range(self.gpus)
        if not self.nodes:
            step = self.gpus_per_node
            nodes = tuple(
                tuple(every[start : start + step]) for start in range(0, len(every), step)
            )
            object.__setattr__(self, "nodes", nodes)
        elif sorted(gpu for node in self.nodes for gpu in node) != list(every):
            raise ValueError(f"nodes must hold each GPU from 0 to {self.gpus - 1} once")
        for pair in pairs:
            self._require_pair(pair)

    def _require_pair(self, pair: frozenset[int]) -> None:
        shown = " and ".join(str(gpu) for gpu in sorted(pair))
        if len(pair) != 2 or not all(0 <= gpu < self.gpus for gpu in pair):
            raise ValueError(
                f"a pair joins two different GPUs from 0 to {self.gpus - 1}, not {shown}"
            )
        if len({self.node_of(gpu) for gpu in pair}) > 1:
            raise ValueError(f"GPUs {shown} are of different nodes; `between` joins those")

    @classmethod
    def for_device(
        cls,
        device: DeviceSpec,
        gpus: int,
        link: LinkSpec | str | None = None,
        gpus_per_node: int | None = None,
        between: LinkSpec | str | None = None,
    ) -> Topology:
        """The usual topology of a device: its own link inside nodes of the usual size."""

        def spec(choice: LinkSpec | str) -> LinkSpec:
            return choice if isinstance(choice, LinkSpec) else find_link(choice)

        return cls(
            gpus=gpus,
            gpus_per_node=device.gpus_per_node if gpus_per_node is None else gpus_per_node,
            inside=spec(device.link if link is None else link),
            between=spec(device.network if between is None else between),
        )

    @cached_property
    def _hash(self) -> int:
        links = (self.inside, self.between, frozenset(self.pairs.items()))
        return hash((self.gpus, self.gpus_per_node, *links, self.nodes))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        links = (self.inside, self.between, dict(self.pairs))
        return type(self), (self.gpus, self.gpus_per_node, *links, self.nodes)

    @cached_property
    def node_numbers(self) -> tuple[int, ...]:
        """The node of each GPU."""
        found = {gpu: index for index, node in enumerate(self.nodes) for gpu in node}
        return tuple(found[gpu] for gpu in range(self.gpus))

    def node_of(self, gpu: int) -> int:
        """The node a GPU is in."""
        if not 0 <= gpu < self.gpus:
            raise ValueError(f"GPU {gpu} is not one of the {self.gpus} here")
        return self.node_numbers[gpu]

    def link(self, a: int, b: int) -> LinkSpec:
        """The link between two GPUs. Raises ValueError for a GPU and itself."""
        if a == b:
            raise ValueError(f"GPU {a} has no link to itself")
        same = self.node_of(a) == self.node_of(b)
        return self.pairs.get(frozenset((a, b)), self.inside) if same else self.between

    def slowest_link(self, group: Sequence[int]) -> LinkSpec:
        """The slowest link that a ring over the group must cross, laid as well as can be."""
        members = self._members(group)
        if len(members) < 2:
            return self.inside
        if len({self.node_numbers[gpu] for gpu in members}) > 1:
            return self.between
        chosen = set(members)
        if not any(pair <= chosen for pair in self.pairs):
            return self.inside
        return bottleneck(members, self.link)

    def collective(self, group: Sequence[int], preset: CollectivePreset | None = None) -> CostModel:
        """What an all-reduce over the group costs: ask it with `len(group)` ranks.

        `preset` takes the place of the ring over `inside` links; rings over links of `pairs` and
        between nodes stay as they are.
        """
        members = self._members(group)
        by_node: dict[int, list[int]] = {}
        for gpu in members:
            by_node.setdefault(self.node_numbers[gpu], []).append(gpu)
        sizes = {len(part) for part in by_node.values()}
        if len(by_node) == 1:
            return self._inside_model(members, preset)
        if sizes == {1} or len(sizes) > 1:
            latency = max(self.between.hop_latency, self.inside.hop_latency * (sizes != {1}))
            return Ring(latency, min(self.between.bandwidth, self.inside.bandwidth))
        size = sizes.pop()
        parts = list(by_node.values())
        models = [self._inside_model(part, preset) for part in (parts if self.pairs else parts[:1])]
        inner = max(models, key=lambda model: model.seconds(size, REFERENCE_BYTES))
        return Hierarchical(inner, _ring(self.between), size)

    def _inside_model(self, members: Sequence[int], preset: CollectivePreset | None) -> CostModel:
        slowest = self.slowest_link(members)
        if preset is not None and slowest == self.inside:
            return preset.chosen_model(len(members))
        return _ring(slowest)

    def all_to_all(self, group: Sequence[int]) -> AllToAll:
        """What an all-to-all over the group costs; ask it with `len(group)` ranks.

        Messages to all peers leave together, those inside the node beside those to other nodes, so
        the slower of the two sets the time; one hop's latency, whatever the number of peers.
        """
        members = self._members(group)
        counts: dict[int, int] = {}
        for gpu in members:
            counts[self.node_numbers[gpu]] = counts.get(self.node_numbers[gpu], 0) + 1
        if len(counts) == 1:
            differ = self.pairs and len(members) > 1
            spec = self.slowest_of(combinations(members, 2)) if differ else self.inside
            return AllToAll(0.0, spec.bandwidth, launch=spec.hop_latency)
        total, near, far = len(members), max(counts.values()), min(counts.values())
        share = max((near - 1) / self.inside.bandwidth, (total - far) / self.between.bandwidth)
        latency = max(self.inside.hop_latency, self.between.hop_latency)
        return AllToAll(0.0, (total - 1) / share, launch=latency)

    def best_groups(self, size: int, count: int | None = None) -> tuple[tuple[int, ...], ...]:
        """`count` groups of `size` GPUs that fit beside each other, on the fastest links: the
        slowest as fast as can be. None takes as many as there are. The fastest comes first.

        A group stays inside a node while it fits, and takes whole nodes where it does not.

        Raises ValueError for more GPUs than there are.
        """
        require_count("size", size)
        if size > self.gpus:
            raise ValueError(f"a group of {size} needs as many GPUs; there are {self.gpus}")
        most = self.gpus // size
        if count is not None and not 1 <= count <= most:
            raise ValueError(f"there are {most} groups of {size} here, not {count}")
        groups = placed(self, ReplicaShape(tp=size), most if count is None else count)
        return tuple(sorted(groups, key=self._order) if self.pairs and size > 1 else groups)

    def _order(self, group: Sequence[int]) -> tuple[bool, float, tuple[int, ...]]:
        """Groups of one node come first, then by the ring's time, then by number."""
        spans = len({self.node_numbers[gpu] for gpu in group}) > 1
        return spans, self.ring_seconds(group), tuple(group)

    def ring_seconds(self, group: Sequence[int]) -> float:
        """An all-reduce of the reference payload over one ring of the group."""
        return _ring(self.slowest_link(group)).seconds(len(group), REFERENCE_BYTES)

    def slowest_of(self, joined: Iterable[tuple[int, int]]) -> LinkSpec:
        """The slowest of the links between these GPUs; of equals the one of more latency."""
        if self.pairs:
            links = {self.link(*pair) for pair in joined}
        else:
            nodes = self.node_numbers
            crossing = {nodes[a] != nodes[b] for a, b in joined}
            links = {self.between if crosses else self.inside for crosses in crossing}
        return min(links, key=lambda link: (link.bandwidth, -link.hop_latency))

    @cached_property
    def pairs_by_node(self) -> tuple[Mapping[frozenset[int], LinkSpec], ...]:
        """`pairs` of each node."""
        found: tuple[dict[frozenset[int], LinkSpec], ...] = tuple({} for _ in self.nodes)
        for pair, spec in self.pairs.items():
            found[self.node_numbers[min(pair)]][pair] = spec
        return found

    @cached_property
    def canonical(self) -> Topology:
        """The same links where GPUs are numbered by the links they have, whatever they were called:
        equal for topologies that differ in their numbers alone. Larger and faster nodes come first.
        """
        return canonical_topology(self)

    def relabelled(self, labels: Sequence[int]) -> Topology:
        """The same GPUs and links where GPU i is called `labels[i]`."""
        if sorted(labels) != list(range(self.gpus)):
            raise ValueError(f"labels must have each number from 0 to {self.gpus - 1} once")
        pairs = {frozenset(labels[gpu] for gpu in pair): spec for pair, spec in self.pairs.items()}
        nodes = tuple(tuple(sorted(labels[gpu] for gpu in node)) for node in self.nodes)
        return Topology(self.gpus, self.gpus_per_node, self.inside, self.between, pairs, nodes)

    def _members(self, group: Sequence[int]) -> tuple[int, ...]:
        members = tuple(group)
        if not members:
            raise ValueError("a group needs one GPU at least")
        if len(set(members)) < len(members):
            raise ValueError(f"a group holds each GPU once; {members} does not")
        if min(members) < 0 or max(members) >= self.gpus:
            raise ValueError(f"GPUs are numbered from 0 to {self.gpus - 1} here, unlike {members}")
        return members


def _ring(spec: LinkSpec) -> Ring:
    return Ring(spec.hop_latency, spec.bandwidth)
