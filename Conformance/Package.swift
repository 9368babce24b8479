// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
import PackageDescription

let swiftSettings: [SwiftSetting] = [
  .enableUpcomingFeature("ExistentialAny"),
  .enableUpcomingFeature("InternalImportsByDefault"),
  .enableUpcomingFeature("MemberImportVisibility"),
]

let package = Package(
  name: "swift-run-loop-conformance",
  targets: [
    // Links to the core's own sources. The comparison puts the core on virtual time. What the core declares for that
    // has `package` access, which ends at a package's border: a client is not to see it.
    .target(name: "RunLoopLibC", swiftSettings: swiftSettings),
    .target(name: "CRunLoopSystem", cSettings: [.define("_GNU_SOURCE")]),
    .target(name: "CRunLoopRecorder", dependencies: ["CRunLoopSystem"], cSettings: [.define("_GNU_SOURCE")]),
    .target(
      name: "RunLoopCore", dependencies: ["RunLoopLibC", "CRunLoopRecorder", "CRunLoopSystem"],
      swiftSettings: swiftSettings),
    // Takes libc's clocks and waits away from every program that links it: no other package may come near it.
    .target(name: "CVirtualCalls", cSettings: [.define("_GNU_SOURCE")]),
    .target(name: "RunLoopConformance", dependencies: ["CVirtualCalls", "RunLoopCore"], swiftSettings: swiftSettings),
    .executableTarget(name: "conformance", dependencies: ["RunLoopConformance"], swiftSettings: swiftSettings),
    // A link to the names that are made of this package's list of rules.
    .target(name: "TestRules", swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopConformanceTests",
      dependencies: ["CVirtualCalls", "RunLoopConformance", "RunLoopCore", "TestRules"],
      swiftSettings: swiftSettings),
  ],
  swiftLanguageModes: [.v6]
)
