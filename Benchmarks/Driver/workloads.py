# SPDX-License-Identifier: Apache-2.0

"""The workloads with their titles and targets."""

# Name: title, and the variants with runs of their own: the racers' options, and the suffix of their metrics' names.
PLAIN, CAPTURE, PINNED = ("", ""), ("--capture", ""), ("--pinned", ", on one processor")
APART = ("--apart", ", each on its own processor")
ONE, THOUSAND = ("--one", ", 1 connection"), ("--thousand", ", 1,000 connections")
WORKLOADS = {
    "W1": ("One thread posts to a loop", [PLAIN, CAPTURE]),
    "W2": ("Four threads post to a loop", [PLAIN, CAPTURE]),
    "W3": ("Two loops post to each other", [PINNED, APART, PLAIN]),
    "W4": ("A thread posts to a loop and waits", [PINNED, APART, PLAIN]),
    "W5": ("A million one-shot timers within two seconds", [PLAIN]),
    "W6": ("Timers come and go among 100,000", [PLAIN]),
    "W7": ("Dates of 10,000 timers are moved", [PLAIN]),
    "W8": ("A source that signals itself", [PLAIN]),
    "W9": ("100 of 1,000 descriptors are active", [PLAIN]),
    "W10": ("A repeating timer of a millisecond", [PLAIN]),
    "W11": ("TCP echo, 50 connections, 1 and 1,000", [PLAIN, ONE, THOUSAND]),
    "W12": ("Memory", [PLAIN]),
    "L1": ("A loop that waits gets work", [PLAIN]),
    "L2": ("100 loops at rest", [PLAIN]),
    "M1": ("Messages between two processes", [PINNED, PLAIN]),
    "M2": ("Messages between two threads", [PINNED, PLAIN]),
    "M3": ("UDP echo, 16 datagrams under way", [PINNED, PLAIN]),
    "M4": ("TLS echo, 50 connections and 1", [PLAIN, ONE]),
    "D1": ("100,000 small drawings off the loop's thread", [PLAIN]),
    "D2": ("Handing drawings to workers, in the loop's thread's time", [PLAIN]),
    "D3": ("Bytes of a frame, seven kinds of change", [PLAIN]),
    "D4": ("A terminal that does not read for one of three seconds", [PLAIN]),
    "D5": ("A screen at rest, and frames that are steady", [PLAIN]),
    "E1": ("Two actors call each other on one thread", [PLAIN]),
    "E2": ("From the default executor to an actor and back", [PINNED, PLAIN]),
    "E3": ("Tasks that another thread resumes", [PLAIN]),
    "E4": ("A task that yields", [PLAIN]),
    "E5": ("Children of a task group", [PLAIN]),
    "E6": ("From a task to an actor of the same thread and back", [PLAIN]),
    "G1": ("Growth: posts", [PLAIN]),
    "G2": ("Growth: posts for a mode that does not run", [PLAIN]),
    "G3": ("Growth: timers", [PLAIN]),
    "G4": ("Growth: idle sources", [PLAIN]),
    "G5": ("Growth: watched descriptors", [PLAIN]),
    "G6": ("Growth: modes", [PLAIN]),
}


def more_is_better(metric):
    """Whether more of a metric is better; for most, less is."""
    return metric.split(",")[0] in ("requests per second", "handshakes per second")


# Metrics that may be zero or negative, and so have no ratio.
WITHOUT_RATIO = {
    "the last is late", "drift per tick", "descriptors per loop", "worst gap above the control's",
    "time, as a part of what the loop's thread needs", "more for a frame that is shown as a whole",
    "beats lost while the terminal does not read", "beats lost while the terminal always reads", "memory while the terminal does not read",
    "wake-ups in two seconds with nothing to do"}
CHANGES = ["clock tick", "selection", "top", "log scroll", "CJK scroll", "page", "random"]
STEADY = ["frame of text, drawn and shown", "frame in which a list scrolls by three rows", "frame beside a list of nodes"]
WITHOUT_RATIO |= {f"allocations, {frame}" for frame in STEADY}

BEST, BEST_C = "the best peer", "the best C peer"
# libuv, libevent and libev leave the queue to their user, who can make it as lean as the floor's.
BEST_C_POST = "the best C peer that takes posts itself"
# Workload, metric, peer, and the target ratio: a maximum, or a minimum if more is better.
RATIOS = [
    ("W1", "post", BEST_C, 0.6),
    ("W1", "post", BEST_C_POST, 0.6),
    ("W1", "post of a closure that captures", "libdispatch (Swift)", 0.5),
    ("W2", "post", BEST_C, 0.6),
    ("W2", "post", BEST_C_POST, 0.6),
    ("W2", "post of a closure that captures", "libdispatch (Swift)", 0.5),
    ("W3", "round trip, on one processor", "floor", 1.15),
    ("W3", "round trip, on one processor", BEST, 1.0),
    ("W3", "round trip, each on its own processor", "CoreFoundation", 0.03),
    ("W3", "round trip", "floor", 0.04),
    ("W3", "round trip", BEST, 1.0),
    ("W4", "post and wait, on one processor", "floor", 1.15),
    ("W4", "post and wait, on one processor", BEST, 1.0),
    ("W4", "post and wait", "floor", 0.04),
    ("W4", "post and wait", BEST, 1.0),
    # Net: without the client's part, which is measured with an empty run of the same loop.
    ("W5", "processor time per timer, net", "libev", 1.5),
    ("W6", "cancel a random one and add one, net", "libev", 3),
    ("W6", "add one and cancel it, net", "libev", 4),
    ("W7", "move a date later, net", "libev", 2),
    ("W8", "pass", "CoreFoundation", 0.1),
    ("W8", "pass, observed", "CoreFoundation", 0.1),
    ("W9", "event", "floor", 1.05),
    ("W9", "event", "libuv", 1.0),
    ("W10", "lateness, median", "floor (timerfd)", 1.3),
    ("W11", "requests per second", "floor", 0.87),
    ("W11", "requests per second", "Boost.Asio", 1.0),
    ("M1", "request and reply of 64 bytes, on one processor", "floor", 1.15),
    ("M1", "request and reply of 64 bytes", "floor", 1.15),
    ("M1", "message of 64 bytes, on one processor", "floor", 1.15),
    ("M2", "request and reply of 64 bytes, on one processor", "floor", 1.15),
    ("M2", "request and reply of 64 bytes", "floor", 1.15),
    ("M3", "requests per second, on one processor", "floor", 0.95),
    ("M3", "requests per second", "floor", 0.95),
    ("M4", "requests per second", "floor", 0.9),
    ("M4", "requests per second, 1 connection", "floor", 0.9),
    *[("D3", f"frame, {change}", "ncurses", 1.0) for change in CHANGES],
    ("E2", "await there and back, on one processor", "libdispatch (Swift)", 1.0),
    ("E2", "await there and back, on one processor", "Swift concurrency", 1.0),
    ("E2", "await there and back", "libdispatch (Swift)", 1.0),
    ("E2", "await there and back", "Swift concurrency", 4),
    ("E2", "await there and back", "a thread with a queue", 1.0),
    ("E1", "actor call", "a thread with a queue", 1.1),
    ("E4", "yield", "a thread with a queue", 1.3),
    ("E5", "child of a task group", "a thread with a queue", 1.1),
]
# Workload, metric, and the maximum value.
VALUES = [
    ("W5", "the last is late", 1.0),
    ("W10", "drift per tick", 0.1),
    ("W12", "bytes per timer", 144),
    ("W12", "descriptors per loop", 0),
    ("D1", "worst gap above the control's", 2),
    ("D1", "time, as a part of what the loop's thread needs", 1.5),
    ("D3", "more for a frame that is shown as a whole", 16),
    ("D4", "beats lost while the terminal does not read", 2),
    ("D4", "memory while the terminal does not read", 16),
    ("D5", "wake-ups in two seconds with nothing to do", 0),
    *[("D5", f"allocations, {frame}", 0) for frame in STEADY],
]


def chosen(words):
    """The workloads whose names begin with one of the words."""
    if not words:
        return list(WORKLOADS)
    def matches(name, word):
        return name == word or (word.isalpha() and name.startswith(word))
    unknown = [word for word in words if not any(matches(name, word) for name in WORKLOADS)]
    if unknown:
        raise SystemExit(f"no workload is named {unknown[0]}; there are {', '.join(WORKLOADS)}")
    return [name for name in WORKLOADS if any(matches(name, word) for word in words)]
