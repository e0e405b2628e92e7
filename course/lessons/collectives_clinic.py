"""Lesson 01: what to ask about each program of the deadlock clinic, once its diagnosis is read."""

from __future__ import annotations

from collections.abc import Mapping

from course.lessons.content import Option, Quiz

CASES: Mapping[str, Quiz] = {
    "pass_around": Quiz(
        "pass-around",
        "Every rank passes a number to its neighbour. What is the fault?",
        (
            Option(
                "One rank names the wrong neighbour",
                "The neighbours are right: each rank waits for the one on its left, and that one "
                "would send to it next. It never gets there.",
            ),
            Option(
                "All ranks receive before any of them sends",
                "A circle of waits: each send stands behind a receive that waits for another "
                "rank's send. `send_recv` does both at once; else let every second rank send "
                "first.",
                is_right=True,
            ),
            Option(
                "The message is too large for the link",
                "Size does not matter here. Not one byte was sent: every rank is in `recv`.",
            ),
        ),
    ),
    "count_words": Quiz(
        "count-words",
        "The ranks add up what they hold, and one of them holds nothing. What is the fault?",
        (
            Option(
                "A rank with nothing to add left without the collective",
                "An all-reduce ends when all ranks of its group are in it. The rank without work "
                "brings a zero, and calls like the others.",
                is_right=True,
            ),
            Option(
                "A sum over nothing is not defined",
                "The sum over nothing is zero, and that rank never came to compute it. It "
                "returned early.",
            ),
            Option(
                "The ranks that wait are too slow",
                "They are where they should be. Those that wait show the symptom, and the rank "
                "that has returned is the cause.",
            ),
        ),
    ),
    "log_and_step": Quiz(
        "log-and-step",
        "Two groups over the same ranks, one for the model and one for the logs. What is the "
        "fault?",
        (
            Option(
                "The two tensors have different shapes",
                "Each group's call has the same shape on every rank. The two groups need not "
                "agree with each other.",
            ),
            Option(
                "Two groups must not have the same ranks",
                "They may. Groups are told apart by what they are, and each keeps its own count of "
                "calls.",
            ),
            Option(
                "One rank enters the two groups in the opposite order",
                "Rank 0 waits in one group for ranks that wait in the other for rank 0. Every "
                "call is there on every rank, and only the order differs.",
                is_right=True,
            ),
        ),
    ),
}
"""Program of `labkit.experiments.deadlock_clinic` -> its question."""
