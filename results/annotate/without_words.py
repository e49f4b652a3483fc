#!/usr/bin/env python3
"""Copies a dataset and calls its tasks `task 0`, `task 1`, …, so that no instruction is left to name subtasks by.

usage: results/annotate/without_words.py DATASET OUT        (needs pyarrow and pandas; videos are hard links)
"""
import os
import shutil
import sys
from pathlib import Path

import pandas

source, out = Path(sys.argv[1]), Path(sys.argv[2])
link_videos = lambda old, new: os.link(old, new) if old.endswith(".mp4") else shutil.copy2(old, new)
try:
    shutil.copytree(source, out, copy_function=link_videos)
except shutil.Error:  # another file system
    shutil.copytree(source, out, dirs_exist_ok=True)
tasks = pandas.read_parquet(source / "meta/tasks.parquet")
wordless = {text: f"task {number}" for text, number in zip(tasks.index, tasks["task_index"])}
tasks.rename(index=wordless).to_parquet(out / "meta/tasks.parquet")
for file in (source / "meta/episodes").rglob("*.parquet"):
    episodes = pandas.read_parquet(file)
    episodes["tasks"] = [[wordless[text] for text in texts] for texts in episodes["tasks"]]
    episodes.to_parquet(out / file.relative_to(source))
