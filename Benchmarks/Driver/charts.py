# SPDX-License-Identifier: Apache-2.0

"""Makes a self-contained page with charts: bars on a logarithmic scale, and floors as lines."""

import html
import math

import peers
import tables
import workloads

STYLE = """
:root { --paper: #fff; --ink: #1b1f24; --soft: #667; --line: #dde; --ours: #d9480f; --peer: #8fa3b8; --floor: #2b8a3e; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #15181c; --ink: #e6e8eb; --soft: #9aa3ad; --line: #2c323a; --ours: #ff8c5a; --peer: #5d7186;
    --floor: #69c17d; }
}
body { font: 15px/1.5 system-ui, sans-serif; background: var(--paper); color: var(--ink); max-width: 60rem;
  margin: 2rem auto; padding: 0 1rem; }
h2 { margin: 2.5rem 0 0; font-size: 1.2rem; }
h3 { margin: 1rem 0 .2rem; font-weight: 500; font-size: 1rem; color: var(--soft); }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: var(--ink); } svg .soft { fill: var(--soft); } svg .floorname { fill: var(--floor); }
svg .grid { stroke: var(--line); } svg .whisker { stroke: var(--ink); }
svg .ours { fill: var(--ours); } svg .peer { fill: var(--peer); }
svg .floor { stroke: var(--floor); stroke-dasharray: 4 3; } svg polyline { fill: none; stroke-width: 2; }
.missed { color: var(--ours); } .scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: .85rem; } td, th { padding: .15rem .5rem; border-bottom: 1px solid var(--line);
  text-align: right; white-space: nowrap; } td:first-child, th:first-child { text-align: left; }
"""
WIDTH, LEFT, RIGHT, ROW = 900, 190, 110, 22


class Scale:
    """A logarithmic scale over whole decades, or the used part of one."""

    def __init__(self, values, start, end):
        self.low, self.high = math.log10(min(values)) - 0.1, math.log10(max(values)) + 0.1
        if self.high - self.low < 1:
            middle = (self.high + self.low) / 2
            self.low, self.high = middle - 0.5, middle + 0.5
        self.start, self.end = start, end

    def at(self, value):
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + min(max(part, 0), 1) * (self.end - self.start)

    def ticks(self):
        decades = range(math.floor(self.low), math.ceil(self.high) + 1)
        steps = (1, 2, 5) if self.high - self.low < 2.5 else (1,)
        values = [step * 10.0**decade for decade in decades for step in steps]
        return [value for value in values if self.low <= math.log10(value) <= self.high]


def line(x1, y1, x2, y2, kind):
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def label(x, y, words, kind="", anchor="start"):
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(words)}</text>'


def bars(results, key):
    """A chart of one metric, or nothing if it does not fit a logarithmic scale."""
    spreads = {peer: results.spread(key, peer) for peer in results.peers(key)}
    if len(spreads) < 2 or any(spread.low <= 0 for spread in spreads.values()):
        return ""
    floors = [peer for peer in spreads if peers.is_floor(peer)]
    rows = [peer for peer in spreads if peer not in floors]
    scale = Scale([value for spread in spreads.values() for value in (spread.low, spread.high)], LEFT, WIDTH - RIGHT)
    top = 16 * len(floors) + 4
    height = top + ROW * len(rows) + 22
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img">']
    for value in scale.ticks():
        parts.append(line(scale.at(value), top, scale.at(value), height - 20, "grid"))
        parts.append(label(scale.at(value), height - 6, tables.number(value), "soft", "middle"))
    for index, peer in enumerate(rows):
        parts += bar(results, key, peer, spreads[peer], scale, top + ROW * index)
    for index, peer in enumerate(floors):
        x, y = scale.at(spreads[peer].median), 16 * index + 12
        parts.append(line(x, y + 3, x, height - 20, "floor"))
        parts.append(label(x + 4, y, f"{peer} {tables.number(spreads[peer].median)}", "floorname"))
    return "".join(parts) + "</svg>"


def bar(results, key, peer, spread, scale, y):
    end, ratio = scale.at(spread.median), results.ratio(key, peer)
    words = tables.number(spread.median) + (f"  ({tables.ratio_text(ratio)})" if ratio else "")
    kind = "ours" if peer == peers.OURS else "peer"
    return [
        label(LEFT - 8, y + 15, peer, "", "end"),
        f'<rect class="{kind}" x="{LEFT}" y="{y + 4}" width="{max(end - LEFT, 1):.1f}" height="{ROW - 8}" rx="2"/>',
        line(scale.at(spread.low), y + ROW / 2, scale.at(spread.high), y + ROW / 2, "whisker"),
        label(max(end, scale.at(spread.high)) + 6, y + 15, words)]


COLOURS = ["#d9480f", "#1971c2", "#2b8a3e", "#9c36b5", "#a8800a"]


def curves(series):
    """A chart of the growth of times, with two logarithmic axes."""
    height, bottom = 300, 268
    spreads = [spread for steps in series.values() for _, spread in steps]
    values = [value for spread in spreads for value in (spread.low, spread.high) if value > 0]
    sizes = [n for steps in series.values() for n, _ in steps]
    across, up = Scale(sizes, 60, WIDTH - 300), Scale(values, bottom, 10)
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img">']
    for value in up.ticks():
        parts.append(line(60, up.at(value), WIDTH - 300, up.at(value), "grid"))
        parts.append(label(54, up.at(value) + 4, f"{tables.number(value)} ns", "soft", "end"))
    for size in sorted(set(sizes)):
        parts.append(label(across.at(size), height - 12, f"{size:,}", "soft", "middle"))
    for index, (metric, steps) in enumerate(series.items()):
        colour = COLOURS[index % len(COLOURS)]
        points = " ".join(f"{across.at(n):.1f},{up.at(spread.median):.1f}" for n, spread in steps)
        parts.append(f'<polyline points="{points}" style="stroke: {colour}"/>')
        parts.append(f'<rect x="{WIDTH - 280}" y="{20 + 20 * index}" width="12" height="12" style="fill: {colour}"/>')
        parts.append(label(WIDTH - 262, 31 + 20 * index, metric))
    return "".join(parts) + "</svg>"


def table(markdown):
    rows = [[cell.strip() for cell in row.strip("|").split("|")] for row in markdown.strip().split("\n")]
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows[2:])
    return f'<div class="scroll"><table><tr>{head}</tr>{body}</table></div>'


def page(results):
    parts = [
        "<!DOCTYPE html>", '<html lang="en"><head><meta charset="utf-8"><title>RunLoopKit and its peers</title>',
        f"<style>{STYLE}</style></head><body><h1>RunLoopKit and its peers</h1>",
        f"<p>{html.escape(tables.how(results).replace('`', ''))}</p>",
        "<p>Medians of the rounds, with quartiles as lines; logarithmic scales. In parentheses: ours divided by the "
        "peer's, the median of the rounds' ratios. Dashed: floors, the leanest C programs that do the work.</p>"]
    for name in results.workloads():
        parts.append(f"<h2>{name} · {html.escape(workloads.WORKLOADS[name][0])}</h2>")
        for key in [key for key in tables.compared(results) if key[0] == name]:
            chart = bars(results, key)
            if chart:
                more = ", more is better" if workloads.more_is_better(key[1]) else ""
                parts.append(f"<h3>{html.escape(key[1])}, {html.escape(results.units[key] + more)}</h3>{chart}")
        series = results.growth(name)
        if series:
            parts.append(curves(series))
    parts.append("<h2>Ratios</h2>" + table(tables.markdown(results)))
    told = tables.aims(results)
    if told:
        items = "".join(f'<li class="{"" if met else "missed"}">{html.escape(words)}</li>' for met, words in told)
        parts.append(f"<h2>What is to be reached</h2><ul>{items}</ul>")
    return "\n".join(parts) + "</body></html>\n"
