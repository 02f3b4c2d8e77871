package com.mindspore;

import com.mindspore.check.Check;
import java.util.List;

/** Results that do not fit the tensors for them. */
public final class ExchangeTest {
  private ExchangeTest() {}

  public static void anAnswerWithTooFewOutputsIsAFault() {
    List<MSTensor> outputs = List.of(MSTensor.of("y", new float[] {1}));
    MSException error =
        Check.throwsA(MSException.class, () -> Exchange.deliver(List.of(), outputs, null));
    Check.equal("WireError", error.kind());
  }
}
