// SPDX-License-Identifier: Apache-2.0

import Dispatch
public import Foundation
public import FoundationNetworking
import RunLoopCore

/// An HTTP request as an operation, with a serializer that validates and parses the response.
///
/// This is the class of the same name in AFNetworking 2.
open class AFHTTPRequestOperation: AFURLConnectionOperation, @unchecked Sendable {
  // Sendable: the condition guards the serialized response; the program sets properties before the start.

  /// Validates and parses the response; by default, it accepts any body with a status of success.
  open var responseSerializer = AFHTTPResponseSerializer()

  private let condition = NSCondition()
  // Guarded by the condition.
  private var answer: Serialized?
  /// The thread that is parsing the response, if any.
  private var reader: pthread_t?

  private static let processing = DispatchQueue(label: "AFNetworking.processing", attributes: .concurrent)

  /// The response's status and headers, once they have arrived.
  public var httpResponse: HTTPURLResponse? { response as? HTTPURLResponse }

  /// The serializer's result; nil before the end, and inside the serializer itself.
  ///
  /// As in AFNetworking, it may exist in addition to an ``error`` about the response's status.
  open var responseObject: Any? { serialized.object }

  open override var error: (any Error)? { super.error ?? (isFinished ? serialized.error : nil) }

  /// Returns a copy with the same serializer; see ``AFURLConnectionOperation/copy(with:)``.
  open override func copy(with zone: NSZone?) -> Any {
    let copy = super.copy(with: zone)
    (copy as? AFHTTPRequestOperation)?.responseSerializer = responseSerializer
    return copy
  }

  /// The parsed response, created on first access.
  ///
  /// As in AFNetworking, other threads wait meanwhile. The serializer itself, for which there is no result yet, does
  /// not.
  private var serialized: Serialized {
    guard isFinished, super.error == nil else { return Serialized() }
    let caller = pthread_self()
    condition.lock()
    while let reader {
      guard reader != caller else {
        condition.unlock()
        return Serialized()
      }
      condition.wait()
    }
    if let answer {
      condition.unlock()
      return answer
    }
    reader = caller
    condition.unlock()
    let made = Serialized(by: responseSerializer, response, responseData)
    condition.lock()
    answer = made
    reader = nil
    condition.broadcast()
    condition.unlock()
    return made
  }

  /// Sets the success and failure blocks; the finished operation calls one on `completionQueue` or the main queue.
  ///
  /// Unlike in AFNetworking, it does not use `completionBlock`, and can be called several times. If the operation has
  /// already finished, a block is called right away.
  open func setCompletionBlockWithSuccess(
    _ success: (@Sendable (AFHTTPRequestOperation, Any?) -> Void)?,
    failure: (@Sendable (AFHTTPRequestOperation, any Error) -> Void)? = nil
  ) {
    let (queue, entry) = (completionQueue ?? .main, completionGroup.map { GroupEntry($0) })
    // A strong reference would keep an operation that is never started.
    whenFinished { [weak self] in
      guard let self else { return }
      Self.processing.async { [self] in
        _ = serialized
        queue.async { [self] in
          if let error { failure?(self, error) } else { success?(self, responseObject) }
          withExtendedLifetime(entry) {}
        }
      }
    }
  }
}

/// Enters a group, and leaves it when the last reference is released, also by an operation that is never started.
private final class GroupEntry: Sendable {
  private let group: DispatchGroup

  init(_ group: DispatchGroup) {
    self.group = group
    group.enter()
  }

  deinit { group.leave() }
}

extension AFURLConnectionOperation {
  /// Returns operations that are followed by a block when all of them have finished, successfully or not.
  ///
  /// - Parameters:
  ///   - operations: The operations, which have not been started.
  ///   - progressBlock: Called on the main queue after each end, with the number of finished operations and the total.
  ///   - completionBlock: Called once on the main queue, after the last call of `progressBlock`.
  /// - Returns: The operations and an additional one, all to be added to a queue.
  public class func batch(
    ofRequestOperations operations: [AFURLConnectionOperation],
    progressBlock: (@Sendable (UInt, UInt) -> Void)? = nil,
    completionBlock: (@Sendable ([AFURLConnectionOperation]) -> Void)? = nil
  ) -> [Foundation.Operation] {
    let reports = DispatchGroup()
    // For a queue, an operation has finished before its end is reported.
    let last = BlockOperation { reports.notify(queue: .main) { completionBlock?(operations) } }
    let ended = ThreadSafe<UInt>(0)
    for operation in operations {
      last.addDependency(operation)
      reports.enter()
      operation.whenFinished {
        // Counted where it is reported, so that the numbers are in order.
        DispatchQueue.main.async {
          ended.value += 1
          progressBlock?(ended.value, UInt(operations.count))
          reports.leave()
        }
      }
    }
    return operations + [last]
  }
}
