"""Provenance says what ran and names neither host nor path."""

from __future__ import annotations

import dataclasses
import getpass
import json
import os
import platform
from pathlib import Path

import pytest
import torch

from labkit.experiments.provenance import Provenance


def test_names_versions_and_machine_kind():
    provenance = Provenance.here(threads=2, packages=("torch", "no-such-package"))
    assert dict(provenance.packages)["torch"] == torch.__version__
    assert dict(provenance.packages)["no-such-package"] == "not installed"
    assert provenance.label == "measured"
    assert provenance.threads == "2"
    assert 1 <= provenance.cores <= (os.cpu_count() or 1)


def test_names_neither_host_nor_path():
    text = json.dumps(Provenance.here().as_dict()) + str(Provenance.here())
    assert str(Path.home()) not in text or str(Path.home()) == "/"
    assert str(Path(__file__).parents[2]) not in text
    assert platform.node() not in text
    assert f'"{getpass.getuser()}"' not in text


def test_survives_json_and_is_frozen():
    provenance = Provenance.here(label="captured")
    loaded = json.loads(json.dumps(provenance.as_dict()))
    assert loaded["label"] == "captured"
    assert loaded["packages"] == dict(provenance.packages)
    with pytest.raises(dataclasses.FrozenInstanceError):
        provenance.label = "assumed"  # type: ignore[misc]
