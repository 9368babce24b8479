# SPDX-License-Identifier: Apache-2.0

"""Results of all rounds, and the ratios of ours to the peers'."""

import json
import statistics

import peers
import workloads


class Spread:
    """A median and its quartiles."""

    def __init__(self, values):
        self.median = statistics.median(values)
        quartiles = statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else [values[0]] * 3
        self.low, self.high = quartiles[0], quartiles[2]


class Results:
    def __init__(self, about):
        self.about = about
        self.failures = []
        # (workload, metric, n) -> peer -> round -> value; both in order of appearance.
        self.values = {}
        self.units = {}

    def add(self, number, line):
        key = (line["workload"], line["metric"], line.get("n", 0))
        self.values.setdefault(key, {}).setdefault(line["peer"], {})[number] = line["value"]
        self.units[key] = line["unit"]

    def write(self, path):
        rows = [
            {"workload": key[0], "metric": key[1], "n": key[2], "unit": self.units[key], "peers": values}
            for key, values in self.values.items()]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"about": self.about, "failures": self.failures, "rows": rows}, file)

    @staticmethod
    def read(path):
        with open(path, encoding="utf-8") as file:
            record = json.load(file)
        results = Results(record["about"])
        results.failures = record["failures"]
        for row in record["rows"]:
            key = (row["workload"], row["metric"], row["n"])
            results.units[key] = row["unit"]
            results.values[key] = {
                peer: {int(number): value for number, value in values.items()} for peer, values in row["peers"].items()}
        return results

    def include(self, other):
        """Replaces workloads by those of another run; each is compared within one run."""
        names = {key[0] for key in other.values}
        self.values = {key: values for key, values in self.values.items() if key[0] not in names} | other.values
        self.units |= other.units
        self.failures = [words for words in self.failures if words.split()[1] not in names] + other.failures
        self.about["command"] += "` and `" + other.about["command"]

    def workloads(self):
        return [name for name in workloads.WORKLOADS if any(key[0] == name for key in self.values)]

    def metrics(self, workload):
        """The metrics of a workload except for growth; the first one is the main metric."""
        return [key for key in self.values if key[0] == workload and key[2] == 0]

    def growth(self, workload):
        """Metric -> [(n, spread)]."""
        series = {}
        for key, values in self.values.items():
            if key[0] == workload and key[2] > 0 and peers.OURS in values:
                series.setdefault(key[1], []).append((key[2], Spread(list(values[peers.OURS].values()))))
        return series

    def peers(self, key):
        return sorted(self.values.get(key, {}), key=lambda peer: (peers.is_floor(peer), peers.position(peer)))

    def spread(self, key, peer):
        values = self.values.get(key, {}).get(peer)
        return Spread(list(values.values())) if values else None

    def ratio(self, key, peer, ours_key=None):
        """The median of the rounds' ratios of ours to a peer's."""
        ours = self.values.get(ours_key or key, {}).get(peers.OURS, {})
        theirs = self.values.get(key, {}).get(peer, {})
        if key[1] in workloads.WITHOUT_RATIO or peer == peers.OURS and ours_key is None:
            return None
        ratios = [ours[number] / value for number, value in theirs.items() if value > 0 and ours.get(number, 0) > 0]
        return Spread(ratios) if ratios else None

    def best(self, key, candidates):
        """The best peer, by the median."""
        known = [peer for peer in self.values.get(key, {}) if peer in candidates]
        sign = -1 if workloads.more_is_better(key[1]) else 1
        return min(known, key=lambda peer: sign * self.spread(key, peer).median) if known else None

    def lines(self):
        """A line of JSON for each result."""
        lines = []
        for key in self.values:
            for peer in self.peers(key):
                spread, ratio = self.spread(key, peer), self.ratio(key, peer)
                line = {"workload": key[0], "peer": peer, "metric": key[1]}
                line.update({"n": key[2]} if key[2] else {})
                line.update({"value": spread.median, "unit": self.units[key]})
                line.update({"low": spread.low, "high": spread.high})
                if ratio:
                    line.update({"ratio": ratio.median, "ratioLow": ratio.low, "ratioHigh": ratio.high})
                lines.append(json.dumps(line, ensure_ascii=False))
        return "\n".join(lines) + "\n"
