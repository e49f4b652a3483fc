"""Annotates a dataset with our command, reads it with the real lerobot package, and trains on it. See README.md.

    venv/bin/python tests/interop/annotated.py --program target/debug/refactor-vla --source ../shared/data/libero_goal
"""

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Before the imports, which read them.
TEMPORARY = tempfile.TemporaryDirectory()
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_CACHE"] = f"{TEMPORARY.name}/cache"

try:
    import lerobot
    import numpy as np
    import pandas as pd
    import torch
    from lerobot.datasets.lerobot_dataset import LeRobotDataset
except ImportError as error:
    print(f"skipped: {error}; install lerobot as README.md says")
    sys.exit(0)


def run(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, arguments))}\n{done.stderr}")
    return done.stdout


def spread(dataset, count):
    return np.linspace(0, len(dataset) - 1, min(count, len(dataset))).astype(int).tolist()


def rows_of(table):
    """The table of subtasks: for each episode its rows."""
    episodes = {}
    for row in csv.DictReader(table.open()):
        episodes.setdefault(int(row["episode"]), []).append(row)
    return episodes


def name_at(rows, frame):
    return next(row["name"] for row in rows if int(row["start"]) <= frame < int(row["end"]))


def check_subtasks(source, out, table, items):
    """`item["subtask"]` is what the table says; all else is as it was; statistics are those of the column."""
    before = LeRobotDataset("interop/before", root=source, video_backend="pyav")
    after = LeRobotDataset("interop/after", root=out, video_backend="pyav")
    assert len(before) == len(after)
    episodes = rows_of(table)
    assert sorted(episodes) == list(range(after.num_episodes))
    for at, rows in episodes.items():
        ends = [0] + [int(row["end"]) for row in rows]
        assert [int(row["start"]) for row in rows] == ends[:-1] and ends[-1] == after.meta.episodes[at]["length"]
    for at in spread(after, items):
        item, old = after[at], before[at]
        wanted = name_at(episodes[item["episode_index"].item()], item["frame_index"].item())
        assert item["subtask"] == wanted, (at, item["subtask"], wanted)
        for key, value in old.items():
            same = torch.equal(item[key], value) if isinstance(value, torch.Tensor) else item[key] == value
            assert same, (at, key)
    files = sorted((out / "data").glob("*/*.parquet"))
    column = np.concatenate([pd.read_parquet(file, columns=["subtask_index"]).subtask_index for file in files])
    for key in ["min", "max", "mean", "std"]:
        wanted = getattr(column, key)()
        assert np.allclose(after.meta.stats["subtask_index"][key], wanted), (key, wanted)
    names = pd.read_parquet(out / "meta/subtasks.parquet")
    assert set(names.columns) == {"subtask_index"} and list(names.subtask_index) == list(range(len(names)))
    assert column.max() < len(names)
    skills = json.loads((out / "meta/skills.json").read_text())
    assert skills["feature"] == "skill_index" and after.meta.stats["skill_index"]["max"][0] < len(skills["names"])
    return after


def iterate(out, keys, steps):
    """lerobot's own loop over batches with windows of actions."""
    deltas = {"action": [step / 10 for step in range(4)]}
    dataset = LeRobotDataset("interop/windows", root=out, delta_timestamps=deltas, video_backend="pyav")
    loader = torch.utils.data.DataLoader(dataset, batch_size=8, shuffle=True, num_workers=0)
    for step, batch in enumerate(loader):
        assert all(len(batch[key]) == len(batch["index"]) for key in keys)
        if step + 1 == steps:
            break


def train(out, steps):
    """A few steps of lerobot's ACT on the annotated dataset; `None` if it cannot be trained here, with the reason."""
    try:
        from lerobot.configs.types import FeatureType
        try:
            from lerobot.datasets.utils import dataset_to_policy_features
        except ImportError:  # lerobot 0.6
            from lerobot.utils.feature_utils import dataset_to_policy_features
        from lerobot.policies.act.configuration_act import ACTConfig
        from lerobot.policies.act.modeling_act import ACTPolicy
        from lerobot.policies.factory import make_pre_post_processors
    except ImportError as error:
        print(f"ACT: skipped: {error}")
        return None

    meta = LeRobotDataset("interop/train", root=out, video_backend="pyav").meta
    if not meta.camera_keys:
        print("ACT: skipped: it needs an image, and the dataset has no camera")
        return None
    features = dataset_to_policy_features(meta.features)
    outputs = {key: feature for key, feature in features.items() if feature.type is FeatureType.ACTION}
    inputs = {key: feature for key, feature in features.items() if key not in outputs}
    config = ACTConfig(
        input_features=inputs,
        output_features=outputs,
        chunk_size=4,
        n_action_steps=4,
        dim_model=64,
        dim_feedforward=128,
        n_heads=4,
        n_encoder_layers=1,
        use_vae=False,
        pretrained_backbone_weights=None,
        device="cpu",
    )
    policy = ACTPolicy(config).train()
    before, _ = make_pre_post_processors(config, dataset_stats=meta.stats)
    deltas = {"action": [step / meta.fps for step in config.action_delta_indices]}
    dataset = LeRobotDataset("interop/train", root=out, delta_timestamps=deltas, video_backend="pyav")
    collate = None
    if getattr(meta, "has_language_columns", False):
        # As lerobot-train does: rows of language are lists of different lengths.
        from lerobot.utils.collate import lerobot_collate_fn as collate
    loader = torch.utils.data.DataLoader(dataset, batch_size=4, shuffle=True, num_workers=0, collate_fn=collate)
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-3)
    losses = []
    for batch in loader:
        loss, _ = policy.forward(before(batch))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if len(losses) == steps:
            break
    assert all(np.isfinite(losses)), losses
    return losses


def check_language(out, table, items):
    """Every frame has all subtasks of its episode; the active one is what the table says."""
    dataset = LeRobotDataset("interop/language", root=out, video_backend="pyav")
    assert "subtask_index" not in dataset.meta.features
    episodes = rows_of(table)
    for at in spread(dataset, items):
        item = dataset[at]
        rows = episodes[item["episode_index"].item()]
        persistent = item["language_persistent"]
        assert [row["style"] for row in persistent] == ["subtask"] * len(persistent)
        assert all(row["role"] == "assistant" and row["camera"] is None for row in persistent)
        now = item["timestamp"].item()
        active = [row for row in persistent if row["timestamp"] <= now][-1]
        assert active["content"] == name_at(rows, item["frame_index"].item()), (at, active)
        assert item["language_events"] == []
    try:
        from lerobot.datasets.language_render import active_at
    except ImportError:
        return len(episodes)
    item = dataset[0]
    found = active_at(item["timestamp"].item(), persistent=item["language_persistent"], style="subtask")
    assert found["content"] == item["language_persistent"][0]["content"]
    return len(episodes)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True, help="the binary `refactor-vla`")
    parser.add_argument("--source", type=Path, required=True, help="a v3.0 dataset")
    parser.add_argument("--items", type=int, default=120, help="frames to compare")
    parser.add_argument("--steps", type=int, default=3, help="steps of training; 0 for none")
    options = parser.parse_args()
    folder = Path(TEMPORARY.name)
    started = time.time()
    version = tuple(int(part) for part in lerobot.__version__.split(".")[:2])
    if version < (0, 5):
        out, table = folder / "subtasks", folder / "subtasks.csv"
        run(options.program, "annotate", options.source, out, "--segments", table)
        run(options.program, "data", "validate", out)
        after = check_subtasks(options.source, out, table, options.items)
        iterate(out, ["subtask", "subtask_index", "skill_index", "action"], 5)
        print(f"subtasks: {len(after)} frames, {after.num_episodes} episodes: equal ({time.time() - started:.1f} s)")
    else:
        out, table = folder / "language", folder / "language.csv"
        run(options.program, "annotate", options.source, out, "--format", "language", "--segments", table)
        run(options.program, "data", "validate", out)
        count = check_language(out, table, options.items)
        print(f"language: {count} episodes: equal ({time.time() - started:.1f} s)")
    if options.steps > 0:
        losses = train(out, options.steps)
        if losses is not None:
            print(f"ACT: loss {losses} ({time.time() - started:.1f} s)")


main()
