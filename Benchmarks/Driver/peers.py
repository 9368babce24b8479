# SPDX-License-Identifier: Apache-2.0

"""The racers, their builds and their requirements."""

import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))

# The racer, and for those that are compiled, a file from its Debian package.
SWIFT = ["RunLoopKit", "CoreFoundation", "Foundation", "libdispatch", "concurrency", "ports", "nodes"]
MADE = {
    "libdispatch-c": (None, None),
    "libuv": ("/usr/include/uv.h", "libuv1-dev"),
    "libevent": ("/usr/include/event2/event.h", "libevent-dev"),
    "libev": ("/usr/include/ev.h", "libev-dev"),
    "glib": ("/usr/include/glib-2.0/glib.h", "libglib2.0-dev"),
    "asio": ("/usr/include/boost/asio.hpp", "libboost-dev"),
    "floor": (None, None),
    "floor-wheel": (None, None),
    "tls": ("/usr/include/openssl/ssl.h", "libssl-dev"),
}
# Programs that run others, and the headers that part of them needs.
SCRIPTS = {"frames": ["frame-bytes"], "beats": ["display-beats", "gates"]}
HEADERS = {"/usr/include/curses.h": "libncurses-dev"}
TOOLS = {"make": "make", "cc": "gcc", "c++": "g++", "pkg-config": "pkg-config"}

# The roles of the names in the results.
OURS = "RunLoopKit"
C_PEERS = ["libdispatch (C)", "libuv", "libevent", "libev", "GLib", "Boost.Asio"]
C_PEERS_WITH_POSTS = ["libdispatch (C)", "GLib", "Boost.Asio"]
OTHERS = ["RunLoopKit (sockets)", "CoreFoundation", "CoreFoundation (source)", "Foundation", "libdispatch (Swift)", "Swift concurrency", "a thread with a queue"]
DISPLAYS = ["the loop's own thread", "ncurses", "blocking writes"]
OWN_WAYS = ["RunLoopKit (sleep)", "RunLoopKit (usual slack)"]
ORDER = [OURS] + OWN_WAYS + OTHERS + C_PEERS + DISPLAYS


def is_floor(peer):
    return peer.startswith("floor")


def position(peer):
    return ORDER.index(peer) if peer in ORDER else len(ORDER)


class Racer:
    """A program and its workloads."""

    def __init__(self, name, path, environment):
        self.name, self.path, self.environment = name, path, environment
        told = subprocess.run([path, "--list"], env=environment, capture_output=True, text=True, check=True)
        self.workloads = told.stdout.split()


def missing_packages():
    packages = [package for tool, package in TOOLS.items() if not shutil.which(tool)]
    needed = list(MADE.values()) + list(HEADERS.items())
    return packages + [package for file, package in needed if file and not os.path.exists(file)]


def install():
    packages = missing_packages()
    if not packages:
        return
    if os.geteuid() != 0:
        print(f"not root, so that these are not installed: {' '.join(packages)}", file=sys.stderr)
        return
    print(f"installing {' '.join(packages)}", file=sys.stderr)
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    subprocess.run(["apt-get", "update", "-qq"], env=environment, check=False)
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends"] + packages
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)


def build(scratch, chosen, install=True):
    """Builds the racers, and returns those that are available."""
    if install:
        globals()["install"]()
    names = chosen.split(",") if chosen else SWIFT + list(MADE) + list(SCRIPTS)
    print("building", file=sys.stderr)
    command = ["swift", "build", "-c", "release", "--package-path", HERE, "--scratch-path", scratch]
    products = [product for name in names for product in SCRIPTS.get(name, [f"racer-{name}"] if name in SWIFT else [])]
    for part in [["--product", product] for product in products] if chosen else [[]]:
        built = subprocess.run(command + part, capture_output=True, text=True)
        if built.returncode != 0:
            sys.exit(built.stdout + built.stderr)
    release = os.path.join(os.path.realpath(scratch), "release")
    made = os.path.join(os.path.realpath(scratch), "peers")
    environment = dict(
        os.environ, RACE_ECHO_CLIENT=os.path.join(release, "race-client"), RACE_TLS_SERVER=os.path.join(release, "tls-server"),
        RACE_SCRATCH=os.path.realpath(scratch))
    racers = []
    for name in names:
        directory = release if name in SWIFT else made
        path = os.path.join(HERE, name) if name in SCRIPTS else os.path.join(directory, f"racer-{name}")
        if name in MADE:
            command = ["make", "-s", "-C", os.path.join(HERE, "Peers"), f"OUT={made}", path]
            if subprocess.run(command, stdout=sys.stderr).returncode != 0:
                print(f"{name} cannot be built here and does not race", file=sys.stderr)
                continue
        racers.append(Racer(name, path, environment))
    return racers
