// SPDX-License-Identifier: Apache-2.0

/// The graph of threads that wait for each other.
struct WaitGraph: Sendable {
  private let edges: [Int32: Int32]

  /// - Parameter edges: The thread that each waiting thread waits for.
  init(_ edges: [Int32: Int32]) { self.edges = edges }

  /// Returns the chain of threads that a thread waits for, beginning with itself, each once.
  func chain(from thread: Int32) -> [Int32] {
    var found = [thread]
    while let last = found.last, let next = edges[last], !found.contains(next) { found.append(next) }
    return found
  }

  /// The cycles of threads that wait for each other; each begins with its smallest ID, and they are ordered by it.
  var cycles: [[Int32]] {
    var found: [[Int32]] = []
    for thread in edges.keys.sorted() {
      let chain = chain(from: thread)
      guard let last = chain.last, edges[last] == thread, chain.min() == thread else { continue }
      found.append(chain)
    }
    return found
  }
}
