// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import Foundation
import PackageDescription

let swiftSettings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

// pinned-database uses SQLite if its header is installed, and otherwise a table of integers. turn-commit requires it.
let hasSQLite = FileManager.default.fileExists(atPath: "/usr/include/sqlite3.h")
// glib-host is a guest of GLib's main loop, if GLib is installed.
let hasGLib = FileManager.default.fileExists(atPath: "/usr/include/glib-2.0/glib.h")
// gtk-app is a GTK program.
let hasGtk = FileManager.default.fileExists(atPath: "/usr/include/gtk-4.0/gtk/gtk.h")
let glib: [Target] =
  hasGLib ? [.systemLibrary(name: "CGLib", pkgConfig: "glib-2.0", providers: [.apt(["libglib2.0-dev"])])] : []

let core = Target.Dependency.product(name: "RunLoopCore", package: "swift-run-loop")
let threads = Target.Dependency.product(name: "RunLoopThreads", package: "swift-run-loop")
let transactions = Target.Dependency.product(name: "RunLoopTransactions", package: "swift-run-loop")
let display = Target.Dependency.product(name: "RunLoopDisplay", package: "swift-run-loop")
let sockets = Target.Dependency.product(name: "RunLoopSockets", package: "swift-run-loop")
let systemEvents = Target.Dependency.product(name: "RunLoopSystemEvents", package: "swift-run-loop")

let http = Target.Dependency.product(name: "RunLoopHTTP", package: "swift-run-loop")

let gtk: [Target] =
  hasGtk
  ? [
    .systemLibrary(name: "CGtk", pkgConfig: "gtk4", providers: [.apt(["libgtk-4-dev"])]),
    .executableTarget(
      name: "gtk-app",
      dependencies: ["CGtk", core, http, threads, .product(name: "RunLoopGLib", package: "swift-run-loop")],
      swiftSettings: swiftSettings),
  ] : []

let instruments = Target.Dependency.product(name: "RunLoopInstruments", package: "swift-run-loop")
let testing = Target.Dependency.product(name: "RunLoopTesting", package: "swift-run-loop")
let urlConnection = Target.Dependency.product(name: "RunLoopURLConnection", package: "swift-run-loop")

let package = Package(
  name: "swift-run-loop-examples",
  products: [.library(name: "GuestLibrary", type: .dynamic, targets: ["GuestLibrary"])],
  // The explicit name makes the clone's directory name irrelevant.
  dependencies: [.package(name: "swift-run-loop", path: "..")],
  targets: glib + gtk + [
    // For programs in other languages: Qt/main.cpp and Python/guest.py, which check-hosts runs.
    .target(name: "GuestLibrary", dependencies: [core], swiftSettings: swiftSettings),
    // The first program that a reader runs: what it depends on is built before its first line.
    .executableTarget(
      name: "tour", dependencies: [core, http, instruments, sockets, systemEvents, testing, threads],
      swiftSettings: swiftSettings),
    .executableTarget(name: "game-frames", dependencies: [core], swiftSettings: swiftSettings),
    .executableTarget(name: "network-thread", dependencies: [core, threads], swiftSettings: swiftSettings),
    .executableTarget(
      name: "echo-server", dependencies: [core, sockets, systemEvents, threads], swiftSettings: swiftSettings),
    .executableTarget(name: "echo-client", dependencies: [core, sockets], swiftSettings: swiftSettings),
    .executableTarget(
      name: "dns-responder", dependencies: [core, sockets, systemEvents], swiftSettings: swiftSettings),
    .executableTarget(name: "dashboard", dependencies: [core, display, threads], swiftSettings: swiftSettings),
    .executableTarget(name: "file-watcher", dependencies: [core, systemEvents], swiftSettings: swiftSettings),
    .executableTarget(
      name: "chat-server", dependencies: [core, sockets, systemEvents, threads], swiftSettings: swiftSettings),
    .executableTarget(
      name: "job-runner", dependencies: [core, sockets, systemEvents, threads], swiftSettings: swiftSettings),
    .executableTarget(
      name: "service", dependencies: [core, sockets, systemEvents, threads],
      exclude: ["Dockerfile", "README.md", "service.service", "service.socket"], swiftSettings: swiftSettings),
    .executableTarget(name: "supervisor", dependencies: [core, sockets, systemEvents], swiftSettings: swiftSettings),
    .target(
      name: "CStore", cSettings: hasSQLite ? [.define("HAS_SQLITE")] : [],
      linkerSettings: hasSQLite ? [.linkedLibrary("sqlite3")] : []),
    .executableTarget(
      name: "pinned-database", dependencies: ["CStore", core, threads], swiftSettings: swiftSettings),
    .executableTarget(
      name: "turn-commit", dependencies: ["CStore", core, sockets, systemEvents, transactions],
      swiftSettings: swiftSettings),
    .executableTarget(
      name: "ui-catalog", dependencies: [core, display, transactions], swiftSettings: swiftSettings),
    .executableTarget(
      name: "log-viewer", dependencies: [core, display, systemEvents, transactions], swiftSettings: swiftSettings),
    .executableTarget(name: "crawler", dependencies: [core, http, sockets, threads], swiftSettings: swiftSettings),
    .executableTarget(
      name: "run-on-change", dependencies: [core, sockets, systemEvents], swiftSettings: swiftSettings),
    .executableTarget(name: "http-get", dependencies: [core, http], swiftSettings: swiftSettings),
    // Optimized even in a debug build, as it digests bodies of gigabytes.
    .target(name: "CDigest", cSettings: [.unsafeFlags(["-O2"])]),
    .executableTarget(
      name: "http-scenario", dependencies: ["CDigest", core, http, threads], swiftSettings: swiftSettings),
    // With the compiler's default settings, like ported code.
    .executableTarget(name: "ported-networking", dependencies: [sockets, urlConnection]),
    // One source file, compiled with Foundation alone and together with RunLoopKit.
    .target(name: "DefectsAlone", swiftSettings: swiftSettings),
    .target(
      name: "DefectsBeside", dependencies: [.product(name: "RunLoopKit", package: "swift-run-loop")],
      swiftSettings: swiftSettings + [.define("BESIDE")]),
    .executableTarget(
      name: "defects", dependencies: ["DefectsAlone", "DefectsBeside"], swiftSettings: swiftSettings),
    .target(
      name: "CHostLoop", dependencies: hasGLib ? ["CGLib"] : [], cSettings: hasGLib ? [.define("HAS_GLIB")] : []),
    .executableTarget(name: "glib-host", dependencies: ["CHostLoop", core], swiftSettings: swiftSettings),
  ],
  swiftLanguageModes: [.v6]
)
