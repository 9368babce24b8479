// SPDX-License-Identifier: Apache-2.0

import Glibc
import RunLoopCore
import RunLoopGLib

/// The main actor, inside GLib's default context.
@main enum Program {
  static func main() throws {
    typealias Iteration = @convention(c) (UnsafeMutableRawPointer?, Int32) -> Int32
    guard let library = dlopen("libglib-2.0.so.0", RTLD_NOW), let found = dlsym(library, "g_main_context_iteration")
    else { fatalError("no GLib") }
    let iterate = unsafeBitCast(found, to: Iteration.self)
    try GLibHost.attach()
    Task { @MainActor in
      try await Task.sleep(for: .milliseconds(1))
      print("RunLoopGLib: the main actor goes on")
      exit(0)
    }
    while true { _ = iterate(nil, 1) }
  }
}
