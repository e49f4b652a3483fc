"""Film strips of episodes with found and true segments, from the JSON of `eval annotate --output`.

usage: strips.py REPORT.json DATASET_FOLDER EPISODE… --out FILE.png [--camera KEY] [--frames N]

Below the pictures of an episode are bars: the true phases, our named subtasks, our segments and those of the best baseline.
A boundary that is within 0.2 s of a true one is green, another one red; a true one that was missed has a red mark.
Needs numpy, pandas, pyarrow and pillow, and av for videos.
"""

import argparse
import json
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from pictures import pictures_of

WIDTH, PICTURE, BAR = 1500, 96, 22
COLOURS = ["#cfe3f5", "#fbe0c8", "#d3eadb", "#f3d9e6", "#fbeec2", "#dcedf8", "#e3e3e3"]


def font(size):
    for name in ("DejaVuSans.ttf", "LiberationSans-Regular.ttf", "NotoSans-Regular.ttf"):
        try:
            return ImageFont.truetype(name, size)
        except OSError:
            continue
    return ImageFont.load_default(size)


def fitted(draw, text, width, face):
    """As much of a text as fits."""
    while text and draw.textlength(text, font=face) > width:
        text = text[:-1]
    return text


def bar(draw, top, rows, segments, left, face, label):
    """Segments with their names; returns nothing."""
    scale = (WIDTH - left) / rows
    draw.text((4, top + 4), label, fill="black", font=face)
    for at, (start, end, name) in enumerate(segments):
        box = (left + start * scale, top, left + end * scale, top + BAR)
        draw.rectangle(box, fill=COLOURS[at % len(COLOURS)], outline="#888888")
        draw.text((box[0] + 3, top + 4), fitted(draw, name, box[2] - box[0] - 4, face), fill="black", font=face)


def marks(draw, top, bottom, rows, places, left, colour, width=2):
    scale = (WIDTH - left) / rows
    for place in places:
        draw.line((left + place * scale, top, left + place * scale, bottom), fill=colour, width=width)


def strip(report, episode, pictures):
    left, face, bold = 170, font(12), font(14)
    names = [one["name"] for one in report["recorded"]]
    best = max((one for one in report["recorded"] if not one["name"].startswith("ours")), key=lambda one: one["boundary_02"]["mean"])["name"]
    rows, tolerance = episode["rows"], max(1, round(0.2 * report["fps"]))
    image = Image.new("RGB", (WIDTH, 26 + PICTURE + 4 * (BAR + 5) + 14), "white")
    draw = ImageDraw.Draw(image)
    title = f"{report['dataset']}, episode {episode['episode']}: {episode['instruction']}"
    scores = episode["scores"]
    figures = f"F1 of subtasks {scores['subtasks_f1']:.2f}, of segments {scores['boundary_f1']:.2f}, labels {scores['phase_object']:.2f}"
    draw.text((4, 4), f"{title}   ({figures})", fill="black", font=bold)
    for at, picture in enumerate(pictures):
        side = (WIDTH - left) // len(pictures)
        image.paste(picture.resize((side - 2, PICTURE)), (left + at * side, 26))
    top = 26 + PICTURE + 4
    truth = [(one["rows"]["start"], one["rows"]["end"], one["phase"]) for one in episode["truth"]]
    bar(draw, top, rows, truth, left, face, "true phases")
    named = [(one["start"], one["end"], one["name"]) for one in episode["subtasks"]]
    wanted = [one[0] for one in truth[1:]]
    for line, name in enumerate(("ours, subtasks", "ours, segments", best)):
        cuts = episode["cuts"][names.index(name)]
        ends = [0, *cuts, rows]
        y = top + (line + 1) * (BAR + 5)
        parts = named if line == 0 else [(a, b, "") for a, b in zip(ends, ends[1:])]
        bar(draw, y, rows, parts, left, face, name[:26])
        right = [cut for cut in cuts if any(abs(cut - one) <= tolerance for one in wanted)]
        marks(draw, y, y + BAR, rows, [cut for cut in cuts if cut not in right], left, "#d00000", 3)
        marks(draw, y, y + BAR, rows, right, left, "#008a3c", 3)
        missed = [one for one in wanted if all(abs(cut - one) > tolerance for cut in cuts)]
        marks(draw, y + BAR, y + BAR + 4, rows, missed, left, "#d00000", 4)
    return image


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report", type=Path)
    parser.add_argument("dataset", type=Path)
    parser.add_argument("episodes", type=int, nargs="+")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--camera")
    parser.add_argument("--frames", type=int, default=14)
    options = parser.parse_args()
    report = next(one for one in json.loads(options.report.read_text()) if one["dataset"] == options.dataset.name)
    strips = []
    for number in options.episodes:
        episode = next(one for one in report["episodes"] if one["episode"] == number)
        rows = np.linspace(0, episode["rows"] - 1, options.frames).round().astype(int).tolist()
        pictures = list(pictures_of(options.dataset, number, rows, options.camera))
        strips.append(strip(report, episode, pictures or [Image.new("RGB", (64, 64), "#f4f4f4")]))
    sheet = Image.new("RGB", (WIDTH, sum(one.height for one in strips)), "white")
    top = 0
    for one in strips:
        sheet.paste(one, (0, top))
        top += one.height
    sheet.quantize(256, method=Image.Quantize.MAXCOVERAGE).save(options.out, optimize=True)


if __name__ == "__main__":
    main()
