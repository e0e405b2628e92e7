"""Devices and links: figures of their data sheets, free values, near names, refusals."""

import math
import pickle
from dataclasses import replace

import pytest

from labkit.plan.device_presets import DEVICES, device
from labkit.plan.hardware import DeviceSpec, LinkSpec
from labkit.plan.link_presets import LINKS, link
from labkit.plan.presets import Source

GIB = 2**30
SOURCE = Source("https://example.org/sheet", "a test", "2026-12-01")


@pytest.mark.parametrize("name", DEVICES)
def test_every_device_has_a_source_a_link_and_a_network(name):
    spec = DEVICES[name]
    assert all((spec.source.url, spec.source.read_in, spec.source.date))
    assert spec.label in ("captured", "assumed")
    assert link(spec.link).bandwidth > link(spec.network).bandwidth or spec.link.startswith("pcie")
    assert spec.memory_source is not None or spec.label == "assumed"


@pytest.mark.parametrize("name", LINKS)
def test_every_link_has_a_source_and_says_what_is_assumed(name):
    spec = LINKS[name]
    assert all((spec.source.url, spec.source.read_in, spec.source.date))
    assert spec.label == "assumed" or "latency assumed" in spec.note


@pytest.mark.parametrize(
    ("name", "bandwidth", "dtype", "flops"),
    [
        ("h100", 3.35e12, "bfloat16", 989e12),
        ("h100", 3.35e12, "fp8", 1979e12),
        ("h200", 4.8e12, "float16", 989e12),
        ("a100-80gb", 2.039e12, "bfloat16", 312e12),
        ("a100-40gb", 1.555e12, "int8", 624e12),
        ("b200", 7.7e12, "fp4", 9e15),
        ("l40s", 864e9, "fp8", 733e12),
        ("t4", 320e9, "float16", 65e12),
        ("v100", 900e9, "float16", 125e12),
        ("rtx-3090", 936e9, "bfloat16", 71e12),
    ],
)
def test_peaks_are_dense(name, bandwidth, dtype, flops):
    assert device(name).memory_bandwidth == bandwidth
    assert device(name).flops(dtype) == flops


def test_memory_is_what_programs_get_not_the_name_s_round_number():
    assert device("h100").memory_bytes / GIB == pytest.approx(79.11)
    assert device("rtx-3090").memory_bytes / GIB == pytest.approx(23.58)
    for name in DEVICES:
        assert name == "textbook-80gb" or device(name).memory_bytes < 288 * GIB


def test_a_type_the_device_lacks_is_computed_in_16_bits_and_it_says_so():
    a100 = device("a100")
    assert a100.flops("fp8") == a100.flops("bfloat16")
    assert a100.compute_note("fp8") == (
        "A100 SXM 80GB does not compute in fp8: it computes in bfloat16"
    )
    assert device("h100").compute_dtype("nvfp4") == "bfloat16"
    assert device("v100").compute_dtype("bfloat16") == "float16"
    assert device("h100").compute_note("bf16") == ""


def test_no_narrower_type_stands_in_for_a_wider_one():
    with pytest.raises(ValueError, match="B300 SXM has no figure for float32 or a wider type"):
        device("b300").flops("float32")


def test_an_unknown_type_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="dtype is 'int3'; it must be one of fp4, fp8"):
        device("h100").flops("int3")


def test_unknown_names_are_refused_with_near_ones():
    with pytest.raises(ValueError, match=r"no GPU is called 'h10'; near it: .*h100"):
        device("h10")
    with pytest.raises(ValueError, match=r"no link is called 'nvlink9'; near it: .*nvlink4"):
        link("nvlink9")


def test_common_names_are_understood():
    assert device("A100").name == "a100-80gb"
    assert device("RTX 4090").name == "rtx-4090"
    assert link("NVLink").name == "nvlink4"
    assert link("infiniband").bandwidth == 50e9


@pytest.mark.parametrize(
    ("alias", "name"),
    [("A100-PCIe", "a100-pcie-80gb"), ("gb300_nvl72", "gb300"), ("a6000", "rtx-a6000")],
)
def test_other_spellings_are_understood(alias, name):
    assert device(alias) is DEVICES[name]


def test_textbook_links_are_the_round_figures():
    assert (link("textbook-nvlink").bandwidth, link("textbook-nvlink").hop_latency) == (450e9, 2e-6)
    assert (link("textbook-pcie").bandwidth, link("textbook-pcie").hop_latency) == (25e9, 5e-6)


def test_values_may_be_replaced_and_specs_travel():
    bigger = replace(device("h100"), name="mine", memory_bytes=100e9)
    assert bigger.memory_bytes == 100e9
    assert bigger.flops("fp8") == device("h100").flops("fp8")
    assert pickle.loads(pickle.dumps(bigger)) == bigger
    assert len({bigger, device("h100")}) == 2


@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, "80", True, None])
@pytest.mark.parametrize("field", ["memory_bytes", "memory_bandwidth"])
def test_a_device_refuses_values_that_are_no_sizes(field, bad):
    values = {"memory_bytes": 1e9, "memory_bandwidth": 1e12} | {field: bad}
    with pytest.raises(ValueError, match=field):
        DeviceSpec("mine", "mine", peak_flops={"float16": 1e12}, source=SOURCE, **values)


@pytest.mark.parametrize("peaks", [{}, {"float16": 0}, {"fp5": 1e12}])
def test_a_device_refuses_peaks_it_cannot_use(peaks):
    with pytest.raises(ValueError, match="peak_flops"):
        DeviceSpec("mine", "mine", 1e9, 1e12, peaks, SOURCE)


@pytest.mark.parametrize(("bandwidth", "latency"), [(0, 1e-6), (math.nan, 1e-6), (1e9, -1.0)])
def test_a_link_refuses_values_that_are_no_speeds(bandwidth, latency):
    with pytest.raises(ValueError, match=r"bandwidth|hop_latency"):
        LinkSpec("mine", "mine", bandwidth, latency, SOURCE)
