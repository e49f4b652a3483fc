"""The plot of growth.py, as an SVG that is readable on light and on dark pages."""

import math

WIDTH, HEIGHT = 860, 400
PANEL, TOP, LEFT, GAP, BOTTOM = 300, 64, 64, 92, 312
SHADES = {"real": ("#1b62a8", "#6cb2f5"), "renamed": ("#a8530a", "#f0a35c"), "repeated": ("#2c7a3f", "#79c98c")}
MEASURES = [("cpu_s", "CPU time", "s"), ("peak_mb", "peak memory", "MB")]


def plot(points, fits):
    """Two panels on logarithmic scales: time and memory over the size of the corpus."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
        ' role="img" font-family="system-ui, sans-serif" font-size="12">',
        "<title>CPU time and peak memory over corpus size, ours and Stitch's</title>",
        f"<style>{style()}</style>",
    ]
    for panel, (measure, title, unit) in enumerate(MEASURES):
        parts += draw_panel(LEFT + panel * (PANEL + GAP), measure, f"{title} ({unit})", points, fits)
    parts += legend()
    return "\n".join([*parts, "</svg>"]) + "\n"


def style():
    """Colours for light pages, and others for dark ones."""
    light = [".text{fill:#24292f}.soft{fill:#57606a}.grid{stroke:#d0d7de}.axis{stroke:#8c959f}"]
    dark = [".text{fill:#e6edf3}.soft{fill:#9da7b3}.grid{stroke:#30363d}.axis{stroke:#6e7681}"]
    for name, (on_light, on_dark) in SHADES.items():
        light.append(f".{name}{{stroke:{on_light}}}.{name}-fill{{fill:{on_light}}}")
        dark.append(f".{name}{{stroke:{on_dark}}}.{name}-fill{{fill:{on_dark}}}")
    rest = ".line{fill:none;stroke-width:2}.peer{stroke-dasharray:5 4;stroke-width:1.5}"
    return rest + "".join(light) + "@media(prefers-color-scheme:dark){" + "".join(dark) + "}"


def draw_panel(left, measure, title, points, fits):
    """Axes, grid, lines and exponents of one measure."""
    sizes = [point["terminals"] for point in points]
    values = [point[measure] for point in points]
    low, high = 10 ** math.floor(math.log10(min(values))), 10 ** math.ceil(math.log10(max(values)))
    first, last = min(sizes) / 1.15, max(sizes) * 1.15

    def x(size):
        return left + PANEL * math.log(size / first) / math.log(last / first)

    def y(value):
        return BOTTOM - (BOTTOM - TOP) * math.log(value / low) / math.log(high / low)

    parts = [f'<text class="text" x="{left}" y="{TOP - 14}" font-weight="600">{title}</text>']
    decade = low
    while decade <= high * 1.001:
        parts.append(f'<path class="grid" d="M{left} {y(decade):.1f}H{left + PANEL}"/>')
        parts.append(f'<text class="soft" x="{left - 8}" y="{y(decade) + 4:.1f}" text-anchor="end">{decade:g}</text>')
        decade *= 10
    for tick in (tick * 10**power for power in range(3, 8) for tick in (1, 2, 5)):
        if first <= tick <= last:
            parts.append(f'<path class="grid" d="M{x(tick):.1f} {TOP}V{BOTTOM}"/>')
            label = f"{tick // 1000} k" if tick < 10**6 else f"{tick / 10**6:g} M"
            parts.append(f'<text class="soft" x="{x(tick):.1f}" y="{BOTTOM + 18}" text-anchor="middle">{label}</text>')
    parts.append(f'<path class="axis" d="M{left} {BOTTOM}H{left + PANEL}"/>')
    middle = left + PANEL / 2
    parts.append(f'<text class="soft" x="{middle}" y="{BOTTOM + 36}" text-anchor="middle">terminals in the corpus</text>')
    ends = []
    for name in SHADES:
        for side in ("peer", "ours"):
            chosen = [p for p in points if p["construction"] == name and p["side"] == side]
            if not chosen:
                continue
            places = [(x(point["terminals"]), y(point[measure])) for point in chosen]
            path = "M" + "L".join(f"{a:.1f} {b:.1f}" for a, b in places)
            parts.append(f'<path class="line {name}{" peer" if side == "peer" else ""}" d="{path}"/>')
            radius = 3.5 if side == "ours" else 2.5
            parts += [f'<circle class="{name}-fill" cx="{a:.1f}" cy="{b:.1f}" r="{radius}"/>' for a, b in places]
            fit = fits.get(f"{side} {name} {measure}")
            if fit is not None:
                ends.append((places[-1], name, f"{fit:.2f}" if side == "ours" else f"({fit:.2f})"))
    return parts + end_labels(ends, left + PANEL)


def end_labels(ends, right):
    """The exponents behind the ends of the lines, moved apart where they would overlap."""
    parts, taken = [], -math.inf
    for (_, height), name, text in sorted(ends, key=lambda end: end[0][1]):
        taken = max(height, taken + 13)
        parts.append(f'<text class="{name}-fill" x="{right + 6}" y="{taken + 4:.1f}" font-size="11">{text}</text>')
    return parts


def legend():
    """What the colours, the dashes and the numbers mean."""
    parts, left = [], LEFT
    for name in SHADES:
        parts.append(f'<path class="line {name}" d="M{left} 20h26"/><circle class="{name}-fill" cx="{left + 13}" cy="20" r="3.5"/>')
        parts.append(f'<text class="text" x="{left + 34}" y="24">{name}</text>')
        left += 110
    for dashes, text in (("", "ours"), (" peer", "Stitch")):
        parts.append(f'<path class="axis line{dashes}" d="M{left} 20h30"/><text class="text" x="{left + 38}" y="24">{text}</text>')
        left += 90
    note = "numbers: exponents, Stitch's in brackets; 1 is linear"
    parts.append(f'<text class="soft" x="{WIDTH / 2}" y="{HEIGHT - 14}" text-anchor="middle">{note}</text>')
    return parts
