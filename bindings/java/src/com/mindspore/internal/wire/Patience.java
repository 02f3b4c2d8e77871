package com.mindspore.internal.wire;

/** What is asked while an answer does not begin. */
@FunctionalInterface
interface Patience {
  /** Of who waits for a short time only. */
  Patience ENDLESS = () -> {};

  /** Called now and then; throws the MSException that ends the wait. */
  void check();
}
