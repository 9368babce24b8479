// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import RunLoopCore
public import RunLoopInstruments
public import RunLoopSockets
public import RunLoopThreads

// These conformances make `localizedDescription` the error's text. Without them, Foundation prints "The operation
// could not be completed" and the number of the case.

/// An error of this package whose `localizedDescription` is its description.
public protocol DescribedError: LocalizedError, CustomStringConvertible {}

extension DescribedError {
  /// The error's description.
  public var errorDescription: String? { description }
}

extension SystemError: DescribedError {}
extension RunLoopError: DescribedError {}
extension InstrumentsError: DescribedError {}
extension PortError: DescribedError {}
extension ThreadError: DescribedError {}
extension SocketError: DescribedError {}
extension TLSError: DescribedError {}
extension StreamSecurityError: DescribedError {}
extension SocketActivationError: DescribedError {}
extension SocketAddressError: DescribedError {}
extension HostError: DescribedError {}
extension DatagramError: DescribedError {}
extension HostConnectionError: DescribedError {}
extension SpawnError: DescribedError {}
extension SpawnedProcess.RunError: DescribedError {}
extension PieceTooLongError: DescribedError {}
extension CutFrameError: DescribedError {}
