// swift-tools-version: 6.2
import Foundation
import PackageDescription

let swiftSettings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

// One of the examples uses SQLite where its header is.
let hasSQLite = FileManager.default.fileExists(atPath: "/usr/include/sqlite3.h")

let package = Package(
  name: "swift-run-loop",
  products: [
    .library(name: "RunLoopKit", targets: ["RunLoopKit"]),
    .library(name: "RunLoopCore", targets: ["RunLoopCore"]),
    .library(name: "RunLoopThreads", targets: ["RunLoopThreads"]),
    .executable(name: "runloop", targets: ["runloop"]),
    .executable(name: "conformance", targets: ["conformance"]),
    .executable(name: "network-thread", targets: ["network-thread"]),
    .executable(name: "pinned-database", targets: ["pinned-database"]),
  ],
  targets: [
    .target(name: "CRunLoopSystem", cSettings: [.define("_GNU_SOURCE")]),
    .target(name: "RunLoopCore", dependencies: ["CRunLoopSystem"], swiftSettings: swiftSettings),
    .target(
      name: "RunLoopThreads", dependencies: ["RunLoopCore", "CRunLoopSystem"], swiftSettings: swiftSettings),
    .target(name: "RunLoopKit", dependencies: ["RunLoopCore", "RunLoopThreads"], swiftSettings: swiftSettings),
    .target(name: "RunLoopLab", dependencies: ["RunLoopCore", "RunLoopThreads"], swiftSettings: swiftSettings),
    .executableTarget(name: "runloop", dependencies: ["RunLoopLab"], swiftSettings: swiftSettings),
    .target(name: "CVirtualCalls", cSettings: [.define("_GNU_SOURCE")]),
    .target(
      name: "RunLoopConformance", dependencies: ["CVirtualCalls", "RunLoopCore"], swiftSettings: swiftSettings),
    .executableTarget(name: "conformance", dependencies: ["RunLoopConformance"], swiftSettings: swiftSettings),
    .executableTarget(
      name: "network-thread", dependencies: ["RunLoopCore", "RunLoopThreads"], path: "Examples/network-thread",
      swiftSettings: swiftSettings),
    .target(
      name: "CStore", path: "Examples/CStore", cSettings: hasSQLite ? [.define("HAS_SQLITE")] : [],
      linkerSettings: hasSQLite ? [.linkedLibrary("sqlite3")] : []),
    .executableTarget(
      name: "pinned-database", dependencies: ["CStore", "RunLoopCore", "RunLoopThreads"],
      path: "Examples/pinned-database", swiftSettings: swiftSettings),
    .testTarget(name: "RunLoopCoreTests", dependencies: ["RunLoopCore"], swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopThreadsTests", dependencies: ["RunLoopThreads", "RunLoopCore"], swiftSettings: swiftSettings),
    .testTarget(name: "RunLoopKitTests", dependencies: ["RunLoopKit"], swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopLabTests", dependencies: ["RunLoopLab", "RunLoopCore", "RunLoopThreads"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopConformanceTests", dependencies: ["CVirtualCalls", "RunLoopConformance", "RunLoopCore"],
      swiftSettings: swiftSettings),
  ],
  swiftLanguageModes: [.v6]
)
