// swift-tools-version: 6.2
import Foundation
import PackageDescription

// The sources are those of the example with GLib. Where it is not installed, its rows are left out.
let hasGLib = FileManager.default.fileExists(atPath: "/usr/include/glib-2.0/glib.h")
let glib: [Target] =
  hasGLib ? [.systemLibrary(name: "CGLibForBenchmarks", path: "Sources/CGLibForBenchmarks", pkgConfig: "glib-2.0")] : []

let package = Package(
  name: "swift-run-loop-benchmarks",
  dependencies: [.package(name: "swift-run-loop", path: "..")],
  targets: glib + [
    .executableTarget(name: "costs", dependencies: [.product(name: "RunLoopCore", package: "swift-run-loop")]),
    .target(
      name: "CHostLoopForBenchmarks", dependencies: hasGLib ? ["CGLibForBenchmarks"] : [],
      path: "Sources/CHostLoopForBenchmarks", cSettings: hasGLib ? [.define("HAS_GLIB")] : []),
    .executableTarget(
      name: "hosting",
      dependencies: ["CHostLoopForBenchmarks", .product(name: "RunLoopKit", package: "swift-run-loop")]),
  ],
  swiftLanguageModes: [.v6]
)
