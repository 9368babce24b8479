// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

let swiftSettings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

let core = Target.Dependency.product(name: "RunLoopCore", package: "swift-run-loop")
let display = Target.Dependency.product(name: "RunLoopDisplay", package: "swift-run-loop")
let instruments = Target.Dependency.product(name: "RunLoopInstruments", package: "swift-run-loop")
let http = Target.Dependency.product(name: "RunLoopHTTP", package: "swift-run-loop")
let urlConnection = Target.Dependency.product(name: "RunLoopURLConnection", package: "swift-run-loop")
let sockets = Target.Dependency.product(name: "RunLoopSockets", package: "swift-run-loop")
let testing = Target.Dependency.product(name: "RunLoopTesting", package: "swift-run-loop")
let threads = Target.Dependency.product(name: "RunLoopThreads", package: "swift-run-loop")
let transactions = Target.Dependency.product(name: "RunLoopTransactions", package: "swift-run-loop")
// The `runloop` program, built with the laboratory, which runs it.
let tool = Target.Dependency.product(name: "runloop", package: "swift-run-loop")

let package = Package(
  name: "swift-run-loop-laboratory",
  // The explicit name makes the clone's directory name irrelevant.
  dependencies: [.package(name: "swift-run-loop", path: "..")],
  targets: [
    // A link to the example of this name, without its main function: the laboratory shows the contents of its main
    // loop.
    .target(
      name: "UICatalog", dependencies: [core, display, transactions], exclude: ["Program.swift"],
      swiftSettings: swiftSettings),
    .target(name: "CLaboratory", cSettings: [.define("_GNU_SOURCE")]),
    .target(
      name: "LaboratoryKit",
      dependencies: [
        "CLaboratory", "UICatalog", core, display, instruments, http, urlConnection, sockets, testing,
        threads, transactions,
      ],
      swiftSettings: swiftSettings),
    .executableTarget(name: "laboratory", dependencies: ["LaboratoryKit", tool], swiftSettings: swiftSettings),
    .testTarget(
      name: "LaboratoryTests", dependencies: ["CLaboratory", "LaboratoryKit", "laboratory", core, threads],
      swiftSettings: swiftSettings),
  ],
  swiftLanguageModes: [.v6]
)
