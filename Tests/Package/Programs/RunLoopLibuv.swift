// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopLibuv

/// A timer of our loop in libuv's default loop.
@main enum Program {
  typealias Pointer = UnsafeMutableRawPointer

  static func main() throws {
    let make: @convention(c) () -> Pointer = function("uv_default_loop")
    let run: @convention(c) (Pointer, Int32) -> Int32 = function("uv_run")
    let loop = make()
    let host = try LibuvHost.attach(to: loop)
    RunLoop.current.schedule(in: .milliseconds(1)) { _ in
      print("RunLoopLibuv: a timer in a loop of libuv's")
      host.detach()
    }
    exit(run(loop, 0))
  }

  static func function<Function>(_ name: String) -> Function {
    guard let library = dlopen("libuv.so.1", RTLD_NOW), let found = dlsym(library, name) else { fatalError("no libuv") }
    return unsafeBitCast(found, to: Function.self)
  }
}
