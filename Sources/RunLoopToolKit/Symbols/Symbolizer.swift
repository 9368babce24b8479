// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopTools
import RunLoopLibC

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
  /// Whether a file can be asked for the names of a build; empty: of whichever it is.
  func isKept(_ path: String, _ identity: [UInt8]) -> Bool
}

extension FrameSource {
  package func isKept(_ path: String, _ identity: [UInt8]) -> Bool { BuildID.isKept(path, identity) }
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

    /// The place that stands for a function is asked for as one.
    init(_ kind: Kind, _ address: UInt64) {
      self.kind = address & CRL_CODE_PLACE != 0 ? .site : kind
      self.address = address & ~CRL_CODE_PLACE
    }
  }

  private let images: [LoadedImage]
  private let source: any FrameSource
  private var known: [Query: CodePlace?] = [:]
  private var usable: [String: Bool] = [:]
  private var callers: [UInt64: [CodeFrame]] = [:]

  package init(_ images: [LoadedImage], source: any FrameSource = ExternalSymbolizer()) {
    self.images = images
    self.source = source
  }

  /// Asks for many addresses at once, which is faster than one after the other.
  package func prepare(functions: [UInt64], sites: [UInt64]) {
    var queries: [Int: [Query]] = [:]
    let all = functions.map { Query(.function, $0) } + sites.map { Query(.site, $0) }
    for query in Set(all) where known[query] == nil {
      guard let image = image(of: query.address) else {
        known[query] = .some(nil)
        continue
      }
      queries[image, default: []].append(query)
    }
    for (image, queries) in queries { ask(queries, images[image]) }
  }

  /// The place of an address; nil if it is none of the user's code, or nothing is known.
  package func place(_ kind: Kind, _ address: UInt64) -> CodePlace? {
    guard address != 0 else { return nil }
    prepare(functions: kind == .function ? [address] : [], sites: kind == .site ? [address] : [])
    return known[Query(kind, address)] ?? nil
  }

  /// The first of a call's callers that is the user's; nil if there is none before a call-out of a loop, in which what
  /// was called has called it.
  ///
  /// - Parameter addresses: Where the calls return to, the innermost first.
  package func caller(_ addresses: [UInt64]) -> CodePlace? {
    prepare(callers: addresses)
    var unplaced: CodePlace?
    for address in addresses {
      guard let frames = callers[address] else { continue }
      if let place = FrameChoice.site(frames) {
        if let unplaced, place.line == nil || !unplaced.function.hasSuffix(" in \(place.function)") { continue }
        if place.line != nil { return place }
        // An implicit closure has no line, but the function that it stands in is a caller of its caller.
        unplaced = place
      }
      if frames.contains(where: { FrameChoice.isCallOut($0.symbol) }) { return unplaced }
    }
    if let unplaced { return unplaced }
    // Nothing is known of a program without symbols.
    guard let first = addresses.first, callers[first]?.isEmpty ?? false else { return nil }
    return place(.site, first)
  }

  /// Asks for many callers at once.
  package func prepare(callers addresses: [UInt64]) {
    var wanted: [Int: Set<UInt64>] = [:]
    for address in addresses where callers[address] == nil {
      guard let image = image(of: address), !FrameChoice.isSystemLibrary(images[image].path) else { continue }
      wanted[image, default: []].insert(address)
    }
    for (index, addresses) in wanted {
      let image = images[index]
      let list = Array(addresses)
      // Nothing returns to the beginning of a file, but whoever wrote the address need not know that.
      let found = isUsable(image) ? source.frames(at: list.map { $0 &- image.base &- 1 }, in: image.path) : []
      for (index, address) in list.enumerated() { callers[address] = index < found.count ? found[index] : [] }
    }
  }

  private func isUsable(_ image: LoadedImage) -> Bool {
    let isUsable = usable[image.path] ?? source.isKept(image.path, image.buildID)
    usable[image.path] = isUsable
    return isUsable
  }

  /// Which of the images an address lies in.
  private func image(of address: UInt64) -> Int? {
    images.firstIndex { $0.base <= address && address < $0.end && $0.path.hasPrefix("/") }
  }

  private func ask(_ queries: [Query], _ image: LoadedImage) {
    let path = image.path
    let isUsable = isUsable(image)
    let name = String(path.split(separator: "/").last ?? "?")
    // A call returns behind itself, which may be the next line or the next function.
    let addresses = queries.map { $0.address &- image.base &- ($0.kind == .site ? 1 : 0) }
    let found = isUsable ? source.frames(at: addresses, in: path) : []
    var inlined: [(query: Query, address: UInt64, symbols: (of: String, in: String))] = []
    for (index, query) in queries.enumerated() {
      let frames = index < found.count ? found[index] : []
      if frames.isEmpty {
        known[query] = CodePlace(function: "\(name) + 0x\(String(query.address &- image.base, radix: 16))")
      } else if query.kind == .site {
        known[query] = FrameChoice.site(frames)
      } else if case .forwards(let symbol, let place) = FrameChoice.function(frames) {
        // The function that is called stands behind one that only hands on what was captured.
        let behind = source.frames(ofSymbol: symbol, in: path).last.flatMap { FrameChoice.place($0) }
        known[query] = behind ?? place
        if behind == nil { inlined.append((query, addresses[index], (symbol, frames[frames.count - 1].symbol))) }
      } else if case .place(let place) = FrameChoice.function(frames) {
        known[query] = place
      } else {
        known[query] = .some(nil)
      }
    }
    place(inlined, path)
  }

  /// How far into a function its first instructions are looked for that are of one inlined into it.
  private static let reach: UInt64 = 64

  /// Finds the lines of functions that were inlined into what hands on to them, some instructions behind its beginning.
  private func place(
    _ inlined: [(query: Query, address: UInt64, symbols: (of: String, in: String))], _ path: String
  ) {
    let reach = Symbolizer.reach
    let addresses = inlined.flatMap { function in (0..<reach).map { function.address &+ $0 } }
    let found = addresses.isEmpty ? [] : source.frames(at: addresses, in: path)
    guard found.count == addresses.count else { return }
    for (index, function) in inlined.enumerated() {
      let first = index * Int(reach)
      for frames in found[first..<(first + Int(reach))] where frames.last?.symbol == function.symbols.in {
        guard let frame = frames.last(where: { $0.symbol == function.symbols.of && $0.line > 0 }) else { continue }
        if let place = FrameChoice.place(frame) { known[function.query] = place }
        break
      }
    }
  }
}
