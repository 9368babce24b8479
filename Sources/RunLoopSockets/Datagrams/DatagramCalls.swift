// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

// The system calls of datagram sockets, each under its name for the tests' faults.
extension OwnedDescriptor {
  /// A new socket of datagrams that does not block.
  static func makeDatagrams(_ address: SocketAddress) throws(SystemError) -> OwnedDescriptor {
    OwnedDescriptor(try SystemCall.socket.make { crl_socket_datagram(address.systemFamily) })
  }

  /// A new socket of datagrams that does not block, bound and connected.
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
        // Of datagrams it never waits.
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

/// What is done for every datagram, with the number of the descriptor: a reference would be counted each time.
enum DatagramCall {
  /// Receives a datagram: its length as it was sent, and that of its sender's address; nil: there is none now.
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

  /// Receives a datagram as above, with what came beside it.
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

  /// Sends a datagram; false: there is no room now.
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
      // The queue of the interface is full, which is over as soon.
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
