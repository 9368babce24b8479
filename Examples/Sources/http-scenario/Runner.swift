// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopCore
import RunLoopHTTP
import RunLoopThreads
import Synchronization

/// Counts and digests the body of one request, keeps the part for the result, and applies the rules.
final class ScenarioSink: HTTP.Sink {
  private struct State {
    var digest = SHA256()
    var count: Int64 = 0
    var text: [UInt8] = []
    var file: FileHandle?
    var rules: [Rule]
    var noted: Int64?
  }

  private struct Rule {
    enum Phase {
      case waiting, due, running
    }

    let number: Int
    let moment: Moment
    let deed: Deed
    /// The index of the rule that this one ends, or nil.
    let ended: Int?
    var phase = Phase.waiting
  }

  private let state: Mutex<State>
  private let path: String?
  /// The operation, set before it starts.
  let operation = Mutex<HTTP.Operation?>(nil)

  init(rules: [(moment: Moment, deed: Deed)], path: String?) {
    // The first resume ends the first pause before it, the second one the next.
    var ended: Set<Int> = []
    let numbered = rules.enumerated().map { number, rule in
      let first = rules[..<number].indices.first { rules[$0].deed.isEnded(by: rule.deed) && !ended.contains($0) }
      if let first { ended.insert(first) }
      return Rule(number: number, moment: rule.moment, deed: rule.deed, ended: first)
    }
    state = Mutex(State(rules: numbered))
    self.path = path
  }

  /// The maximum number of a body's characters in a result, and of bytes that may contain them.
  private static let (mostCharacters, mostBytes) = (20_000, 80_000)

  var noted: Int64? { state.withLock { $0.noted } }
  var length: Int64 { state.withLock { $0.count } }
  var digest: String { state.withLock { $0.digest.finished() } }
  var text: String {
    state.withLock {
      String(
        String.UnicodeScalarView(String(decoding: $0.text, as: UTF8.self).unicodeScalars.prefix(Self.mostCharacters)))
    }
  }

  func begin(_ response: HTTP.Response, at offset: Int64) throws {
    try state.withLock { state in
      if offset == 0 {
        state.digest = SHA256()
        state.count = 0
        state.text = []
      }
      guard let path else { return }
      if state.file == nil {
        _ = FileManager.default.createFile(atPath: path, contents: nil)
        state.file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
      }
      try state.file?.truncate(atOffset: UInt64(offset))
    }
    apply { $0 == .head }
  }

  func write(_ bytes: UnsafeRawBufferPointer) throws {
    let count = try state.withLock { state in
      state.digest.update(bytes)
      state.count += Int64(bytes.count)
      if state.text.count < Self.mostBytes { state.text += bytes.prefix(Self.mostBytes - state.text.count) }
      try state.file?.write(contentsOf: Data(bytes))
      return state.count
    }
    apply { if case .bytes(let limit) = $0 { count >= limit } else { false } }
  }

  func end() throws { try state.withLock { try $0.file?.synchronize() } }

  /// Closes the file at the end of the transfer, even if this object is still referenced.
  func close() {
    state.withLock { state in
      try? state.file?.close()
      state.file = nil
    }
  }

  /// Applies each rule that is due, once, in the document's order.
  ///
  /// A rule that ends a pause or a hold waits for that to begin, because the document's times are approximate.
  func apply(_ isDue: (Moment) -> Bool) {
    state.withLock { state in
      for index in state.rules.indices where state.rules[index].phase == .waiting && isDue(state.rules[index].moment) {
        state.rules[index].phase = .due
      }
    }
    while let rule = takeDue() {
      perform(rule.deed)
      state.withLock { $0.rules.removeAll { $0.number == rule.number } }
    }
  }

  private func takeDue() -> Rule? {
    state.withLock { state in
      for (index, rule) in state.rules.enumerated() where rule.phase == .due {
        guard !state.rules[..<index].contains(where: { $0.number == rule.ended }) else { continue }
        state.rules[index].phase = .running
        return rule
      }
      return nil
    }
  }

  func perform(_ deed: Deed) {
    guard let operation = operation.withLock({ $0 }) else { return }
    switch deed {
    case .cancel: operation.cancel()
    case .hold: operation.pauseReading()
    case .release: operation.resumeReading()
    case .pause: operation.pause()
    case .resume: operation.resume()
    case .pauseResume:
      operation.pause()
      operation.resume()
    case .note: state.withLock { $0.noted = $0.count }
    }
  }
}

/// The results, in any order.
final class Results: Sendable {
  private let results = Mutex<[String: [String: any Sendable]]>([:])

  func set(_ id: String, _ result: [String: any Sendable]) {
    results.withLock {
      var result = result
      result["completions"] = ($0[id]?["completions"] as? Int ?? 0) + 1
      $0[id] = result
    }
  }

  var all: [String: [String: any Sendable]] { results.withLock { $0 } }
}

/// Runs the requests of a document.
struct Runner {
  let settings: ClientSettings
  let results = Results()
  let directory: String
  /// The thread on which all tasks run.
  let thread: ResidentThread

  func configuration() throws -> HTTP.Configuration {
    var configuration = HTTP.Configuration()
    configuration.trust.roots = settings.ca
    if let timeout = settings.timeout { configuration.idleTimeout = .ofDocument(timeout) }
    if let total = settings.total { configuration.totalTimeout = .ofDocument(total) }
    if let redirects = settings.maxRedirects { configuration.maximumRedirects = redirects }
    if let connections = settings.connections { configuration.connectionsPerHost = connections }
    configuration.maximumBodySize = settings.maxBody
    configuration.retry.maximumCount = settings.retries ?? 0
    if let credential = settings.credential {
      guard credential.count == 2 else { throw Unsupported(reason: "a credential without a user and a password") }
      configuration.credential = HTTP.Credential(user: credential[0], password: credential[1])
    }
    configuration.storesCookies = settings.cookies ?? false
    if let proxy = settings.proxy { configuration.proxy = .url(proxy) }
    configuration.trust.pins = settings.pins ?? []
    if let certificate = settings.certificate {
      guard certificate.count == 2 else { throw Unsupported(reason: "a certificate without a chain and a key") }
      configuration.trust.certificate = .init(chain: certificate[0], key: certificate[1])
    }
    configuration.trust.allowsInvalidCertificates = settings.allowInvalidCertificates ?? false
    return configuration
  }

  /// Suspends with a timer of the thread's loop.
  func sleep(for time: Duration) async throws {
    try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
      do {
        try thread.perform(afterDelay: time) { continuation.resume() }
      } catch {
        continuation.resume(throwing: error)
      }
    }
  }

  func makeClient() throws -> HTTP.Client { HTTP.Client(try configuration()) }

  /// Starts a request, and returns a task that waits for its end.
  func start(_ request: ScenarioRequest, _ client: HTTP.Client) throws -> Task<Void, Never> {
    var rules: [(moment: Moment, deed: Deed)] = []
    for rule in request.on ?? [] {
      guard let deed = Deed(rawValue: rule.do) else { throw Unsupported(reason: "the deed \"\(rule.do)\"") }
      rules.append((try Moment(rule.when), deed))
    }
    var asked = HTTP.Request(HTTP.Method(request.method ?? "GET"), request.url)
    for (name, value) in request.headers ?? [:] { asked.headers.add(name, value) }
    asked.body = try body(request.body)

    let path: String?
    switch request.sink ?? "memory" {
    case "memory": (path, asked.maximumBodySize) = (nil, settings.maxBody ?? 64 << 20)
    case "discard": path = nil
    case "file": path = "\(directory)/\(UUID().uuidString)"
    case let sink: throw Unsupported(reason: "the sink \"\(sink)\"")
    }
    let sink = ScenarioSink(rules: rules, path: path)
    let operation = client.operation(asked, output: .sink(sink), on: .main)
    sink.operation.withLock { $0 = operation }
    let begin = ContinuousClock.now
    let end = AsyncStream<Void>.makeStream()
    operation.onCompletion(on: .immediately) { result in
      report(request.id, result, sink, begin.duration(to: .now))
      end.continuation.yield()
    }
    let starting = rules.contains { $0.moment == .start }
    if starting, rules.contains(where: { $0.moment == .start && $0.deed == .hold || $0.deed == .note }) {
      // A rule that holds the operation must apply from the beginning.
      sink.apply { $0 == .start }
      operation.start()
    } else {
      operation.start()
      sink.apply { $0 == .start }
    }
    for rule in rules {
      guard case .after(let seconds) = rule.moment else { continue }
      Task(executorPreference: thread) {
        try? await sleep(for: .ofDocument(seconds))
        sink.apply { $0 == .after(seconds) }
      }
    }
    return Task(executorPreference: thread) {
      for await _ in end.stream.prefix(1) {}
      sink.operation.withLock { $0 = nil }
      sink.close()
      if let path { try? FileManager.default.removeItem(atPath: path) }
    }
  }

  private func report(
    _ id: String, _ outcome: Result<(HTTP.Body, HTTP.Response), HTTP.Error>, _ sink: ScenarioSink, _ time: Duration
  ) {
    sink.apply { $0 == .end }
    var result: [String: any Sendable] = [
      "seconds": Double(time.components.seconds) + Double(time.components.attoseconds) / 1e18,
      "length": sink.length, "sha256": sink.digest, "text": sink.text,
    ]
    if let noted = sink.noted { result["notedBytes"] = noted }
    switch outcome {
    case .success((_, let response)):
      result["end"] = "response"
      result["status"] = response.status.code
      result["version"] = response.version
      result["redirects"] = response.redirectCount
    case .failure(let error):
      result["end"] = error.code.name
      result["detail"] = error.description
    }
    results.set(id, result)
  }

  private func body(_ body: ScenarioRequest.Body?) throws -> HTTP.Content? {
    guard let body else { return nil }
    if let count = body.pattern { return .bytes(Pattern.bytes(count)) }
    guard let count = body.stream else { throw Unsupported(reason: "a body that is neither a pattern nor a stream") }
    return .stream(length: body.known ?? false ? Int64(count) : nil) { Pattern(count: count) }
  }
}

/// Bytes that each equal their index modulo 251, in chunks.
struct Pattern: AsyncSequence, AsyncIteratorProtocol, Sendable {
  let count: Int
  private var position = 0

  init(count: Int) { self.count = count }

  private static let chunk = 16_384
  /// A block from which a chunk at any offset can be taken.
  private static let block = (0..<chunk + 251).map { UInt8($0 % 251) }

  mutating func next() async -> [UInt8]? { nextChunk() }

  private mutating func nextChunk() -> [UInt8]? {
    guard position < count else { return nil }
    let (first, length) = (position % 251, Swift.min(Self.chunk, count - position))
    position += length
    return Array(Self.block[first..<first + length])
  }

  static func bytes(_ count: Int) -> [UInt8] {
    var (pattern, bytes): (Pattern, [UInt8]) = (Pattern(count: count), [])
    bytes.reserveCapacity(count)
    while let chunk = pattern.nextChunk() { bytes += chunk }
    return bytes
  }

  func makeAsyncIterator() -> Pattern { self }
}
