package com.mindspore.internal.wire;

import com.mindspore.check.Check;
import java.util.concurrent.atomic.AtomicInteger;

/** When the collector is reminded of memory that it does not see. */
public final class MappedTest {
  private MappedTest() {}

  public static void theCollectorIsRemindedWhenMuchHasComeAndNotAgainForWhatStays() {
    AtomicInteger reminders = new AtomicInteger();
    Mapped mapped = new Mapped(100, reminders::incrementAndGet);
    mapped.add(100);
    Check.equal(0, reminders.get());
    mapped.add(1);
    Check.equal(1, reminders.get());
    mapped.add(100); // all of it is in use
    Check.equal(1, reminders.get());
    mapped.add(1);
    Check.equal(2, reminders.get());
  }

  public static void whatIsUnmappedDoesNotCount() {
    AtomicInteger reminders = new AtomicInteger();
    Mapped mapped = new Mapped(100, reminders::incrementAndGet);
    for (int i = 0; i < 100; ++i) {
      mapped.add(60);
      mapped.remove(60);
    }
    Check.equal(0, reminders.get());
    mapped.add(150);
    mapped.remove(140); // what was reminded of has gone
    mapped.add(100);
    Check.equal(1, reminders.get());
    mapped.add(1);
    Check.equal(2, reminders.get());
  }
}
