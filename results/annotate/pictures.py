"""The pictures of some rows of an episode, for dinov2.py and strips.py. Needs pandas, pyarrow, pillow, and av for videos."""

import io
import json

import pandas as pd
from PIL import Image


def episodes_of(root):
    """The table of episodes, in order."""
    parts = sorted((root / "meta" / "episodes").rglob("*.parquet"))
    return pd.concat([pd.read_parquet(part) for part in parts]).sort_values("episode_index").reset_index(drop=True)


def camera_of(info):
    """The first camera; none if there is none."""
    return next((key for key, one in info["features"].items() if one["dtype"] in ("video", "image")), None)


def pictures_of(root, index, rows, camera=None):
    """The pictures of an episode at some rows, which ascend; none without cameras."""
    info = json.loads((root / "meta" / "info.json").read_text())
    camera = camera or camera_of(info)
    if camera is None:
        return iter(())
    if info["features"][camera]["dtype"] == "image":
        return from_table(root, camera, index, rows)
    return from_video(root, info, camera, episodes_of(root).iloc[index], rows)


def from_video(root, info, camera, episode, rows):
    import av

    chunk, file = (int(episode[f"videos/{camera}/{part}"]) for part in ("chunk_index", "file_index"))
    path = root / info["video_path"].format(video_key=camera, chunk_index=chunk, file_index=file)
    first = episode[f"videos/{camera}/from_timestamp"]
    wanted = {round((first + row / info["fps"]) * info["fps"]) for row in rows}
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        container.seek(int(max(0.0, first - 0.5) / stream.time_base), stream=stream)
        for frame in container.decode(stream):
            number = round(float(frame.pts * stream.time_base) * info["fps"])
            if number in wanted:
                yield frame.to_image()
            if number >= max(wanted):
                return


def from_table(root, camera, index, rows):
    for part in sorted((root / "data").rglob("*.parquet")):
        table = pd.read_parquet(part, columns=["episode_index", camera])
        own = table[table.episode_index == index]
        if len(own):
            for row in rows:
                yield Image.open(io.BytesIO(own[camera].iloc[row]["bytes"])).convert("RGB")
            return
