// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing
import TestSupport

@testable import RunLoopCore
@testable import RunLoopMessages

@Suite("Descriptors in messages", .timeLimit(.minutes(20)))
struct MessagePortDescriptorTests {
  @Test("descriptors are passed in both directions, and every copy is closed once")
  func both() throws {
    let directory = try PortDirectory()
    let there = try RawPipe()
    let back = try RawPipe()
    let server = try PortServer(directory) { request in
      var byte: UInt8 = 65
      for descriptor in request.descriptors { _ = write(descriptor.number, &byte, 1) }
      return MessagePort.Reply([1], descriptors: [MessagePort.Descriptor(owning: back.takeWriting())])
    }
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    var reply = try remote.send(id: 1, descriptors: [there.writing, there.writing], receiveTimeout: .unlimited)
    #expect(reply?.descriptors.count == 1)
    let taken = try #require(reply?.descriptors.first?.take())
    #expect(fcntl(taken, F_GETFD) == FD_CLOEXEC)
    #expect(reply?.descriptors.first?.number == -1)
    reply = nil
    var byte: UInt8 = 66
    #expect(write(taken, &byte, 1) == 1)
    close(taken)
    there.closeWriting()
    there.awaitEnd()
    back.awaitEnd()
    #expect(server.port.statistics.replyCount == 1)
  }

  @Test("a long message may have as many descriptors as a short one", arguments: [0, 100_000])
  func most(size: Int) throws {
    let directory = try PortDirectory()
    let pipe = try RawPipe()
    let server = try PortServer(directory) { request in MessagePort.Reply([UInt8(request.descriptors.count)]) }
    let remote = try MessagePort.Remote(name: "a", directory: directory.place)
    let bytes = [UInt8](repeating: 3, count: size)
    func ask(_ count: Int, of descriptor: Int32) throws(MessagePortError) -> [UInt8]? {
      try remote.send(
        id: 1, bytes: bytes, descriptors: Array(repeating: descriptor, count: count), receiveTimeout: .unlimited
      )?.bytes
    }
    #expect(try ask(252, of: pipe.writing) == [252])
    #expect(
      portError { () throws(MessagePortError) in try ask(253, of: pipe.writing) }
        == .tooManyDescriptors(253, limit: 252))
    pipe.closeWriting()
    #expect(
      portError { () throws(MessagePortError) in try ask(1, of: -1) }
        == .system(SystemError(call: "sendmsg", number: EBADF)))
    pipe.awaitEnd()
    #expect(server.port.isValid && remote.isValid)
  }

  @Test("descriptors that are not received are closed: with the port, a dead sender, or a late reply")
  func dropped() async throws {
    let directory = try PortDirectory()
    let pipe = try RawPipe()
    let late = try RawPipe()
    let port = try MessagePort.Local(name: "a", directory: directory.place)
    do {
      let remote = try MessagePort.Remote(name: "a", directory: directory.place)
      // First a message that is received and never taken, then a reply whose sender has ended.
      try remote.send(id: 1, descriptors: [pipe.writing])
      let requests = port.requests.makeAsyncIterator()
      #expect(await requests.next()?.descriptors.count == 1)
      #expect(
        portError { () throws(MessagePortError) in try remote.send(id: 2, receiveTimeout: .milliseconds(1)) }
          == .receiveTimedOut)
      let request = await requests.next()
      request?.reply(.init([], descriptors: [.init(owning: late.takeWriting())]))
      try remote.send(id: 3, descriptors: [pipe.writing, pipe.writing])
      remote.invalidate()
    }
    pipe.closeWriting()
    port.invalidate()
    late.awaitEnd()
    pipe.awaitEnd()
  }

  @Test("a descriptor object closes once, and not what was taken from it")
  func object() throws {
    let pipe = try RawPipe()
    let copy = try MessagePort.Descriptor(duplicating: pipe.writing)
    let owner = MessagePort.Descriptor(owning: pipe.writing)
    #expect(owner.take() == pipe.writing)
    #expect(owner.take() == nil && owner.number == -1)
    owner.close()
    #expect(fcntl(pipe.writing, F_GETFD) >= 0)
    pipe.closeWriting()
    copy.close()
    copy.close()
    pipe.awaitEnd()
    #expect(throws: SystemError(call: "fcntl (F_DUPFD_CLOEXEC)", number: EBADF)) {
      try MessagePort.Descriptor(duplicating: -1)
    }
  }
}
