// SPDX-License-Identifier: Apache-2.0

public import Foundation

// What Foundation on Apple's systems has and Foundation on Linux has not: pairs of streams.
extension Stream {
  /// Makes the two streams of a connection to a host, which is made when the first of them is opened.
  ///
  /// The host is looked up and all of its addresses are tried, as by `Socket.connect(toHost:)`, on a thread of the
  /// library. Schedule the streams in any modes of any loops with `schedule(in:forMode:)`; their delegates are notified
  /// there. Reading without bytes, writing without space, and both while the connection is being made wait, as on
  /// Apple's systems: a delegate that is notified never waits. The error of a stream is a `HostConnectionError`, or an
  /// error of `NSPOSIXErrorDomain`. An output stream that is closed first ends the connection's writing side; the
  /// descriptor is closed when both streams are released.
  ///
  /// A program sets `Stream.PropertyKey.socketSecurityLevelKey` to `StreamSocketSecurityLevel.negotiatedSSL` for TLS
  /// 1.2 or 1.3 by the system's OpenSSL, with the system's roots and the host's name; `tlSv1` means the same here. It
  /// It may be set on either stream or both, before they are opened or later, as for STARTTLS; then no other thread may
  /// be reading meanwhile. Of Apple's `kCFStreamPropertySSLSettings`, `kCFStreamSSLLevel`, `kCFStreamSSLPeerName` and
  /// `kCFStreamSSLValidatesCertificateChain` are known. For everything else there is
  /// ``Foundation/Stream/PropertyKey/tlsContextKey``. A setting that is not available prevents the connection, with a
  /// ``StreamSecurityError``, whether or not the program checks the result of `setProperty(_:forKey:)`. The streams
  /// open when the connection is secured; the error of a connection that is not is a `SocketError` or a `TLSError`.
  ///
  /// - Parameters:
  ///   - hostname: A name, or a numeric address.
  ///   - port: The port. A number that is not a port makes streams whose opening fails.
  ///   - inputStream: Where to put the stream that reads; with nil there is none.
  ///   - outputStream: Where to put the stream that writes; with nil there is none.
  ///
  /// The corresponding Foundation method has the same name.
  public class func getStreamsToHost(
    withName hostname: String, port: Int, inputStream: UnsafeMutablePointer<InputStream?>?,
    outputStream: UnsafeMutablePointer<OutputStream?>?
  ) {
    let connection = StreamConnection(host: hostname, port: port)
    if let inputStream { inputStream.pointee = PairedInputStream(connection) }
    if let outputStream { outputStream.pointee = PairedOutputStream.make(connection) }
  }

  /// Makes two streams, one of which reads what is written to the other, through a buffer in memory.
  ///
  /// They may be used on different threads, and scheduled in any modes of any loops. Reading waits while the buffer is
  /// empty, writing while it is full, as on Apple's systems: a delegate that is notified never waits. The reader
  /// reaches its end when the writer is closed, and a write fails with `EPIPE` when the reader is closed.
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
    inputStream.pointee = PairedInputStream(buffer)
    outputStream.pointee = PairedOutputStream.make(buffer)
  }
}
