// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import Foundation
import PackageDescription

let swiftSettings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

// One of the examples uses SQLite where its header is.
let hasSQLite = FileManager.default.fileExists(atPath: "/usr/include/sqlite3.h")
// Another is a guest of GLib's main loop where that is.
let hasGLib = FileManager.default.fileExists(atPath: "/usr/include/glib-2.0/glib.h")
let glib: [Target] =
  hasGLib
  ? [
    .systemLibrary(name: "CGLib", path: "Examples/CGLib", pkgConfig: "glib-2.0", providers: [.apt(["libglib2.0-dev"])])
  ]
  : []

let package = Package(
  name: "swift-run-loop",
  products: [
    .library(name: "RunLoopKit", targets: ["RunLoopKit"]),
    .library(name: "RunLoopCore", targets: ["RunLoopCore"]),
    .library(name: "RunLoopThreads", targets: ["RunLoopThreads"]),
    .library(name: "RunLoopPorts", targets: ["RunLoopPorts"]),
    .library(name: "RunLoopTesting", targets: ["RunLoopTesting"]),
    .executable(name: "runloop", targets: ["runloop"]),
    .executable(name: "conformance", targets: ["conformance"]),
    .executable(name: "network-thread", targets: ["network-thread"]),
    .executable(name: "pinned-database", targets: ["pinned-database"]),
    .executable(name: "echo-server", targets: ["echo-server"]),
    .executable(name: "echo-client", targets: ["echo-client"]),
    .executable(name: "defects", targets: ["defects"]),
    .executable(name: "glib-host", targets: ["glib-host"]),
    .executable(name: "message-stress", targets: ["message-stress"]),
    .executable(name: "file-watcher", targets: ["file-watcher"]),
    .executable(name: "supervisor", targets: ["supervisor"]),
  ],
  targets: glib + [
    .target(name: "CRunLoopSystem", cSettings: [.define("_GNU_SOURCE")]),
    .target(name: "RunLoopCore", dependencies: ["CRunLoopSystem"], swiftSettings: swiftSettings),
    .target(
      name: "RunLoopThreads", dependencies: ["RunLoopCore", "CRunLoopSystem"], swiftSettings: swiftSettings),
    .target(name: "RunLoopPorts", dependencies: ["RunLoopCore", "CRunLoopSystem"], swiftSettings: swiftSettings),
    .target(name: "RunLoopTesting", dependencies: ["RunLoopCore", "RunLoopThreads"], swiftSettings: swiftSettings),
    .target(name: "RunLoopFoundation", dependencies: ["RunLoopCore", "RunLoopThreads"], swiftSettings: swiftSettings),
    .target(name: "CRunLoopKit", dependencies: ["CRunLoopSystem"], cSettings: [.define("_GNU_SOURCE")]),
    .target(
      name: "RunLoopKit",
      dependencies: [
        "CRunLoopKit", "CRunLoopSystem", "RunLoopCore", "RunLoopFoundation", "RunLoopPorts", "RunLoopThreads",
      ],
      swiftSettings: swiftSettings),
    .target(name: "RunLoopLab", dependencies: ["RunLoopCore", "RunLoopThreads"], swiftSettings: swiftSettings),
    .executableTarget(name: "runloop", dependencies: ["RunLoopLab"], swiftSettings: swiftSettings),
    .target(name: "CVirtualCalls", cSettings: [.define("_GNU_SOURCE")]),
    .target(
      name: "RunLoopConformance", dependencies: ["CVirtualCalls", "RunLoopCore"], swiftSettings: swiftSettings),
    .executableTarget(name: "conformance", dependencies: ["RunLoopConformance"], swiftSettings: swiftSettings),
    .executableTarget(
      name: "network-thread", dependencies: ["RunLoopCore", "RunLoopThreads"], path: "Examples/network-thread",
      swiftSettings: swiftSettings),
    .executableTarget(
      name: "echo-server", dependencies: ["RunLoopCore", "RunLoopPorts", "RunLoopThreads"],
      path: "Examples/echo-server", exclude: ["check"], swiftSettings: swiftSettings),
    .executableTarget(
      name: "echo-client", dependencies: ["RunLoopCore", "RunLoopPorts"], path: "Examples/echo-client",
      swiftSettings: swiftSettings),
    .target(
      name: "CStore", path: "Examples/CStore", cSettings: hasSQLite ? [.define("HAS_SQLITE")] : [],
      linkerSettings: hasSQLite ? [.linkedLibrary("sqlite3")] : []),
    .executableTarget(
      name: "pinned-database", dependencies: ["CStore", "RunLoopCore", "RunLoopThreads"],
      path: "Examples/pinned-database", swiftSettings: swiftSettings),
    // One text, compiled with Foundation alone and with RunLoopKit beside it.
    .target(name: "DefectsAlone", path: "Examples/defects/alone", swiftSettings: swiftSettings),
    .target(
      name: "DefectsBeside", dependencies: ["RunLoopKit"], path: "Examples/defects/beside",
      swiftSettings: swiftSettings + [.define("BESIDE")]),
    .executableTarget(
      name: "defects", dependencies: ["DefectsAlone", "DefectsBeside"], path: "Examples/defects/table",
      swiftSettings: swiftSettings),
    .target(
      name: "CHostLoop", dependencies: hasGLib ? ["CGLib"] : [], path: "Examples/CHostLoop",
      cSettings: hasGLib ? [.define("HAS_GLIB")] : []),
    .executableTarget(
      name: "glib-host", dependencies: ["CHostLoop", "RunLoopCore"], path: "Examples/glib-host",
      swiftSettings: swiftSettings),
    .executableTarget(
      name: "message-stress", dependencies: ["RunLoopCore", "RunLoopPorts"], path: "Examples/message-stress",
      swiftSettings: swiftSettings),
    .executableTarget(
      name: "file-watcher", dependencies: ["RunLoopCore", "RunLoopPorts"], path: "Examples/file-watcher",
      swiftSettings: swiftSettings),
    .executableTarget(
      name: "supervisor", dependencies: ["RunLoopCore", "RunLoopPorts"], path: "Examples/supervisor",
      swiftSettings: swiftSettings),
    // What the test targets have in common.
    .target(name: "TestSupport", dependencies: ["RunLoopCore"], path: "Tests/Support", swiftSettings: swiftSettings),
    // Uses Foundation wherever a thread that ends calls: it runs in processes of its own, which may crash.
    .executableTarget(
      name: "thread-ends", dependencies: ["RunLoopKit", "RunLoopCore", "RunLoopThreads"], path: "Tests/ThreadEnds",
      swiftSettings: swiftSettings),
    // A program whose first thread leaves.
    .executableTarget(
      name: "async-main", dependencies: ["RunLoopCore", "RunLoopThreads"], path: "Tests/AsyncMain",
      swiftSettings: swiftSettings),
    .testTarget(name: "RunLoopCoreTests", dependencies: ["RunLoopCore", "TestSupport"], swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopThreadsTests", dependencies: ["RunLoopThreads", "RunLoopCore", "TestSupport", "async-main"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopTestingTests", dependencies: ["RunLoopTesting", "RunLoopCore", "RunLoopPorts", "RunLoopThreads"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopPortsTests",
      dependencies: ["RunLoopPorts", "RunLoopCore", "CRunLoopSystem", "TestSupport", "message-stress"],
      exclude: ["MessagePortCorpus"], swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopKitTests",
      dependencies: [
        "RunLoopCore", "RunLoopFoundation", "RunLoopKit", "RunLoopThreads", "TestSupport", "thread-ends",
      ],
      swiftSettings: swiftSettings),
    // Tests as anybody writes them, with one import.
    .testTarget(name: "PlainTests", dependencies: ["RunLoopKit", "RunLoopTesting"], swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopLabTests", dependencies: ["RunLoopLab", "RunLoopCore", "RunLoopThreads"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopConformanceTests",
      dependencies: ["CVirtualCalls", "RunLoopConformance", "RunLoopCore", "TestSupport"],
      swiftSettings: swiftSettings),
  ],
  swiftLanguageModes: [.v6]
)
