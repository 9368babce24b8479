# SPDX-License-Identifier: Apache-2.0

"""Formats results as text, Markdown tables, the documentation's article, and the README's table."""

import os

import peers
import workloads


def number(value):
    """A number with three significant digits."""
    if value == 0:
        return "0"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 0.001 else f"{value:.1e}"


def ratio_text(ratio):
    return f"{ratio.median:.2f}" if ratio.median < 10 else number(ratio.median)


def text(results):
    """A table for each metric, for a terminal."""
    lines = []
    for workload in results.workloads():
        lines.append(f"\n{workload}  {workloads.WORKLOADS[workload][0]}")
        for key in results.metrics(workload):
            more = ", more is better" if workloads.more_is_better(key[1]) else ""
            unit = f" ({results.units[key]}{more})" if results.units[key] else ""
            lines.append(f"  {key[1] + unit:<58}{'ours / peer'}")
            for peer in results.peers(key):
                spread, ratio = results.spread(key, peer), results.ratio(key, peer)
                line = f"    {peer:<28}{number(spread.median):>9}  {number(spread.low)} … {number(spread.high)}"
                line = line.ljust(61)
                if ratio:
                    line += f" {ratio_text(ratio):>7}  {number(ratio.low)} … {number(ratio.high)}"
                lines.append(line.rstrip())
        for metric, series in results.growth(workload).items():
            steps = "   ".join(f"{n:,}: {number(spread.median)}" for n, spread in series)
            lines.append(f"  {metric + ' (ns)':<44}{steps}")
    lines.append("\nWhat is to be reached")
    lines += [f"  {'met   ' if met else 'missed'}  {line}" for met, line in aims(results)]
    lines += ["", f"{results.about['date']}, {results.about['machine']}", f"{results.about['rounds']} rounds"]
    return "\n".join(lines)


def opponent(results, key, against):
    candidates = {
        workloads.BEST: peers.C_PEERS + peers.OTHERS, workloads.BEST_C: peers.C_PEERS,
        workloads.BEST_C_POST: peers.C_PEERS_WITH_POSTS}
    return results.best(key, candidates[against]) if against in candidates else against


def aims(results):
    """[(met, line)] for each target with results."""
    told = []
    for workload, metric, against, limit in workloads.RATIOS:
        key = (workload, metric, 0)
        peer = opponent(results, key, against)
        ratio = results.ratio(key, peer) if peer else None
        if not ratio:
            continue
        more = workloads.more_is_better(metric)
        met = ratio.median >= limit if more else ratio.median <= limit
        name = peer if against == peer else f"{against}, {peer}"
        told.append((met, (
            f"{workload} {metric}: {ratio_text(ratio)} ({number(ratio.low)} … {number(ratio.high)}) of {name}; "
            f"{'at least' if more else 'at most'} {limit}")))
    for workload, metric, limit in workloads.VALUES:
        spread = results.spread((workload, metric, 0), peers.OURS)
        if spread:
            unit = results.units[(workload, metric, 0)]
            words = f"{workload} {metric}: {number(spread.median)} {unit}".rstrip()
            others = [peer for peer in results.peers((workload, metric, 0)) if peer != peers.OURS]
            beside = [f"{peer} {number(results.spread((workload, metric, 0), peer).median)}" for peer in others]
            beside = f" ({', '.join(beside)})" if beside and not others[0].startswith("floor") and workload[0] == "D" else ""
            # A drift has two directions.
            value = abs(spread.median) if workload == "W10" else spread.median
            told.append((value <= limit, f"{words}; at most {limit}{beside}"))
    return told + special_aims(results)


def special_aims(results):
    """Targets for a loop's memory beyond its thread's, and for comparisons with another metric of ours."""
    told = []
    key = ("W12", "bytes in memory per idle loop and its thread", 0)
    ours, floor = results.spread(key, peers.OURS), results.spread(key, "floor")
    if ours and floor:
        more = ours.median - floor.median
        told.append((more <= 2048, f"W12 {key[1]}: {number(more)} B more than the floor; at most 2048"))
    own = [
        ("E3", "job, resumed by another thread", "W1", "post of a closure that captures", 1.2),
        ("W4", "performAndWait, on one processor", "W4", "post and wait, on one processor", 1.3),
        ("W4", "performAndWait", "W4", "post and wait", 1.3),
    ]
    for workload, metric, base_workload, base, limit in own:
        key, base_key = (workload, metric, 0), (base_workload, base, 0)
        ratio = results.ratio(base_key, peers.OURS, ours_key=key) if key in results.values else None
        if ratio:
            told.append((ratio.median <= limit, f"{workload} {metric}: {ratio_text(ratio)} of our own {base}; at most {limit}"))
    return told


def compared(results):
    """The metrics that have ratios, the first ones of each workload."""
    keys = []
    for workload in results.workloads():
        for key in results.metrics(workload):
            if key[1] not in workloads.WITHOUT_RATIO and "processor time" != key[1].split(",")[0]:
                keys.append(key)
    return keys


def markdown(results):
    """One row for each metric: our value, and the ratio of ours to each peer's."""
    keys = compared(results)
    return rows_of(results, keys, [p for p in peers.ORDER[1:] if any(p in results.values[key] for key in keys)])


def rows_of(results, keys, names):
    has_floor = any(peers.is_floor(peer) for key in keys for peer in results.peers(key))
    columns = ["ours"] + (["floor"] if has_floor else []) + names
    rows = ["| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for key in keys:
        ours = results.spread(key, peers.OURS)
        if not ours:
            continue
        floors = [peer for peer in results.peers(key) if peers.is_floor(peer)]
        floor = results.best(key, floors)
        cells = [f"{key[0]} {key[1]}", f"{number(ours.median)} {results.units[key]}".strip()]
        for peer in ([floor] if has_floor else []) + names:
            ratio = results.ratio(key, peer) if peer else None
            cells.append(ratio_text(ratio) if ratio else "–")
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows) + "\n"


def aims_table(results):
    """One row for each target: the result with quartiles, and whether the target is met."""
    rows = ["| | |", "|---|---|"]
    rows += [f"| {'reached' if met else '**missed**'} | {line} |" for met, line in aims(results)]
    return "\n".join(rows) + "\n"


README_BEGIN, README_END = "<!-- race -->\n", "<!-- end of the race -->\n"
README_WORDS = """\
![An echo server's requests per second](Benchmarks/echo-server.svg)

Requests per second of an echo server on one thread, with 50 connections, run on {date} on {machine}. All workloads, peers
and ratios, also those in which RunLoopKit is slower: [Speed](Sources/RunLoopCore/RunLoopCore.docc/Speed.md).
"""


def readme(results, old):
    """The README with the words replaced by this run's; Benchmarks/chart makes the picture from the article."""
    begin, end = old.index(README_BEGIN) + len(README_BEGIN), old.index(README_END)
    machine = results.about["machine"].split(", ")[0]
    return old[:begin] + README_WORDS.format(date=results.about["date"], machine=machine) + old[end:]


def how(results):
    about = results.about
    versions = ", ".join(f"{package} {version}" for package, version in sorted(about["versions"].items()))
    # A record from before loads were recorded has none.
    load = about.get("load", 0)
    load = f" a load of {load:.0f} by others when it began;" if load >= 1 else ""
    return (
        f"Run on {about['date']} with `{about['command']}`: {about['machine']};{load} {about['rounds']} rounds. "
        f"The peers' packages: {versions}.")


def article(results):
    """The documentation's article, for the display only or for everything."""
    of_display = all(name.startswith("D") for name in results.workloads())
    lines = ["# What a screen costs", "", "Bytes, allocations and time of frames and drawings, in one run on one machine."]
    if not of_display:
        lines = ["# Speed", "", "What operations cost beside other event loops, in one run on one machine."]
    lines += [
        "", "## Overview", "",
        "Each workload is the same work for everybody. A number in the table is the ratio of ours to the peer's: "
        "below one, we need less time or memory (of requests per second, above one is better). It is the median of "
        "the rounds' ratios; the peers take turns within a round. "
        + ("" if of_display else "The floor is the leanest C program that does the work, without a loop around it. ")
        + "Absolute values are worth little on a machine that is shared; ratios within one run are not.",
        "",
        how(results), "",
        "### Ratios", "", markdown(results),
        "### What was to be reached", "",
        "The aims were set before the work began; with the median of the rounds stand its quartiles.", "",
        aims_table(results), DISPLAY_WORDS if of_display else bounds(),
        "### The workloads", ""]
    lines += [f"- {name}: {workloads.WORKLOADS[name][0]}" for name in results.workloads()]
    growth = [name for name in results.workloads() if results.growth(name)]
    if growth:
        lines += ["", "### Growth", "", "Nanoseconds for each operation, with so many things there.", ""]
        for name in growth:
            lines += growth_table(results, name)
    lines += [
        "", "`Benchmarks/README.md` says how each peer is used, what is not compared, and why.", ""]
    return "\n".join(lines)


DISPLAY_WORDS = """
- *D1* is the time until 100,000 rows of a list have been drawn by workers, beside the same drawings on the loop's own thread,
  and by how many frames the beats of a timer of 60 Hz are apart meanwhile, more than while the loop rests.
- *D3.* The bytes of a frame are counted on a terminal of 80 by 24 cells, of which both know the same. Nothing in it depends on time.
- *D4.* A program with this package and one that blocks in its writes make another frame of 3 KB with each beat of a timer of
  60 Hz. Lost are the beats that are missing after three seconds, in one of which the terminal does not read, beyond those that are
  missing where it always reads.
"""


def bounds():
    """The hand-written reasons for missed targets, with counts."""
    with open(os.path.join(peers.HERE, "Driver", "bounds.md"), encoding="utf-8") as file:
        return file.read()


def growth_table(results, name):
    series = results.growth(name)
    sizes = sorted({n for steps in series.values() for n, _ in steps})
    title = workloads.WORKLOADS[name][0].split(": ")[1].capitalize()
    rows = [f"| {title} | " + " | ".join(f"{size:,}" for size in sizes) + " |", "|---" * (len(sizes) + 1) + "|"]
    for metric, steps in series.items():
        known = dict(steps)
        cells = [number(known[size].median) if size in known else "–" for size in sizes]
        rows.append(f"| {metric} | " + " | ".join(cells) + " |")
    return rows + [""]
