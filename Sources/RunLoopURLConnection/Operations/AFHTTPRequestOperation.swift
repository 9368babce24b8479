// SPDX-License-Identifier: Apache-2.0

import Dispatch
public import Foundation
public import FoundationNetworking
import RunLoopCore

/// A request of HTTP as an operation, whose answer is checked and read by a serializer.
///
/// It is AFNetworking 2's class of this name.
open class AFHTTPRequestOperation: AFURLConnectionOperation, @unchecked Sendable {
  // Sendable: the condition guards what is made of the answer; what the program sets, it sets before the start.

  /// Checks the answer and reads its body; by default it takes every body and the statuses of success.
  open var responseSerializer = AFHTTPResponseSerializer()

  private let condition = NSCondition()
  // Guarded by the condition.
  private var answer: Serialized?
  /// The thread that reads the answer, while it does.
  private var reader: pthread_t?

  private static let processing = DispatchQueue(label: "AFNetworking.processing", attributes: .concurrent)

  /// The head of the answer, once that has arrived.
  public var httpResponse: HTTPURLResponse? { response as? HTTPURLResponse }

  /// What the serializer has made of the body; nil before the end, and while the serializer itself asks.
  ///
  /// As with AFNetworking, it is there beside an ``error`` that is about the answer's status.
  open var responseObject: Any? { serialized.object }

  open override var error: (any Error)? { super.error ?? (isFinished ? serialized.error : nil) }

  /// Returns a copy with the same serializer; see ``AFURLConnectionOperation/copy(with:)``.
  open override func copy(with zone: NSZone?) -> Any {
    let copy = super.copy(with: zone)
    (copy as? AFHTTPRequestOperation)?.responseSerializer = responseSerializer
    return copy
  }

  /// Reads the answer, once.
  ///
  /// Whoever asks meanwhile waits, as with AFNetworking, but for the serializer, for which there is no answer yet.
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

  /// Calls one of two blocks when it has finished, once, by `completionQueue` or the main queue.
  ///
  /// Unlike AFNetworking's it leaves `completionBlock` to the program, and may be called several times. If it has
  /// finished, the block is called then.
  open func setCompletionBlockWithSuccess(
    _ success: (@Sendable (AFHTTPRequestOperation, Any?) -> Void)?,
    failure: (@Sendable (AFHTTPRequestOperation, any Error) -> Void)? = nil
  ) {
    let (queue, group) = (completionQueue ?? .main, completionGroup)
    group?.enter()
    whenFinished { [self] in
      Self.processing.async { [self] in
        _ = serialized
        queue.async { [self] in
          if let error { failure?(self, error) } else { success?(self, responseObject) }
          group?.leave()
        }
      }
    }
  }
}

extension AFURLConnectionOperation {
  /// Operations that are followed by a block when all of them have finished, in whatever way.
  ///
  /// - Parameters:
  ///   - operations: The operations, which have not been started.
  ///   - progressBlock: Called by the main queue after each end, with how many have finished of how many.
  ///   - completionBlock: Called once by the main queue, after the last call of `progressBlock`.
  /// - Returns: The operations and one more, to be added to a queue.
  public class func batch(
    ofRequestOperations operations: [AFURLConnectionOperation],
    progressBlock: (@Sendable (UInt, UInt) -> Void)? = nil,
    completionBlock: (@Sendable ([AFURLConnectionOperation]) -> Void)? = nil
  ) -> [Foundation.Operation] {
    let reports = DispatchGroup()
    // An operation has finished for a queue before its end is reported.
    let last = BlockOperation { reports.notify(queue: .main) { completionBlock?(operations) } }
    let ended = ThreadSafe<UInt>(0)
    for operation in operations {
      last.addDependency(operation)
      reports.enter()
      operation.whenFinished {
        // Counted where it is reported, so that the numbers come in order.
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
