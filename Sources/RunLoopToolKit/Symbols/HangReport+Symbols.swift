// SPDX-License-Identifier: Apache-2.0

import CRunLoopRecorder
package import RunLoopInstruments
import RunLoopLibC

/// A hang with symbolized code.
package struct SymbolicatedHang: Sendable {
  package let report: HangReport
  /// The kind of the call-out, or nil for a backlog and where it is unknown.
  package let kind: String?
  package let code: CodePlace?
  package let posted: CodePlace?
  /// The functions outside this package, innermost first, up to the loop's call-out.
  package let stack: [StackPlace]
  /// The places that posted waiting work.
  package let sites: [(place: CodePlace?, count: Int)]
}

/// A function on a stack.
package struct StackPlace: Sendable, Hashable {
  package let place: CodePlace
  /// Whether it is known to have been on the stack.
  package let isProved: Bool
  /// The percentage of samples that contain it.
  package let share: Int

  package init(_ place: CodePlace, isProved: Bool = true, share: Int = 100) {
    self.place = place
    self.isProved = isProved
    self.share = share
  }
}

extension HangReport {
  /// Symbolizes the report with the files that it refers to.
  package func symbolicated(by source: any FrameSource = ExternalSymbolizer()) -> SymbolicatedHang {
    HangNames(source).name([self])[0]
  }
}

/// Symbolizes reports with the files that they refer to; must be used on a single thread.
package final class HangNames {
  private let source: any FrameSource
  private let process: Int32?
  /// The files that were deleted or replaced since the process loaded them.
  private lazy var deleted = process.map { DeletedFiles(of: $0).links } ?? [:]
  /// The file to read for each image, or nil if there is none.
  private var files: [String: String?] = [:]
  private var known: [Query: [CodeFrame]] = [:]

  private struct Query: Hashable {
    let image: String
    let offset: UInt64
  }

  /// - Parameter process: The process that the reports are about, if it may still run.
  package init(_ source: any FrameSource = ExternalSymbolizer(), process: Int32? = nil) {
    self.source = source
    self.process = process
  }

  /// Symbolizes several reports at once, which is faster.
  package func name(_ reports: [HangReport]) -> [SymbolicatedHang] {
    let stacks = reports.map { queries($0.stack) }
    prepare(stacks.joined().compactMap { $0 })
    let symbolizer = Symbolizer(images(of: reports), source: source)
    symbolizer.prepare(
      functions: reports.compactMap { $0.code?.address },
      sites: reports.flatMap { [$0.postedFrom?.address] + $0.sites.map { $0.site?.address } }.compactMap { $0 })
    return zip(reports, stacks).map { report, stack in
      let posted = report.postedFrom.flatMap { symbolizer.place(.site, $0.address) }
      let named = self.stack(report, stack)
      // A call-out that began before recording is named by its stack.
      let code =
        report.code.flatMap { HangNames.isSystems($0) ? nil : symbolizer.place(.function, $0.address) }
        ?? posted ?? named.code
      return SymbolicatedHang(
        report: report, kind: report.isBacklog ? nil : report.kind ?? named.kind,
        code: report.isBacklog ? nil : code, posted: posted,
        stack: named.places.isEmpty && !report.isBacklog ? code.map { [StackPlace($0)] } ?? [] : named.places,
        sites: report.sites.map { site in (site.site.flatMap { symbolizer.place(.site, $0.address) }, site.count) })
    }
  }

  private func images(of reports: [HangReport]) -> [LoadedImage] {
    var found: [String: LoadedImage] = [:]
    for report in reports {
      for case let address? in [report.code, report.postedFrom] + report.sites.map(\.site) {
        guard let path = address.image, let offset = address.offset else { continue }
        let base = address.address &- offset
        let end = max(found["\(base) \(path)"]?.end ?? 0, address.address &+ 1)
        let identity = bytes(address.buildID)
        found["\(base) \(path)"] = LoadedImage(
          base: base, end: end, buildID: identity, path: file(of: path, identity) ?? path)
      }
    }
    return Array(found.values)
  }

  private func bytes(_ digits: String?) -> [UInt8] {
    let digits = Array(digits ?? "")
    return stride(from: 0, to: digits.count - 1, by: 2).compactMap { UInt8(String(digits[$0...($0 + 1)]), radix: 16) }
  }

  /// The query for each address of a stack, or nil for addresses without a usable file.
  private func queries(_ stack: [CodeAddress]) -> [Query?] {
    stack.enumerated().map { index, address in
      guard let image = address.image, let offset = address.offset else { return nil }
      let file = file(of: image, bytes(address.buildID))
      // A return address is after the call.
      return file.map { Query(image: $0, offset: index == 0 ? offset : offset &- 1) }
    }
  }

  /// Returns the file that has an image's symbols, or nil if none belongs to the same build.
  private func file(of image: String, _ identity: [UInt8]) -> String? {
    if let known = files[image] { return known }
    var found: String?
    if image == CodeImage.kernelLibrary {
      found = KernelLibrary.isSame(identity) ? image : nil
    } else {
      // Without a build ID, a new file of the same name would pass for the one that the process loaded.
      found = ([deleted[image]] + [image]).compactMap { $0 }.first { source.isKept($0, identity) }
    }
    files[image] = .some(found)
    return found
  }

  private func prepare(_ queries: [Query]) {
    let unknown = Dictionary(grouping: Set(queries).filter { known[$0] == nil }, by: \.image)
    for (image, queries) in unknown {
      let found =
        image == CodeImage.kernelLibrary
        ? queries.map { KernelLibrary.frames(at: $0.offset) } : source.frames(at: queries.map(\.offset), in: image)
      for (index, query) in queries.enumerated() { known[query] = index < found.count ? found[index] : [] }
    }
  }

  /// Whether an address is in a library of the system or the toolchain, without user code.
  fileprivate static func isSystems(_ address: CodeAddress) -> Bool {
    address.image.map(FrameChoice.isSystemLibrary) ?? false
  }

  /// Returns the user's part of a stack, the kind of call-out at its end, and the outermost user function.
  private func stack(
    _ report: HangReport, _ queries: [Query?]
  ) -> (places: [StackPlace], kind: String?, code: CodePlace?) {
    var named = NamedStack(report)
    let addresses = report.stack
    for (index, (address, query)) in zip(addresses, queries).enumerated() {
      let frames = query.flatMap { known[$0] } ?? []
      if frames.isEmpty {
        let name = address.image?.split(separator: "/").last.map(String.init) ?? "?"
        let place = CodePlace(function: "\(name) + 0x\(String(address.offset ?? address.address, radix: 16))")
        named.add(place, at: index, isToolchains: HangNames.isSystems(address))
      }
      for frame in frames {
        if let kind = named.add(frame, at: index) { return (named.places, kind, code(named.outermost, addresses)) }
      }
    }
    return (named.places, nil, code(named.outermost, addresses))
  }

  /// Returns the beginning of a function on a stack.
  private func code(_ frame: CodeFrame?, _ addresses: [CodeAddress]) -> CodePlace? {
    guard let frame else { return nil }
    let images = Set(addresses.compactMap { $0.image.flatMap { files[$0] ?? nil } })
    for image in images.sorted() where known.keys.contains(where: { $0.image == image }) {
      let isThere = known.contains { $0.key.image == image && $0.value.contains(frame) }
      guard isThere, let begin = source.frames(ofSymbol: frame.symbol, in: image).last else { continue }
      return FrameChoice.place(begin)
    }
    return FrameChoice.place(frame)
  }

  /// Returns the kind of call-out that a function of the core makes.
  fileprivate static func kind(_ function: String) -> String? {
    let kinds = [
      ("runLoopIsCallingOutToABlock", "block"), ("runLoopIsCallingOutToATimer", "timer"),
      ("runLoopIsCallingOutToASource0", "source0"), ("runLoopIsCallingOutToASource1", "source1"),
      ("runLoopIsCallingOutToAnObserver", "observer"), ("runLoopIsCallingOutToAnExecutorJob", "job"),
      ("runLoopIsCallingOutToASourceSchedule", "schedule"), ("runLoopIsCallingOutToASourceCancel", "cancel"),
      ("runLoopIsServicingTheMainDispatchQueue", "mainQueue"), ("runLoopIsPerformingHandOffs", "perform"),
    ]
    // A longer name may begin with a shorter one.
    return kinds.last { function.contains($0.0) }?.1
  }
}

/// The functions of the library that the kernel maps into each process.
///
/// It has no file, but this process has the same one as every other process of the same kind.
private enum KernelLibrary {
  private static let own = ProcessMemory(process: getpid()).images.first { $0.path == CodeImage.kernelLibrary }

  /// Whether this process has the library with a build ID.
  static func isSame(_ identity: [UInt8]) -> Bool { !identity.isEmpty && own?.buildID == identity }

  static func frames(at offset: UInt64) -> [CodeFrame] {
    var code = crl_code()
    guard let own, crl_code_find(own.base &+ offset, &code) != 0, let symbol = code.symbol else { return [] }
    return [CodeFrame(symbol: String(cString: symbol), file: nil, line: 0)]
  }
}

/// The functions of a stack outside this package, innermost first.
///
/// Functions of the toolchain are included only if user code called them; those further out called the user's code.
private struct NamedStack {
  private let report: HangReport
  private let most: Int
  private var certain: [StackPlace] = []
  /// The outermost of the user's functions.
  private(set) var outermost: CodeFrame?
  private var last: CodeFrame?
  /// Functions that are included if a user function follows.
  private var pending: [StackPlace] = []

  /// The functions to show: only those of libraries if no user function is known.
  var places: [StackPlace] { certain.isEmpty ? pending : certain }

  init(_ report: HangReport) {
    self.report = report
    most = max(1, report.stackCounts?.max() ?? 1)
  }

  /// Adds a function; returns the kind of call-out if the function makes one.
  mutating func add(_ frame: CodeFrame, at index: Int) -> String? {
    if CallOutName.runsHost(frame.symbol), report.kind ?? CallOutName.host == CallOutName.host {
      return CallOutName.host
    }
    defer { last = frame }
    if let last, FrameChoice.isEntry(frame.symbol, of: last.symbol) { return nil }
    let isToolchains = FrameChoice.isToolchains(frame.symbol)
    if !isToolchains, FrameChoice.isOurs(frame.symbol) {
      return HangNames.kind(FrameChoice.demangled(frame.symbol))
    }
    // A closure and its forwarder count as one.
    let isOwn = !FrameChoice.isThunk(frame.symbol) && !FrameChoice.isForwarder(frame.symbol)
    guard isOwn, !frame.symbol.hasPrefix("_ZN5swift"), let place = FrameChoice.place(frame) else { return nil }
    let isSystems = isToolchains || HangNames.isSystems(report.stack[index])
    add(place, at: index, isToolchains: isSystems)
    if !isSystems { outermost = frame }
    return nil
  }

  mutating func add(_ place: CodePlace, at index: Int, isToolchains: Bool) {
    let last = (pending.last ?? certain.last)?.place
    guard last?.function != place.function || last?.line != place.line else { return }
    let count = report.stackCounts.flatMap { index < $0.count ? min(max($0[index], 0), most) : nil } ?? most
    let share = Int((100 * Double(count) / Double(most)).rounded())
    pending.append(StackPlace(place, isProved: index < report.provedFrames ?? 0, share: share))
    guard !isToolchains else { return }
    certain += pending
    pending = []
  }
}
