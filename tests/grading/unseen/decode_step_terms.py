"""Solutions of decode_step_terms as a class would hand them in."""


def everything_over_the_memory(**g):
    weights = g["parameters"] * 2 / g["tp"] / g["memory_bandwidth"]
    kv = g["batch"] * g["context"] * g["kv_bytes_per_token"] / g["memory_bandwidth"]
    hops = 2 * g["layers"] * (g["tp"] - 1)
    payload = g["batch"] * g["hidden"] * 2
    transfer = hops * payload / g["bandwidth"]
    return {"weights": weights, "kv": kv, "latency": hops * g["hop_latency"], "transfer": transfer}


def in_milliseconds(**g):
    n = g["tp"]
    rounds = 2 * g["layers"] * 2 * (n - 1)
    size = g["bytes_per_element"]
    return {
        "weights": 1e3 * g["parameters"] * size / n / g["memory_bandwidth"],
        "kv": 1e3 * g["batch"] * g["context"] * g["kv_bytes_per_token"] / n / g["memory_bandwidth"],
        "latency": 1e3 * rounds * g["hop_latency"],
        "transfer": 1e3 * rounds * g["batch"] * g["hidden"] * size / n / g["bandwidth"],
    }


def other_names(**g):
    return {"read": g["parameters"] / g["memory_bandwidth"], "talk": g["hop_latency"]}


def divides_by_no_ranks(**g):
    n = g["tp"]
    size = g["bytes_per_element"]
    share = 1 / (n - 1)
    return {
        "weights": g["parameters"] * size / n / g["memory_bandwidth"],
        "kv": g["batch"] * g["context"] * g["kv_bytes_per_token"] / n / g["memory_bandwidth"],
        "latency": g["layers"] * 4 * g["hop_latency"] / share,
        "transfer": 0.0,
    }


def hop_by_hop(**g):
    n, size = g["tp"], g["bytes_per_element"]
    latency = transfer = 0.0
    for _ in range(2 * g["layers"]):
        for _ in range(2 * (n - 1)):
            latency += g["hop_latency"]
            transfer += g["batch"] * g["hidden"] * size / n / g["bandwidth"]
    read = {
        "weights": g["parameters"] * size / n,
        "kv": g["kv_bytes_per_token"] * g["context"] * g["batch"] / n,
    }
    terms = {name: count / g["memory_bandwidth"] for name, count in read.items()}
    return terms | {"latency": latency, "transfer": transfer}


def in_fractions(**g):
    from fractions import Fraction

    n = g["tp"]
    size = g["bytes_per_element"]
    memory, link = Fraction(g["memory_bandwidth"]), Fraction(g["bandwidth"])
    sent = Fraction(2 * (n - 1), n) * g["batch"] * g["hidden"] * size
    return {
        "weights": float(Fraction(g["parameters"] * size, n) / memory),
        "kv": float(Fraction(g["batch"] * g["context"] * g["kv_bytes_per_token"], n) / memory),
        "latency": 4 * g["layers"] * (n - 1) * g["hop_latency"],
        "transfer": float(2 * g["layers"] * sent / link),
    }


WRONG = [everything_over_the_memory, in_milliseconds, other_names, divides_by_no_ranks]
RIGHT = [hop_by_hop, in_fractions]
