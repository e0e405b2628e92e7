"""Running a notebook from top to bottom and saving it the way this repository keeps notebooks.

`python -m course.notebook notebooks/*.ipynb` (or `make notebooks`): the Colab cell is brought in
step, every cell is executed in a fresh kernel, and what differs from run to run for no reason
(widget state, time stamps, the kernel's exact version) is left out of the file.
"""

import argparse
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from course.bootstrap import repository, write_bootstrap
from course.widgets.twin import WIDGET_VIEW

CHECK_TAG = "nbval-check-output"
"""A cell so tagged prints the same on every machine, and CI compares it."""


def run(notebook: NotebookNode, folder: Path, cell_timeout: float = 300.0) -> NotebookNode:
    """The notebook executed in a fresh kernel with `folder` as working directory.

    Raises nbclient.exceptions.CellExecutionError at the first cell that fails and
    CellTimeoutError when one takes longer than `cell_timeout` seconds.
    """
    from nbclient import NotebookClient

    client = NotebookClient(
        notebook,
        timeout=int(cell_timeout),
        record_timing=False,
        resources={"metadata": {"path": str(folder)}},
    )
    return client.execute()


def tidy(notebook: NotebookNode) -> NotebookNode:
    """Drops widgets, their state and this machine's versions; joins the pieces of each stream.

    A widget's output is nothing without its kernel: its static twin, the output before it, stays.
    """
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        }
    )
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = _joined_streams([o for o in cell.outputs if not _is_widget(o)])
    return notebook


def _is_widget(output: NotebookNode) -> bool:
    return set(output.get("data", {})) == {WIDGET_VIEW}


def _joined_streams(outputs: list[NotebookNode]) -> list[NotebookNode]:
    joined: list[NotebookNode] = []
    for output in outputs:
        streams = [o for o in joined if o.output_type == "stream" and o.name == output.get("name")]
        if output.output_type == "stream" and streams:
            streams[-1].text += output.text
        else:
            joined.append(output)
    return joined


def main(argv: list[str] | None = None) -> None:
    """Command line: executes and saves the notebooks named."""
    parser = argparse.ArgumentParser(prog="python -m course.notebook", description=__doc__)
    parser.add_argument("notebooks", nargs="+", type=Path)
    for path in parser.parse_args(argv).notebooks:
        print(f"running {path}", flush=True)
        write_bootstrap(path, repository())
        executed = run(nbformat.read(path, as_version=4), path.parent)
        nbformat.write(tidy(executed), path)


if __name__ == "__main__":
    main()
