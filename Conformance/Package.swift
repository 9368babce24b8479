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
    // Links to the core's own sources. The comparison needs the core's `package` API for virtual time, which is not
    // accessible from another package and must not be visible to clients.
    .target(name: "RunLoopLibC", swiftSettings: swiftSettings),
    .target(name: "CRunLoopSystem", cSettings: [.define("_GNU_SOURCE")]),
    .target(name: "CRunLoopRecorder", dependencies: ["CRunLoopSystem"], cSettings: [.define("_GNU_SOURCE")]),
    .target(
      name: "RunLoopCore", dependencies: ["RunLoopLibC", "CRunLoopRecorder", "CRunLoopSystem"],
      swiftSettings: swiftSettings),
    // Intercepts libc's clocks and waits in every program that links it, so no other package may depend on it.
    .target(name: "CVirtualCalls", cSettings: [.define("_GNU_SOURCE")]),
    .target(name: "RunLoopConformance", dependencies: ["CVirtualCalls", "RunLoopCore"], swiftSettings: swiftSettings),
    .executableTarget(name: "conformance", dependencies: ["RunLoopConformance"], swiftSettings: swiftSettings),
    // A link to the names generated from this package's list of rules.
    .target(name: "TestRules", swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopConformanceTests",
      dependencies: ["CVirtualCalls", "RunLoopConformance", "RunLoopCore", "TestRules"],
      swiftSettings: swiftSettings),
  ],
  swiftLanguageModes: [.v6]
)
