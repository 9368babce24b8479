// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
import CRunLoopToolKit
import RunLoopLibC

/// A function in the user's code, with its place in the source.
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

/// One of the functions at an address; each except the last was inlined into the next.
package struct CodeFrame: Sendable, Hashable {
  /// The linker symbol.
  package var symbol: String
  package var file: String?
  package var line: Int

  package init(symbol: String, file: String?, line: Int) {
    self.symbol = symbol
    self.file = file
    self.line = line
  }
}

/// A source of the functions at a program's addresses.
package protocol FrameSource {
  /// Returns the frames at each address, innermost first.
  ///
  /// An unknown address has none.
  ///
  /// - Parameters:
  ///   - addresses: The addresses in the program's file.
  ///   - path: The program or library.
  func frames(at addresses: [UInt64], in path: String) -> [[CodeFrame]]
  /// Returns the beginning of a function in its source.
  func frames(ofSymbol symbol: String, in path: String) -> [CodeFrame]
  /// Returns whether a file belongs to a build; an empty identity matches any file.
  func isKept(_ path: String, _ identity: [UInt8]) -> Bool
}

extension FrameSource {
  package func isKept(_ path: String, _ identity: [UInt8]) -> Bool { BuildID.isKept(path, identity) }
}

/// Symbolizes the code of a running or ended process with the files of its program and libraries.
///
/// Files of other builds are not used. Must be used on a single thread.
package final class Symbolizer {
  /// The meaning of an address.
  package enum Kind: Hashable {
    /// The start of a called function.
    case function
    /// A return address.
    case site
  }

  private struct Query: Hashable {
    let kind: Kind
    let address: UInt64

    /// A call site that stands in for a function is looked up as a site.
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

  /// Looks up many addresses at once, which is faster.
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

  /// Returns the place of an address, or nil if it is not in the user's code or unknown.
  package func place(_ kind: Kind, _ address: UInt64) -> CodePlace? {
    guard address != 0 else { return nil }
    prepare(functions: kind == .function ? [address] : [], sites: kind == .site ? [address] : [])
    return known[Query(kind, address)] ?? nil
  }

  /// Returns a call's first caller in user code, or nil if a loop's call-out precedes it.
  ///
  /// - Parameter addresses: The return addresses of the calls, innermost first.
  package func caller(_ addresses: [UInt64]) -> CodePlace? {
    prepare(callers: addresses)
    var unplaced: CodePlace?
    for address in addresses {
      guard let frames = callers[address] else { continue }
      if let place = FrameChoice.site(frames) {
        if let unplaced, place.line == nil || !unplaced.function.hasSuffix(" in \(place.function)") { continue }
        if place.line != nil { return place }
        // An implicit closure has no line, but the function that contains it is further out on the stack.
        unplaced = place
      }
      if frames.contains(where: { FrameChoice.isCallOut($0.symbol) }) { return unplaced }
    }
    if let unplaced { return unplaced }
    // The program has no symbols.
    guard let first = addresses.first, callers[first]?.isEmpty ?? false else { return nil }
    return place(.site, first)
  }

  /// Looks up many callers at once.
  package func prepare(callers addresses: [UInt64]) {
    var wanted: [Int: Set<UInt64>] = [:]
    for address in addresses where callers[address] == nil {
      guard let image = image(of: address), !FrameChoice.isSystemLibrary(images[image].path) else { continue }
      wanted[image, default: []].insert(address)
    }
    for (index, addresses) in wanted {
      let image = images[index]
      let list = Array(addresses)
      // Wraps, because the addresses are untrusted and may be the beginning of a file.
      let found = isUsable(image) ? source.frames(at: list.map { $0 &- image.base &- 1 }, in: image.path) : []
      for (index, address) in list.enumerated() { callers[address] = index < found.count ? found[index] : [] }
    }
  }

  private func isUsable(_ image: LoadedImage) -> Bool {
    let isUsable = usable[image.path] ?? source.isKept(image.path, image.buildID)
    usable[image.path] = isUsable
    return isUsable
  }

  /// The index of the image that contains an address.
  private func image(of address: UInt64) -> Int? {
    images.firstIndex { $0.base <= address && address < $0.end && $0.path.hasPrefix("/") }
  }

  private func ask(_ queries: [Query], _ image: LoadedImage) {
    let path = image.path
    let isUsable = isUsable(image)
    let name = String(path.split(separator: "/").last ?? "?")
    // A return address may already belong to the next line or function.
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
        // The called function is the target of the forwarder.
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

  /// The number of bytes of a function in which to look for instructions of an inlined function.
  private static let reach: UInt64 = 64

  /// Finds the lines of functions inlined into their forwarders, some instructions after the beginning.
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
