// SPDX-License-Identifier: Apache-2.0

import RunLoopCore
import RunLoopSockets
import RunLoopThreads
import TestSupport

@testable import RunLoopHTTP

/// A server of unencrypted HTTP/2 without negotiation.
///
/// It responds to every request with a text, and closes a connection that sends anything but frames.
final class FrameServer: Sendable {
  private let thread: ResidentThread
  private let listener: ListeningSocket
  private let connections = Box<[Socket]>([])
  let accepted = Counter()
  /// The number of requests that the server has responded to.
  let answered = Counter()
  /// The number of connections that sent invalid HTTP/2.
  let broken = Counter()

  /// Starts a server that responds with a text, or with the given frames.
  ///
  /// - Parameters:
  ///   - frames: Returns the frames to send for a stream's request, or nil to cut the connection. If it is nil, the
  ///     server sends a regular response.
  ///   - isLate: Whether the server responds only after the client has acknowledged the settings, so that the client
  ///     reads the response in a separate call.
  init(_ text: String, isLate: Bool = false, frames: (@Sendable (UInt32) -> [UInt8]?)? = nil) throws {
    thread = try ResidentThread(name: "FrameServer")
    listener = try ListeningSocket(at: .loopback(port: 0))
    let (loop, connections) = (thread.runLoop, connections)
    listener.handler = { [accepted, answered, broken] _, event in
      guard case .accepted(let socket) = event else { return }
      accepted.add()
      let input = Box(Input(isLate: isLate))
      socket.handler = { socket, event in
        switch event {
        case .received(let bytes):
          let bytes = bytes.withUnsafeBytes { Array($0) }
          for frame in input.update({ $0.take(bytes) }) {
            switch frame {
            case .settings: _ = try? socket.write(Self.frame(4, flags: 1, []))
            case .request(let stream):
              answered.add()
              if let frames {
                if let bytes = frames(stream) { _ = try? socket.write(bytes) } else { socket.invalidate() }
                continue
              }
              _ = try? socket.write(Self.response(text, of: stream))
            case .broken:
              broken.add()
              socket.invalidate()
            }
          }
        case .ended: socket.shutDown(.write)
        case .closed, .connected, .readable, .writable: break
        }
      }
      connections.update { $0.append(socket) }
      try? loop.add(socket, forMode: .default)
      _ = try? socket.write(Self.frame(4, []))
    }
    try loop.add(listener, forMode: .default)
  }

  var url: String { "http://127.0.0.1:\(listener.address.port ?? 0)/" }

  deinit {
    listener.invalidate()
    for socket in connections.value { socket.invalidate() }
    thread.stop()
  }

  /// The status 200 of the static table, and the body with END_STREAM.
  static func response(_ text: String, of stream: UInt32) -> [UInt8] {
    frame(1, flags: 4, of: stream, [0x88]) + frame(0, flags: 1, of: stream, Array(text.utf8))
  }

  static func frame(_ type: UInt8, flags: UInt8 = 0, of stream: UInt32 = 0, _ bytes: [UInt8]) -> [UInt8] {
    func four(_ number: UInt32) -> [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) } }
    return four(UInt32(bytes.count))[1...] + [type, flags] + four(stream) + bytes
  }

  private enum Frame {
    case settings
    case request(UInt32)
    case broken
  }

  /// Parses the frames of a connection.
  private struct Input {
    private var bytes: [UInt8] = []
    private var hasBegun = false
    private var isBroken = false
    /// The requests that wait for the settings to be acknowledged, or nil afterwards.
    private var early: [Frame]?

    init(isLate: Bool) { early = isLate ? [] : nil }

    mutating func take(_ more: [UInt8]) -> [Frame] {
      bytes += more
      var frames: [Frame] = []
      if !hasBegun {
        let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)
        guard bytes.count >= preface.count else { return [] }
        hasBegun = true
        isBroken = !bytes.starts(with: preface)
        bytes.removeFirst(preface.count)
        if isBroken { frames.append(.broken) }
      }
      while !isBroken, bytes.count >= 9 {
        let length = bytes[..<3].reduce(0) { $0 << 8 | Int($1) }
        // An unknown frame type, as in a second preface.
        guard bytes[3] <= 9, length <= 16384 else {
          isBroken = true
          frames.append(.broken)
          break
        }
        guard bytes.count >= 9 + length else { break }
        let stream = bytes[5..<9].reduce(0) { $0 << 8 | UInt32($1) }
        switch (bytes[3], bytes[4] & 1) {
        case (1, _): if early == nil { frames.append(.request(stream)) } else { early?.append(.request(stream)) }
        case (4, 0): frames.append(.settings)
        case (4, _):
          frames += early ?? []
          early = nil
        default: break
        }
        bytes.removeFirst(9 + length)
      }
      return frames
    }
  }
}
