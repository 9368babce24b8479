// swift-tools-version: 6.2
// SPDX-License-Identifier: Apache-2.0
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
    .library(name: "RunLoopSystemEvents", targets: ["RunLoopSystemEvents"]),
    .library(name: "RunLoopSockets", targets: ["RunLoopSockets"]),
    .library(name: "RunLoopMessages", targets: ["RunLoopMessages"]),
    .library(name: "RunLoopTesting", targets: ["RunLoopTesting"]),
    .library(name: "RunLoopTransactions", targets: ["RunLoopTransactions"]),
    .library(name: "RunLoopDisplay", targets: ["RunLoopDisplay"]),
    .library(name: "RunLoopDisplayTesting", targets: ["RunLoopDisplayTesting"]),
    .library(name: "RunLoopHTTP", targets: ["RunLoopHTTP"]),
    .library(name: "RunLoopHTTPTesting", targets: ["RunLoopHTTPTesting"]),
    .library(name: "RunLoopURLConnection", targets: ["RunLoopURLConnection"]),
    .library(name: "RunLoopExecutors", targets: ["RunLoopExecutors"]),
    .library(name: "RunLoopGLib", targets: ["RunLoopGLib"]),
    .library(name: "RunLoopLibuv", targets: ["RunLoopLibuv"]),
    .library(name: "RunLoopInstruments", targets: ["RunLoopInstruments"]),
    // Its target has another name: a target's name has to be unique among all packages of a client, a product's not.
    .executable(name: "runloop", targets: ["RunLoopTool"]),
  ],
  targets: [
    // The system's C library, whatever a system calls its module.
    .target(name: "RunLoopLibC", swiftSettings: swiftSettings),
    .target(name: "CRunLoopSystem", cSettings: [.define("_GNU_SOURCE")]),
    // What loops leave in shared memory for the instruments.
    .target(name: "CRunLoopRecorder", dependencies: ["CRunLoopSystem"], cSettings: [.define("_GNU_SOURCE")]),
    .target(
      name: "RunLoopCore", dependencies: ["RunLoopLibC", "CRunLoopRecorder", "CRunLoopSystem"],
      swiftSettings: swiftSettings),
    .target(
      name: "RunLoopThreads", dependencies: ["RunLoopLibC", "RunLoopCore", "CRunLoopRecorder", "CRunLoopSystem"],
      swiftSettings: swiftSettings),
    // What the kernel reports: signals, ends of children, changes of files. Below whatever else waits for descriptors.
    .target(
      name: "RunLoopSystemEvents", dependencies: ["RunLoopLibC", "RunLoopCore", "CRunLoopSystem"],
      swiftSettings: swiftSettings),
    // OpenSSL is opened when the first secured connection is made: neither its headers nor the library are needed here.
    .target(name: "CRunLoopOpenSSL"),
    .target(
      name: "RunLoopSockets",
      dependencies: ["RunLoopLibC", "RunLoopCore", "RunLoopSystemEvents", "CRunLoopSystem", "CRunLoopOpenSSL"],
      swiftSettings: swiftSettings),
    .target(
      name: "RunLoopMessages", dependencies: ["RunLoopLibC", "RunLoopCore", "RunLoopSystemEvents", "CRunLoopSystem"],
      swiftSettings: swiftSettings),
    .target(name: "RunLoopTesting", dependencies: ["RunLoopCore", "RunLoopThreads"], swiftSettings: swiftSettings),
    .target(
      name: "RunLoopTransactions", dependencies: ["RunLoopLibC", "RunLoopCore", "RunLoopThreads"],
      swiftSettings: swiftSettings),
    .target(name: "CRunLoopTerminal", cSettings: [.define("_GNU_SOURCE")]),
    .target(
      name: "RunLoopDisplay",
      dependencies: [
        "RunLoopLibC", "CRunLoopTerminal", "RunLoopCore", "RunLoopThreads", "RunLoopSystemEvents",
        "RunLoopTransactions",
      ],
      swiftSettings: swiftSettings),
    .target(
      name: "RunLoopDisplayTesting", dependencies: ["CRunLoopSystem", "RunLoopCore", "RunLoopDisplay"],
      swiftSettings: swiftSettings),
    // Opens libcurl when it is first needed, with declarations of its own: neither is needed to build.
    .target(name: "CLibCurl", cSettings: [.define("_GNU_SOURCE")]),
    .target(
      name: "RunLoopHTTP",
      dependencies: ["RunLoopLibC", "CLibCurl", "RunLoopCore", "RunLoopThreads", "RunLoopSockets"],
      swiftSettings: swiftSettings),
    // Opens libnghttp2 when a test server speaks HTTP/2.
    .target(name: "CRunLoopHTTP2", cSettings: [.define("_GNU_SOURCE")]),
    .target(
      name: "RunLoopHTTPTesting",
      dependencies: ["RunLoopLibC", "CRunLoopHTTP2", "RunLoopCore", "RunLoopThreads", "RunLoopSockets"],
      swiftSettings: swiftSettings),
    .target(
      name: "RunLoopFoundation", dependencies: ["CRunLoopRecorder", "RunLoopCore", "RunLoopThreads"],
      swiftSettings: swiftSettings),
    .target(name: "CRunLoopKit", dependencies: ["CRunLoopSystem"], cSettings: [.define("_GNU_SOURCE")]),
    .target(
      name: "RunLoopKit",
      dependencies: [
        "RunLoopLibC", "CRunLoopKit", "CRunLoopRecorder", "CRunLoopSystem", "RunLoopCore", "RunLoopFoundation",
        "RunLoopInstruments", "RunLoopSockets", "RunLoopThreads",
      ],
      swiftSettings: swiftSettings),
    // Links FoundationNetworking, and so libcurl: nothing else may depend on it.
    .target(
      name: "RunLoopURLConnection",
      dependencies: [
        "RunLoopLibC", "RunLoopCore", "RunLoopFoundation", "RunLoopKit", "RunLoopHTTP", "RunLoopThreads",
      ],
      swiftSettings: swiftSettings),
    // The socket of the agent, which C opens when the first loop is made, if the environment says so.
    .target(
      name: "CRunLoopAgent", dependencies: ["CRunLoopRecorder", "CRunLoopSystem"], cSettings: [.define("_GNU_SOURCE")]),
    .target(
      name: "RunLoopInstruments",
      dependencies: ["RunLoopLibC", "RunLoopCore", "CRunLoopAgent", "CRunLoopRecorder", "CRunLoopSystem"],
      swiftSettings: swiftSettings),
    // A preview: the executors of the whole process, by interfaces that Swift 6.3 does not promise to keep.
    .target(
      name: "RunLoopExecutors", dependencies: ["CRunLoopSystem", "RunLoopCore", "RunLoopThreads"],
      swiftSettings: swiftSettings),
    // Opens GLib when the first loop is attached: neither its headers nor the library are needed here.
    .target(name: "CRunLoopGLib", cSettings: [.define("_GNU_SOURCE")]),
    .target(
      name: "RunLoopGLib", dependencies: ["RunLoopCore", "CRunLoopGLib", "CRunLoopRecorder"],
      swiftSettings: swiftSettings),
    // Uses the libuv of the program, or opens it.
    .target(
      name: "RunLoopLibuv", dependencies: ["RunLoopLibC", "RunLoopCore", "CRunLoopRecorder"],
      swiftSettings: swiftSettings),
    // What only the tool links, in two targets, as C and Swift cannot be in one: the C code reads what other processes
    // leave, and names their code.
    .target(
      name: "CRunLoopToolKit", dependencies: ["CRunLoopRecorder", "CRunLoopSystem"],
      cSettings: [.define("_GNU_SOURCE")]),
    .target(
      name: "RunLoopToolKit",
      dependencies: [
        "RunLoopLibC", "RunLoopCore", "RunLoopThreads", "RunLoopDisplay", "RunLoopInstruments", "CRunLoopAgent",
        "CRunLoopRecorder", "CRunLoopSystem", "CRunLoopToolKit",
      ],
      swiftSettings: swiftSettings),
    .executableTarget(
      name: "RunLoopTool", dependencies: ["RunLoopLibC", "RunLoopToolKit"], swiftSettings: swiftSettings),
    // What follows is in no product: who depends on this package neither builds it nor meets its names.
    //
    // What the test targets have in common.
    .target(name: "TestSupport", dependencies: ["RunLoopCore"], path: "Tests/Support", swiftSettings: swiftSettings),
    // The names of the rules, by which tests say what they show. Not in TestSupport: the programs beside the tests link
    // that one, and are not to load the testing library.
    .target(name: "TestRules", path: "Tests/Rules", swiftSettings: swiftSettings),
    // Uses Foundation wherever a thread that ends calls: it runs in processes of its own, which may crash.
    .executableTarget(
      name: "thread-ends", dependencies: ["RunLoopKit", "RunLoopCore", "RunLoopThreads"], path: "Tests/ThreadEnds",
      swiftSettings: swiftSettings),
    // Two processes that exchange messages while either is killed.
    .executableTarget(
      name: "message-stress", dependencies: ["RunLoopCore", "RunLoopMessages"], path: "Tests/MessageStress",
      swiftSettings: swiftSettings),
    // Uses the main loop and Core Foundation's in processes of its own, where nobody has made either.
    .executableTarget(
      name: "main-loops",
      dependencies: [
        "CRunLoopRecorder", "RunLoopKit", "RunLoopCore", "RunLoopGLib", "RunLoopThreads", "TestSupport",
      ],
      path: "Tests/MainLoops",
      swiftSettings: swiftSettings),
    // Uses everything on a system that refuses something, which C code sets up.
    .target(name: "CallFilter", path: "Tests/CallFilter", cSettings: [.define("_GNU_SOURCE")]),
    .executableTarget(
      name: "refused-calls",
      dependencies: [
        "CallFilter", "RunLoopCore", "RunLoopHTTP", "RunLoopInstruments", "RunLoopKit", "RunLoopMessages",
        "RunLoopSockets", "RunLoopSystemEvents", "RunLoopThreads", "RunLoopTransactions", "TestSupport",
      ],
      path: "Tests/RefusedCalls", swiftSettings: swiftSettings),
    // A program that takes the terminal it runs in, and ends in every way that there is.
    .executableTarget(
      name: "terminal-ends", dependencies: ["RunLoopDisplay", "RunLoopCore", "RunLoopTransactions"],
      path: "Tests/TerminalEnds",
      swiftSettings: swiftSettings),
    // A program whose first thread leaves.
    .executableTarget(
      name: "async-main", dependencies: ["RunLoopCore", "RunLoopThreads"], path: "Tests/AsyncMain",
      swiftSettings: swiftSettings),
    // A program with an async main on our executors, which no client builds. By the flag the compiler of 6.3 looks at
    // DefaultExecutorFactory.
    .executableTarget(
      name: "executor-main", dependencies: ["RunLoopCore", "RunLoopExecutors", "RunLoopThreads"],
      path: "Tests/ExecutorMain",
      swiftSettings: swiftSettings + [.unsafeFlags(["-Xfrontend", "-disable-availability-checking"])]),
    // Does what is to be seen in its records, and is killed.
    .executableTarget(
      name: "recorded-victim", dependencies: ["RunLoopCore", "RunLoopThreads", "TestSupport"],
      path: "Tests/RecordedVictim",
      swiftSettings: swiftSettings),
    // Hangs in every way there is.
    .executableTarget(
      name: "hang-victim",
      dependencies: [
        "RunLoopCore", "RunLoopThreads", "RunLoopInstruments", "CRunLoopRecorder", "CRunLoopSystem", "TestSupport",
      ],
      path: "Tests/HangVictim", swiftSettings: swiftSettings),
    // Has loops that something keeps, and is asked what.
    .executableTarget(
      name: "kept-victim",
      dependencies: [
        "RunLoopCore", "RunLoopInstruments", "RunLoopSockets", "RunLoopSystemEvents", "RunLoopThreads",
        "TestSupport",
      ],
      path: "Tests/KeptVictim", swiftSettings: swiftSettings),
    // Is called by each layer, and killed.
    .executableTarget(
      name: "named-victim",
      dependencies: [
        "RunLoopCore", "RunLoopDisplay", "RunLoopDisplayTesting", "RunLoopFoundation", "RunLoopGLib", "RunLoopHTTP",
        "RunLoopInstruments", "RunLoopKit", "RunLoopMessages", "RunLoopSockets", "RunLoopSystemEvents",
        "RunLoopThreads", "RunLoopTransactions", "RunLoopURLConnection", "TestSupport",
      ],
      path: "Tests/NamedVictim", swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopInstrumentsTests",
      dependencies: [
        "RunLoopInstruments", "RunLoopCore", "RunLoopDisplay", "RunLoopDisplayTesting", "RunLoopMessages",
        "RunLoopSockets", "RunLoopSystemEvents", "RunLoopThreads", "RunLoopToolKit", "CRunLoopAgent",
        "CRunLoopRecorder", "CRunLoopSystem", "CRunLoopToolKit", "TestSupport", "hang-victim", "kept-victim",
        "named-victim", "recorded-victim", "RunLoopTool",
      ],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopCoreTests", dependencies: ["CRunLoopRecorder", "RunLoopCore", "TestRules", "TestSupport"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopThreadsTests",
      dependencies: ["RunLoopThreads", "RunLoopCore", "TestRules", "TestSupport", "async-main"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopExecutorsTests", dependencies: ["RunLoopExecutors", "TestSupport", "executor-main"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopGLibTests",
      dependencies: ["CRunLoopRecorder", "RunLoopGLib", "RunLoopCore", "RunLoopThreads", "TestSupport"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopLibuvTests",
      dependencies: ["CRunLoopRecorder", "RunLoopLibuv", "RunLoopCore", "RunLoopThreads", "TestSupport"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopTestingTests", dependencies: ["RunLoopTesting", "RunLoopCore", "RunLoopSockets", "RunLoopThreads"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopSystemEventsTests",
      dependencies: ["RunLoopSystemEvents", "RunLoopCore", "CRunLoopSystem", "TestRules", "TestSupport"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopSocketsTests",
      dependencies: [
        "RunLoopSockets", "RunLoopSystemEvents", "RunLoopCore", "CRunLoopSystem", "CRunLoopOpenSSL", "TestRules",
        "TestSupport",
      ],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopMessagesTests",
      dependencies: [
        "RunLoopMessages", "RunLoopSystemEvents", "RunLoopCore", "CRunLoopSystem", "TestRules", "TestSupport",
        "message-stress",
      ],
      exclude: ["MessagePortCorpus"], swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopTransactionsTests",
      dependencies: ["RunLoopTransactions", "RunLoopCore", "RunLoopThreads", "TestSupport"],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopDisplayTests",
      dependencies: [
        "CRunLoopTerminal", "RunLoopDisplay", "RunLoopDisplayTesting", "RunLoopCore", "RunLoopTesting",
        "RunLoopThreads", "RunLoopTransactions", "TestSupport", "terminal-ends",
      ],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopHTTPTests",
      dependencies: [
        "CLibCurl", "RunLoopHTTP", "RunLoopHTTPTesting", "RunLoopCore", "RunLoopSockets", "RunLoopSystemEvents",
        "RunLoopTesting", "RunLoopThreads", "TestSupport",
      ],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopURLConnectionTests",
      dependencies: [
        "RunLoopURLConnection", "RunLoopCore", "RunLoopHTTP", "RunLoopHTTPTesting", "RunLoopSockets",
        "RunLoopSystemEvents", "RunLoopThreads", "TestSupport",
      ],
      swiftSettings: swiftSettings),
    .testTarget(
      name: "RunLoopKitTests",
      dependencies: [
        "RunLoopCore", "RunLoopFoundation", "RunLoopInstruments", "RunLoopKit", "RunLoopSockets", "RunLoopThreads",
        "TestRules", "TestSupport", "main-loops", "refused-calls", "thread-ends",
      ],
      swiftSettings: swiftSettings),
    // Tests as anybody writes them, with one import.
    .testTarget(name: "PlainTests", dependencies: ["RunLoopKit", "RunLoopTesting"], swiftSettings: swiftSettings),
  ],
  swiftLanguageModes: [.v6]
)
