// SPDX-License-Identifier: Apache-2.0

import RunLoopCore

extension Exchange {
  enum Plan {
    /// Deliver the response.
    case deliver
    case follow(HTTP.Hop)
    case authenticate(Challenge)
    case again(after: Duration)
    /// libcurl responds to the proxy by itself.
    case leaveToLibrary
    /// The complete body had arrived earlier.
    case complete
    /// Send the request again without `Expect`, which the server does not support.
    case withoutExpectation
    /// Send the request again on another connection, because the server has not processed it on this one.
    case misdirected
  }

  /// The state of an exchange, from the request to the end of the response.
  ///
  /// Each exchange starts with a new value, so that no state of the previous one remains.
  struct Progress {
    var isFresh = false
    var hasAsked = false
    /// The plan for the response's body; nil until the headers have arrived.
    var plan: Plan?
    var head: Head?
    /// The number of bytes of the body that have arrived, before decoding.
    var wireCount: Int64 = 0
    /// The number of bytes received of a response that is not delivered.
    var drained = 0
    /// The deadline for reading a response that is not delivered.
    var drainDue = Tick.never
    var waitDue = Tick.never
    /// The duration of name lookups in nanoseconds.
    var lookupTime: Int64 = 0
    /// The durations of the phases, once libcurl has ended the transfer.
    var timings = HTTP.Timings()
    var decoder: Decoder?
    /// Whether the body ended while it was held, with part of it still undelivered.
    var hasEndedHeld = false
  }
}

/// The reasons that currently keep a body from being read.
struct BodyHolds: OptionSet {
  let rawValue: UInt8

  /// The user has paused reading.
  static let user = Self(rawValue: 1)
  /// The receiver's buffer is full.
  static let receiver = Self(rawValue: 2)
  /// Decoding continues after other transfers have had a turn.
  static let turn = Self(rawValue: 4)
  /// The interceptors are reviewing the response.
  static let review = Self(rawValue: 8)
  /// The reasons caused by the program, which are visible in the state of the request.
  static let shown: Self = [.user, .receiver]
}

/// The authentication state of a request.
struct Authentication {
  var credential: HTTP.Credential?
  var origin: String?
  var challenge: Challenge?
  var uses: UInt32 = 0
  /// Whether the server has accepted the credential.
  var isAccepted = false
  var failures = 0
  /// The proxy's authentication scheme, if libcurl could not negotiate it because the body cannot be sent again.
  var ofProxy: Int?

  mutating func answer(_ asked: Challenge) {
    challenge = asked
    uses = 0
    isAccepted = false
  }

  /// Returns the value of `Authorization` for a request; nil without a challenge or a credential.
  mutating func authorization(_ method: HTTP.Method, _ target: String, _ body: HTTP.Content?) -> String? {
    guard let credential, let challenge else { return nil }
    uses &+= 1
    let clientNonce = hexadecimal((0..<16).map { _ in UInt8.random(in: .min ... .max) })
    return challenge.answer(
      credential, method: method, target: target, clientNonce: clientNonce, use: uses, body: body)
  }

  /// Resets the state after a redirect to another request.
  mutating func leaveOrigin() {
    challenge = nil
    failures = 0
  }
}
