"""Solutions of fit_alpha_beta as a class would hand them in."""


def a_line_with_polyfit(points):
    import numpy as np

    slope, intercept = np.polyfit([p[1] for p in points], [p[2] for p in points], 1)
    return intercept, 1 / slope


def a_plane_in_microseconds(points):
    import torch

    a = torch.tensor([[2 * (n - 1), 2 * (n - 1) / n * s] for n, s, _ in points]).double()
    b = torch.tensor([[t] for *_, t in points]).double()
    alpha, cost = torch.linalg.lstsq(a, b).solution.flatten().tolist()
    return alpha, 1 / cost


def relative_but_one_latency(points):
    import torch

    a = torch.tensor([[1 / t, 2 * (n - 1) / n * s / t] for n, s, t in points]).double()
    alpha, cost = torch.linalg.lstsq(a, torch.ones(len(a), 1).double()).solution.flatten().tolist()
    return alpha, 1 / cost


def relative_but_payload(points):
    import torch

    a = torch.tensor([[2 * (n - 1) / t, s / t] for n, s, t in points], dtype=torch.float64)
    alpha, cost = torch.linalg.lstsq(a, torch.ones(len(a), 1).double()).solution.flatten().tolist()
    return alpha, 1 / cost


def gives_the_cost_of_a_byte(points):
    import torch

    a = torch.tensor([[2 * (n - 1) / t, 2 * (n - 1) / n * s / t] for n, s, t in points])
    solution = torch.linalg.lstsq(a.double(), torch.ones(len(a), 1).double()).solution
    return tuple(solution.flatten().tolist())


def from_the_two_ends(points):
    ordered = sorted(points, key=lambda p: p[1])
    n, _, t = ordered[0]
    alpha = t / (2 * (n - 1))
    n, size, t = ordered[-1]
    return alpha, 2 * (n - 1) / n * size / t


def averages_slopes(points):
    from itertools import pairwise

    ordered = sorted(points)
    slopes = [(s2 - s1) / (t2 - t1) for (_, s1, t1), (_, s2, t2) in pairwise(ordered) if t1 != t2]
    return ordered[0][2], sum(slopes) / len(slopes)


def gigabytes_and_seconds(points):
    import torch

    a = torch.tensor([[2 * (n - 1) / t, 2 * (n - 1) / n * s / t] for n, s, t in points]).double()
    alpha, cost = torch.linalg.lstsq(a, torch.ones(len(a), 1).double()).solution.flatten().tolist()
    return alpha * 1e-6, 1 / cost * 1e6


def returns_the_solution_tensor(points):
    import torch

    a = torch.tensor([[2 * (n - 1) / t, 2 * (n - 1) / n * s / t] for n, s, t in points]).double()
    return torch.linalg.lstsq(a, torch.ones(len(a), 1).double()).solution


def empties_the_list(points):
    import torch

    rows = []
    while points:
        n, s, t = points.pop()
        rows.append([2 * (n - 1) / t, 2 * (n - 1) / n * s / t])
    a = torch.tensor(rows).double()
    alpha, cost = torch.linalg.lstsq(a, torch.ones(len(a), 1).double()).solution.flatten().tolist()
    return alpha, 1 / cost


def believes_n_is_always_the_same(points):
    import torch

    n = points[0][0]
    a = torch.tensor([[2 * (n - 1) / t, 2 * (n - 1) / n * s / t] for _, s, t in points]).double()
    alpha, cost = torch.linalg.lstsq(a, torch.ones(len(a), 1).double()).solution.flatten().tolist()
    return alpha, 1 / cost


def treats_points_as_objects(points):
    return min(p.microseconds for p in points), max(p.payload_bytes for p in points)


def throws_out_what_does_not_fit(points):
    import numpy as np

    def solve(kept):
        a = np.array([[2 * (n - 1) / t, 2 * (n - 1) / n * s / t] for n, s, t in kept])
        return np.linalg.lstsq(a, np.ones(len(a)), rcond=None)[0]

    kept = list(points)
    for _ in range(3):
        alpha, cost = solve(kept)
        errors = [
            abs((2 * (n - 1) * alpha + 2 * (n - 1) / n * s * cost) / t - 1) for n, s, t in kept
        ]
        middle = float(np.median(errors))
        kept = [p for p, e in zip(kept, errors, strict=True) if e <= 6 * middle + 1e-6]
    alpha, cost = solve(kept)
    return float(alpha), float(1 / cost)


def by_hand_with_cramers_rule(points):
    aa = ab = bb = a1 = b1 = 0.0
    for n, size, t in points:
        a, b = 2 * (n - 1) / t, 2 * (n - 1) * size / n / t
        aa, ab, bb, a1, b1 = aa + a * a, ab + a * b, bb + b * b, a1 + a, b1 + b
    return (a1 * bb - b1 * ab) / (aa * bb - ab * ab), (aa * bb - ab * ab) / (aa * b1 - ab * a1)


def medians_of_pairs(points):
    from itertools import combinations
    from statistics import median

    steps = [
        (t / (2 * (n - 1)), size / n)  # microseconds a step, bytes a step
        for n, size, t in points
    ]
    per_byte = [
        (t2 - t1) / (b2 - b1)
        for (t1, b1), (t2, b2) in combinations(sorted(steps), 2)
        if b2 > 2 * b1
    ]
    cost = median(per_byte)
    smallest = sorted(steps, key=lambda step: step[1])[: len(steps) // 3]
    large = sorted(steps, key=lambda step: step[1])[len(steps) // 2 :]
    for _ in range(50):
        alpha = median(t - b * cost for t, b in smallest)
        cost = median((t - alpha) / b for t, b in large)
    return alpha, 1 / cost


WRONG = [
    a_line_with_polyfit,
    a_plane_in_microseconds,
    relative_but_one_latency,
    relative_but_payload,
    gives_the_cost_of_a_byte,
    from_the_two_ends,
    averages_slopes,
    gigabytes_and_seconds,
    returns_the_solution_tensor,
    empties_the_list,
    believes_n_is_always_the_same,
    treats_points_as_objects,
]
RIGHT = [throws_out_what_does_not_fit, by_hand_with_cramers_rule, medians_of_pairs]
