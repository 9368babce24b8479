// swift-tools-version: 6.2
import PackageDescription

let swiftSettings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
  name: "swift-run-loop",
  products: [
    .library(name: "RunLoopKit", targets: ["RunLoopKit"]),
    .library(name: "RunLoopCore", targets: ["RunLoopCore"]),
    .library(name: "RunLoopThreads", targets: ["RunLoopThreads"]),
    .executable(name: "runloop", targets: ["runloop"]),
  ],
  targets: [
    .target(name: "CRunLoopSystem", cSettings: [.define("_GNU_SOURCE")]),
    .target(name: "RunLoopCore", dependencies: ["CRunLoopSystem"], swiftSettings: swiftSettings),
    .target(
      name: "RunLoopThreads", dependencies: ["RunLoopCore", "CRunLoopSystem"], swiftSettings: swiftSettings),
    .target(name: "RunLoopKit", dependencies: ["RunLoopCore", "RunLoopThreads"], swiftSettings: swiftSettings),
    .target(name: "RunLoopLab", dependencies: ["RunLoopCore", "RunLoopThreads"], swiftSettings: swiftSettings),
    .executableTarget(name: "runloop", dependencies: ["RunLoopLab"], swiftSettings: swiftSettings),
    .testTarget(name: "RunLoopCoreTests", dependencies: ["RunLoopCore"], swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopThreadsTests", dependencies: ["RunLoopThreads", "RunLoopCore"], swiftSettings: swiftSettings),
    .testTarget(name: "RunLoopKitTests", dependencies: ["RunLoopKit"], swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopLabTests", dependencies: ["RunLoopLab", "RunLoopCore", "RunLoopThreads"],
      swiftSettings: swiftSettings),
  ],
  swiftLanguageModes: [.v6]
)
