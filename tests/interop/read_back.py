"""Opens what our writer wrote with the real lerobot package, and compares every value. See README.md."""

import argparse
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

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import torch
from lerobot.datasets.compute_stats import auto_downsample_height_width, get_feature_stats, sample_indices
from lerobot.datasets.lerobot_dataset import LeRobotDataset
from lerobot.datasets.utils import dataset_to_policy_features

AUTOMATIC = ["timestamp", "frame_index", "episode_index", "index", "task_index"]
QUANTILES = {"q01": 0.01, "q10": 0.10, "q50": 0.50, "q90": 0.90, "q99": 0.99}


def fnv(data: bytes) -> str:
    hash_ = 0xCBF29CE484222325
    for byte in data:
        hash_ = ((hash_ ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return f"{hash_:016x}"


def pixels(image: torch.Tensor) -> np.ndarray:
    """From lerobot's channels, rows, columns in [0, 1] to rows, columns, channels in bytes."""
    return (image * 255).round().to(torch.uint8).permute(1, 2, 0).contiguous().numpy()


def equal(found, wanted, what):
    if not np.array_equal(np.asarray(found), np.asarray(wanted)):
        raise AssertionError(f"{what}: found {found}, wrote {wanted}")


def close(found, wanted, what, tolerance=1e-9):
    if not np.allclose(np.asarray(found, float), np.asarray(wanted, float), rtol=tolerance, atol=tolerance):
        raise AssertionError(f"{what}: found {found}, wanted {wanted}")


def unnested(value):
    """A cell of pandas as an array; lists in lists are arrays of arrays there."""
    return np.array(value.tolist() if value.dtype != object else [[x.tolist() for x in y] for y in value])


class Columns:
    """All values of a dataset as they were written, by feature and row."""

    def __init__(self, dataset, expected):
        self.tasks, self.values, self.lengths = [], {}, [episode["length"] for episode in expected["episodes"]]
        for episode in expected["episodes"]:
            if episode["task"] not in self.tasks:
                self.tasks.append(episode["task"])
        for key, feature in dataset.meta.features.items():
            if key in AUTOMATIC:
                continue
            parts = [episode["columns"][key] for episode in expected["episodes"]]
            if feature["dtype"] in ("image", "string"):
                self.values[key] = sum(parts, [])
            else:
                shape = (-1,) if feature["shape"] == (1,) else (-1, *feature["shape"])
                whole = np.concatenate([np.array(part).reshape(shape) for part in parts])
                self.values[key] = whole.astype(feature["dtype"])
        frame = np.concatenate([np.arange(length) for length in self.lengths])
        episode = np.repeat(np.arange(len(self.lengths)), self.lengths)
        task = [self.tasks.index(item["task"]) for item in expected["episodes"]]
        self.values["timestamp"] = (frame / expected["fps"]).astype(np.float32)
        self.values["frame_index"], self.values["episode_index"] = frame, episode
        self.values["index"], self.values["task_index"] = np.arange(len(frame)), np.repeat(task, self.lengths)


def check_stats(name, found, rows, where):
    """Against numpy over all rows; `rows` has one row of the last axis in each line."""
    equal(found["min"].reshape(-1), rows.min(0), f"{name} min {where}")
    equal(found["max"].reshape(-1), rows.max(0), f"{name} max {where}")
    close(found["mean"].reshape(-1), rows.mean(0, dtype=np.float64), f"{name} mean {where}")
    close(found["std"].reshape(-1), rows.astype(np.float64).std(0), f"{name} std {where}")
    for quantile, part in QUANTILES.items():
        wanted = np.quantile(rows.astype(np.float64), part, axis=0)
        close(found[quantile].reshape(-1), wanted, f"{name} {quantile} {where}")


def check(name: str, out: Path):
    started = time.time()
    expected = json.loads((out / f"{name}.json").read_text())
    dataset = LeRobotDataset(f"interop/{name}", root=out / name, video_backend="pyav")
    columns = Columns(dataset, expected)
    frames = sum(columns.lengths)
    assert (len(dataset), dataset.num_episodes, dataset.fps) == (frames, len(columns.lengths), expected["fps"])
    assert list(dataset.meta.tasks.index) == columns.tasks
    assert list(dataset.meta.tasks.task_index) == list(range(len(columns.tasks)))
    assert len(list((out / name / "data").glob("*/*.parquet"))) == expected["data_files"]
    dataset_to_policy_features(dataset.meta.features)

    # Every value of every frame, as lerobot gives it.
    images = {key: [] for key in dataset.meta.camera_keys}
    for row in range(frames):
        item = dataset[row]
        for key, values in columns.values.items():
            if key in images:
                images[key].append(pixels(item[key]))
                equal(fnv(images[key][-1].tobytes()), values[row], f"{key} of row {row}")
            elif isinstance(values, list):
                assert item[key] == values[row], (key, row)
            else:
                # lerobot makes tensors of Python's numbers: float32, int64 and bool, whatever was stored.
                equal(item[key], torch.tensor(values[row].tolist()), f"{key} of row {row}")
        assert item["task"] == columns.tasks[columns.values["task_index"][row]]

    # What is stored, in its own type.
    stored = dataset.hf_dataset.with_format("arrow")[:]
    for key, values in columns.values.items():
        if not isinstance(values, list):
            column = np.array(stored[key].to_pylist(), dtype=values.dtype)
            assert dataset.meta.features[key]["dtype"] in str(dataset.hf_dataset.features[key]), key
            equal(column, values, f"stored {key}")

    # Where episodes are.
    starts = np.concatenate([[0], np.cumsum(columns.lengths)])
    for at, episode in enumerate(dataset.meta.episodes):
        assert episode["episode_index"] == at and episode["length"] == columns.lengths[at]
        assert (episode["dataset_from_index"], episode["dataset_to_index"]) == (starts[at], starts[at + 1])
        assert episode["tasks"] == [expected["episodes"][at]["task"]]
        file = pd.read_parquet(out / name / dataset.meta.get_data_file_path(at), columns=["episode_index"])
        assert (file.episode_index == at).sum() == columns.lengths[at], f"episode {at} is not in its file"

    # Statistics of the dataset and of each episode.
    table = pd.concat(pd.read_parquet(path) for path in sorted((out / name / "meta/episodes").glob("*/*.parquet")))
    for key, feature in dataset.meta.features.items():
        if feature["dtype"] == "string":
            assert key not in dataset.meta.stats
            continue
        of_dataset, per_episode = dataset.meta.stats[key], []
        for at in range(len(columns.lengths)):
            row = table.iloc[at]
            names = ["min", "max", "mean", "std", "count", *QUANTILES]
            stats = {stat: unnested(row[f"stats/{key}/{stat}"]) for stat in names}
            part = slice(starts[at], starts[at + 1])
            if feature["dtype"] == "image":
                chosen = sample_indices(columns.lengths[at])
                of_episode = images[key][part]
                sampled = np.stack([auto_downsample_height_width(of_episode[i].transpose(2, 0, 1)) for i in chosen])
                wanted = get_feature_stats(sampled.astype(np.float64), axis=(0, 2, 3), keepdims=True)
                assert stats["mean"].shape == (3, 1, 1) and stats["count"].tolist() == [len(chosen)]
                rows = sampled.transpose(0, 2, 3, 1).reshape(-1, 3) / 255.0
                close(stats["mean"].reshape(-1), wanted["mean"].reshape(-1) / 255, f"{key} mean beside lerobot")
                close(stats["std"].reshape(-1), wanted["std"].reshape(-1) / 255, f"{key} std beside lerobot", 1e-6)
            else:
                rows = columns.values[key][part]
                # lerobot itself takes statistics over all but the last axis, and quantiles from a histogram.
                wanted = get_feature_stats(rows.astype(np.float64), axis=0, keepdims=rows.ndim == 1)
                # It takes another way, and other shapes, for a single row.
                for stat in ["mean", "std"] if len(rows) > 1 else []:
                    assert stats[stat].shape == np.atleast_1d(wanted[stat]).shape, (key, stat)
                    close(stats[stat], wanted[stat], f"{key} {stat} beside lerobot", 1e-6)
                assert stats["count"].tolist() == [columns.lengths[at]]
                rows = rows.reshape(-1, rows.shape[-1] if rows.ndim > 1 else 1)
            check_stats(key, stats, rows, f"of episode {at}")
            per_episode.append((rows, stats["count"][0]))
        check_stats(key, of_dataset, np.concatenate([rows for rows, _ in per_episode]), "of the dataset")
        assert of_dataset["count"].tolist() == [sum(count for _, count in per_episode)]

    # Windows over time, and batches. Text cannot be stacked.
    own = [(key, feature) for key, feature in dataset.meta.features.items() if key not in AUTOMATIC]
    keys = [key for key, feature in own if feature["dtype"] not in ("image", "string")]
    deltas = {key: [step / dataset.fps for step in (-1, 0, 1)] for key in keys}
    windows = LeRobotDataset(f"interop/{name}", root=out / name, delta_timestamps=deltas)
    loader = torch.utils.data.DataLoader(windows, batch_size=16, shuffle=False, num_workers=0)
    row = 0
    for batch in loader:
        for at in range(len(batch["index"])):
            episode = columns.values["episode_index"][row]
            inside = [min(max(row + step, starts[episode]), starts[episode + 1] - 1) for step in (-1, 0, 1)]
            for key in keys:
                wanted = torch.tensor(columns.values[key][inside].tolist())
                equal(batch[key][at], wanted, f"window of {key} at row {row}")
            row += 1
    assert row == frames
    subset = LeRobotDataset(f"interop/{name}", root=out / name, episodes=[1])
    assert len(subset) == columns.lengths[1] and subset[0]["episode_index"].item() == 1
    found = f"{frames} frames, {len(columns.lengths)} episodes, {expected['data_files']} data files"
    print(f"{name}: {found}: equal ({time.time() - started:.1f} s)")


def same(found, wanted, what):
    """Whether two items of lerobot agree in a key, whatever it holds."""
    assert type(found) is type(wanted), what
    if isinstance(found, torch.Tensor):
        assert found.dtype == wanted.dtype and torch.equal(found, wanted), what
    else:
        assert found == wanted, what


def check_annotated(name: str, out: Path, frames_read: int):
    started = time.time()
    expected = json.loads((out / f"{name}.json").read_text())
    source_root = Path(expected["source"])
    source = LeRobotDataset("interop/source", root=source_root, video_backend="pyav")
    dataset = LeRobotDataset(f"interop/{name}", root=out / name, video_backend="pyav")
    column, names, values = expected["key"], expected["names"], np.array(expected["values"])
    subtasks = [names[value] if value >= 0 else "none" for value in values]

    # The column and the texts, everywhere.
    stored = dataset.hf_dataset.with_format("arrow")[:]
    equal(stored[column].to_numpy(), values, column)
    vocabulary = json.loads((out / name / "meta/skills.json").read_text())
    assert vocabulary["feature"] == column and vocabulary["names"] == names
    assert list(dataset.meta.subtasks.index) == names + (["none"] if (values < 0).any() else [])
    assert list(dataset.meta.subtasks.subtask_index) == list(range(len(dataset.meta.subtasks)))

    # What was there is there still: every column of every row, byte by byte, and every item as lerobot gives it.
    before = source.hf_dataset.with_format("arrow")[:]
    for key in before.column_names:
        assert stored[key].combine_chunks().equals(before[key].combine_chunks()), key
        assert stored.schema.field(key).equals(before.schema.field(key)), key
    for row in np.unique(np.linspace(0, len(dataset) - 1, frames_read).round().astype(int)):
        item, old = dataset[int(row)], source[int(row)]
        assert set(item) - set(old) == {column, "subtask_index", "subtask"}
        for key in old:
            same(item[key], old[key], f"{key} of row {row}")
        assert item[column].item() == values[row] and item["subtask"] == subtasks[row], row
    for path in sorted((source_root / "data").glob("*/*.parquet")):
        old, new = pq.ParquetFile(path), pq.ParquetFile(out / name / path.relative_to(source_root))
        assert old.metadata.num_row_groups == new.metadata.num_row_groups
        for field in old.schema_arrow:
            assert new.schema_arrow.field(field.name).equals(field, check_metadata=True), field
        noted = json.loads(new.schema_arrow.metadata[b"huggingface"])["info"]["features"]
        assert set(noted) >= {column, "subtask_index"}

    # Features, statistics, episodes; the rest of the metadata unchanged.
    for key in [column, "subtask_index"]:
        assert dataset.meta.features[key] == {"dtype": "int64", "shape": (1,), "names": None}
    assert {key: value for key, value in dataset.meta.info.items() if key != "features"} == {
        key: value for key, value in source.meta.info.items() if key != "features"
    }
    check_stats(column, dataset.meta.stats[column], values.reshape(-1, 1), "of the dataset")
    assert set(dataset.meta.stats) - set(source.meta.stats) == {column, "subtask_index"}
    old = pd.concat(pd.read_parquet(path) for path in sorted((source_root / "meta/episodes").glob("*/*.parquet")))
    new = pd.concat(pd.read_parquet(path) for path in sorted((out / name / "meta/episodes").glob("*/*.parquet")))
    assert new[old.columns].astype(str).equals(old.astype(str))
    for _, episode in new.iterrows():
        part = values[episode["dataset_from_index"] : episode["dataset_to_index"]].reshape(-1, 1)
        stats = {stat: np.array(episode[f"stats/{column}/{stat}"]) for stat in ["min", "max", "mean", "std", *QUANTILES]}
        check_stats(column, stats, part, f"of episode {episode['episode_index']}")
    kept = {str(path.relative_to(source_root)) for path in source_root.rglob("*") if path.is_file()}
    found = {str(path.relative_to(out / name)) for path in (out / name).rglob("*") if path.is_file()}
    assert found - kept <= {"meta/skills.json", "meta/subtasks.parquet"} and kept <= found, found ^ kept

    # Batches with windows of the new column; videos are decoded on the way.
    deltas = {column: [-1 / dataset.fps, 0.0]}
    windows = LeRobotDataset(f"interop/{name}", root=out / name, delta_timestamps=deltas, video_backend="pyav")
    loader = torch.utils.data.DataLoader(torch.utils.data.Subset(windows, range(min(40, len(windows)))), batch_size=8)
    row = 0
    for batch in loader:
        for at in range(len(batch["index"])):
            assert batch[column][at].tolist() == [values[max(row - 1, 0)], values[row]], row
            assert batch["subtask"][at] == subtasks[row], row
            row += 1
    found = f"{len(dataset)} frames, {dataset.num_episodes} episodes, {len(dataset.meta.subtasks)} subtasks"
    print(f"{name}: {found}: equal ({time.time() - started:.1f} s)")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path, help="a v3.0 dataset, such as libero_goal, to be annotated")
    parser.add_argument("--example", type=Path, help="the built example `interop_write`; built by cargo otherwise")
    parser.add_argument("--out", type=Path, help="where to write; a temporary directory otherwise")
    arguments = parser.parse_args()
    with TEMPORARY as temporary:
        out = arguments.out or Path(temporary) / "out"
        out.mkdir(parents=True, exist_ok=True)
        cargo = ["cargo", "run", "--release", "-p", "dataset", "--example", "interop_write", "--"]
        command = [str(arguments.example)] if arguments.example else cargo
        sources = [str(arguments.source)] if arguments.source else []
        subprocess.run([*command, str(out), *sources], check=True)
        for name in ["plain", "pictures", "many_files"]:
            check(name, out)
        check_annotated("annotated_many_files", out, 500)
        check_annotated("annotated_pictures", out, 19)
        if arguments.source:
            check_annotated("annotated_source", out, 300)


if __name__ == "__main__":
    sys.exit(main())
