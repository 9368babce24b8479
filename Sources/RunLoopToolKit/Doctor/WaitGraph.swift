// SPDX-License-Identifier: Apache-2.0

/// Which thread waits for which, as a value.
struct WaitGraph: Sendable {
  private let edges: [Int32: Int32]

  /// - Parameter edges: For each thread that waits for another, which one that is.
  init(_ edges: [Int32: Int32]) { self.edges = edges }

  /// The threads that a thread waits for, from it on: each once.
  func chain(from thread: Int32) -> [Int32] {
    var found = [thread]
    while let last = found.last, let next = edges[last], !found.contains(next) { found.append(next) }
    return found
  }

  /// The circles of threads that wait for each other; each begins with the least number, and they are in its order.
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
