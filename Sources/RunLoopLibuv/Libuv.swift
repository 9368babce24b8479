// SPDX-License-Identifier: Apache-2.0

import RunLoopLibC

/// The libuv functions that a host calls, from the program itself, as in Node, or else from the library.
struct Libuv: Sendable {
  typealias Pointer = UnsafeMutableRawPointer
  typealias PollCallback = @convention(c) (Pointer?, Int32, Int32) -> Void
  typealias CloseCallback = @convention(c) (Pointer?) -> Void

  /// The number of `uv_poll_t` among the handle types, and the flag for readability among the events.
  static let pollHandle: Int32 = 8
  static let readable: Int32 = 1

  let handleSize: @Sendable @convention(c) (Int32) -> Int
  let pollInit: @Sendable @convention(c) (Pointer, Pointer, Int32) -> Int32
  let pollStart: @Sendable @convention(c) (Pointer, Int32, PollCallback) -> Int32
  let unref: @Sendable @convention(c) (Pointer) -> Void
  let close: @Sendable @convention(c) (Pointer, CloseCallback?) -> Void

  static func found() throws(LibuvHostError) -> Libuv {
    switch library {
    case .success(let functions): return functions
    case .failure(let error): throw error
    }
  }

  private static let library: Result<Libuv, LibuvHostError> = {
    do throws(LibuvHostError) { return .success(try Libuv()) } catch { return .failure(error) }
  }()

  private init() throws(LibuvHostError) {
    // Functions exported by the program take precedence, because two copies of libuv do not know each other's loops.
    var library: Pointer?
    if dlsym(nil, "uv_poll_init") == nil {
      library = loadLibrary("libuv.so.1", RTLD_NOW | RTLD_LOCAL)
      guard library != nil else {
        throw .libraryNotFound(
          "libuv.so.1 cannot be opened (\(Libuv.lastReason)); Debian's package is libuv1, or libuv1t64 from 13 on")
      }
    }
    handleSize = try Libuv.function("uv_handle_size", in: library)
    pollInit = try Libuv.function("uv_poll_init", in: library)
    pollStart = try Libuv.function("uv_poll_start", in: library)
    unref = try Libuv.function("uv_unref", in: library)
    close = try Libuv.function("uv_close", in: library)
  }

  private static func function<Function>(_ name: String, in library: Pointer?) throws(LibuvHostError) -> Function {
    guard let found = dlsym(library, name) else { throw .libraryNotFound("it has no \(name)") }
    return unsafeBitCast(found, to: Function.self)
  }

  private static var lastReason: String { dlerror().map { String(cString: $0) } ?? "no reason" }
}
