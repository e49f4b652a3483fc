#!/usr/bin/env python3
"""How well a plain network learns RecursivePour's reward of one step from the true state and the action.

No world model, no imagination: an MLP with two hidden layers of 128, trained on 50 demonstrations of each depth (2000
steps) and judged on eight other sets of 50, by the error of the sum of four rewards along true states. What it cannot do, a
world model of the same data that also has to imagine the states will hardly do. The world is that of
crates/dataset/src/recursive_pour, with numpy's random numbers. Needs numpy; about 15 seconds a row on one core.
"""

import sys
import time

import numpy as np

HOMES = np.array([(0.5, 0.0), (0.0, 0.5), (-0.5, 0.0), (0.0, -0.5)])


def plan(depth):
    phases = []

    def pour(level):
        phases.extend([("approach", level), ("tilt", level)])
        if level + 1 < depth:
            pour(level + 1)
        phases.extend([("drain", level), ("return", level)])

    pour(0)
    return phases


def bell(rng, count):
    return rng.random((count, 12)).sum(1) - 6


def record(depth, count, rng):
    """States [count, 4d + 1, 22], actions [count, 4d, 4] and rewards [count, 4d] in the scale `depth`."""
    bowl = np.zeros((count, 3))
    bowl[:, :2] = 0.03 * (2 * rng.random((count, 2)) - 1)
    cups = np.zeros((count, 4, 4))
    for level in range(depth):
        cups[:, level, :2] = HOMES[level] + 0.03 * (2 * rng.random((count, 2)) - 1)
        cups[:, level, 3] = 0.6 + 0.3 * rng.random(count)
    homes, hand, spilled = cups[:, :, :2].copy(), 0, np.zeros(count)

    def observed():
        rest = [spilled[:, None], np.full((count, 1), hand), np.full((count, 1), depth)]
        return np.concatenate([cups.reshape(count, 16), bowl, *rest], 1)

    states, actions, rewards = [], [], []
    for role, level in plan(depth):
        cup = cups[:, level]
        if role == "approach":
            receiver = bowl[:, :2] if level == 0 else cups[:, level - 1, :2]
            to, tilt = receiver + 0.025 * np.stack([bell(rng, count), bell(rng, count)], 1), np.zeros(count)
        elif role == "tilt":
            to, tilt = cup[:, :2].copy(), 0.6 + 0.04 * bell(rng, count)
        elif role == "drain":
            to, tilt = cup[:, :2].copy(), 1 - np.abs(0.04 * bell(rng, count))
        else:
            to, tilt = homes[:, level] + 0.025 * np.stack([bell(rng, count), bell(rng, count)], 1), np.zeros(count)
        reach = float(np.sign(level - hand))
        action = np.concatenate([to - cup[:, :2], (tilt - cup[:, 2])[:, None], np.full((count, 1), reach)], 1).clip(-1, 1)
        states.append(observed())
        actions.append(action)
        hand = level
        before, arrived = cups[:, hand].copy(), np.zeros(count)
        for part in range(1, 17):
            cups[:, hand, :2] = (before[:, :2] + part / 16 * action[:, :2]).clip(-1, 1)
            cups[:, hand, 2] = (before[:, 2] + part / 16 * action[:, 2]).clip(0, 1)
            streams = []
            for each in range(depth):
                out = 0.25 * np.maximum(0, cups[:, each, 3] - (1 - cups[:, each, 2]))
                receiver = bowl[:, :2] if each == 0 else cups[:, each - 1, :2]
                apart = ((cups[:, each, :2] - receiver) ** 2).sum(1)
                streams.append((out, out * np.maximum(0, 1 - apart / 0.01)))
            for each, (out, caught) in enumerate(streams):
                cups[:, each, 3] -= out
                spilled += out - caught
                if each == 0:
                    bowl[:, 2] += caught
                else:
                    cups[:, each - 1, 3] += caught
            arrived += streams[0][1]
        rewards.append(arrived / depth)
    states.append(observed())
    return np.stack(states, 1), np.stack(actions, 1), np.stack(rewards, 1)


def demonstrations(seed, count=50):
    rng = np.random.default_rng(seed)
    return [record(depth, count, rng) for depth in range(1, 5)]


def gelu(x):
    wave = np.tanh(0.79788456 * (x + 0.044715 * x**3))
    return 0.5 * x * (1 + wave), 0.5 * (1 + wave) + 0.5 * x * (1 - wave * wave) * 0.79788456 * (1 + 3 * 0.044715 * x * x)


def run(name, fixed=False, balanced=False, power=2, frequencies=(), demos=50, steps=2000, rate=2e-3, decay=0.3, width=128):
    began = time.time()
    training, others = demonstrations(1, demos), [demonstrations(seed) for seed in range(2, 10)]
    inputs = np.concatenate([np.concatenate([s[:, :-1], a], 2).reshape(-1, 26) for s, a, _ in training])
    rewards, depth = np.concatenate([r.reshape(-1) for _, _, r in training]), inputs[:, 21]
    mean, deviation = inputs.mean(0), inputs.std(0) + 1e-6

    def read(values):
        values = (values - mean) / deviation
        waves = [wave for f in frequencies for wave in (np.sin(f * values), np.cos(f * values))]
        return np.concatenate([values, *waves], 1).astype(np.float32)

    targets = rewards * depth if fixed else rewards
    unit = targets.std()
    targets, inputs = (targets / unit).astype(np.float32), read(inputs)
    rng = np.random.default_rng(0)
    weights = []
    for fan_in, fan_out in [(inputs.shape[1], width), (width, width), (width, 1)]:
        weights += [(rng.standard_normal((fan_in, fan_out)) / np.sqrt(fan_in)).astype(np.float32), np.zeros(fan_out, np.float32)]
    means, squares = [np.zeros_like(w) for w in weights], [np.zeros_like(w) for w in weights]
    chance = 1 / np.array([(depth == one).sum() for one in depth]) if balanced else np.ones(len(inputs))
    chance /= chance.sum()

    def forward(x):
        one, slope = gelu(x @ weights[0] + weights[1])
        two, slope_2 = gelu(one @ weights[2] + weights[3])
        return one, slope, two, slope_2, (two @ weights[4] + weights[5])[:, 0]

    for step in range(1, steps + 1):
        rows = rng.choice(len(inputs), 96, p=chance)
        x = inputs[rows]
        one, slope, two, slope_2, out = forward(x)
        error = out - targets[rows]
        gradient = (power * np.sign(error) * np.abs(error) ** (power - 1) / len(rows)).astype(np.float32)[:, None]
        back_2 = (gradient @ weights[4].T) * slope_2
        back_1 = (back_2 @ weights[2].T) * slope
        gradients = [x.T @ back_1, back_1.sum(0), one.T @ back_2, back_2.sum(0), two.T @ gradient, gradient.sum(0)]
        now = rate * min(1, step / 100) * (0.02 + 0.98 * 0.5 * (1 + np.cos(np.pi * step / steps)))
        for at, gradient in enumerate(gradients):
            means[at] = 0.9 * means[at] + 0.1 * gradient
            squares[at] = 0.99 * squares[at] + 0.01 * gradient**2
            move = (means[at] / (1 - 0.9**step)) / (np.sqrt(squares[at] / (1 - 0.99**step)) + 1e-8)
            weights[at] -= now * (move + (decay * weights[at] if at % 2 == 0 else 0))

    def suprema(sets):
        found = []
        for cups, (states, actions, rewards) in enumerate(sets, 1):
            rows = read(np.concatenate([states[:, :-1], actions], 2).reshape(-1, 26))
            error = forward(rows)[-1].reshape(rewards.shape) * unit / (cups if fixed else 1) - rewards
            found.append(max(np.abs(error[:, at : at + 4].sum(1)).max() for at in range(error.shape[1] - 3)))
        return np.array(found)

    judged = np.array([suprema(sets) for sets in others])
    cells = " | ".join(
        "/".join(f"{value:.3f}" for value in values) for values in (suprema(training), judged.mean(0), judged.max(0))
    )
    print(f"| {name} | {cells} | {time.time() - began:.0f} s |", flush=True)


RUNS = {
    "scale depth": {},
    "scale depth, balanced": {"balanced": True},
    "scale fixed, balanced": {"fixed": True, "balanced": True},
    "scale depth, balanced, waves": {"balanced": True, "frequencies": (2,)},
    "scale depth, balanced, fourth powers": {"balanced": True, "power": 4},
    "scale fixed, 200 demos": {"fixed": True, "demos": 200},
}

if __name__ == "__main__":
    print("| run | training η_1…η_4 | mean of eight sets | largest of eight sets | time |\n|---|---|---|---|---|")
    for name, settings in RUNS.items():
        if len(sys.argv) < 2 or name in sys.argv[1:]:
            run(name, **settings)
