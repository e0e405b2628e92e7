"""Lesson 03: the map, from a config to the flags of an engine."""

from __future__ import annotations

from course.lessons.content import Edge, LessonMap, Node
from course.lessons.layout_planning_figures import (
    CALIBRATED_LARGE,
    CONTEXT,
    HALF_WEIGHTS,
    KV_CONTEXT,
    KV_TOKEN,
    LARGE_TP,
    MEETINGS,
    STEP_LARGE,
    TOO_SMALL_TP,
    USABLE,
    WEIGHTS,
)

_FUNCTION = "a function call: no process, no GPU"
_FILE = "a file of figures"

MAP = LessonMap(
    title="From a config to a layout that runs",
    nodes=(
        Node(
            "inventory",
            "Weights and caches",
            "Every matrix with its shape, its format and the way it is cut; every layer with what "
            f"it keeps of a token. Qwen2.5-72B in bf16: {WEIGHTS} of weights, {KV_TOKEN} of cache "
            "a token.",
            (0, 0),
        ),
        Node(
            "legality",
            "Legal layouts",
            "Heads, widths, quantisation groups and layers must divide. Each layout that does not "
            "is kept with every reason, and with what would repair it.",
            (0, 1),
        ),
        Node(
            "memory",
            "Memory of every rank",
            "Weights, runtime and activations of each rank in each stage; what is left is the KV "
            "pool.",
            (1, 1),
        ),
        Node(
            "measured",
            "Recorded costs",
            "Times of a real engine at some degrees and batches, with their source: what data "
            "sheets leave out.",
            (2, 0),
        ),
        Node(
            "step",
            "Step in terms",
            "Weights, cache, arithmetic, collectives, overheads: seconds of each, and their sum.",
            (2, 1),
        ),
        Node(
            "hardware",
            "GPUs and links",
            "Bytes, bytes per second and FLOP/s of a GPU; which link joins which pair.",
            (1, 0),
        ),
        Node(
            "objective",
            "Objective, SLO",
            "What you want: latency, tokens per second and GPU, cache, cost; and the limits on "
            "TTFT and time per token.",
            (1, 2),
        ),
        Node(
            "search",
            "Search",
            "All layouts on your GPUs: those that fit, each at the largest batch that the limits "
            "allow.",
            (2, 2),
        ),
        Node(
            "pareto",
            "Pareto set",
            "Layouts that no other beats in everything, each with reasons for and against.",
            (2, 3),
        ),
        Node(
            "engine",
            "Engine and its flags",
            "What you type to start vLLM, SGLang or TensorRT-LLM that way. What it then prints is "
            "the test of the plan.",
            (1, 3),
        ),
    ),
    edges=(
        Edge(
            "inventory",
            "legality",
            "shapes and groups",
            protocol=_FUNCTION,
            direction="from the config to the rules of division",
            effect="Each layout is legal, or has all its reasons.",
            consequence="The INT4 version of a legal bf16 model may be illegal: ask for the "
            "checkpoint that you serve.",
        ),
        Edge(
            "legality",
            "memory",
            "what can be cut",
            protocol=_FUNCTION,
            direction="from legal layouts to bytes of every rank",
            effect="Each layout has a KV pool, or a sentence that says what exceeds what.",
            consequence=f"Qwen2.5-72B at TP {TOO_SMALL_TP}: {HALF_WEIGHTS} of weights a rank, "
            f"{USABLE} to use. Rejected.",
        ),
        Edge(
            "hardware",
            "memory",
            "usable bytes",
            protocol=_FUNCTION,
            direction="from the GPU to each rank's budget",
            effect="Total memory times the engine's share is what a rank may fill.",
            consequence="The figure in a GPU's name and what the driver reports are not the same "
            "number.",
        ),
        Edge(
            "memory",
            "step",
            "tokens that fit",
            protocol=_FUNCTION,
            direction="from the fullest rank to the running batch",
            effect="The batch is what clients ask for, or what memory allows if that is less.",
            consequence=f"A context of {CONTEXT:,} tokens takes {KV_CONTEXT}: a few such requests "
            "cap the batch.",
        ),
        Edge(
            "hardware",
            "measured",
            "data sheet",
            protocol=_FILE,
            direction="from memory and links as sold to memory and links as recorded",
            effect="Reading, computing and sending get a cost that somebody has seen.",
            consequence=f"{MEETINGS} meetings a step: what one costs decides. The textbook says "
            f"{STEP_LARGE} for the step at TP {LARGE_TP}, with recorded meetings it is "
            f"{CALIBRATED_LARGE}.",
        ),
        Edge(
            "measured",
            "step",
            "calibration",
            protocol=_FILE,
            direction="from recorded times to a few efficiencies and overheads of the step",
            effect="The model meets what was recorded, and says how far off it still is.",
            consequence="Fit on some rows, judge on others: a fit of all rows proves nothing.",
        ),
        Edge(
            "step",
            "search",
            "seconds",
            protocol=_FUNCTION,
            direction="from one layout to all of them",
            effect="Every legal layout that fits has its time per token at every batch.",
            consequence="An estimate must be cheap: a large cluster has hundreds of layouts.",
        ),
        Edge(
            "objective",
            "search",
            "what to maximise",
            protocol="you say it",
            direction="from you to the search",
            effect="Layouts can be ordered.",
            consequence="Without it there is no best layout, and the planner refuses to name one.",
        ),
        Edge(
            "search",
            "pareto",
            "candidates",
            protocol=_FUNCTION,
            direction="from all candidates to those not beaten in everything",
            effect="A few layouts are left, with reasons.",
            consequence="You choose between latency and throughput, not between hundreds of "
            "layouts.",
        ),
        Edge(
            "pareto",
            "engine",
            "launch flags",
            protocol="a command line",
            direction="from the chosen layout to the engine",
            effect="The engine starts as planned.",
            consequence="Compare the KV blocks that it prints with the plan before you trust the "
            "plan's times.",
        ),
    ),
)
