package com.mindspore.internal;

import java.util.List;

/** What goes into a model, and what comes out. */
public record Description(List<TensorInfo> inputs, List<TensorInfo> outputs) {}
