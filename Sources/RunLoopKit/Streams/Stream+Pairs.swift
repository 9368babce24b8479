// SPDX-License-Identifier: Apache-2.0

public import Foundation

// What Foundation on Apple's systems has and Foundation on Linux has not: pairs of streams.
extension Stream {
  /// Makes the two streams of a connection to a host, which is made when the first of them is opened.
  ///
  /// The host is looked up and all of its addresses are tried, as `Socket.connect(toHost:)` does, on a thread of the
  /// library's. Schedule the streams in any modes of any loops with `schedule(in:forMode:)`; their delegates are notified
  /// there. Reading without bytes, writing without space, and both while the connection is being made wait, as on Apple's
  /// systems: a delegate that is notified never waits. The error of a stream is a `HostConnectionError`, or one of
  /// `NSPOSIXErrorDomain`. An output stream that is closed first ends the connection's writing side; the descriptor is
  /// closed when both streams are released.
  ///
  /// There is no TLS: `setProperty(_:forKey:)` returns false for the security level, as for all keys.
  ///
  /// - Parameters:
  ///   - hostname: A name, or a numeric address.
  ///   - port: The port. One that is none makes streams whose opening fails.
  ///   - inputStream: Where to put the stream that reads; nil: there is none.
  ///   - outputStream: Where to put the stream that writes; nil: there is none.
  ///
  /// The corresponding Foundation method has the same name.
  public class func getStreamsToHost(
    withName hostname: String, port: Int, inputStream: UnsafeMutablePointer<InputStream?>?,
    outputStream: UnsafeMutablePointer<OutputStream?>?
  ) {
    let connection = StreamConnection(host: hostname, port: port)
    if let inputStream { inputStream.pointee = HostInputStream(connection) }
    if let outputStream { outputStream.pointee = HostOutputStream.make(connection) }
  }

  /// Makes two streams of which one reads what is written to the other, through a buffer in memory.
  ///
  /// They may be used on different threads, and scheduled in any modes of any loops. Reading waits while the buffer is
  /// empty, writing while it is full, as on Apple's systems: a delegate that is notified never waits. The reader's end
  /// comes when the writer is closed, and a write fails with `EPIPE` when the reader is.
  ///
  /// - Parameters:
  ///   - bufferSize: How many bytes the buffer has, at least one.
  ///   - inputStream: Where to put the stream that reads.
  ///   - outputStream: Where to put the stream that writes.
  ///
  /// The corresponding Foundation method has the same name.
  public class func getBoundStreams(
    withBufferSize bufferSize: Int, inputStream: UnsafeMutablePointer<InputStream?>,
    outputStream: UnsafeMutablePointer<OutputStream?>
  ) {
    let buffer = StreamBuffer(capacity: bufferSize)
    inputStream.pointee = BoundInputStream(buffer)
    outputStream.pointee = BoundOutputStream.make(buffer)
  }
}
