package com.mindspore.internal;

import com.mindspore.check.Check;

/** Tests of Types. */
public final class TypesTest {
  private TypesTest() {}

  public static void everyTypeOfTheWireHasASize() {
    int[][] sizes = {{30, 1}, {31, 4}, {32, 1}, {33, 2}, {34, 4}, {35, 8}, {36, 4}, {37, 1},
        {38, 2}, {39, 4}, {40, 8}, {41, 4}, {42, 2}, {43, 4}, {44, 8}, {45, 2}, {51, 8}, {52, 16}};
    for (int[] row : sizes) {
      Check.equal(row[1], Types.itemBytes(row[0]));
    }
    for (int type : new int[] {-1, 0, 29, 46, 50, 53, 65536 + 43}) {
      Check.equal(0, Types.itemBytes(type));
    }
  }

  public static void aShapeWithoutDimsHasOneElement() {
    Check.equal(1L, Types.elements(new long[0]));
    Check.equal(4L, Types.bytes(43, new long[0]));
  }

  public static void aShapeThatIsOpenOrEmptyHasNoElements() {
    Check.equal(0L, Types.elements(new long[] {-1, 3}));
    Check.equal(0L, Types.elements(new long[] {Long.MAX_VALUE, Long.MAX_VALUE, 0}));
    Check.that(Types.isEmpty(new long[] {0, 3}), "no elements");
    Check.that(!Types.isEmpty(new long[] {0, -1}), "not known yet");
    Check.that(!Types.isEmpty(new long[] {1, 3}), "three elements");
  }

  public static void whatCannotBeCountedIsZero() {
    Check.equal(0L, Types.elements(new long[] {1L << 32, 1L << 31}));
    Check.equal(1L << 62, Types.elements(new long[] {1L << 31, 1L << 31}));
    Check.equal(0L, Types.bytes(43, new long[] {1L << 31, 1L << 31}));
    Check.equal(0L, Types.bytes(99, new long[] {2}));
  }

  public static void aShapeIsShownWithCommas() {
    Check.equal("[]", Types.shown(new long[0]));
    Check.equal("[-1,1,8,8]", Types.shown(new long[] {-1, 1, 8, 8}));
  }
}
