"""Exercise: choose a layout and defend it, scored against the planner's search.

Each question comes as several cases, which makes partial credit: a layout that serves and is not
far behind the best gets the first, one that is nearly the best gets the second, and the third is
for the reasons against the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from course.exercises.layout_questions import BEHIND, WORDS, LayoutQuestion
from course.exercises.tensor_cases import on_every_rank
from course.grading.comparison import Difference, difference
from course.grading.exercise import Case, Exercise
from labkit.plan.candidates import Candidate, Cause, Rejected
from labkit.plan.layout import Layout
from labkit.plan.legality import check
from labkit.plan.quantity_text import duration, percent

NEAR, FAR = 0.05, 0.5
"""How far behind the best a layout may be, as a part of the objective."""
AXES = ("tp", "pp", "replicas")
_KEYS = {
    Cause.ILLEGAL: "illegal",
    Cause.TOO_LARGE: "too-large",
    Cause.NO_ROOM: "too-large",
    Cause.SLO_MISSED: "misses-slo",
}

Judged = Callable[[Any], Difference | None]


def _expected(asked: LayoutQuestion) -> dict[str, Any]:
    """The search's own answer, as the learner would say it."""
    layout = asked.best.layout
    chosen = layout.tp if layout.pp == 1 else None
    said = {"tp": layout.tp, "pp": layout.pp, "replicas": layout.replicas}
    return {**said, "why_not": asked.reasons(chosen)}


def _form(asked: LayoutQuestion, returned: Any) -> Difference | None:
    """What keeps an answer from being a layout of the question's GPUs."""
    right = _expected(asked)
    if not isinstance(returned, dict) or set(returned) != set(right):
        return difference(right, returned, 0.0)
    for axis in AXES:
        size = returned[axis]
        if type(size) is not int:
            return Difference("wrong-type", f"item [{axis!r}] is {size!r:.40}, not a whole number")
        if size < 1:
            return Difference("values-differ", f"item [{axis!r}] is {size}, which is no size")
    used = returned["tp"] * returned["pp"] * returned["replicas"]
    if used > asked.gpus:
        return Difference("too-many-gpus", f"the result has {used} GPUs, more than there are")
    if asked.gpus - used >= returned["tp"] * returned["pp"]:
        left = asked.gpus - used
        text = f"the result has {left} GPUs that idle, enough for another replica"
        return Difference("idle-gpus", text)
    return None


def _layout(asked: LayoutQuestion, bar: float) -> Judged:
    """Judges the layout alone: it has to serve, and be less than `bar` behind the best."""

    def judged(returned: Any) -> Difference | None:
        wrong = _form(asked, returned)
        if wrong is not None:
            return wrong
        found = asked.found(*(returned[axis] for axis in AXES))
        if isinstance(found, Rejected):
            return Difference(_KEYS[found.cause], _refused(asked, found))
        lacks = asked.shortfall(found)
        return Difference("behind", _lost(asked, found, lacks)) if lacks > bar else None

    return judged


def _refused(asked: LayoutQuestion, found: Rejected) -> str:
    """Why a layout does not serve, without what would."""
    reasons = found.reasons
    if found.cause is Cause.ILLEGAL:
        layout = Layout(found.layout.tp, found.layout.pp)
        reasons = tuple(reason.text for reason in check(asked.question.model, layout).reasons)
    told = " ".join(f"{reason}." for reason in reasons)
    return f"the result is {found.title}, which does not serve ({WORDS[found.cause]}). {told}"


def _lost(asked: LayoutQuestion, found: Candidate, lacks: float) -> str:
    """Why a layout that serves is behind the best, by the terms of its step."""
    best = asked.best
    what = "longer requests" if asked.objective == "latency" else "fewer tokens per second"
    more = found.request_seconds / best.request_seconds - 1 if "long" in what else lacks
    terms = {name: found.decode.terms[name] - s for name, s in best.decode.terms.items()}
    worst = max(terms, key=lambda name: terms[name])
    if terms[worst] > 0:
        why = f"Most of what its step has more is {worst}: {duration(terms[worst])}"
    else:
        why = f"Its step is no longer; all its replicas run {_sequences(found)} sequences at once"
    return (
        f"the result is {found.title}, which has {percent(more)} {what} than the best layout. {why}"
    )


def _sequences(found: Candidate) -> int:
    return found.layout.replicas * found.batch


def _reasons(asked: LayoutQuestion) -> Judged:
    """Judges `why_not`, whichever layout was chosen."""

    def judged(returned: Any) -> Difference | None:
        wrong = _form(asked, returned)
        if wrong is not None:
            return wrong
        chosen = returned["tp"] if returned["pp"] == 1 else None
        right = asked.reasons(chosen)
        said = returned["why_not"]
        if not isinstance(said, dict) or set(said) != set(right):
            return difference({"why_not": right}, {"why_not": said}, 0.0)
        for tp, word in right.items():
            if type(said[tp]) is not str:
                return difference({"why_not": right}, {"why_not": said}, 0.0)
            if said[tp] != word:
                return _misjudged(tp, said[tp], word)
        return None

    return judged


def _misjudged(tp: int, said: Any, word: str) -> Difference:
    """A wrong word about TP `tp`."""
    place = f"item ['why_not'][{tp}] is {said!r:.40}"
    if said not in (*WORDS.values(), BEHIND):
        return Difference("values-differ", f"{place}, which is none of the words")
    if said == BEHIND:
        text = f"{place}, and that layout does not serve at all"
        return Difference("reason-for-what-does-not-serve", text)
    if word == BEHIND:
        text = f"{place}, and that layout serves: something else makes more of the GPUs"
        return Difference("refuses-what-serves", text)
    order = "ask first whether it is legal, then whether it fits, then whether it is in time"
    return Difference("another-reason", f"{place}, and it fails otherwise: {order}")


def _case(what: str, asked: LayoutQuestion, judged: Judged) -> Case:
    def arguments(rank: int) -> Mapping[str, Any]:
        return {"question": asked.plain()}

    limit = "" if asked.slo is None else f", {duration(asked.slo)}"
    return Case(
        name=f"{asked.model} on {asked.gpus} {asked.gpu}, {asked.objective}{limit}: {what}",
        ranks=0,
        arguments=arguments,
        expected=on_every_rank(_expected(asked)),
        judged=judged,
    )


def _serves(asked: LayoutQuestion) -> Case:
    return _case(f"serves, within {100 * FAR:g} %", asked, _layout(asked, FAR))


def _near(asked: LayoutQuestion) -> Case:
    return _case(f"within {100 * NEAR:g} % of the best", asked, _layout(asked, NEAR))


def _why(asked: LayoutQuestion) -> Case:
    return _case("why not the others", asked, _reasons(asked))


_NVLINK, _PCIE = "textbook-nvlink", "textbook-pcie"


def _visible(seed: int) -> tuple[Case, ...]:
    large = LayoutQuestion("qwen2.5-72b", "h100", _NVLINK, 8, "throughput", 4096, 0.013)
    small = LayoutQuestion("qwen2.5-7b", "rtx-4090", _PCIE, 8, "throughput", 8192, 0.03)
    return _serves(large), _why(large), _near(small), _why(small)


def _hidden(seed: int) -> tuple[Case, ...]:
    always = (
        LayoutQuestion("qwen2.5-0.5b", "l4", _PCIE, 8, "latency", 8192, None),
        LayoutQuestion("llama-3.1-8b", "h100", _NVLINK, 8, "throughput", 8192, 0.006),
    )
    one_of = (
        LayoutQuestion("llama-3.1-70b", "h100", _NVLINK, 8, "throughput", 32768, 0.03),
        LayoutQuestion("llama-3.1-8b", "l4", _PCIE, 8, "throughput", 8192, 0.04),
        LayoutQuestion("llama-3.1-70b", "a100-40gb", _PCIE, 16, "throughput", 8192, 0.2),
    )
    asked = (*always, one_of[seed % len(one_of)])
    return tuple(make(each) for each in asked for make in (_serves, _near, _why))


EXERCISE = Exercise(
    name="choose_layout",
    chapter="03_layout_planning",
    title="Choose a layout and defend it",
    function="choose_layout",
    parameters=("question",),
    points=10,
    visible=_visible,
    hidden=_hidden,
)
