#!/usr/bin/env python3
"""Makes the dataset that is embedded in the program out of the LIBERO-Goal demonstrations.

    python scripts/make_embedded_set.py --source ../shared/data/libero_goal --out datasets/libero_goal_mini

The lerobot package reads the source and writes the result, so that the set is what users' own sets are: LeRobot v3.0, AV1
video, one parquet file. It holds the first four rounds (each round has one episode of every task) at half the frame rate.
Frames 0, 2, 4, … are kept. A step of the result spans two steps of the source, t and t + 1:

    images, observation.state, phase   of frame t
    action, position and rotation      the mean of the commands t and t + 1, which stays in [-1, 1];
                                       1.0 is now 0.1 m and 1 rad per step, twice as much as in the source
    action, gripper                    the command t + 1
    next.reward                        of step t + 1, so that the last frame keeps the episode's final reward
    next.done                          true on the last frame only

An episode with an odd number of frames ends with a single one, which stands for itself.

The pictures are encoded a second time, slower and finer than lerobot's defaults do, so that little is lost again; see
`ENCODER`. One thread of the encoder and one camera at a time: the same source and packages give the same bytes.
Needs lerobot 0.4.4 from PyPI, with PyAV.
"""

import argparse
import functools
import json
import shutil
import sys
import tempfile
from pathlib import Path

import av
import lerobot.datasets.lerobot_dataset as lerobot_dataset
import numpy as np
import pandas as pd
from lerobot.datasets.lerobot_dataset import LeRobotDataset

ROUNDS = 4
STEP = 2

# Few frames between keyframes, so that a random frame costs few others; a slow preset, because it is done once.
ENCODER = {"g": 4, "crf": 16, "preset": 4, "encoder_threads": 1}

# The whole folder may have 12 MB, of which the cached features (fp16, 384 per frame and camera) need 3.6 MB.
MAX_BYTES = 12_000_000 - 3_600_000

WRITTEN_BY_LEROBOT = {"timestamp", "frame_index", "episode_index", "index", "task_index"}


def main():
    arguments = parse_arguments()
    if arguments.out.exists() and not (arguments.out / "meta" / "info.json").exists():
        sys.exit(f"error: {arguments.out} exists and is no dataset\nhint: give another --out")
    options = {**ENCODER, "g": arguments.g, "crf": arguments.crf, "preset": arguments.preset}
    with tempfile.TemporaryDirectory(dir=arguments.out.parent, prefix=".making-") as folder:
        made = Path(folder) / "set"
        make(arguments.source, made, options)
        sizes = {path.relative_to(made): path.stat().st_size for path in sorted(made.rglob("*")) if path.is_file()}
        for path, size in sizes.items():
            print(f"{size:>10} {path}")
        total = sum(sizes.values())
        print(f"{total:>10} together, of {MAX_BYTES}")
        if total > MAX_BYTES:
            sys.exit("error: too large\nhint: raise --crf or --g")
        # What a person has written about the set stays.
        if (arguments.out / "README.md").exists():
            shutil.copy(arguments.out / "README.md", made / "README.md")
        if arguments.out.exists():
            shutil.rmtree(arguments.out)
        made.rename(arguments.out)
    return 0


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--source", type=Path, required=True, help="the libero_goal dataset")
    parser.add_argument("--out", type=Path, required=True, help="folder to make; a dataset there is replaced")
    parser.add_argument("--g", type=int, default=ENCODER["g"], help=f"frames per keyframe [default: {ENCODER['g']}]")
    parser.add_argument("--crf", type=int, default=ENCODER["crf"], help=f"coarseness [default: {ENCODER['crf']}]")
    parser.add_argument("--preset", type=int, default=ENCODER["preset"],
                        help=f"0 is slow, 13 is fast [default: {ENCODER['preset']}]")
    return parser.parse_args()


def make(source, out, options):
    """Writes the dataset to `out`, which must not exist."""
    info = json.loads((source / "meta" / "info.json").read_text())
    tasks = pd.read_parquet(source / "meta" / "tasks.parquet")
    instructions = {int(row.task_index): instruction for instruction, row in tasks.iterrows()}
    episodes = pd.concat(pd.read_parquet(path) for path in sorted(source.glob("meta/episodes/*/*.parquet")))
    rows = pd.concat(pd.read_parquet(path) for path in sorted(source.glob("data/*/*.parquet"))).sort_values("index")
    cameras = [name for name, feature in info["features"].items() if feature["dtype"] == "video"]
    features = {
        name: {"dtype": feature["dtype"], "shape": tuple(feature["shape"]), "names": feature["names"]}
        for name, feature in info["features"].items()
        if name not in WRITTEN_BY_LEROBOT
    }
    # lerobot has no parameters for the encoder's own, so they are put where it calls it.
    encode = lerobot_dataset.encode_video_frames
    threads = options.pop("encoder_threads")
    lerobot_dataset.encode_video_frames = functools.partial(encode, **options)
    made = LeRobotDataset.create(
        repo_id="refactor-vla/libero_goal_mini", root=out, fps=info["fps"] // STEP, features=features,
        robot_type=info["robot_type"], use_videos=True, vcodec="libsvtav1", encoder_threads=threads,
    )
    frames_of = {camera: Frames(source, info, camera, episodes) for camera in cameras}
    for episode in range(ROUNDS * len(tasks)):
        table = rows[rows.episode_index == episode]
        columns = halved(table)
        task = instructions[int(table.task_index.iloc[0])]
        pictures = {camera: frames_of[camera].of(episode) for camera in cameras}
        for place, kept in enumerate(range(0, len(table), STEP)):
            frame = {name: values[place] for name, values in columns.items()}
            made.add_frame({**frame, **{camera: pictures[camera][kept] for camera in cameras}, "task": task})
        made.save_episode(parallel_encoding=False)
        print(f"episode {episode}: {len(table)} → {len(columns['phase'])} frames, {task}", file=sys.stderr)
    made.finalize()
    lerobot_dataset.encode_video_frames = encode
    shutil.copy(source / "meta" / "phases.json", out / "meta" / "phases.json")
    (out / "meta" / "phases.json").chmod(0o644)
    put_in_order(out / "meta" / "stats.json", json.loads((out / "meta" / "info.json").read_text())["features"])
    shutil.rmtree(out / "images", ignore_errors=True)


def put_in_order(path, features):
    """Statistics in the order of the features; lerobot's order changes from run to run, as it comes out of a set."""
    stats = json.loads(path.read_text())
    path.write_text(json.dumps({name: stats[name] for name in features}, indent=4))


def halved(table):
    """The columns of one episode at half the rate, by the rules above."""
    state = np.stack(table["observation.state"])
    action = np.stack(table["action"]).astype(np.float64)
    kept = np.arange(0, len(table), STEP)
    later = np.minimum(kept + STEP - 1, len(table) - 1)
    mean = (action[kept] + action[later]) / 2
    mean[:, -1] = action[later, -1]
    done = np.zeros((len(kept), 1), dtype=bool)
    done[-1] = True
    return {
        "observation.state": state[kept].astype(np.float32),
        "action": mean.astype(np.float32),
        "next.reward": table["next.reward"].to_numpy(np.float32)[later][:, None],
        "next.done": done,
        "phase": table["phase"].to_numpy(np.int64)[kept][:, None],
    }


class Frames:
    """The pictures of one camera, episode by episode and in order."""

    def __init__(self, source, info, camera, episodes):
        self.fps = info["fps"]
        self.spans = {}
        for _, row in episodes.iterrows():
            file = info["video_path"].format(
                video_key=camera, chunk_index=row[f"videos/{camera}/chunk_index"], file_index=row[f"videos/{camera}/file_index"]
            )
            start = round(row[f"videos/{camera}/from_timestamp"] * self.fps)
            self.spans[int(row.episode_index)] = (source / file, start, start + int(row.length))
        self.opened, self.stream, self.at = None, None, 0

    def of(self, episode):
        """The frames of an episode as height × width × RGB; episodes of a file must be asked for in its order."""
        path, start, end = self.spans[episode]
        if path != self.opened:
            self.opened, self.at = path, 0
            self.stream = av.open(str(path)).decode(video=0)
        frames = []
        while self.at < end:
            frame = next(self.stream)
            if round(float(frame.pts * frame.time_base) * self.fps) != self.at:
                sys.exit(f"error: frame {self.at} of {path} has another place in time")
            if self.at >= start:
                frames.append(frame.to_ndarray(format="rgb24"))
            self.at += 1
        return frames


if __name__ == "__main__":
    sys.exit(main())
