// SPDX-License-Identifier: Apache-2.0

/// An HTTP client whose connections live on one run loop, from the connect to the end.
///
/// All types stand in here, so that the module adds one name to a program: ``HTTP/Client`` makes requests,
/// ``HTTP/Request`` and ``HTTP/Response`` say what is asked and answered, ``HTTP/Operation`` is a request that can be
/// paused and resumed, and ``HTTP/Error`` is what every function throws.
public enum HTTP {}
