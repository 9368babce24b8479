// SPDX-License-Identifier: Apache-2.0

import CRunLoopTools
import Glibc
package import RunLoopTimeline

/// A function of the user's, and where in its file.
package struct CodePlace: Sendable, Hashable {
  package var function: String
  package var file: String?
  package var line: Int?

  package init(function: String, file: String? = nil, line: Int? = nil) {
    self.function = function
    self.file = file
    self.line = line
  }
}

/// One function of those that stand at an address, of which each but the last was inlined into the next.
package struct CodeFrame: Sendable, Hashable {
  /// As the linker knows it.
  package var symbol: String
  package var file: String?
  package var line: Int

  package init(symbol: String, file: String?, line: Int) {
    self.symbol = symbol
    self.file = file
    self.line = line
  }
}

/// What says which functions stand at addresses of a program.
package protocol FrameSource {
  /// The frames at each address, the innermost first; none where nothing is known.
  ///
  /// - Parameters:
  ///   - addresses: As the program's file has them.
  ///   - path: The program or library.
  func frames(at addresses: [UInt64], in path: String) -> [[CodeFrame]]
  /// Where a function begins in its source.
  func frames(ofSymbol symbol: String, in path: String) -> [CodeFrame]
}

/// Names the code of a process, alive or dead, from the files of its program and libraries.
///
/// A file whose build is another by now is not asked. One thread.
package final class Symbolizer {
  /// What an address is.
  package enum Kind: Hashable {
    /// The function that is called.
    case function
    /// Where a call returns to.
    case site
  }

  private struct Query: Hashable {
    let kind: Kind
    let address: UInt64
  }

  private let images: [LoadedImage]
  private let source: any FrameSource
  private var known: [Query: CodePlace?] = [:]
  private var usable: [String: Bool] = [:]

  package init(_ images: [LoadedImage], source: any FrameSource = ExternalSymbolizer()) {
    self.images = images
    self.source = source
  }

  /// Asks for many addresses at once, which is faster than one after the other.
  package func prepare(functions: [UInt64], sites: [UInt64]) {
    var queries: [String: [Query]] = [:]
    let all =
      functions.map { Query(kind: .function, address: $0) } + sites.map { Query(kind: .site, address: $0) }
    for query in Set(all) where known[query] == nil {
      guard let image = image(of: query.address) else {
        known[query] = .some(nil)
        continue
      }
      queries[image.path, default: []].append(query)
    }
    for (path, queries) in queries { ask(queries, path) }
  }

  /// The place of an address; nil if it is none of the user's code, or nothing is known.
  package func place(_ kind: Kind, _ address: UInt64) -> CodePlace? {
    guard address != 0 else { return nil }
    prepare(functions: kind == .function ? [address] : [], sites: kind == .site ? [address] : [])
    return known[Query(kind: kind, address: address)] ?? nil
  }

  private func image(of address: UInt64) -> LoadedImage? {
    images.first { $0.base <= address && address < $0.end && $0.path.hasPrefix("/") }
  }

  private func ask(_ queries: [Query], _ path: String) {
    guard let image = images.first(where: { $0.path == path }) else { return }
    let isUsable = usable[path] ?? (image.buildID.isEmpty || BuildID.read(path) == image.buildID)
    usable[path] = isUsable
    let name = String(path.split(separator: "/").last ?? "?")
    // A call returns behind itself, which may be the next line or the next function.
    let addresses = queries.map { $0.address - image.base - ($0.kind == .site ? 1 : 0) }
    let found = isUsable ? source.frames(at: addresses, in: path) : []
    for (index, query) in queries.enumerated() {
      let frames = index < found.count ? found[index] : []
      if frames.isEmpty {
        known[query] = CodePlace(function: "\(name) + 0x\(String(query.address - image.base, radix: 16))")
      } else {
        known[query] = query.kind == .site ? FrameChoice.site(frames) : function(frames, path)
      }
    }
  }

  private func function(_ frames: [CodeFrame], _ path: String) -> CodePlace? {
    switch FrameChoice.function(frames) {
    case .place(let place): place
    case .nobodys: nil
    case .forwards(let symbol, let place):
      // The function that is called stands behind one that only hands on what was captured.
      source.frames(ofSymbol: symbol, in: path).last.flatMap { FrameChoice.place($0) } ?? place
    }
  }
}
