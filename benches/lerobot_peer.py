"""The lerobot side of `compare_lerobot.py`: one way of loading, in a process of its own; prints one line of JSON.

    python lerobot_peer.py '{"way": "open", "root": "<dataset>", …}'

Ways: `baseline` (the imports only), `open`, `windows` (state and action) and `frame_windows` (both cameras besides). The
clock starts after the imports and, for windows, after a warm-up.
"""

import gc
import json
import os
import random
import re
import sys
import time

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["HF_DATASETS_OFFLINE"] = "1"

import torch  # noqa: E402
from lerobot.datasets.lerobot_dataset import LeRobotDataset  # noqa: E402

COLUMNS = ["observation.state", "action"]


def main():
    task = json.loads(sys.argv[1])
    torch.set_num_threads(task.get("torch_threads", 2))
    result = {"baseline": baseline, "open": opening, "windows": windows, "frame_windows": windows}[task["way"]](task)
    print(json.dumps({**result, "peak_bytes": high_water()}))


def baseline(_):
    """Imports, and nothing else."""
    return {}


def opening(task):
    """From a path to a dataset that answers; again in the same process, where lazy imports are done."""
    seconds, peaks = [], []
    for _ in range(3):
        gc.collect()
        start = time.perf_counter()
        dataset = opened(task)
        if len(dataset) == 0:
            sys.exit("the dataset is empty")
        seconds.append(time.perf_counter() - start)
        peaks.append(high_water())
    return {"first_seconds": seconds[0], "again_seconds": min(seconds[1:]), "first_peak_bytes": peaks[0]}


def windows(task):
    """Random windows that lie inside their episodes, for some seconds."""
    length = task["length"]
    dataset = opened(task)
    cameras = dataset.meta.camera_keys if task["way"] == "frame_windows" else []
    offsets = [step / dataset.fps for step in range(length)]
    dataset = opened(task, {name: offsets for name in COLUMNS + cameras})
    order = random.Random(task["seed"])
    starts = [
        first for episode in dataset.meta.episodes
        for first in range(episode["dataset_from_index"], episode["dataset_to_index"] - length + 1)
    ]
    order.shuffle(starts)
    stream = METHODS[task["method"]](dataset, starts, task)
    count = 0
    for _ in range(task["warm_up"]):
        count = next(stream)
    start, cpu, first = time.perf_counter(), cpu_seconds(), count
    while (elapsed := time.perf_counter() - start) < task["seconds"]:
        count = next(stream)
    made, cpu = count - first, cpu_seconds() - cpu
    return {"per_second": made / elapsed, "per_cpu_second": made / cpu, "worker_peak_bytes": sum(map(high_water, workers()))}


def opened(task, delta_timestamps=None):
    """The dataset as lerobot opens it; nothing is fetched, as it is on disk."""
    return LeRobotDataset("local/set", root=task["root"], delta_timestamps=delta_timestamps, video_backend=task.get("backend"))


# Each method yields how many windows it has made so far, without end.


def items(dataset, starts, task):
    """`dataset[i]`, the documented way."""
    count = 0
    while True:
        for start in starts:
            checked(dataset[start], task)
            count += 1
            yield count


def loader(dataset, starts, task):
    """A DataLoader with worker processes, which stay alive over the epochs."""
    batches = torch.utils.data.DataLoader(
        torch.utils.data.Subset(dataset, starts), batch_size=task["batch"], num_workers=task["workers"],
        shuffle=True, persistent_workers=True, prefetch_factor=4,
    )
    count = 0
    while True:
        for batch in batches:
            checked(batch, task)
            count += len(batch["index"])
            yield count


def query(dataset, starts, task):
    """Only the part of `dataset[i]` that fetches the window's columns, without the row itself, the video and the task."""
    episode_of = dataset.hf_dataset.with_format("numpy")["episode_index"][:]
    count = 0
    while True:
        for start in starts:
            indices, padding = dataset._get_query_indices(start, int(episode_of[start]))
            item = dataset._query_hf_dataset(indices)
            checked({**item, **padding}, task)
            count += 1
            yield count


def slices(dataset, starts, task):
    """By hand, past lerobot: slices of the Hugging Face table beneath it, which gives numpy arrays of the two columns."""
    table = dataset.hf_dataset.select_columns(COLUMNS).with_format("numpy")
    count = 0
    while True:
        for start in starts:
            checked(table[start:start + task["length"]], task)
            count += 1
            yield count


METHODS = {"items": items, "loader": loader, "query": query, "slices": slices}


def checked(item, task):
    """A window that is not what was asked for ends the run."""
    if item["action"].shape[-2:] != (task["length"], 7) or item["observation.state"].shape[-2:] != (task["length"], 8):
        sys.exit(f"wrong shapes: {item['action'].shape}")
    if task["way"] == "frame_windows" and item["observation.images.image"].shape[-4:] != (task["length"], 3, 128, 128):
        sys.exit(f"wrong shape of pictures: {item['observation.images.image'].shape}")


def high_water(process="self"):
    """The peak of a process's resident set, in bytes. Workers share pages with this process; they count in each."""
    with open(f"/proc/{process}/status") as status:
        return int(re.search(r"^VmHWM:\s*(\d+)", status.read(), re.MULTILINE).group(1)) * 1024


def cpu_seconds():
    """User and system time of this process and of its living workers, in ticks of 1/100 s."""
    ticks = 0
    for process in ["self", *workers()]:
        with open(f"/proc/{process}/stat") as stat:
            ticks += sum(map(int, stat.read().rpartition(")")[2].split()[11:13]))
    return ticks / os.sysconf("SC_CLK_TCK")


def workers():
    """The ids of the worker processes."""
    return [worker.pid for worker in torch.multiprocessing.active_children()]


if __name__ == "__main__":
    main()
