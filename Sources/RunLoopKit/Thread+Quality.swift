// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopThreads

extension RunLoopThreads.Thread {
  /// The importance of the thread's work, `.default` unless it is set.
  ///
  /// Linux supports only niceness: `.utility` requests 5, `.background` requests 15, and the others request 0, because
  /// less would require a privilege. Setting it sets `configuration.niceness`. Values that the system rejects are
  /// recorded in `rejections`; this usually includes returning a running thread to a higher quality. Can be used from
  /// any thread. The corresponding Foundation property is `qualityOfService`.
  public var qualityOfService: QualityOfService {
    get { quality.flatMap(QualityOfService.init(rawValue:)) ?? .default }
    set {
      quality = newValue.rawValue
      let niceness = newValue.niceness
      // A thread whose niceness was never increased keeps the value inherited from its creator.
      if niceness > 0 || configuration.niceness != nil { setNiceness(niceness) }
    }
  }
}

extension QualityOfService {
  fileprivate var niceness: Int {
    switch self {
    case .userInteractive, .userInitiated, .default: 0
    case .utility: 5
    case .background: 15
    }
  }
}
