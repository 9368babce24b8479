// SPDX-License-Identifier: Apache-2.0

import Foundation
import RunLoopKit
import XCTest
import TestSupport

// The assertions of Foundation's public tests about socket ports, on the real main thread. The ports are
// Foundation's; the loop, the delegate and its messages are this package's.
final class MainThreadSocketPortTests: XCTestCase {
  override func tearDown() {
    RunLoop.main.stopServingCoreFoundation()
    serveWithoutACallAgain()
  }

  private func number(of port: SocketPort) throws -> UInt16 {
    let address = port.address
    let family = address.withUnsafeBytes { Int32($0.load(as: sa_family_t.self)) }
    XCTAssertTrue([AF_INET, AF_INET6].contains(family))
    // Both kinds of addresses have it at the same offset.
    return address.withUnsafeBytes { $0.load(fromByteOffset: 2, as: in_port_t.self).bigEndian }
  }

  func testPortsOfOneRemoteAddressAreOne() {
    let (first, second) = (
      SocketPort(remoteWithTCPPort: 10_000, host: "localhost"), SocketPort(remoteWithTCPPort: 10_000, host: "localhost")
    )
    XCTAssertNotNil(first)
    XCTAssertEqual(first, second)
  }

  func testAPortPicksANumberThatAnybodyMayHave() throws {
    let port = try XCTUnwrap(SocketPort(tcpPort: 0))
    defer { port.invalidate() }
    XCTAssertGreaterThanOrEqual(try number(of: port), 1024)
  }

  // L19: Foundation loses messages shorter than twelve bytes.
  func testAMessageReachesADelegateOfOursOnTheMainLoop() throws {
    let local = try XCTUnwrap(SocketPort(tcpPort: 0))
    let remote = try XCTUnwrap(SocketPort(remoteWithTCPPort: try number(of: local), host: "localhost"))
    defer {
      local.invalidate()
      remote.invalidate()
    }
    let data = Data("she has no time to weave".utf8)
    let received = Box<[Bool]>([])
    let delegate = ClosureDelegate { message in
      let isRight = message.components as? [AnyHashable] == [data as NSData] && message.msgid == 7
      received.value.append(isRight && Thread.isMainThread && RunLoop.main.currentMode == .default)
    }
    local.setDelegate(delegate)
    let found: (any PortDelegate)? = local.delegate()
    XCTAssertTrue(found === delegate)
    for port in [local, remote] { RunLoop.main.add(port, forMode: .default) }
    let parts = NSMutableArray(array: [data])
    XCTAssertTrue(
      remote.send(before: Date(timeIntervalSinceNow: 600), msgid: 7, components: parts, from: nil, reserved: 0))
    while received.value.isEmpty { XCTAssertTrue(RunLoop.main.run(mode: .default, before: .distantFuture)) }
    XCTAssertEqual(received.value, [true])
    local.setDelegate(nil)
    let left: (any PortDelegate)? = local.delegate()
    XCTAssertNil(left)
    for port in [local, remote] { RunLoop.main.remove(port, forMode: .default) }
  }

  func testADelegateOfOursIsNotKeptAndNothingReachesOneThatIsGone() throws {
    let local = try XCTUnwrap(SocketPort(tcpPort: 0))
    defer { local.invalidate() }
    weak var gone: ClosureDelegate?
    do {
      let delegate = ClosureDelegate { _ in XCTFail("called") }
      local.setDelegate(delegate)
      gone = delegate
    }
    XCTAssertNil(gone)
    let found: (any PortDelegate)? = local.delegate()
    XCTAssertNil(found)
  }

  func testAMessageOfOursGoesBetweenSocketPortsAndNamesThem() throws {
    let local = try XCTUnwrap(SocketPort(tcpPort: 0))
    let back = try XCTUnwrap(SocketPort(tcpPort: 0))
    let remote = try XCTUnwrap(SocketPort(remoteWithTCPPort: try number(of: local), host: "localhost"))
    let ports = [local, back, remote]
    defer { for port in ports { port.invalidate() } }
    let received = Box<[Bool]>([])
    let delegate = ClosureDelegate { message in
      let parts = message.components as? [NSData]
      received.value.append(
        message.sendPort == nil && message.receivePort == nil && message.foundationSendPort is SocketPort
          && message.foundationReceivePort === local && message.msgid == 9
          && parts == [NSData(data: Data("long enough for it".utf8))])
    }
    local.setDelegate(delegate)
    for port in ports { RunLoop.main.add(port, forMode: .default) }
    let part = NSData(data: Data("long enough for it".utf8))
    let message = PortMessage(sendPort: remote, receivePort: back, components: [part])
    message.msgid = 9
    XCTAssertTrue(message.foundationSendPort === remote)
    XCTAssertTrue(message.foundationReceivePort === back)
    let ours: Port? = message.sendPort
    XCTAssertNil(ours)
    XCTAssertTrue(message.send(before: Date(timeIntervalSinceNow: 600)))
    while received.value.isEmpty { XCTAssertTrue(RunLoop.main.run(mode: .default, before: .distantFuture)) }
    XCTAssertEqual(received.value, [true])
    local.setDelegate(nil)
    for port in ports { RunLoop.main.remove(port, forMode: .default) }
  }

  func testAMessageWithoutAPortIsNotSent() {
    let none: Foundation.Port? = nil
    XCTAssertFalse(PortMessage(sendPort: none, receivePort: none, components: []).send(before: .distantFuture))
    XCTAssertFalse(PortMessage(sendPort: nil, receivePort: nil, components: []).send(before: .distantFuture))
  }
}
