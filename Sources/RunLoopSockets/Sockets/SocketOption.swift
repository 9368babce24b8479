// SPDX-License-Identifier: Apache-2.0

import CRunLoopSystem
import RunLoopLibC
import RunLoopCore

/// A socket option with its value, as passed to `setsockopt`.
///
/// Options in ``Socket/Options/socketOptions``, ``ListeningSocket/Options/socketOptions`` and
/// ``DatagramSocket/Options/socketOptions`` are set before the socket connects or is bound. ``Socket/set(_:)`` sets
/// them later.
public struct SocketOption: Hashable, Sendable {
  private struct Setting: Hashable {
    let level: Int32
    let name: Int32
    let value: [UInt8]

    init(_ level: Int32, _ name: Int32, _ value: Int32) {
      self.level = level
      self.name = name
      self.value = withUnsafeBytes(of: value) { Array($0) }
    }

    init(_ level: Int32, _ name: Int32, _ value: [UInt8]) {
      self.level = level
      self.name = name
      self.value = value
    }
  }

  /// A human-readable description.
  public let description: String
  /// The calls to make; empty if the value cannot be represented, in which case applying the option fails with
  /// `EINVAL`.
  private let settings: [Setting]

  private init(_ description: String, _ settings: [Setting]) {
    self.description = description
    self.settings = settings
  }

  /// Creates an option from its level, name and bytes.
  ///
  /// - Parameters:
  ///   - level: The level, such as `SOL_SOCKET`.
  ///   - name: The number of the option at that level.
  ///   - value: The bytes of the value.
  public init(level: Int32, name: Int32, value: [UInt8]) {
    self.init("\(level):\(name)", [Setting(level, name, value)])
  }

  /// Creates an option whose value is a C `int`.
  ///
  /// - Parameters:
  ///   - level: The level, such as `SOL_SOCKET`.
  ///   - name: The number of the option at that level.
  ///   - value: The value.
  public init(level: Int32, name: Int32, value: Int32) {
    self.init("\(level):\(name) = \(value)", [Setting(level, name, value)])
  }

  /// Whether several sockets of one user may be bound to the same port, with the system distributing connections
  /// and datagrams among them (`SO_REUSEPORT`).
  public static func reusePort(_ isOn: Bool = true) -> SocketOption {
    SocketOption("SO_REUSEPORT = \(isOn)", [Setting(crl_level_socket, crl_option_reuse_port, isOn ? 1 : 0)])
  }

  /// Whether TCP sends small amounts of data at once (`TCP_NODELAY`).
  public static func noDelay(_ isOn: Bool = true) -> SocketOption {
    SocketOption("TCP_NODELAY = \(isOn)", [Setting(crl_level_tcp, crl_option_no_delay, isOn ? 1 : 0)])
  }

  /// Whether datagrams may be sent to a broadcast address (`SO_BROADCAST`).
  public static func broadcast(_ isOn: Bool = true) -> SocketOption {
    SocketOption("SO_BROADCAST = \(isOn)", [Setting(crl_level_socket, crl_option_broadcast, isOn ? 1 : 0)])
  }

  /// The size in bytes of the system's receive buffer (`SO_RCVBUF`), which the system doubles and limits.
  public static func receiveBuffer(bytes: Int) -> SocketOption {
    buffer("SO_RCVBUF", crl_option_receive_buffer, bytes)
  }

  /// The size in bytes of the system's send buffer (`SO_SNDBUF`), which the system doubles and limits.
  public static func sendBuffer(bytes: Int) -> SocketOption { buffer("SO_SNDBUF", crl_option_send_buffer, bytes) }

  private static func buffer(_ text: String, _ name: Int32, _ bytes: Int) -> SocketOption {
    // The kernel reads a negative number as a very large one.
    SocketOption(
      "\(text) = \(bytes)", bytes < 0 ? [] : [Setting(crl_level_socket, name, Int32(clamping: bytes))])
  }

  /// Makes TCP probe silent peers, and close the connection if a peer does not respond (`SO_KEEPALIVE`,
  /// `TCP_KEEPIDLE`, `TCP_KEEPINTVL`, `TCP_KEEPCNT`).
  ///
  /// - Parameters:
  ///   - idle: The silence before the first probe, in whole seconds, rounded up, from 1 to 32767.
  ///   - interval: The time between two probes, with the same units and range.
  ///   - count: The number of unanswered probes, from 1 to 127, after which the connection fails with `ETIMEDOUT`.
  public static func keepAlive(idle: Duration, interval: Duration, count: Int) -> SocketOption {
    SocketOption(
      "SO_KEEPALIVE(\(idle.text), \(interval.text), \(count))",
      [
        Setting(crl_level_tcp, crl_option_keep_alive_idle, units(of: idle, perSecond: 1)),
        Setting(crl_level_tcp, crl_option_keep_alive_interval, units(of: interval, perSecond: 1)),
        Setting(crl_level_tcp, crl_option_keep_alive_count, Int32(clamping: count)),
        Setting(crl_level_socket, crl_option_keep_alive, 1),
      ])
  }

  /// Disables TCP's probes of silent peers.
  public static let noKeepAlive = SocketOption(
    "SO_KEEPALIVE = false", [Setting(crl_level_socket, crl_option_keep_alive, 0)])

  /// The time that sent data may remain unacknowledged before TCP closes the connection, in whole milliseconds, rounded
  /// up (`TCP_USER_TIMEOUT`); zero leaves the limit to the system.
  public static func userTimeout(_ time: Duration) -> SocketOption {
    SocketOption(
      "TCP_USER_TIMEOUT = \(time.text)",
      [Setting(crl_level_tcp, crl_option_user_timeout, units(of: time, perSecond: 1000))])
  }

  /// Returns a duration in units of 1/`count` seconds, rounded up, or -1, which the system rejects, if it is negative.
  private static func units(of time: Duration, perSecond count: Int64) -> Int32 {
    guard time >= .zero else { return -1 }
    let size = Int128(1_000_000_000_000_000_000 / count)
    let (whole, rest) = time.attoseconds.quotientAndRemainder(dividingBy: size)
    return Int32(clamping: whole + (rest > 0 ? 1 : 0))
  }

  func apply(to descriptor: Int32) throws(SocketError) {
    do throws(SystemError) {
      guard !settings.isEmpty else { throw SystemError(call: SystemCall.socketOption.rawValue, number: EINVAL) }
      for setting in settings {
        _ = try SystemCall.socketOption.make {
          crl_socket_set_option(
            descriptor, setting.level, setting.name, setting.value, UInt32(setting.value.count))
        }
      }
    } catch {
      throw .option(self, error)
    }
  }
}

extension SocketOption: CustomStringConvertible {}

extension OwnedDescriptor {
  func set(_ options: [SocketOption]) throws(SocketError) { for option in options { try option.apply(to: number) } }
}
