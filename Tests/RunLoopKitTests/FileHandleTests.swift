// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import RunLoopKit
import Testing

@Suite("File handles that notify on the loop of the thread that asked", .timeLimit(.minutes(20)))
struct FileHandleTests {
  @Test("read data is posted on the requesting thread in the running mode, and ends the run")
  func read() async throws {
    let seen = try await valueOnThread {
      let pipe = Pipe()
      let notifications = Notifications(FileHandle.readCompletionNotification, of: pipe.fileHandleForReading)
      pipe.fileHandleForReading.readInBackgroundAndNotify(forModes: [.default])
      pipe.fileHandleForWriting.write(Data("hello".utf8))
      #expect(RunLoop.current.run(mode: .default, before: .distantFuture))
      return notifications.seen
    }
    #expect(seen == ["hello in kCFRunLoopDefaultMode"])
  }

  @Test("a background read keeps its loop alive until it has been notified, and no longer")
  func aliveUntilTold() async throws {
    let seen = try await valueOnThread {
      let pipe = Pipe()
      let notifications = Notifications(FileHandle.readCompletionNotification, of: pipe.fileHandleForReading)
      pipe.fileHandleForReading.readInBackgroundAndNotify(forModes: [.common])
      DispatchQueue.global().async { pipe.fileHandleForWriting.write(Data("later".utf8)) }
      RunLoop.current.run()
      return notifications.seen
    }
    #expect(seen == ["later in kCFRunLoopDefaultMode"])
  }

  @Test("a read's notification waits for one of its modes")
  func modes() async throws {
    let seen = try await valueOnThread {
      let pipe = Pipe()
      let notifications = Notifications(FileHandle.readCompletionNotification, of: pipe.fileHandleForReading)
      let modes: [RunLoop.Mode]? = [RunLoop.Mode("first"), RunLoop.Mode("second")]
      pipe.fileHandleForReading.readInBackgroundAndNotify(forModes: modes)
      pipe.fileHandleForWriting.write(Data("hello".utf8))
      #expect(!RunLoop.current.run(mode: .default, before: .distantFuture))
      #expect(notifications.seen.isEmpty)
      #expect(RunLoop.current.run(mode: RunLoop.Mode("second"), before: .distantFuture))
      #expect(!RunLoop.current.run(mode: RunLoop.Mode("first"), before: .distantFuture))
      return notifications.seen
    }
    #expect(seen == ["hello in second"])
  }

  @Test("a file handle is read to its end even while the loop does not run")
  func readToEnd() async throws {
    // More than the pipe holds, so the writer finishes only if the pipe is read.
    let count = 1 << 20
    let seen = try await valueOnThread {
      let pipe = Pipe()
      let notifications = Notifications(.NSFileHandleReadToEndOfFileCompletion, of: pipe.fileHandleForReading)
      pipe.fileHandleForReading.readToEndOfFileInBackgroundAndNotify(forModes: [.default])
      try pipe.fileHandleForWriting.write(contentsOf: Data(repeating: 0x61, count: count))
      try pipe.fileHandleForWriting.close()
      RunLoop.current.run()
      return notifications.seen
    }
    #expect(seen == [String(repeating: "a", count: count) + " in kCFRunLoopDefaultMode"])
  }

  @Test("a read at the end of a file returns no bytes")
  func end() async throws {
    let seen = try await valueOnThread {
      let pipe = Pipe()
      let notifications = Notifications(FileHandle.readCompletionNotification, of: pipe.fileHandleForReading)
      try pipe.fileHandleForWriting.close()
      pipe.fileHandleForReading.readInBackgroundAndNotify(forModes: [.default])
      RunLoop.current.run()
      return notifications.seen
    }
    #expect(seen == [" in kCFRunLoopDefaultMode"])
  }

  @Test("data that a handle waited for can still be read")
  func wait() async throws {
    let (seen, rest) = try await valueOnThread {
      let pipe = Pipe()
      let notifications = Notifications(.NSFileHandleDataAvailable, of: pipe.fileHandleForReading)
      pipe.fileHandleForReading.waitForDataInBackgroundAndNotify(forModes: [.default])
      pipe.fileHandleForWriting.write(Data("hello".utf8))
      RunLoop.current.run()
      return (notifications.seen, pipe.fileHandleForReading.availableData)
    }
    #expect(seen == ["nothing in kCFRunLoopDefaultMode"])
    #expect(String(decoding: rest, as: UTF8.self) == "hello")
  }

  @Test("the notification contains the accepted connection, which can be used")
  func accept() async throws {
    let greeting = try await valueOnThread {
      let listener = try listen()
      let notifications = Notifications(.NSFileHandleConnectionAccepted, of: listener.handle)
      listener.handle.acceptConnectionInBackgroundAndNotify(forModes: [.default])
      let client = try listener.connect()
      client.write(Data("hello".utf8))
      RunLoop.current.run()
      return notifications.connection?.availableData
    }
    #expect(greeting.map { String(decoding: $0, as: UTF8.self) } == "hello")
  }

  @Test("a descriptor that cannot be waited for is read at once", arguments: ["/dev/null", #filePath])
  func files(_ path: String) async throws {
    let seen = try await valueOnThread {
      let handle = try #require(FileHandle(forReadingAtPath: path))
      let notifications = Notifications(.NSFileHandleReadToEndOfFileCompletion, of: handle)
      handle.readToEndOfFileInBackgroundAndNotify(forModes: [.default])
      RunLoop.current.run()
      return notifications.seen
    }
    let content = try FileHandle(forReadingAtPath: path)?.readToEnd() ?? Data()
    #expect(seen == ["\(String(decoding: content, as: UTF8.self)) in kCFRunLoopDefaultMode"])
  }

  @Test(
    "a handle that is open only for writing cannot be read, whether its pipe has a reader or not",
    arguments: [true, false])
  func error(hasReader: Bool) async throws {
    let seen = try await valueOnThread {
      let pipe = Pipe()
      defer { withExtendedLifetime(pipe) {} }
      let notifications = Notifications(FileHandle.readCompletionNotification, of: pipe.fileHandleForWriting)
      if !hasReader { try pipe.fileHandleForReading.close() }
      pipe.fileHandleForWriting.readInBackgroundAndNotify(forModes: [.default])
      RunLoop.current.run()
      return notifications.seen
    }
    #expect(seen == ["error \(EBADF)  in kCFRunLoopDefaultMode"])
  }

  @Test(
    "background requests on a closed handle are errors",
    arguments: [FileHandle.readCompletionNotification, .NSFileHandleDataAvailable])
  func closed(_ name: Notification.Name) async throws {
    let seen = try await valueOnThread {
      let handle = Pipe().fileHandleForReading
      try handle.close()
      let notifications = Notifications(name, of: handle)
      if name == .NSFileHandleDataAvailable {
        handle.waitForDataInBackgroundAndNotify(forModes: [.default])
      } else {
        handle.readInBackgroundAndNotify(forModes: [.default])
      }
      RunLoop.current.run()
      return notifications.seen
    }
    #expect(seen.map { $0.hasPrefix("error \(EBADF) ") } == [true])
  }

  @Test("the next read can begin in the notification of the last one")
  func chain() async throws {
    let seen = try await valueOnThread {
      let pipe = Pipe()
      let handle = pipe.fileHandleForReading
      let notifications = Notifications(FileHandle.readCompletionNotification, of: handle) { count in
        guard count < 3 else { return }
        handle.readInBackgroundAndNotify(forModes: [.default])
        pipe.fileHandleForWriting.write(Data("\(count)".utf8))
      }
      handle.readInBackgroundAndNotify(forModes: [.default])
      pipe.fileHandleForWriting.write(Data("0".utf8))
      RunLoop.current.run()
      return notifications.seen
    }
    #expect(seen.map { $0.prefix(1) } == ["0", "1", "2"])
  }

  @Test("a handle is released when the requesting thread ends")
  func threadEnds() async throws {
    let writing = try await valueOnThread {
      let pipe = Pipe()
      pipe.fileHandleForReading.readInBackgroundAndNotify(forModes: [.default])
      return pipe.fileHandleForWriting
    }
    // The pipe has no reader once its handle has been released.
    var entry = pollfd(fd: writing.fileDescriptor, events: 0, revents: 0)
    #expect(poll(&entry, 1, -1) == 1)
    #expect(entry.revents & Int16(POLLERR) != 0)
  }
}

/// Records the notifications of a handle that are posted on the thread that created this object.
private final class Notifications: @unchecked Sendable {
  // Sendable: used only on the thread that created it; other uses are recorded as errors.
  private(set) var seen: [String] = []
  private(set) var connection: FileHandle?
  private let thread = Thread.current
  private var observer: (any NSObjectProtocol)?

  init(_ name: Notification.Name, of handle: FileHandle, also: @escaping @Sendable (Int) -> Void = { _ in }) {
    observer = NotificationCenter.default.addObserver(forName: name, object: handle, queue: nil) { [unowned self] in
      note($0.userInfo ?? [:])
      also(seen.count)
    }
  }

  private func note(_ userInfo: [AnyHashable: Any]) {
    connection = userInfo[NSFileHandleNotificationFileHandleItem] as? FileHandle
    let data = (userInfo[NSFileHandleNotificationDataItem] as? Data).map { String(decoding: $0, as: UTF8.self) }
    let error = (userInfo["NSFileHandleError"] as? Int).map { "error \($0) " } ?? ""
    let place = Thread.current == thread ? RunLoop.current.currentMode?.rawValue ?? "no mode" : "another thread"
    seen.append("\(error)\(data ?? "nothing") in \(place)")
  }

  deinit {
    if let observer { NotificationCenter.default.removeObserver(observer) }
  }
}

private struct ListeningSocket {
  let handle: FileHandle
  fileprivate let address: sockaddr_in

  func connect() throws -> FileHandle {
    let client = FileHandle(fileDescriptor: socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0), closeOnDealloc: true)
    let answer = withSocketAddress(address) { Glibc.connect(client.fileDescriptor, $0, $1) }
    try #require(answer == 0)
    return client
  }
}

private func listen() throws -> ListeningSocket {
  let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
  let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
  try #require(withSocketAddress(address) { bind(descriptor, $0, $1) } == 0)
  try #require(Glibc.listen(descriptor, 1) == 0)
  var length = socklen_t(MemoryLayout<sockaddr_in>.size)
  let answer = withUnsafeMutablePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
  }
  try #require(answer == 0)
  return ListeningSocket(handle: handle, address: address)
}

private func withSocketAddress<Value>(
  _ address: sockaddr_in, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Value
) -> Value {
  withUnsafePointer(to: address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
  }
}
