// SPDX-License-Identifier: Apache-2.0

import Synchronization

extension MessagePort {
  /// A message that a local port has received.
  ///
  /// Can be used from any thread.
  public final class Request: Sendable {
    /// The ID that the sender assigned to the message.
    public let id: Int32
    /// The payload.
    public let bytes: [UInt8]
    /// The open descriptors of the message, which are closed with it unless they are taken.
    public let descriptors: [Descriptor]
    /// The credentials of the sender.
    public let sender: Credentials
    /// Whether the sender is waiting for a reply.
    public let expectsReply: Bool

    private let token: UInt64
    /// The connection that receives the reply, retained until the reply is sent.
    private let client: Atomic<Unmanaged<LocalClient>?>

    init(_ frame: MessageFrame, _ bytes: [UInt8], _ descriptors: [Descriptor], from client: LocalClient) {
      id = frame.id
      self.bytes = bytes
      self.descriptors = descriptors
      sender = client.credentials
      expectsReply = frame.kind == .request
      token = frame.token
      self.client = Atomic(Unmanaged.passRetained(client))
    }

    private func takeClient() -> LocalClient? {
      client.exchange(nil, ordering: .acquiringAndReleasing)?.takeRetainedValue()
    }

    /// A request that was not replied to gets no reply, and the sender is notified of that.
    deinit { reply(nil) }

    /// Sends the reply, or notifies the sender that there is none.
    ///
    /// Only the first call has an effect. Nothing is sent if the sender expects no reply or has closed the connection,
    /// which is counted in ``Local/Statistics/droppedReplyCount``. Does not block; a reply that the sender does not
    /// read is queued.
    public func reply(_ reply: Reply?) {
      guard let client = takeClient() else { return }
      if expectsReply { client.answer(token, bytes.count, reply) } else { client.noteReceived(token, bytes.count) }
    }

    func reject(_ reason: Rejection) { takeClient()?.reject(token, bytes.count, reason) }

    func noteTaken() { if !expectsReply { reply(nil) } }
  }
}

extension MessagePort.Request: CustomDebugStringConvertible {
  /// The message's ID and size.
  public var debugDescription: String {
    "<MessagePort.Request>{id = \(id), bytes = \(bytes.count), descriptors = \(descriptors.count), "
      + "expects reply = \(expectsReply ? "Yes" : "No")}"
  }
}
