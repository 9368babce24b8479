// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import Foundation
import PackageDescription

// Uses the sources of the GLib example. If GLib is not installed, its rows are left out.
let hasGLib = FileManager.default.fileExists(atPath: "/usr/include/glib-2.0/glib.h")
let glib: [Target] =
  hasGLib ? [.systemLibrary(name: "CGLibForBenchmarks", path: "Sources/CGLibForBenchmarks", pkgConfig: "glib-2.0")] : []

// The types of Core Foundation and Foundation are not Sendable, so code that uses them cannot use Swift 6 mode.
let beforeSwift6: [SwiftSetting] = [
  .swiftLanguageMode(.v5), .enableUpcomingFeature("InferSendableFromCaptures"),
]

let package = Package(
  name: "swift-run-loop-benchmarks",
  dependencies: [.package(name: "swift-run-loop", path: "..")],
  targets: glib + [
    .target(name: "CRace", cSettings: [.define("_GNU_SOURCE")]),
    .target(name: "Race", dependencies: ["CRace"]),
    .executableTarget(name: "race-client"),
    .executableTarget(
      name: "racer-RunLoopKit",
      dependencies: [
        "CRace", "Race", .product(name: "RunLoopCore", package: "swift-run-loop"),
        .product(name: "RunLoopThreads", package: "swift-run-loop"),
      ]),
    .executableTarget(
      name: "racer-ports",
      dependencies: [
        "CRace", "Race", .product(name: "RunLoopCore", package: "swift-run-loop"),
        .product(name: "RunLoopMessages", package: "swift-run-loop"),
        .product(name: "RunLoopSockets", package: "swift-run-loop"),
      ]),
    .executableTarget(
      name: "racer-nodes",
      dependencies: [
        "CRace", "Race", .product(name: "RunLoopCore", package: "swift-run-loop"),
        .product(name: "RunLoopDisplay", package: "swift-run-loop"),
        .product(name: "RunLoopTransactions", package: "swift-run-loop"),
      ]),
    .executableTarget(
      name: "display-beats",
      dependencies: [
        .product(name: "RunLoopCore", package: "swift-run-loop"),
        .product(name: "RunLoopDisplay", package: "swift-run-loop"),
      ]),
    .executableTarget(
      name: "tls-server",
      dependencies: [
        .product(name: "RunLoopCore", package: "swift-run-loop"),
        .product(name: "RunLoopSockets", package: "swift-run-loop"),
      ]),
    .executableTarget(
      name: "network-ours",
      dependencies: [
        .product(name: "RunLoopCore", package: "swift-run-loop"),
        .product(name: "RunLoopHTTP", package: "swift-run-loop"),
      ]),
    .executableTarget(
      name: "network-lost",
      dependencies: [
        .product(name: "RunLoopCore", package: "swift-run-loop"),
        .product(name: "RunLoopHTTP", package: "swift-run-loop"),
      ]),
    .executableTarget(name: "network-Foundation", swiftSettings: beforeSwift6),
    .executableTarget(
      name: "racer-CoreFoundation", dependencies: ["CRace", "Race"], swiftSettings: beforeSwift6),
    .executableTarget(
      name: "racer-Foundation", dependencies: ["CRace", "Race"], swiftSettings: beforeSwift6),
    .executableTarget(name: "racer-libdispatch", dependencies: ["CRace", "Race"]),
    .executableTarget(name: "racer-concurrency", dependencies: ["CRace", "Race"]),
    .target(name: "CCounts", cSettings: [.define("_GNU_SOURCE")]),
    .target(name: "Limits"),
    .executableTarget(
      name: "gates",
      dependencies: [
        "CCounts", "Limits", .product(name: "RunLoopCore", package: "swift-run-loop"),
        .product(name: "RunLoopThreads", package: "swift-run-loop"),
        .product(name: "RunLoopTransactions", package: "swift-run-loop"),
        .product(name: "RunLoopDisplay", package: "swift-run-loop"),
        .product(name: "RunLoopDisplayTesting", package: "swift-run-loop"),
      ]),
    .executableTarget(
      name: "frame-bytes",
      dependencies: [
        .product(name: "RunLoopCore", package: "swift-run-loop"),
        .product(name: "RunLoopDisplay", package: "swift-run-loop"),
        .product(name: "RunLoopDisplayTesting", package: "swift-run-loop"),
      ]),
    // The same source, with and without the umbrella module.
    .executableTarget(
      name: "main-gates", dependencies: ["CCounts", "Limits", .product(name: "RunLoopKit", package: "swift-run-loop")],
      swiftSettings: [.define("UMBRELLA")]),
    .executableTarget(
      name: "main-gates-core",
      dependencies: ["CCounts", "Limits", .product(name: "RunLoopCore", package: "swift-run-loop")]),
    .executableTarget(
      name: "instrument-gates", dependencies: ["CCounts", .product(name: "RunLoopCore", package: "swift-run-loop")]),
    .executableTarget(
      name: "costs",
      dependencies: [
        "Race", .product(name: "RunLoopCore", package: "swift-run-loop"),
        .product(name: "RunLoopThreads", package: "swift-run-loop"),
      ]),
    .executableTarget(
      name: "main-hops",
      dependencies: [
        .product(name: "RunLoopCore", package: "swift-run-loop"),
        .product(name: "RunLoopGLib", package: "swift-run-loop"),
      ]),
    .target(
      name: "CHostLoopForBenchmarks", dependencies: hasGLib ? ["CGLibForBenchmarks"] : [],
      path: "Sources/CHostLoopForBenchmarks", cSettings: hasGLib ? [.define("HAS_GLIB")] : []),
    .executableTarget(
      name: "hosting",
      dependencies: ["CHostLoopForBenchmarks", .product(name: "RunLoopKit", package: "swift-run-loop")]),
  ],
  swiftLanguageModes: [.v6]
)
