// swift-tools-version: 6.2
import PackageDescription

let package = Package(
  name: "swift-run-loop-benchmarks",
  dependencies: [.package(name: "swift-run-loop", path: "..")],
  targets: [
    .executableTarget(name: "costs", dependencies: [.product(name: "RunLoopCore", package: "swift-run-loop")]),
    .executableTarget(
      name: "message-race",
      dependencies: [
        .product(name: "RunLoopCore", package: "swift-run-loop"),
        .product(name: "RunLoopPorts", package: "swift-run-loop"),
      ]),
  ],
  swiftLanguageModes: [.v6]
)
