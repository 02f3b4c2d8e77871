package com.mindspore.internal;

/** A tensor with data, as requests carry and answers bring it; the bytes are all of the memory. */
public record Filled(TensorInfo info, Memory memory) {}
