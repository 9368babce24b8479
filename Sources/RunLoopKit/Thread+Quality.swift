// SPDX-License-Identifier: Apache-2.0

public import Foundation
public import RunLoopThreads

extension RunLoopThreads.Thread {
  /// How important the thread's work is.
  ///
  /// Linux knows only niceness: `.utility` asks for 5, `.background` for 15, and the others for no favour, because that
  /// would need a privilege. Setting it sets `configuration.niceness`; values that the system rejects are in
  /// `rejections`, as going back to a higher quality usually is for a running thread. Can be used from any thread. The
  /// corresponding Foundation property is `qualityOfService`.
  public var qualityOfService: QualityOfService {
    get { quality.flatMap(QualityOfService.init(rawValue:)) ?? .default }
    set {
      quality = newValue.rawValue
      let niceness = newValue.niceness
      // A thread that was never made nicer keeps what it has from its maker.
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
