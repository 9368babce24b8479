// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

// The system calls of datagram sockets, each made under its name so that tests can inject faults.
extension OwnedDescriptor {
  static func makeDatagrams(_ address: SocketAddress) throws(SystemError) -> OwnedDescriptor {
    OwnedDescriptor(try SystemCall.socket.make { crl_socket_datagram(address.systemFamily) })
  }

  /// Creates a nonblocking datagram socket, and binds and connects it.
  static func makeDatagram(
    _ first: SocketAddress, _ address: SocketAddress?, _ peer: SocketAddress?, _ options: DatagramSocket.Options,
    _ file: inout SocketFile?
  ) throws(DatagramError) -> OwnedDescriptor {
    let made: OwnedDescriptor
    do throws(SystemError) {
      made = try makeDatagrams(first)
      if first.family == .ipv6 { try made.setIPv6Only() }
    } catch {
      throw .system(error, address: first)
    }
    for option in options.socketOptions { try option.applyToDatagrams(of: made.number) }
    if let address {
      do throws(SystemError) {
        try made.bind(address, options, &file)
      } catch {
        throw .system(error, address: address)
      }
    }
    if let peer {
      do throws(SystemError) {
        // Connecting a datagram socket never waits.
        _ = try SystemCall.connect.makeUninterrupted { peer.withBytes { crl_socket_connect(made.number, $0, $1) } }
      } catch {
        throw .system(error, address: peer)
      }
    }
    return made
  }

  private func bind(
    _ address: SocketAddress, _ options: DatagramSocket.Options, _ file: inout SocketFile?
  ) throws(SystemError) {
    guard options.replacesStaleFile, let path = address.pathText else {
      return try bind(address, fileMode: options.fileMode, &file)
    }
    try SocketFile.replacing(address, path, isOfDatagrams: true) { () throws(SystemError) in
      try bind(address, fileMode: options.fileMode, &file)
    }
  }
}

/// The calls made for every datagram, which use the descriptor's number to avoid reference counting.
enum DatagramCall {
  /// Receives a datagram, and returns its original length and that of its sender's address, or `nil` if none has
  /// arrived.
  @inline(__always)
  static func receive(
    from descriptor: Int32, _ bytes: UnsafeMutableRawBufferPointer, sender: UnsafeMutableRawBufferPointer
  ) throws(SystemError) -> (count: Int, senderCount: Int)? {
    var length = UInt32(sender.count)
    do {
      let count = try SystemCall.datagramReceive.makeUninterrupted {
        crl_datagram_receive(descriptor, bytes.baseAddress, UInt32(bytes.count), sender.baseAddress, &length)
      }
      return (Int(count), Int(length))
    } catch {
      guard error.number == EAGAIN else { throw error }
      return nil
    }
  }

  static func receive(
    from descriptor: Int32, _ bytes: UnsafeMutableRawBufferPointer, sender: UnsafeMutableRawBufferPointer,
    _ wanted: DatagramExtras
  ) throws(SystemError) -> (count: Int, senderCount: Int, extras: Datagram.Extras?)? {
    let received = Ancillary.withOne { ancillary in
      Result { () throws(SystemError) -> (Int, Int, Datagram.Extras?)? in
        var length = UInt32(sender.count)
        do throws(SystemError) {
          let count = try SystemCall.datagramReceive.makeUninterrupted {
            crl_ancillary_receive(
              descriptor, bytes.baseAddress, bytes.count, sender.baseAddress, &length, ancillary.memory)
          }
          var passed = PassedDescriptors()
          if ancillary.hasDescriptors {
            passed.take(ancillary, limit: wanted.maximumDescriptorCount, wanted.closing)
          }
          return (Int(count), Int(length), wanted.make(ancillary, passed))
        } catch {
          guard error.number == EAGAIN else { throw error }
          return nil
        }
      }
    }
    return try received.get()
  }

  /// Sends a datagram, or returns false if there is no room.
  @inline(__always)
  static func send(
    _ bytes: UnsafeRawBufferPointer, to address: SocketAddress?, from source: SocketAddress?, by descriptor: Int32
  ) throws(SystemError) -> Bool {
    do {
      _ = try SystemCall.datagramSend.makeUninterrupted {
        if let source { return send(bytes, to: address, source, by: descriptor) }
        guard let address else { return crl_datagram_send(descriptor, bytes.baseAddress, bytes.count, nil, 0) }
        return address.withBytes { crl_datagram_send(descriptor, bytes.baseAddress, bytes.count, $0, $1) }
      }
      return true
    } catch {
      // With `ENOBUFS`, the interface's queue is full, which is as temporary as `EAGAIN`.
      guard error.number == EAGAIN || error.number == ENOBUFS else { throw error }
      return false
    }
  }

  @inline(never)
  private static func send(
    _ bytes: UnsafeRawBufferPointer, to address: SocketAddress?, _ source: SocketAddress, by descriptor: Int32
  ) -> Int32 {
    source.withBytes { source, sourceCount in
      guard let address else {
        return crl_datagram_send_from(descriptor, bytes.baseAddress, bytes.count, nil, 0, source, sourceCount)
      }
      return address.withBytes {
        crl_datagram_send_from(descriptor, bytes.baseAddress, bytes.count, $0, $1, source, sourceCount)
      }
    }
  }
}

extension SocketOption {
  func applyToDatagrams(of descriptor: Int32) throws(DatagramError) {
    do throws(SocketError) {
      try apply(to: descriptor)
    } catch {
      guard case .option(let option, let reason) = error else { return }
      throw .option(option, reason)
    }
  }
}
