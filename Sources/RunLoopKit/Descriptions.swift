// SPDX-License-Identifier: Apache-2.0

public import RunLoopCore
public import RunLoopThreads

// As Foundation's objects, ours say by a protocol that they can be described.
extension RunLoopCore.Port: CustomStringConvertible {}
extension RunLoopCore.RunLoop: CustomStringConvertible {}
extension RunLoopCore.Timer: CustomStringConvertible {}
extension RunLoopThreads.Thread: CustomStringConvertible {}
