"""Lesson 01: mistakes that people make with collectives."""

from __future__ import annotations

from course.lessons.collectives_figures import EAGER, GRAPH_TITLE, GRAPHED
from course.lessons.content import Pitfall

PITFALLS = (
    Pitfall(
        "Everybody receives first",
        symptom="The program stops, and every rank sits in `recv`.",
        cause="Each rank waits for its neighbour to send, and each send stands behind that wait.",
        remedy="Send and receive in one call (`send_recv`), or let every second rank send first.",
    ),
    Pitfall(
        "A collective behind an `if`",
        symptom="It hangs on some inputs: one rank has returned, the others wait.",
        cause="The branch depends on the rank or on its data, and a collective needs all ranks.",
        remedy="Every rank calls. One with nothing to add brings a zero.",
    ),
    Pitfall(
        "The result of `dist.all_reduce`",
        symptom="`None` turns up where a tensor should be, or the input has changed.",
        cause="torch reduces in place and returns nothing; with `async_op` it returns a handle.",
        remedy="Use the tensor you passed in, and keep a copy if you need the old values. labkit's "
        "`Comm.all_reduce` reduces in place too, and returns that tensor.",
    ),
    Pitfall(
        "Payload taken for wire bytes",
        symptom="A measured bandwidth above the link's own, or a model that is off by a factor "
        "that depends on the number of ranks.",
        cause="A ring all-reduce sends `2 (n-1)/n` times the payload from each rank. Payload over "
        "time is the algorithm's bandwidth, and not the link's.",
        remedy="Say which: payload, or wire. Bus bandwidth is wire bytes of a ring over time.",
    ),
    Pitfall(
        "Timing a launch instead of the work",
        symptom="On a GPU the collective seems to take the same few microseconds for any size.",
        cause="The call returns when the kernel has been queued.",
        remedy="Synchronise before both clock readings, start all ranks together with a barrier, "
        "repeat, and take medians.",
    ),
    Pitfall(
        "Eager launches taken for the link",
        symptom="Small all-reduces look several times as slow as the same kernel in serving.",
        cause=f"{GRAPH_TITLE}: {GRAPHED} for a small message with two GPUs; launched by the host "
        f"each time, {EAGER}.",
        remedy="Measure as you serve: replayed in a CUDA graph.",
    ),
    Pitfall(
        "One fit over everything",
        symptom="A model that fits no implementation, with a latency nobody has measured.",
        cause="Kernels, versions and systems differ by factors; a fit over all is their average.",
        remedy="Fit each one alone, look at its largest miss, and name what you set aside.",
    ),
    Pitfall(
        "A fit in seconds instead of in per cent",
        symptom="Latency comes out as zero, or as a multiple of what small messages take.",
        cause="In plain least squares the largest messages outweigh all small ones.",
        remedy="Minimise relative errors, so that a small message counts as much as a large one.",
    ),
    Pitfall(
        "Bits compared across sizes",
        symptom="A regression test fails after someone pads a batch.",
        cause="A ring adds each chunk in another order, and the size decides which chunk an "
        "element falls in.",
        remedy="Use a sum in a fixed order, or compare with a tolerance.",
    ),
)
