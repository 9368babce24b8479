# SPDX-License-Identifier: Apache-2.0

"""Rounds, in each of which every racer runs a workload once, in a different order."""

import datetime
import json
import os
import platform
import subprocess
import sys
import time

import workloads
from results import Results


def output_of(*command):
    told = subprocess.run(command, capture_output=True, text=True)
    return told.stdout.strip() if told.returncode == 0 else ""


def machine():
    """A description of the machine."""
    models, system = set(), ""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        lines = file.readlines()
    for line in lines:
        if line.startswith("model name"):
            models.add(line.split(":", 1)[1].strip())
    count = sum(line.startswith("processor") for line in lines)
    is_virtual = any("hypervisor" in line for line in lines if line.startswith("flags"))
    with open("/etc/os-release", encoding="utf-8") as file:
        for line in file:
            if line.startswith("PRETTY_NAME="):
                system = line.split("=", 1)[1].strip().strip('"')
    swift = output_of("swift", "--version").split("\n")[0].split(" (")[0]
    return (
        f"{count} {'virtual ' if is_virtual else ''}processors ({', '.join(sorted(models)) or platform.machine()}), "
        f"{system}, Linux {platform.release().split('-')[0]}, {swift}")


def versions():
    """The versions of the peers' packages."""
    packages = ["libuv1-dev", "libevent-dev", "libev-dev", "libglib2.0-dev", "libboost-dev", "libncurses-dev"]
    # For a missing package it reports an error, and continues with the others.
    told = subprocess.run(["dpkg-query", "-W", "-f", "${Package} ${Version}\\n", *packages], capture_output=True, text=True)
    return dict(line.split() for line in told.stdout.split("\n") if len(line.split()) == 2)


def run(racer, workload, option, size):
    """Runs a racer once, and returns its results or an error."""
    command = [racer.path, workload] + [word for word in (option, size) if word]
    try:
        told = subprocess.run(command, env=racer.environment, capture_output=True, text=True, timeout=300)
    except subprocess.TimeoutExpired:
        return [], f"{racer.name} {workload} {option}: not over after five minutes"
    if told.returncode != 0:
        return [], f"{racer.name} {workload} {option}: ended with {told.returncode}: {told.stderr.strip()}"
    return [json.loads(line) for line in told.stdout.splitlines()], None


def command(options):
    """The command, without the redirection of its output."""
    words = ["Benchmarks/run"] + options.workloads + (["--quick"] if options.quick else [])
    words += ["--rounds", str(options.rounds)] if options.rounds else []
    return " ".join(words + (["--peers", options.peers] if options.peers else []))


def rounds_of(options, workload):
    """Growth needs only three rounds, because it has no peers."""
    return options.rounds or (3 if options.quick or workload.startswith("G") else 7)


def race(racers, options):
    size = "--quick" if options.quick else ""
    results = Results({
        "date": datetime.date.today().isoformat(), "machine": machine(), "versions": versions(),
        "command": command(options),
        "rounds": rounds_of(options, "W"), "quick": options.quick, "load": os.getloadavg()[0]})
    for workload in workloads.chosen(options.workloads):
        began, rounds = time.monotonic(), rounds_of(options, workload)
        for option, suffix in workloads.WORKLOADS[workload][1]:
            able = [racer for racer in racers if workload in racer.workloads]
            for number in range(rounds):
                shift = number % len(able) if able else 0
                for racer in able[shift:] + able[:shift]:
                    lines, failure = run(racer, workload, option, size)
                    if failure:
                        print(failure, file=sys.stderr)
                        results.failures.append(failure)
                    for line in lines:
                        line["metric"] += suffix
                        results.add(number, line)
        print(f"{workload}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    return results
