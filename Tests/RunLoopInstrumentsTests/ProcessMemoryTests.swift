// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import RunLoopInstruments

@Suite("The memory of a process", .ownThread) struct ProcessMemoryTests {
  @Test("a mapped file whose header points past the end of memory is skipped")
  func header() throws {
    var name = Array("/tmp/runloop-header-XXXXXX".utf8CString)
    let file = mkstemp(&name)
    try #require(file >= 0)
    defer {
      close(file)
      unlink(name)
    }
    // The offset of the segment table, and the load address of its first segment, which holds notes.
    let places: [(UInt64, UInt64)] = [(.max - 7, 0), (64, .max)]
    for (table, address) in places {
      var bytes = [UInt8](repeating: 0, count: 4096)
      bytes.replaceSubrange(0..<6, with: [0x7f, 0x45, 0x4c, 0x46, 2, 1])
      for index in 0..<8 {
        bytes[32 + index] = UInt8(truncatingIfNeeded: table >> (8 * index))
        bytes[80 + index] = UInt8(truncatingIfNeeded: address >> (8 * index))
      }
      (bytes[54], bytes[56], bytes[64]) = (56, 1, 4)
      try #require(pwrite(file, bytes, bytes.count, 0) == bytes.count)
      let memory = try #require(mmap(nil, bytes.count, PROT_READ, MAP_PRIVATE, file, 0))
      try #require(Int(bitPattern: memory) != -1)
      defer { munmap(memory, 4096) }
      #expect(!ProcessMemory(process: getpid()).images.isEmpty)
    }
  }

  /// Whether the kernel maps a library, which some emulators do not.
  static let hasKernelLibrary = dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD) != nil

  @Test("a function of the kernel's library has unwind rules", .enabled(if: hasKernelLibrary))
  func kernelLibrary() throws {
    let memory = ProcessMemory(process: getpid())
    let library = try #require(memory.images.first { $0.path == CodeImage.kernelLibrary })
    let time = try #require(dlsym(dlopen("linux-vdso.so.1", RTLD_NOW | RTLD_NOLOAD), Self.time))
    let address = UInt64(UInt(bitPattern: time))
    try #require(library.start..<library.end ~= address)
    #expect(memory.frameRules(at: address) != nil)
    #expect(memory.image(of: address) == library)
  }

  #if arch(x86_64)
    private static let time = "__vdso_clock_gettime"
  #else
    private static let time = "__kernel_clock_gettime"
  #endif
}
