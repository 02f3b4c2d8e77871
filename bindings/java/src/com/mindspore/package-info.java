/**
 * Models, runners that serve many threads, and the tensors that go in and come out.
 *
 * <p>The models run in a worker process, which is started with the first one, shared by all of
 * them, and ends with this process. Failures are shown by false, null or an empty list, with a line
 * in the log (java.util.logging, logger "com.mindspore"); {@code lastError()} of each object says
 * why, and after {@code throwing()} it throws a {@link com.mindspore.MSException} instead.
 */
package com.mindspore;
