package com.mindspore.internal;

/**
 * A tensor without its data.
 *
 * @param type the number of docs/wire.md, which is that of DataType
 * @param shape -1 is a dim that is not known yet
 */
public record TensorInfo(String name, int type, long[] shape) {}
